//! One conversation for one case, in a fresh workspace: the only place where a model meets a tool.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::desk::{Desk, as_call, reads, solve};
use super::event::Finished;
use super::opening;
use super::plan::Planned;
use super::settings::{RunSettings, StopAfter};
use crate::case::tree::DEFAULT_MODE;
use crate::case::{Node, Tree};
use crate::chat::{Answer, Arguments, Arrival, Call, Finish, Function, Message, Usage};
use crate::model::text_calls::{self, TextCalls};
use crate::model::{Brief, Fault, FaultKind, Request, Turn};
use crate::record::{CallRow, TurnRecord};
use crate::score::{End, ErrorClass, Limit, Skip};
use crate::text::visible;
use crate::tool::{Kind, Note, Outcome, Refusal};
use crate::workspace::{Workspaces, snapshot};

/// Carries one attempt to its end. Never fails: a fault of the harness is an `error` row.
pub async fn attempt(planned: Planned<'_>, settings: &RunSettings, workspaces: &Workspaces) -> Finished {
    let started = Instant::now();
    let mut talk = Talk::new(planned, settings);
    let outcome = talk.carry_out(workspaces).await;
    let mut finished = talk.finish(outcome);
    finished.row.elapsed_ms = Some(millis(started.elapsed()));
    finished
}

/// An attempt that never started.
pub fn skipped(planned: Planned<'_>, settings: &RunSettings, skip: Skip, why: &str) -> Finished {
    Talk::new(planned, settings).finish(Ended::Skipped(skip, why.to_owned()))
}

/// How an attempt ended.
pub(super) enum Ended {
    /// The trees were compared. The text says why it was cut, if it was.
    Judged {
        trees: Box<Trees>,
        end: Option<(End, String)>,
    },
    Harness(String),
    Skipped(Skip, String),
}

pub(super) struct Trees {
    pub(super) before: Tree,
    pub(super) accepted: Vec<Tree>,
    pub(super) actual: Tree,
}

/// What is collected while the conversation goes on.
pub(super) struct Talk<'a> {
    pub(super) planned: Planned<'a>,
    pub(super) settings: &'a RunSettings,
    pub(super) messages: Vec<Message>,
    pub(super) turns: Vec<TurnRecord>,
    /// The settings of the last request.
    asked: Option<Value>,
    pub(super) calls: Vec<(usize, CallRow)>,
    pub(super) malformed: Vec<Arguments>,
    pub(super) usage: Usage,
    pub(super) answers: usize,
    pub(super) model_ms: u64,
    pub(super) first_byte_ms: Option<u64>,
    pub(super) dropped_params: Vec<String>,
    pub(super) last_answer: Option<Answer>,
    pub(super) last_edit: Option<String>,
    pub(super) last_error: Option<String>,
    pub(super) seen: bool,
}

impl<'a> Talk<'a> {
    fn new(planned: Planned<'a>, settings: &'a RunSettings) -> Self {
        Talk {
            planned,
            settings,
            messages: Vec::new(),
            turns: Vec::new(),
            asked: None,
            calls: Vec::new(),
            malformed: Vec::new(),
            usage: Usage::ZERO,
            answers: 0,
            model_ms: 0,
            first_byte_ms: Some(0),
            dropped_params: Vec::new(),
            last_answer: None,
            last_edit: None,
            last_error: None,
            seen: false,
        }
    }

    async fn carry_out(&mut self, workspaces: &Workspaces) -> Ended {
        let (case, tool) = (self.planned.case, self.planned.tool);
        self.messages = opening::messages(case, tool, self.settings.prompt);
        let sandbox = match workspaces.open() {
            Ok(sandbox) => sandbox,
            Err(error) => return Ended::Harness(format!("cannot make a workspace: {error}")),
        };
        let options = self.settings.tool_options.get(tool.name()).unwrap_or(&Value::Null);
        let session = match tool.open(sandbox.root(), options) {
            Ok(session) => session,
            Err(error) => return Ended::Harness(error.to_string()),
        };
        if let Err(error) = sandbox.put_beside(&case.outside) {
            return Ended::Harness(format!("cannot fill the place beside the workspace: {error}"));
        }
        let mut desk = Desk::new(case, sandbox.root(), session);
        if let Err(why) = self.open(&mut desk) {
            return Ended::Harness(why);
        }
        let end = self.converse(&mut desk).await;
        let end = match end {
            Ok(end) => end,
            Err(Stop::Unsupported(why)) => return Ended::Skipped(Skip::Unsupported, why),
            Err(Stop::Harness(why)) => return Ended::Harness(why),
        };
        let trees = snapshot::take(sandbox.root()).and_then(|actual| Ok((actual, sandbox.beside()?)));
        let (mut actual, beside) = match trees {
            Ok(trees) => trees,
            Err(error) => return Ended::Harness(format!("cannot read the workspace: {error}")),
        };
        let mut before = desk.base.borrow().clone();
        // What stands beside the workspace is compared like a part of it: nothing that escapes goes unseen.
        before.add_beside(&case.outside);
        actual.add_beside(&beside);
        let accepted = case.accepted_from(&before);
        Ended::Judged { trees: Box::new(Trees { before, accepted, actual }), end }
    }

