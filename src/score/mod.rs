//! Compares bytes: from the trees before, expected and actual, and the calls made, to a verdict, one class, and a
//! diagnosis. Pure.

pub mod class;
pub mod classify;
pub mod conduct;
mod lines;
pub mod relax;
mod wrong;

pub use class::{Class, ErrorClass, Flag, Limit, Skip, Verdict, Wrong};
pub use classify::{CallSeen, End, Evidence, Score, classify};
