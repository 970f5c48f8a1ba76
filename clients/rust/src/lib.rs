#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod area;
mod batch;
mod broker;
mod chance;
mod condition;
mod connect;
mod connection;
mod coordinates;
mod error;
mod feature;
mod follow;
mod frame;
mod http;
mod link;
mod message;
mod messages;
mod problem;
mod session;
mod state;
mod subscription;
mod token;

pub use futures_util::stream::iter;
/// Documents as they go over the wire.
pub use wire as documents;
pub use wire::{Deliveries, Explanation, Fault, NamedPosition, Overflow, Position, Problem};

pub use crate::{
    area::{Area, Line, Shape, around, circle, corridor, everywhere, polygon},
    batch::{Batch, Rejected, Report},
    broker::{Broker, BrokerAt},
    condition::{Attribute, Caseless, Condition, Literal, attr},
    connect::{Acknowledge, Connect, connect},
    connection::{Connection, Connections},
    coordinates::Coordinates,
    error::Error,
    feature::{Feature, Id, event},
    follow::{Fix, Follow},
    message::{Cause, Checkpoint, Event, Gap, GapReason, Message, Trace, Transition},
    messages::Messages,
    session::{Asked, Session, UpTo},
    subscription::{Filter, Subscription, Where},
};
