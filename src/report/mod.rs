//! What people and CI read: projections of the record. All renderers share one [`Summary`].

pub mod compared;
pub mod markdown;
mod markup;
pub mod pairs;
pub mod summary;
mod tags;
pub mod terminal;
pub mod tools;
pub mod versus;

pub use summary::Summary;
