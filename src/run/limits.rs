//! What a run may spend before it ends by itself, cleanly and to be resumed.

use std::time::{Duration, Instant};

use crate::record::Row;

/// The limits; none is set unless asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub cost_usd: Option<f64>,
    /// Input and output together.
    pub tokens: Option<u64>,
    pub time: Option<Duration>,
}

/// What was spent so far.
#[derive(Debug)]
pub(super) struct Spent {
    since: Instant,
    cost_usd: f64,
    tokens: u64,
}

impl Spent {
    pub(super) fn new() -> Self {
        Spent { since: Instant::now(), cost_usd: 0.0, tokens: 0 }
    }

    /// What is not known cannot be counted.
    pub(super) fn add(&mut self, row: &Row) {
        self.cost_usd += row.cost_usd.unwrap_or(0.0);
        self.tokens = self.tokens.saturating_add(row.usage.total.unwrap_or(0));
    }

    /// Which limit is reached, in words.
    pub(super) fn over(&self, limits: &Limits) -> Option<String> {
        let cost = limits.cost_usd.filter(|most| self.cost_usd >= *most);
        let tokens = limits.tokens.filter(|most| self.tokens >= *most);
        let time = limits.time.filter(|most| self.since.elapsed() >= *most);
        cost.map(|most| format!("the limit of {most} dollars is reached: {:.4} spent", self.cost_usd))
            .or_else(|| tokens.map(|most| format!("the limit of {most} tokens is reached: {} used", self.tokens)))
            .or_else(|| time.map(|most| format!("the time limit of {} s is reached", most.as_secs_f64())))
    }
}
