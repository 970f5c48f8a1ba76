//! The crate from outside: areas against their definitions, engines against the oracle.

mod areas;
mod cql2;
mod engines;
mod explain;
mod facade;
mod faults;
mod live;
mod outside;
mod small;
