//! The command line: one file a sub-command; parse, call, print. Data goes to stdout, messages to stderr.

mod cases;
mod exit;
mod gate;
mod models;
mod output;
mod run;
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
    /// Drive models through edit tools over cases: score, record, report, gate
    ///
    /// Without -m it replays the recording of a real small model that ships in fixtures/.
    Run(Box<run::RunFlags>),
    /// Judge a recorded run against the floors
    Gate(gate::GateFlags),
    /// Render a recorded run again
    Report(gate::ReportFlags),
    /// Show the floors, or set them from a run
    #[command(subcommand)]
    Floors(gate::FloorsCommand),
    /// Look at models
    #[command(subcommand)]
    Models(models::ModelsCommand),
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
        Command::Run(flags) => run::main(*flags),
        Command::Gate(flags) => gate::gate(&flags),
        Command::Report(flags) => gate::report(&flags),
        Command::Floors(command) => gate::floors(&command),
        Command::Models(command) => models::main(command),
        Command::Cases(command) => cases::main(command),
        Command::Tools(command) => tools::main(command),
    };
    match done {
        Ok(exit) => exit,
        Err(failure) => {
            output::error(&failure.to_string());
            failure.exit
        }
    }
}
