//! The tracker of live events against the plain way.

mod account;
mod oracle;
mod random;
