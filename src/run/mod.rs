//! Decides when: the plan, one conversation an attempt, concurrency, limits. Here, and only here, models meet tools.

pub mod again;
pub mod attempt;
mod desk;
pub mod event;
pub mod fingerprint;
pub mod limits;
mod opening;
mod outcome;
pub mod plan;
pub mod progress;
pub mod prove;
pub mod schedule;
pub mod settings;

pub use event::{Consumer, Event, Finished};
pub use plan::{Plan, Planned};
pub use settings::{Prompt, RunSettings, StopAfter};
