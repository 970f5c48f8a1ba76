//! Live events from outside: what is told when a subscriber comes to an event, who enters and leaves where, and the
//! nearest of many. Each rule by hand, at its border where it has one; `exactness` puts them all together at random.

mod accuracy;
mod borders;
mod changes;
mod connections;
mod dwell;
mod exactness;
mod explain;
mod lives;
mod nearest;
mod query;
mod refused;
mod scene;
mod transitions;
