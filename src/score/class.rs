//! Verdicts and classes: the closed list of `classes.md`.

use serde::{Deserialize, Serialize};

use crate::tool::Kind;

/// How a planned attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail,
    /// Infrastructure: no statement about the model.
    Error,
    Skipped,
}

impl Verdict {
    /// Whether it says something of the model: it passed or failed.
    pub fn is_judged(self) -> bool {
        matches!(self, Verdict::Pass | Verdict::Fail)
    }
}

/// Why. The name begins with the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    PassFirst,
    PassRecovered,
    PassAssisted,
    PassUntouched,
    Limit(Limit),
    Wrong(Wrong),
    MalformedJson,
    MalformedUnknownTool,
    MalformedArguments,
    MalformedPatch,
    Refused(Kind),
    NoEffect,
    TextCall,
    Declined,
    NoCall,
    Error(ErrorClass),
    Skipped(Skip),
}

/// The conversation was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Turns,
    Loop,
    Tokens,
    Context,
    Time,
}

/// How the tree is wrong, in the order in which the first that applies decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    ExtraFile,
    File,
    Meta,
    Target,
    Partial,
    Bom,
    Encoding,
    Eol,
    FinalNewline,
    Indent,
    TrailingWhitespace,
    Whitespace,
    Collateral,
    Content,
}

/// Why an attempt could not be carried to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    Auth,
    RateLimit,
    Server,
    Network,
    Timeout,
    Request,
    Response,
    Template,
    Context,
    Process,
    Recording,
    Harness,
}

/// Why an attempt never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    Limit,
    Stopped,
    Interrupted,
    Unsupported,
}

/// What is wrong with the bytes of a failed attempt; several may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    BlankLines,
    Bom,
    Collateral,
    Content,
    Encoding,
    Eol,
    ExtraFile,
    FinalNewline,
    Indent,
    InnerWhitespace,
    Mode,
    OffByOne,
    Partial,
    TrailingWhitespace,
    Unchanged,
    WrongFile,
    WrongTarget,
}

impl Class {
    pub fn verdict(self) -> Verdict {
        match self {
            Class::PassFirst | Class::PassRecovered | Class::PassAssisted | Class::PassUntouched => Verdict::Pass,
            Class::Error(_) => Verdict::Error,
            Class::Skipped(_) => Verdict::Skipped,
            _ => Verdict::Fail,
        }
    }

    /// The name in files and reports.
    pub fn name(self) -> String {
        match self {
            Class::PassFirst => "pass.first".to_owned(),
            Class::PassRecovered => "pass.recovered".to_owned(),
            Class::PassAssisted => "pass.assisted".to_owned(),
            Class::PassUntouched => "pass.untouched".to_owned(),
            Class::Limit(limit) => format!("fail.limit.{}", limit.name()),
            Class::Wrong(wrong) => format!("fail.wrong.{}", wrong.name()),
            Class::MalformedJson => "fail.malformed.json".to_owned(),
            Class::MalformedUnknownTool => "fail.malformed.unknown_tool".to_owned(),
            Class::MalformedArguments => "fail.malformed.arguments".to_owned(),
            Class::MalformedPatch => "fail.malformed.patch".to_owned(),
            Class::Refused(kind) => format!("fail.refused.{}", kind.name()),
            Class::NoEffect => "fail.no_effect".to_owned(),
            Class::TextCall => "fail.text_call".to_owned(),
            Class::Declined => "fail.declined".to_owned(),
            Class::NoCall => "fail.no_call".to_owned(),
            Class::Error(class) => format!("error.{}", class.name()),
            Class::Skipped(skip) => format!("skipped.{}", skip.name()),
        }
    }

    /// The class of a refused edit call that decided the attempt.
    pub fn of_refusal(kind: Kind) -> Self {
        match kind {
            Kind::JsonInvalid => Class::MalformedJson,
            Kind::UnknownTool => Class::MalformedUnknownTool,
            Kind::ArgsInvalid => Class::MalformedArguments,
            Kind::ParseFailed => Class::MalformedPatch,
            Kind::Io => Class::Error(ErrorClass::Harness),
            other => Class::Refused(other),
        }
    }
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Limit::Turns => "turns",
            Limit::Loop => "loop",
            Limit::Tokens => "tokens",
            Limit::Context => "context",
            Limit::Time => "time",
        }
    }
}

impl Wrong {
    pub fn name(self) -> &'static str {
        match self {
            Wrong::ExtraFile => "extra_file",
            Wrong::File => "file",
            Wrong::Meta => "meta",
            Wrong::Target => "target",
            Wrong::Partial => "partial",
            Wrong::Bom => "bom",
            Wrong::Encoding => "encoding",
            Wrong::Eol => "eol",
            Wrong::FinalNewline => "final_newline",
            Wrong::Indent => "indent",
            Wrong::TrailingWhitespace => "trailing_whitespace",
            Wrong::Whitespace => "whitespace",
            Wrong::Collateral => "collateral",
            Wrong::Content => "content",
        }
    }
}

