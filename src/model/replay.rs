//! A recording as a model: the recorded bodies go through the same parser as live ones.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::openai::interpret;
use super::recording::{RecordedAnswer, Recording};
use super::{Brief, Conversation, Fault, FaultKind, Model, Raw, Request, Turn};
use crate::chat::digest;

/// A recording, under the name of the model that was recorded.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
}

impl Replay {
    pub fn new(recording: Recording) -> Self {
        Replay { recording }
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.recording.header.model
    }

    fn facts(&self) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        std::future::ready(Ok(self.recording.header.server.clone())).boxed_local()
    }

    fn converse<'a>(&'a self, brief: Brief<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(Playing { answers: self.recording.answers(brief.key), case: &brief.key.case, turn: 0 })
    }
}

struct Playing<'a> {
    answers: Option<&'a [RecordedAnswer]>,
    case: &'a str,
    turn: usize,
}

impl Conversation for Playing<'_> {
    fn answer<'a>(&'a mut self, request: Request<'a>) -> LocalBoxFuture<'a, Turn> {
        async move {
            self.turn += 1;
            match self.find(request) {
                Err(message) => Turn::plain(Err(Fault::new(FaultKind::Recording, message))),
                Ok(answer) => {
                    let outcome = match (&answer.fault, &answer.body) {
                        (Some(fault), _) => Err(fault.clone()),
                        (None, Some(body)) => interpret(body).await,
                        (None, None) => Err(Fault::new(FaultKind::Recording, "the recording holds an empty answer")),
                    };
                    let raw = Raw {
                        request: json!({ "replayed": answer.request }),
                        status: None,
                        body: answer.body.clone().unwrap_or(Value::Null),
                    };
                    Turn { outcome, raw: Some(raw), retries: Vec::new(), dropped_params: Vec::new(), ms: answer.ms }
                }
            }
        }
        .boxed_local()
    }
}

impl Playing<'_> {
    fn find(&self, request: Request<'_>) -> Result<&RecordedAnswer, String> {
        let answers = self.answers.ok_or_else(|| format!("the recording has no attempt of {}", self.case))?;
        let answer = answers.get(self.turn - 1).ok_or_else(|| {
            format!(
                "the recording ends after {} answers, and {} needs another: the conversation has become another",
                answers.len(),
                self.case
            )
        })?;
        if answer.request == digest(request.functions, request.messages) {
            Ok(answer)
        } else {
            Err(format!(
                "request {} of {} is not the recorded one: its prompt, tool or tool results have changed since; record again",
                self.turn, self.case
            ))
        }
    }
}
