#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod addresses;
mod area;
mod backoff;
pub mod batch;
pub mod broker;
mod chance;
mod checkpoints;
pub mod condition;
mod connect;
pub mod connection;
mod coordinates;
pub mod documents;
mod error;
mod feature;
mod follow;
mod frame;
mod http;
mod link;
mod messages;
mod problem;
mod push;
mod query;
mod route;
pub mod session;
mod situations;
mod state;
mod stream;
mod subscription;
mod token;

pub use futures_util::stream::iter;
#[doc(inline)]
pub use wire::{Overflow, Problem};

pub use crate::{
    area::{Area, along_route, around, circle, corridor, everywhere, polygon},
    batch::Batch,
    broker::Broker,
    checkpoints::CheckpointFile,
    condition::{Condition, attr},
    connect::{Acknowledge, Connect, connect},
    connection::Connection,
    coordinates::Coordinates,
    error::Error,
    feature::{Derived, Feature, Id, event},
    follow::{Fix, Follow},
    messages::{Cause, Checkpoint, Event, Gap, GapReason, Message, Trace, Transition, Unreadable},
    query::{ConditionText, Query},
    session::Session,
    stream::Messages,
    subscription::{Filter, Subscription},
};
