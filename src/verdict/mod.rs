//! From counts to judgement: intervals, floors, the gate. Pure, but for reading and writing the floors file.

pub mod binomial;
pub mod floor;
pub mod gate;
pub mod interval;
pub mod paired;
pub mod repeats;
pub mod suggest;
