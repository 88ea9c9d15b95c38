//! What people and CI read: projections of the record. All renderers share one [`Summary`].

mod baseline;
pub mod chart;
pub mod compared;
mod counts;
pub mod files;
pub mod flip;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
mod markup;
pub mod pairs;
mod panes;
pub mod summary;
mod tags;
pub mod terminal;
pub mod tools;
pub mod trend;
pub mod versus;

pub use summary::Summary;
