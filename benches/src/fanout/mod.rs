//! What the benches `fanout`, `durable` and `hostile` are made of: a broker process, subscribers, a publisher, and what they should have got.

pub mod load;
pub mod pairs;
pub mod process;
pub mod publisher;
pub mod scenario;
pub mod socket;
pub mod subscribers;
pub mod tally;
