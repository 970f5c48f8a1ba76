//! The crate's tests.

mod brokers;
mod events;
#[path = "../fuzzing/mod.rs"]
mod fuzzing;
#[cfg(feature = "jetstream")]
mod jetstream;
mod ledger;
#[cfg(feature = "jetstream")]
#[path = "../nats/mod.rs"]
mod nats;
#[cfg(feature = "jetstream")]
#[path = "../nats/clients.rs"]
mod nats_clients;
mod records;
mod simulation;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Whether tests run in their long form.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}

/// The outcome of a future that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it waits"),
    }
}
