//! The words that all rooms share: events, deliveries, records, errors, completion, tenants, the clock.
//!
//! The bottom of the broker: it imports nothing of it, and every room may import it.

pub(crate) mod aside;
pub(crate) mod clock;
pub(crate) mod completion;
pub(crate) mod delivery;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod lease;
pub(crate) mod problems;
pub(crate) mod record;
pub(crate) mod sent_offsets;
pub(crate) mod tenant;
pub(crate) mod warning;
pub(crate) mod way;
