//! nearcast, the broker.
