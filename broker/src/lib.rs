//! nearcast, the broker: HTTP, WebSocket and server-sent events around the engines of `matcher`.
//!
//! The way of an event is one direction: http or ws → ingest (read, check) → shards (match, deal out) → the outbox
//! of each connection → its writer. Between two rooms stands a bounded queue.
#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod demo;
pub mod dry_run;
pub mod edges;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod maintenance;
pub mod open_files;

mod admission;
mod auth;
mod base_map;
mod budget;
mod cql2_json;
mod engines;
mod event_stream;
mod http;
mod https_client;
mod ingest;
mod ledger;
mod limits;
mod metrics;
mod model;
mod outbox;
mod privacy;
mod push;
mod routing;
mod server;
mod sessions;
mod shard;
mod shutdown;
mod situations;
mod slow_streets;
mod store;
mod telemetry;
mod tls;

pub use auth::{Authenticator, Grant, Issued, issue, public_half};
pub use base_map::BaseMap;
pub use config::{Config, ConfigError};
pub use engines::{CheckEngines, EngineError, Engines};
pub use push::PushMeans;
pub use routing::Streets;
pub use server::{Resources, Stage, SteppedDown, run, run_with};
pub use tls::{Tls, TlsError};