    /// Puts the files in place. What the model has seen earlier is read first, by the tool under test.
    fn open(&mut self, desk: &mut Desk<'_>) -> Result<(), String> {
        let case = self.planned.case;
        let files = |error: io::Error| format!("cannot fill the workspace: {error}");
        if case.seen.is_empty() {
            return snapshot::materialise(&case.files, desk.root).map_err(files);
        }
        let mut earlier = case.files.clone();
        for (path, bytes) in &case.seen {
            let mode = match case.files.get(path) {
                Some(Node::File { mode, .. }) => *mode,
                _ => DEFAULT_MODE,
            };
            earlier.insert(path.clone(), Node::File { bytes: bytes.clone(), mode });
        }
        snapshot::materialise(&earlier, desk.root).map_err(files)?;
        for (number, path) in case.seen.keys().enumerate() {
            let planned = self.planned.tool.read_call(path);
            let outcome =
                desk.session.call(&planned.function, &planned.arguments).map_err(|error| error.to_string())?;
            let call = as_call(&planned, format!("seen{:05}", number + 1));
            self.messages.push(Message::Assistant { text: String::new(), calls: vec![call.clone()], echo: None });
            self.messages.push(Message::Tool { id: call.id, name: call.name, text: outcome.text });
            self.seen = true;
        }
        snapshot::clear(desk.root).map_err(files)?;
        snapshot::materialise(&case.files, desk.root).map_err(files)
    }

    async fn converse(&mut self, desk: &mut Desk<'_>) -> Result<Option<(End, String)>, Stop> {
        let planned = self.planned;
        let key = planned.key();
        let reads = reads(planned.case, planned.tool);
        let (root, base) = (desk.root, Rc::clone(&desk.base));
        let solve = || solve(planned.case, planned.tool, root, &base.borrow());
        let mut conversation = planned.model.converse(Brief { key: &key, reads: &reads, solve: &solve });
        let mut left = self.settings.timeout;
        let mut refused: HashMap<(String, String), usize> = HashMap::new();
        let mut edits = 0;
        for turn in 0..self.settings.max_turns {
            let request = Request { functions: &planned.offer.functions, messages: &self.messages, left };
            let (asked, sent) = (Instant::now(), planned.offer.digest.digest(&self.messages));
            let answered = conversation.answer(request).await;
            // Only what the model took is its time; what infrastructure cost is not.
            let took = asked.elapsed().saturating_sub(answered.waited);
            left = left.saturating_sub(took);
            let answer = match self.note(answered, sent, took) {
                Ok(answer) => answer,
                Err(fault) => return self.fault(self.late(fault, took)),
            };
            if answer.finish == Finish::Length {
                return Ok(Some((
                    End::Limit(Limit::Tokens),
                    "an answer was cut by the output limit; nothing of it was run".to_owned(),
                )));
            }
            let calls = self.calls_of(&answer);
            if calls.is_empty() {
                return Ok(None);
            }
            for call in calls {
                let outcome = self.run(desk, turn, &call)?;
                let edited = outcome.ok && self.edits(&call.name);
                self.messages.push(Message::Tool { id: call.id.clone(), name: call.name.clone(), text: outcome.text });
                edits += usize::from(edited);
                if edited && self.settings.stop_after == StopAfter::Edit && edits >= planned.case.places() {
                    return Ok(None);
                }
                if !outcome.ok {
                    let count = refused.entry((call.name, call.arguments.as_written().to_owned())).or_default();
                    *count += 1;
                    if *count >= self.settings.identical_limit {
                        return Ok(Some((End::Limit(Limit::Loop), format!("the same call was refused {count} times"))));
                    }
                }
            }
        }
        Ok(Some((End::Limit(Limit::Turns), format!("all {} turns were used", self.settings.max_turns))))
    }

    /// Takes an answer into the record and the history.
    fn note(&mut self, turn: Turn, request: String, elapsed: Duration) -> Result<Answer, Fault> {
        let took = turn.ms.unwrap_or_else(|| millis(elapsed));
        self.model_ms = self.model_ms.saturating_add(took);
        self.first_byte_ms = Usage::sum(self.first_byte_ms, turn.first_byte_ms);
        self.dropped_params = turn.dropped_params;
        let raw = turn.raw.map(|mut raw| {
            match self.asked.as_ref() {
                Some(before) if *before == raw.request => raw.request = Value::Null,
                _ => self.asked = Some(raw.request.clone()),
            }
            raw
        });
        self.turns.push(TurnRecord {
            messages: self.messages.len(),
            request,
            raw,
            fault: turn.outcome.as_ref().err().cloned(),
            ms: Some(took),
            first_byte_ms: turn.first_byte_ms,
            retries: turn.retries,
        });
        let answer = turn.outcome?;
        self.answers += 1;
        self.usage = self.usage.plus(answer.usage);
        self.last_answer = Some(answer.clone());
        Ok(answer)
    }

