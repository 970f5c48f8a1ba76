//! What clients that mean harm cost the others: the harm, and the pairs of phases without and with it.

pub mod harm;
pub mod measure;
