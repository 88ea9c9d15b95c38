//! `editgate` answers one question with numbers that hold: can this model make this edit through this edit tool,
//! byte for byte, and is it still as good as it was?
//!
//! The rooms, from the top of the house down; a room uses only rooms below it (`tests/house.rs` keeps that):
//! [`cli`], [`config`], [`run`], [`report`], [`verdict`], [`record`], [`score`], [`model`], [`tool`], [`workspace`],
//! [`case`], [`chat`], [`text`].

pub mod case;
pub mod chat;
pub mod cli;
pub mod config;
pub mod model;
pub mod record;
pub mod report;
pub mod run;
pub mod score;
pub mod text;
pub mod tool;
pub mod verdict;
pub mod workspace;
