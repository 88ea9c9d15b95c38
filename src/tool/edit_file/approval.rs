//! Approval (A20): which edits ask, and what an answer covers.

use std::collections::VecDeque;
use std::path::Path;

use serde::Deserialize;

use crate::tool::{Kind, Refusal};

/// How an edit is rated. Every edit is at least moderate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Rating {
    Moderate,
    Dangerous,
}

/// What the one who is asked says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reply {
    Once,
    /// Every later call of `edit_file *` in this session, whatever its rating.
    Session,
    /// Keyed to the same pattern; they would outlive the session, which is where this one ends.
    Project,
    Always,
    No,
}

/// Edits rated `ask_from` or higher ask; the n-th question gets the n-th answer, and none when they are used up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    ask_from: Rating,
    #[serde(default)]
    answers: VecDeque<Reply>,
}

/// The approvals of a session; without a policy all is approved.
#[derive(Debug)]
pub(super) struct Approvals {
    policy: Option<Policy>,
    approved_for_session: bool,
}

impl Approvals {
    pub(super) fn new(policy: Option<Policy>) -> Self {
        Approvals { policy, approved_for_session: false }
    }

    /// Judges the command `edit_file MODE PATH`. `resolved` is where the path really leads, so that a link to a key is rated as the key.
    pub(super) fn ask(&mut self, mode: &str, path: &str, resolved: Option<&Path>) -> Result<(), Refusal> {
        let Some(policy) = &mut self.policy else {
            return Ok(());
        };
        let dangerous = is_credential(path) || resolved.is_some_and(|path| is_credential(&path.to_string_lossy()));
        let rating = if dangerous { Rating::Dangerous } else { Rating::Moderate };
        if rating < policy.ask_from || self.approved_for_session {
            return Ok(());
        }
        let why = if dangerous { "edits a credential file" } else { "edits a file" };
        match policy.answers.pop_front() {
            Some(Reply::Once) => Ok(()),
            Some(Reply::Session | Reply::Project | Reply::Always) => {
                self.approved_for_session = true;
                Ok(())
            }
            Some(Reply::No) => Err(refusal(mode, path, why, "it was declined")),
            None => Err(refusal(mode, path, why, "nobody can answer")),
        }
    }
}

fn refusal(mode: &str, path: &str, why: &str, how: &str) -> Refusal {
    Refusal::new(
        Kind::Approval,
        format!("edit not approved: edit_file {mode} {path} ({why}), and {how}; nothing changed"),
    )
}

/// Paths that hold credentials: `.ssh/`, `.aws/credentials`, `.netrc`, private keys.
fn is_credential(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    let last = names.last().copied().unwrap_or_default();
    let key = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"].contains(&last)
        || [".pem", ".key", ".p12", ".pfx"].iter().any(|suffix| last.ends_with(suffix));
    key || last == ".netrc" || names.contains(&".ssh") || names.windows(2).any(|pair| pair == [".aws", "credentials"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approvals(ask_from: &str, answers: &[&str]) -> Approvals {
        Approvals::new(Some(
            serde_json::from_value(serde_json::json!({ "ask_from": ask_from, "answers": answers })).unwrap(),
        ))
    }

    #[test]
    fn answers_are_used_in_order_and_a_session_covers_the_rest() {
        let mut asked = approvals("moderate", &["once", "no", "session"]);
        assert!(asked.ask("write", "a", None).is_ok());
        assert!(asked.ask("write", "a", None).is_err());
        assert!(asked.ask("write", "a", None).is_ok());
        assert!(asked.ask("write", ".netrc", None).is_ok());
        for scope in ["session", "project", "always"] {
            let mut asked = approvals("moderate", &[scope]);
            assert!(asked.ask("write", "a", None).is_ok() && asked.ask("append", "id_rsa", None).is_ok(), "{scope}");
        }
        let mut nobody = approvals("dangerous", &[]);
        assert!(nobody.ask("write", "a", None).is_ok());
        assert!(nobody.ask("append", "home/.ssh/config", None).is_err());
        assert!(nobody.ask("write", "innocent", Some(Path::new("/x/.aws/credentials"))).is_err());
        assert!(Approvals::new(None).ask("write", "server.key", None).is_ok());
    }
}
