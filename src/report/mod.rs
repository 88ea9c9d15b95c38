//! What people and CI read: projections of the record. All renderers share one [`Summary`].

pub mod compared;
mod counts;
pub mod html;
pub mod markdown;
mod markup;
pub mod pairs;
mod panes;
pub mod summary;
mod tags;
pub mod terminal;
pub mod tools;
pub mod versus;

pub use summary::Summary;
