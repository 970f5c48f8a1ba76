//! What is taken, what is refused, and who goes first.

mod alarms;
mod overload;
mod rates;
