//! Tests of accounts: their counts, their refusals, and that nothing stays in them.

use std::sync::Barrier;

use super::bounds::Bound;
use super::*;
use crate::config::Allotment;
use crate::model::error::ApiError;

fn budget(level: Level, bytes: u64) -> Budget {
    let bound = Bound { allotment: Allotment::of(bytes), what: "bytes", setting: "limits.some_bytes" };
    Budget::within(Bounds::default().with(level, Kind::LiveEvents, bound))
}

const FULL: fn(u64) -> ApiError =
    |limit| ApiError::Limit { what: "bytes", limit, setting: "limits.some_bytes" };

fn is_empty(register: &Register) -> bool {
    register.0.read().unwrap().is_empty()
}

#[test]
fn what_a_connection_holds_counts_for_its_client_its_tenant_and_all() {
    let budget = budget(Level::Broker, u64::MAX);
    let name = tenant::inside("acme", "car");
    let client = budget.client(&name);
    let connection = budget.connection(&client);
    let held = connection.hold(Kind::Outbox, 100).unwrap();
    let other = client.hold(Kind::Kept, 7).unwrap();
    let counts = |account: &Arc<Account>| (account.bytes(Kind::Outbox), account.bytes(Kind::Kept));
    assert_eq!(counts(&connection), (100, 0));
    for account in [&budget.client(&name), &budget.tenant("acme"), budget.broker()] {
        assert_eq!(counts(account), (100, 7));
    }
    assert_eq!(counts(&budget.client("car")), (0, 0), "another tenant's");
    drop((held, other));
    assert_eq!(counts(budget.broker()), (0, 0));
    assert!(!is_empty(&budget.books.clients));
    drop((client, connection));
    assert!(is_empty(&budget.books.clients) && is_empty(&budget.books.tenants));
}

#[test]
fn at_the_bound_of_any_level_nothing_is_held_at_any() {
    for level in [Level::Broker, Level::Tenant, Level::Client, Level::Connection] {
        let budget = budget(level, 10);
        let client = budget.client("car");
        let connection = budget.connection(&client);
        let mut first = connection.hold(Kind::LiveEvents, 6).unwrap();
        assert_eq!(connection.hold(Kind::LiveEvents, 5).err(), Some(FULL(10)), "{level:?}");
        assert_eq!(connection.hold(Kind::LiveEvents, u64::MAX).err(), Some(FULL(10)), "{level:?}");
        assert!(connection.hold(Kind::Kept, 5).is_ok(), "another kind");
        assert_eq!(first.resize(11), Err(FULL(10)), "{level:?}");
        for account in [&connection, &client, budget.broker()] {
            assert_eq!(account.bytes(Kind::LiveEvents), 6, "{level:?}");
        }
        let beyond = connection.hold_anyway(Kind::LiveEvents, 9);
        assert_eq!((beyond.bytes(), budget.broker().bytes(Kind::LiveEvents)), (9, 15));
        assert!(first.resize(5).is_ok(), "less is never refused");
        drop(beyond);
        assert!(first.resize(10).is_ok());
        first.set(12);
        assert_eq!(client.bytes(Kind::LiveEvents), 12);
        drop(first);
        assert_eq!(client.bytes(Kind::LiveEvents), 0);
    }
}

#[test]
fn threads_that_come_and_go_never_pass_the_bound_and_leave_nothing() {
    const BOUND: u64 = 3;
    let budget = budget(Level::Client, BOUND);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (budget, start) = (&budget, &start);
            scope.spawn(move || {
                start.wait();
                let mut held = Vec::new();
                for round in 0..20_000 {
                    let account = budget.client("car");
                    held.extend(account.hold(Kind::LiveEvents, 1).ok());
                    assert!(account.bytes(Kind::LiveEvents) <= BOUND);
                    if round % 3 == thread % 3 {
                        held.clear();
                    }
                }
            });
        }
    });
    assert_eq!(budget.broker().bytes(Kind::LiveEvents), 0);
    assert!(is_empty(&budget.books.clients) && is_empty(&budget.books.tenants));
    let account = budget.client("car");
    assert!(account.hold(Kind::LiveEvents, BOUND).is_ok());
    assert!(account.hold(Kind::LiveEvents, BOUND + 1).is_err());
}
