//! The tracker of live events against the plain way.

mod oracle;
mod random;
