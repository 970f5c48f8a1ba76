//! The tracker of live events against the plain way.

mod account;
mod along;
mod bound;
mod dwell;
mod me;
mod nearest;
mod oracle;
mod query;
mod random;
mod recovery;
mod stage;
mod survey;
mod work;
