//! A case's directory: create it, stay inside it, write atomically, snapshot it, clean it up.

pub mod confine;
pub mod nodes;
pub mod sandbox;
pub mod snapshot;
pub mod write;

pub use confine::{Confined, PathFault};
pub use sandbox::{Sandbox, Workspaces};