impl ErrorClass {
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Auth => "auth",
            ErrorClass::RateLimit => "rate_limit",
            ErrorClass::Server => "server",
            ErrorClass::Network => "network",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Request => "request",
            ErrorClass::Response => "response",
            ErrorClass::Template => "template",
            ErrorClass::Context => "context",
            ErrorClass::Process => "process",
            ErrorClass::Recording => "recording",
            ErrorClass::Harness => "harness",
        }
    }
}

impl Skip {
    pub fn name(self) -> &'static str {
        match self {
            Skip::Limit => "limit",
            Skip::Stopped => "stopped",
            Skip::Interrupted => "interrupted",
            Skip::Unsupported => "unsupported",
        }
    }
}

/// What a class means, in a few words for reports. `None` for a name that is not in the list.
pub fn meaning(class: &str) -> Option<&'static str> {
    let words = match class {
        "pass.first" => "right, and no call was refused or malformed",
        "pass.recovered" => "right after at least one refused or malformed call",
        "pass.assisted" => "right, through a leniency of the tool",
        "pass.untouched" => "leaving the files as they were is accepted, and that is what happened",
        "fail.limit.turns" => "the allowed turns were used up",
        "fail.limit.loop" => "the same call was refused again and again",
        "fail.limit.tokens" => "an answer was cut by the output limit",
        "fail.limit.context" => "the conversation outgrew the context window",
        "fail.limit.time" => "the time of the attempt ran out",
        "fail.wrong.extra_file" => "the right files are right, and another one was changed, made or deleted",
        "fail.wrong.file" => "another file was changed instead",
        "fail.wrong.meta" => "contents right; a mode or the kind of a node is not",
        "fail.wrong.target" => "no changed line lies where one was to change",
        "fail.wrong.partial" => "only a part of the wanted changes is there",
        "fail.wrong.bom" => "the byte-order mark was lost or made",
        "fail.wrong.encoding" => "the same characters in other bytes",
        "fail.wrong.eol" => "a line ending differs",
        "fail.wrong.final_newline" => "the line break at the end of the file differs",
        "fail.wrong.indent" => "blanks at the start of a line differ",
        "fail.wrong.trailing_whitespace" => "blanks at the end of a line differ",
        "fail.wrong.whitespace" => "blanks inside a line, or blank lines differ",
        "fail.wrong.collateral" => "the wanted change is there, and other lines changed as well",
        "fail.wrong.content" => "the right place, another text",
        "fail.malformed.json" => "the arguments of the last edit call could not be parsed",
        "fail.malformed.unknown_tool" => "the last edit call named a tool that was not offered",
        "fail.malformed.arguments" => "an argument was missing, or of the wrong type or value",
        "fail.malformed.patch" => "the reply or patch could not be parsed",
        "fail.no_effect" => "the last edit call succeeded and the files are as before",
        "fail.text_call" => "the call was written as text, not made",
        "fail.declined" => "the provider marked the answer as a refusal",
        "fail.no_call" => "no edit call was made",
        "error.auth" => "the key is missing or was refused",
        "error.rate_limit" => "rate limited to the end of the retries",
        "error.server" => "the server failed to the end of the retries",
        "error.network" => "no connection, to the end of the retries",
        "error.timeout" => "no answer in time, to the end of the retries",
        "error.request" => "the server refuses the request as such",
        "error.response" => "an answer that is none",
        "error.template" => "the server's chat template fails on the conversation",
        "error.context" => "the first request does not fit the context window",
        "error.process" => "a program did not start, or died",
        "error.recording" => "the recording has no answer for this request",
        "error.harness" => "a fault of the harness or its workspace",
        "skipped.limit" => "a limit of the run was reached before it began",
        "skipped.stopped" => "the run was ended early by its own rule",
        "skipped.interrupted" => "the run was interrupted",
        "skipped.unsupported" => "this model or tool cannot take the case",
        other => {
            let kind = other.strip_prefix("fail.refused.")?;
            return refusal_meaning(kind);
        }
    };
    Some(words)
}

fn refusal_meaning(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "path_denied" => "refused: outside the workspace",
        "missing" => "refused: no such file",
        "exists" => "refused: the destination exists",
        "is_directory" => "refused: a directory",
        "not_regular" => "refused: not a regular file",
        "no_parent" => "refused: the directory does not exist",
        "binary" => "refused: a binary file",
        "too_large" => "refused: the file is too large",
        "not_read" => "refused: the file was not read first",
        "stale" => "refused: the file changed since it was read",
        "anchor_missing" => "refused: the text to replace is not there",
        "anchor_ambiguous" => "refused: the text to replace is there several times",
        "line_range" => "refused: no line with that number",
        "line_mismatch" => "refused: the numbered line lacks the text to find",
        "multi_line" => "refused: several lines as the content of one",
        "overlap" => "refused: ranges overlap",
        "no_change" => "refused: the edit changes nothing",
        "needs_force" => "refused: needs force",
        "not_empty" => "refused: the directory is not empty",
        "guard" => "refused: the edit would change more than it names",
        "approval" => "refused: not approved",
        _ => return None,
    })
}
