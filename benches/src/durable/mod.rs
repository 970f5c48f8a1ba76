//! What the bench `durable` does besides loading brokers: filling one to bring it back, and readers that never read.

pub mod recovery;
pub mod stalled;
