//! Conduct of an attempt: what its calls and answers show besides their result.

use std::collections::BTreeSet;

use crate::tool::Note;

/// What is known of one call for its conduct.
#[derive(Clone, Copy, Debug)]
pub struct Conducted<'a> {
    /// 0-based turn in which it was made.
    pub turn: usize,
    pub edit: bool,
    pub ok: bool,
    pub notes: &'a [Note],
}

/// The flags of an attempt, sorted. `seen` says that the conversation opened with a read; `asked` that the last answer
/// is a question; `call_in_thought` that a call stood in thought.
pub fn flags(calls: &[Conducted<'_>], seen: bool, asked: bool, call_in_thought: bool) -> Vec<Note> {
    let mut flags: BTreeSet<Note> = calls.iter().flat_map(|call| call.notes.iter().copied()).collect();
    if calls.windows(2).any(|pair| pair[0].turn == pair[1].turn) {
        flags.insert(Note::SeveralCalls);
    }
    let first_edit = calls.iter().position(|call| call.edit);
    let read_before = |edit: usize| calls[..edit].iter().any(|call| !call.edit && call.ok);
    if first_edit.is_some_and(|edit| !seen && !read_before(edit)) {
        flags.insert(Note::NoRead);
    }
    if asked {
        flags.insert(Note::Asked);
    }
    if call_in_thought {
        flags.insert(Note::CallInThought);
    }
    flags.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conduct_is_told_from_the_calls() {
        let call = |turn, edit| Conducted { turn, edit, ok: true, notes: &[] };
        assert_eq!(flags(&[call(0, false), call(1, true)], false, false, false), []);
        assert_eq!(flags(&[call(0, true)], false, true, false), [Note::NoRead, Note::Asked]);
        assert_eq!(flags(&[call(0, true)], true, false, true), [Note::CallInThought]);
        assert_eq!(flags(&[call(0, false), call(0, true)], false, false, false), [Note::SeveralCalls]);
    }
}
