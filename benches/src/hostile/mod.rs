//! What clients that mean harm cost the others: the attacks, ordinary clients beside them, and rounds of phases with the harm and without it.
//!
//! An attack is an entry of its family's table ([`connections`], [`floods`], [`held`], [`costly`]): what it is called, how many clients make it,
//! what the broker may hold for them, and what each of them does.

pub mod attack;
pub mod connections;
pub mod costly;
pub mod floods;
pub mod held;
pub mod measure;
pub mod ordinary;
pub mod report;
pub mod tokens;
mod wire;
