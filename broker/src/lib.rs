//! nearcast, the broker.
#![forbid(unsafe_code)]

pub(crate) mod cql2_json;
