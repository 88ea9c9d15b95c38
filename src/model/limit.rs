//! How many requests an endpoint gets at once and in a minute: fewer after a 429, more again while all is well.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

const MINUTE: Duration = Duration::from_secs(60);

/// What an endpoint may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Requests at once at most; 0 = as many as there are.
    pub at_once: usize,
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
}

/// The gate before one endpoint: additive increase, multiplicative decrease, as TCP has it.
#[derive(Debug)]
pub(super) struct Limiter {
    quota: Quota,
    state: RefCell<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// Requests allowed at once now; a share of one is saved up for the next.
    window: f64,
    flying: usize,
    /// Counts the cuts: only one that was let in after the last cut may cut again.
    cuts: u64,
    paused: Option<Instant>,
    started: VecDeque<Instant>,
    spent: VecDeque<(Instant, u64)>,
}

/// Leave to ask once; dropping it frees the place.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    limiter: &'a Limiter,
    cuts: u64,
}

impl Limiter {
    pub(super) fn new(quota: Quota) -> Self {
        let window = if quota.at_once == 0 { f64::from(u32::MAX) } else { quota.at_once as f64 };
        let state =
            State { window, flying: 0, cuts: 0, paused: None, started: VecDeque::new(), spent: VecDeque::new() };
        Limiter { quota, state: RefCell::new(state), changed: Notify::new() }
    }

    /// Waits until a request may go out.
    pub(super) async fn enter(&self) -> Pass<'_> {
        loop {
            // Listening begins before looking, so that no change goes unheard.
            let changed = self.changed.notified();
            let until = match self.try_enter(Instant::now()) {
                Ok(pass) => return pass,
                Err(until) => until,
            };
            either(changed, until).await;
        }
    }

    /// A pass, or the moment from which on it is worth asking again; `None` = when something changes.
    fn try_enter(&self, now: Instant) -> Result<Pass<'_>, Option<Instant>> {
        let mut state = self.state.borrow_mut();
        if let Some(paused) = state.paused.filter(|paused| *paused > now) {
            return Err(Some(paused));
        }
        let old = |at: Instant| now.duration_since(at) >= MINUTE;
        while state.started.front().is_some_and(|at| old(*at)) {
            state.started.pop_front();
        }
        while state.spent.front().is_some_and(|(at, _)| old(*at)) {
            state.spent.pop_front();
        }
        if state.flying as f64 + 1.0 > state.window.max(1.0) {
            return Err(None);
        }
        if self.quota.requests_per_minute.is_some_and(|most| state.started.len() as u64 >= most.max(1)) {
            return Err(state.started.front().map(|at| *at + MINUTE));
        }
        if let Some(most) = self.quota.tokens_per_minute {
            let spent: u64 = state.spent.iter().map(|(_, tokens)| tokens).sum();
            // Those in flight will cost about what the others did.
            let usual = spent / (state.spent.len() as u64).max(1);
            if spent + usual * state.flying as u64 >= most.max(1) {
                let next = state.spent.front().map(|(at, _)| *at + MINUTE);
                return Err(next.filter(|_| state.flying == 0 || spent >= most));
            }
        }
        state.flying += 1;
        if self.quota.requests_per_minute.is_some() {
            state.started.push_back(now);
        }
        Ok(Pass { limiter: self, cuts: state.cuts })
    }

    /// Tokens of an answer.
    pub(super) fn spend(&self, tokens: u64) {
        if self.quota.tokens_per_minute.is_some() {
            self.state.borrow_mut().spent.push_back((Instant::now(), tokens));
        }
    }
}

impl Pass<'_> {
    /// The answer came: one more at once for every round of them.
    pub(super) fn answered(&self) {
        let mut state = self.limiter.state.borrow_mut();
        let ceiling =
            if self.limiter.quota.at_once == 0 { f64::from(u32::MAX) } else { self.limiter.quota.at_once as f64 };
        state.window = (state.window + 1.0 / state.window.max(1.0)).min(ceiling);
    }

    /// The endpoint has had enough: half as many at once, and none before `pause` is over.
    pub(super) fn refused(&self, pause: Option<Duration>) {
        let mut state = self.limiter.state.borrow_mut();
        if state.cuts == self.cuts {
            state.window = (state.window.min(state.flying as f64) / 2.0).max(1.0);
            state.cuts += 1;
            tracing::debug!(at_once = state.window, "rate limited: fewer requests at once");
        }
        let until = pause.map(|pause| Instant::now() + pause);
        state.paused = state.paused.max(until);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.limiter.state.borrow_mut();
        state.flying = state.flying.saturating_sub(1);
        self.limiter.changed.notify_waiters();
    }
}

async fn either(changed: impl Future<Output = ()>, until: Option<Instant>) {
    match until {
        None => changed.await,
        Some(until) => tokio::select! {
            () = changed => {}
            () = sleep_until(until) => {}
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(at_once: usize, requests: Option<u64>, tokens: Option<u64>) -> Limiter {
        Limiter::new(Quota { at_once, requests_per_minute: requests, tokens_per_minute: tokens })
    }

    #[tokio::test(start_paused = true)]
    async fn fewer_after_a_refusal_and_more_again() {
        let limiter = limiter(8, None, None);
        let mut passes = Vec::new();
        for _ in 0..8 {
            passes.push(limiter.enter().await);
        }
        assert!(limiter.try_enter(Instant::now()).is_err());
        // Refusals of one round cut once.
        passes.iter().for_each(|pass| pass.refused(Some(Duration::from_secs(5))));
        assert_eq!(limiter.state.borrow().window, 4.0);
        drop(passes);
        let before = Instant::now();
        let pass = limiter.enter().await;
        assert_eq!(before.elapsed(), Duration::from_secs(5));
        for _ in 0..100 {
            pass.answered();
        }
        assert_eq!(limiter.state.borrow().window, 8.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_so_many_requests_and_tokens() {
        let requests = limiter(0, Some(2), None);
        let start = Instant::now();
        for _ in 0..5 {
            drop(requests.enter().await);
        }
        assert_eq!(start.elapsed(), Duration::from_secs(120));
        let tokens = limiter(0, None, Some(100));
        let start = Instant::now();
        for _ in 0..3 {
            drop(tokens.enter().await);
            tokens.spend(60);
        }
        assert_eq!(start.elapsed(), Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_freed_place_is_taken() {
        let limiter = limiter(1, None, None);
        let first = limiter.enter().await;
        let second = async {
            drop(limiter.enter().await);
        };
        let free = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(first);
        };
        tokio::join!(second, free);
    }
}
