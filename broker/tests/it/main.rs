//! nearcast from outside: everything here talks to the built program over real sockets, with the protocol in hand and
//! nothing else. Where an answer can be computed, the tests compute it themselves.

#![forbid(unsafe_code)]

mod harness;

mod admission;
mod authorisation;
mod bad_input;
mod checks;
mod clients;
mod cluster;
#[cfg(feature = "client")]
mod command_line;
mod contract;
mod deadlines;
mod delivery;
mod demo;
mod documentation;
mod durable;
mod durable_faults;
#[cfg(feature = "gpu")]
mod engines;
mod exactness;
mod gates;
mod group_definitions;
mod groups;
mod hostile;
mod lifecycle;
mod links;
mod live;
mod maintenance;
mod meaning;
#[path = "../../../cluster/tests/nats/mod.rs"]
mod nats;
mod operations;
mod pages;
mod push;
mod route_areas;
mod routes;
mod rule_sets;
mod rules;
mod situations;
mod slow_reader;
mod tidy;
mod tls;
mod traces;
mod visibility;
mod websocket;
