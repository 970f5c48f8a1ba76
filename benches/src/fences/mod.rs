//! How many false enters and exits noisy tracks of real vehicles bring, and what dwell and hysteresis save of them.

pub mod race;
pub mod tracks;
pub mod visits;
