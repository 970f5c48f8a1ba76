//! What is taken, what is refused, and who goes first.

mod alarms;
mod costs;
mod matching;
mod overload;
mod rates;
