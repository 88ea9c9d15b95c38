//! Exit codes; nothing else. Everything is in the library.

fn main() -> std::process::ExitCode {
    editgate::cli::main(std::env::args_os()).into()
}
