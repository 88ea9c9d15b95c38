//! The command line: one file a sub-command; parse, call, print. Data goes to stdout, messages to stderr.

mod cases;
mod compare;
mod exit;
mod floors;
mod gate;
mod history;
mod models;
mod output;
mod replay;
mod run;
mod tools;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub use exit::{Exit, Failure};

/// Can this model make this edit through this edit tool, byte for byte, and is it still as good as it was?
#[derive(Debug, Parser)]
#[command(name = "editgate", version, max_term_width = 100)]
struct Cli {
    /// Tell on stderr what is sent and what comes back, without anything secret
    #[arg(short, long, global = true, env = "EDITGATE_VERBOSE", value_parser = clap::builder::BoolishValueParser::new())]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drive models through edit tools over cases: score, record, report, gate
    ///
    /// Without -m it replays the recording of a real small model that ships in fixtures/.
    #[command(args_override_self = true)]
    Run(Box<run::RunFlags>),
    /// Run recorded answers against today's tools: what is unchanged, fixed, broken, or would have gone another way
    Replay(replay::ReplayFlags),
    /// Judge a recorded run against the floors
    Gate(gate::GateFlags),
    /// Compare runs, models or tools attempt by attempt: what was lost and gained, and whether that can be chance
    Compare(compare::CompareFlags),
    /// Render a recorded run again
    Report(gate::ReportFlags),
    /// Floors: show them, suggest them from history, set them
    #[command(subcommand)]
    Floors(floors::FloorsCommand),
    /// The history of runs, and the trend that is rebuilt from it
    #[command(subcommand)]
    History(history::HistoryCommand),
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
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = Cli::try_parse_from(&args).and_then(|cli| match &cli.command {
        Command::Run(flags) => match run::resumed_arguments(flags) {
            Ok(None) => Ok(Ok(cli)),
            Ok(Some(recorded)) => {
                let (program, given) = args.split_at(args.len().min(2));
                let words =
                    program.iter().cloned().chain(recorded.into_iter().map(OsString::from)).chain(given.to_vec());
                Cli::try_parse_from(words).map(Ok)
            }
            Err(failure) => Ok(Err(failure)),
        },
        _ => Ok(Ok(cli)),
    });
    let cli = match parsed {
        Ok(Ok(cli)) => cli,
        Ok(Err(failure)) => return told(&failure),
        Err(error) => {
            // Help and version are no errors; clap prints them to stdout.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Passed };
            let _ = error.print();
            return exit;
        }
    };
    if cli.verbose {
        output::trace();
    }
    let done = match cli.command {
        Command::Run(flags) => run::main(*flags),
        Command::Replay(flags) => replay::main(&flags),
        Command::Gate(flags) => gate::gate(&flags),
        Command::Compare(flags) => compare::main(&flags),
        Command::Report(flags) => gate::report(&flags),
        Command::Floors(command) => floors::main(&command),
        Command::History(command) => history::main(&command),
        Command::Models(command) => models::main(command),
        Command::Cases(command) => cases::main(command),
        Command::Tools(command) => tools::main(command),
    };
    match done {
        Ok(exit) => exit,
        Err(failure) => told(&failure),
    }
}

/// An error, told.
fn told(failure: &Failure) -> Exit {
    output::error(&failure.to_string());
    failure.exit
}