    /// The calls to run, and the answer's place in the history.
    fn calls_of(&mut self, answer: &Answer) -> Vec<Call> {
        let mut calls = answer.calls.clone();
        let mut text = answer.text.clone();
        if calls.is_empty() && self.planned.text_calls == TextCalls::Accept {
            calls = text_calls::meant(&answer.text, self.offered());
            if !calls.is_empty() {
                text.clear();
            }
        }
        self.messages.push(Message::Assistant { text, calls: calls.clone(), echo: answer.echo.clone() });
        calls
    }

    fn edits(&self, function: &str) -> bool {
        self.planned.offer.offered.iter().any(|offered| offered.edits && offered.function.name == function)
    }

    fn run(&mut self, desk: &mut Desk<'_>, turn: usize, call: &Call) -> Result<Outcome, Stop> {
        let known = self.planned.offer.offered.iter().find(|offered| offered.function.name == call.name);
        // A call of something that was not offered counts as an edit call.
        let edit = known.is_none_or(|offered| offered.edits);
        let mut outcome = match (known, call.arguments.object()) {
            (None, _) => Outcome::from(Refusal::new(
                Kind::UnknownTool,
                format!("there is no tool \"{}\"; there are: {}", visible::excerpt(&call.name, 60), self.names()),
            )),
            (Some(_), None) => {
                self.malformed.push(call.arguments.clone());
                let why = match &call.arguments {
                    Arguments::Malformed { error, .. } => error.as_str(),
                    Arguments::Object { .. } => "not an object",
                };
                Outcome::from(Refusal::new(
                    Kind::JsonInvalid,
                    format!("the arguments are not a JSON object ({why}); nothing was run"),
                ))
            }
            (Some(_), Some(arguments)) => {
                let rewritten = |error| Stop::Harness(format!("cannot rewrite files: {error}"));
                desk.before(edit).map_err(rewritten)?;
                let outcome =
                    desk.session.call(&call.name, &arguments).map_err(|error| Stop::Harness(error.to_string()))?;
                desk.after(edit, outcome.ok).map_err(rewritten)?;
                outcome
            }
        };
        if call.arrival == Arrival::Text {
            outcome.notes.push(Note::CallFromText);
        }
        if edit {
            self.last_edit = Some(call.arguments.as_written().to_owned());
        }
        if !outcome.ok {
            self.last_error = Some(outcome.text.clone());
        }
        let row = CallRow {
            tool: call.name.clone(),
            edit,
            ok: outcome.ok,
            kind: outcome.kind,
            notes: outcome.notes.clone(),
            arrival: call.arrival,
            writes: outcome.writes.clone(),
        };
        self.calls.push((turn, row));
        Ok(outcome)
    }

    pub(super) fn offered(&self) -> &[Function] {
        &self.planned.offer.functions
    }

    fn names(&self) -> String {
        self.offered().iter().map(|function| function.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The attempt's time is over. A request that has waited longer than any request may is the server's fault.
    fn late(&self, fault: Fault, waited: Duration) -> Fault {
        if fault.kind != FaultKind::OutOfTime {
            return fault;
        }
        let kind = if waited >= self.settings.request_timeout { FaultKind::Timeout } else { fault.kind };
        Fault::new(kind, format!("the attempt took longer than {} s", self.settings.timeout.as_secs_f64()))
    }

    /// What a fault of the model's side means for the attempt.
    fn fault(&mut self, fault: Fault) -> Result<Option<(End, String)>, Stop> {
        let class = match fault.kind {
            FaultKind::Auth => ErrorClass::Auth,
            FaultKind::RateLimit => ErrorClass::RateLimit,
            FaultKind::Server => ErrorClass::Server,
            FaultKind::Network => ErrorClass::Network,
            FaultKind::OutOfTime if self.answers > 0 => return Ok(Some((End::Limit(Limit::Time), fault.message))),
            FaultKind::Timeout | FaultKind::OutOfTime => ErrorClass::Timeout,
            FaultKind::Request => ErrorClass::Request,
            FaultKind::Response | FaultKind::Garbled => ErrorClass::Response,
            FaultKind::Template => ErrorClass::Template,
            FaultKind::Recording => ErrorClass::Recording,
            FaultKind::Context if self.answers > 0 => return Ok(Some((End::Limit(Limit::Context), fault.message))),
            FaultKind::Context => ErrorClass::Context,
            FaultKind::Unsupported => return Err(Stop::Unsupported(fault.message)),
            FaultKind::BadCall => {
                // The model's own bad call, which its server could not even pass on.
                let row = CallRow {
                    tool: self.planned.tool.name().to_owned(),
                    edit: true,
                    ok: false,
                    kind: Some(Kind::JsonInvalid),
                    notes: Vec::new(),
                    arrival: Arrival::Native,
                    writes: Vec::new(),
                };
                self.calls.push((self.turns.len(), row));
                self.last_error = Some(fault.message.clone());
                return Ok(None);
            }
        };
        Ok(Some((End::Error(class), fault.message)))
    }
}

/// Why a conversation stopped without anything to judge.
enum Stop {
    Unsupported(String),
    Harness(String),
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
