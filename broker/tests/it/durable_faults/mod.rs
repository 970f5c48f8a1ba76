//! What a durable broker is trusted for, on its worst days: killed at random, without power, with bits flipped on its disk,
//! stormed by its readers. What was acknowledged is kept in a ledger outside of it and held against what comes back.

mod births;
mod changers;
mod copies;
mod corruption;
mod deaths;
mod full;
mod gate;
mod judge;
mod latest;
mod ledger;
mod power_loss;
mod publishers;
mod readers;
mod stalled;
mod storm;
mod timeline;
mod world;
