//! A recording as a model: the recorded bodies go through the same parser as live ones.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::protocol::{self, Protocol, interpret};
use super::recording::{Key, RecordedAnswer, Recording, RecordingError};
use super::{Brief, Conversation, Fault, FaultKind, Model, Raw, Request, Turn};
use crate::chat::{Answer, digest};

/// A recording, under the name of the model that was recorded.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
    protocol: &'static dyn Protocol,
    /// Where the recorded answers are played whatever they are asked: the first request of each attempt that is not the
    /// recorded one.
    diverged: Option<Diverged>,
}

/// The first request, from 1, of an attempt that was not the recorded one; one after the last where more was asked.
pub type Diverged = Rc<RefCell<HashMap<Key, usize>>>;

impl Replay {
    /// # Errors
    /// When it was recorded over a protocol that is not known here.
    pub fn new(recording: Recording) -> Result<Self, RecordingError> {
        let name = &recording.header.protocol;
        let reason = || format!("its protocol `{name}` is not known here");
        let protocol = protocol::named(name)
            .ok_or_else(|| RecordingError::Unreadable { path: recording.path.clone(), reason: reason() })?;
        Ok(Replay { recording, protocol, diverged: None })
    }

    /// Plays the recorded answers whatever is asked, and notes where something else is.
    ///
    /// # Errors
    /// As [`Replay::new`].
    pub fn loosely(recording: Recording, diverged: Diverged) -> Result<Self, RecordingError> {
        Ok(Replay { diverged: Some(diverged), ..Self::new(recording)? })
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
        Box::new(Playing {
            answers: self.recording.answers(brief.key),
            protocol: self.protocol,
            key: brief.key,
            diverged: self.diverged.as_ref(),
            turn: 0,
        })
    }
}

struct Playing<'a> {
    answers: Option<&'a [RecordedAnswer]>,
    protocol: &'static dyn Protocol,
    key: &'a Key,
    diverged: Option<&'a Diverged>,
    turn: usize,
}

impl Conversation for Playing<'_> {
    fn answer<'a>(&'a mut self, request: Request<'a>) -> LocalBoxFuture<'a, Turn> {
        async move {
            self.turn += 1;
            match self.find(request) {
                // The recording has nothing to say to what is asked now: the conversation is over.
                Err(_) if self.diverged.is_some() => Turn::plain(Ok(Answer::default())),
                Err(message) => Turn::plain(Err(Fault::new(FaultKind::Recording, message))),
                Ok(answer) => {
                    let outcome = match (&answer.fault, &answer.body) {
                        (Some(fault), _) => Err(fault.clone()),
                        (None, Some(body)) => interpret(self.protocol, body),
                        (None, None) => Err(Fault::new(FaultKind::Recording, "the recording holds an empty answer")),
                    };
                    let raw = Raw {
                        request: json!({ "replayed": answer.request }),
                        status: None,
                        body: answer.body.clone().unwrap_or(Value::Null),
                    };
                    Turn { raw: Some(raw), ms: answer.ms, first_byte_ms: answer.first_byte_ms, ..Turn::plain(outcome) }
                }
            }
        }
        .boxed_local()
    }
}

impl Playing<'_> {
    fn find(&self, request: Request<'_>) -> Result<&RecordedAnswer, String> {
        let case = &self.key.case;
        let answers = self.answers.ok_or_else(|| format!("the recording has no attempt of {case}"))?;
        let answer = answers.get(self.turn - 1);
        let same = answer.is_some_and(|answer| answer.request == digest(request.functions, request.messages));
        if let Some(diverged) = self.diverged
            && !same
        {
            diverged.borrow_mut().entry(self.key.clone()).or_insert(self.turn);
        }
        match answer {
            Some(answer) if same || self.diverged.is_some() => Ok(answer),
            Some(_) => Err(format!(
                "request {} of {case} is not the recorded one: its prompt, tool or tool results have changed since; record again",
                self.turn
            )),
            None => Err(format!(
                "the recording ends after {} answers, and {case} needs another: the conversation has become another",
                answers.len()
            )),
        }
    }
}
