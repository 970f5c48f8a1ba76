#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! [`Matcher`] is the whole of it in one type. Below it are an [engine](engine::Engine), which finds the subscriptions that an event
//! satisfies, and a [tracker](live::Tracker), which finds the live events that a subscription is satisfied by when a client moves.
//! A program that uses these two alone gives out ids and keeps both in step.
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
pub mod invariant;
pub mod live;
mod matcher;
pub mod predicate;
pub mod subscription;

pub use engine::Engine;
pub use geo::World;
pub use live::{Cause, Change, Effect, Interest, Moment, Transitions};
pub use matcher::{Error, EventBuilder, FilterBuilder, Matcher};
pub use subscription::{ClientId, SubscriptionId};
