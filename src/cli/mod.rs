//! The command line: one file a sub-command; parse, call, print. Data goes to stdout, messages to stderr.

mod cases;
mod exit;
mod output;
mod tools;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub use exit::{Exit, Failure};

/// Can this model make this edit through this edit tool, byte for byte, and is it still as good as it was?
#[derive(Debug, Parser)]
#[command(name = "editgate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at case sets
    #[command(subcommand)]
    Cases(cases::CasesCommand),
    /// Look at edit tools, and run calls against a directory
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
}

/// Runs the command line and says how it ended. Errors are told on stderr, one line each.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap prints them to stdout.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Passed };
            let _ = error.print();
            return exit;
        }
    };
    let done = match cli.command {
        Command::Cases(command) => cases::main(command),
        Command::Tools(command) => tools::main(command),
    };
    match done {
        Ok(exit) => exit,
        Err(failure) if output::is_broken_pipe(&failure.error) => Exit::Passed,
        Err(failure) => {
            output::error(&failure.to_string());
            failure.exit
        }
    }
}
