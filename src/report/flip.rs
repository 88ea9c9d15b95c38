//! Cases that came out otherwise: what was, what is, and where the calls first differ.

use std::collections::BTreeMap;

use serde::Serialize;

use super::summary::name_of;
use crate::record::{CallRow, Row};
use crate::text::visible;

/// A case that came out otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Flip {
    pub model: String,
    pub tool: String,
    pub set: String,
    pub case: String,
    pub repeat: usize,
    /// Classes before and after.
    pub was: String,
    pub is: String,
    /// Where the two first differ, as far as the calls tell: which tool did what otherwise.
    pub because: String,
}

/// What the calls of two attempts tell of their difference.
pub(super) fn because(was: &Row, is: &Row) -> String {
    let names = |call: &CallRow| call.notes.iter().map(name_of).collect::<Vec<_>>();
    for (number, (before, after)) in was.calls.iter().zip(&is.calls).enumerate() {
        let tool = visible::excerpt(&after.tool, 40);
        if before.tool != after.tool {
            return format!("the model went another way at call {}", number + 1);
        }
        let kind = |call: &CallRow| call.kind.map_or("refused", crate::tool::Kind::name);
        let (gone, come): (Vec<String>, Vec<String>) = (
            names(before).into_iter().filter(|note| !names(after).contains(note)).collect(),
            names(after).into_iter().filter(|note| !names(before).contains(note)).collect(),
        );
        let noted = |list: &[String]| if list.is_empty() { String::new() } else { format!(" ({})", list.join(", ")) };
        match (before.ok, after.ok) {
            (true, false) => return format!("{tool} refuses what it took{}: {}", noted(&gone), kind(after)),
            (false, true) => return format!("{tool} takes what it refused{}: {}", noted(&come), kind(before)),
            (false, false) if kind(before) != kind(after) => {
                return format!("{tool} refuses otherwise: {} was {}", kind(after), kind(before));
            }
            _ if !gone.is_empty() => return format!("{tool} no longer does: {}", gone.join(", ")),
            _ if !come.is_empty() => return format!("{tool} now does: {}", come.join(", ")),
            _ if before.writes != after.writes => return format!("{tool} leaves other bytes after the same call"),
            _ => {}
        }
    }
    match is.calls.len().cmp(&was.calls.len()) {
        std::cmp::Ordering::Less => "the model made fewer calls".to_owned(),
        std::cmp::Ordering::Greater => "the model made more calls".to_owned(),
        std::cmp::Ordering::Equal => "calls alike, other bytes".to_owned(),
    }
}

/// Reasons of flips, most frequent first, with their cases.
pub fn reasons(flips: &[Flip]) -> Vec<(&str, Vec<&Flip>)> {
    let mut all: BTreeMap<&str, Vec<&Flip>> = BTreeMap::new();
    for flip in flips {
        all.entry(&flip.because).or_default().push(flip);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(b.0)));
    all
}

/// `−4 points, −9 to +1`.
pub fn points(estimate: f64, low: f64, high: f64) -> String {
    format!("{} points, {} to {}", signed(estimate), signed(low), signed(high))
}

fn signed(share: f64) -> String {
    let points = (share * 100.0).round();
    match points {
        0.0 => "0".to_owned(),
        points if points < 0.0 => format!("−{}", -points),
        points => format!("+{points}"),
    }
}

/// A p value as a person wants it.
pub fn p_words(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}
