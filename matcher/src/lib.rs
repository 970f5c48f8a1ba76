//! The heart of nearcast: what an event, an area, a condition and a subscription are, and the engines that
//! find, for each event, the subscriptions that it satisfies.
//!
//! The model is the one of CLCB (Cugola and Margara, "High-performance location-aware publish-subscribe on
//! GPUs", Middleware 2012, section 2): a subscription is a disjunction of filters, a filter a conjunction of
//! constraints and an area of relevance. This crate knows nobody: no sockets, no clocks, no files.
#![forbid(unsafe_code)]

pub mod area;
pub mod compiled;
pub mod condition;
pub mod effort;
pub mod engine;
pub mod evaluation;
pub mod event;
pub mod explain;
#[cfg(feature = "fixtures")]
pub mod fixtures;
pub mod geo;
pub mod live;
pub mod subscription;
