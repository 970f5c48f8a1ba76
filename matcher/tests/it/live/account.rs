//! What is said of a pair against what is then done.

use std::sync::Arc;

use nearcast_matcher::engine::{Engine, MatchRows};
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::World;
use nearcast_matcher::live::{Account, Change, Interest, Membership, Prospect, Watch};
use nearcast_matcher::subscription::{ClientId, SubscriptionId};

use super::random::{CLIENTS, Run, SUBSCRIPTIONS};

fn watches(run: &Run) -> impl Iterator<Item = (u32, &Watch)> {
    (0..SUBSCRIPTIONS).filter_map(|id| Some((id, run.tracker.watch(SubscriptionId(id))?)))
}

/// Accounts of an event that is not published, by subscription.
fn accounts(run: &Run, event: &Event, prospect: Prospect<'_>) -> Vec<(u32, Interest, Account)> {
    watches(run)
        .map(|(id, watch)| {
            let fix = run.tracker.fix(ClientId(id % CLIENTS));
            (id, *watch.interest(), run.tracker.account_of(watch, fix, event, prospect))
        })
        .collect()
}

fn has_hysteresis(interest: &Interest) -> bool {
    matches!(interest, Interest::Transitions(transitions) if transitions.hysteresis_m > 0.0)
}

/// What is known must be what an account says, but for what only a hysteresis keeps and for events of the past.
#[track_caller]
fn check(account: &Account, interest: &Interest, is_known: bool, place: &str) {
    let may_linger = has_hysteresis(interest) || *interest == Interest::Events;
    assert!(is_known || !account.matched, "{place}: {account:?}");
    assert!(!is_known || account.matched || may_linger, "{place}: {account:?}");
    assert!(!account.why().is_empty(), "{place}");
}

/// All live events as they are.
fn check_live(run: &Run, place: &str) -> [u32; 2] {
    let mut counts = [0; 2];
    for (id, watch) in watches(run) {
        let fix = run.tracker.fix(ClientId(id % CLIENTS));
        for (object, live) in &run.oracle.lives {
            let newest = run.tracker.live(&live.id).map(|(sequence, ..)| sequence).max();
            if newest != Some(live.sequence) {
                continue;
            }
            let found = run.tracker.account_of_live(watch, fix, &live.id, |_| true).expect("it lives");
            assert_eq!((*found.payload, found.expires), (live.sequence, live.expires), "{place}");
            let is_known = run.oracle.knows(id, object);
            assert_eq!(found.account.membership != Membership::Outside, is_known, "{place}");
            check(&found.account, watch.interest(), is_known, place);
            counts[usize::from(found.account.matched)] += 1;
        }
    }
    counts
}

#[test]
fn what_is_said_is_what_is_done() {
    let mut live_counts = [0; 2];
    let mut told_counts = [0; 2];
    for seed in 0..40 {
        for world in [World::Planar, World::Geodetic] {
            let mut run = Run::new(world, 1_000 + seed);
            for step in 0..250 {
                let place = format!("seed {seed}, {world:?}, step {step}");
                run.step();
                run.compare(&place);
                if step % 25 != 0 {
                    continue;
                }
                let [no, yes] = check_live(&run, &place);
                live_counts = [live_counts[0] + no, live_counts[1] + yes];
                let (object, event) = (run.object(), Arc::new(run.event()));
                check_passing(&mut run, &event, &place);
                let accounts = accounts(&run, &event, Prospect::Live { object: Some(&object) });
                run.announce(&object, event);
                for (id, interest, account) in accounts {
                    let is_known = run.oracle.knows(id, &object);
                    check(&account, &interest, is_known, &place);
                    let reached = |effect: &&nearcast_matcher::live::Effect<u64>| {
                        effect.subscription.0 == id && effect.change == Change::Reached
                    };
                    if interest == Interest::Events {
                        // The event may push another one out of the nearest, and others in.
                        let sequence = run.oracle.lives[&object].sequence;
                        let told =
                            run.effects.iter().filter(reached).any(|effect| effect.sequence == sequence);
                        assert_eq!(told, account.matched, "{place}: {account:?}");
                    }
                    told_counts[usize::from(account.matched)] += 1;
                }
                run.compare(&place);
            }
        }
    }
    let counts = [live_counts, told_counts].concat();
    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
}

/// An event that is over at once comes to those that the engine finds and the tracker does not hold back.
fn check_passing(run: &mut Run, event: &Event, place: &str) {
    let mut rows = MatchRows::new();
    run.engine.match_batch(&[event], &mut rows).expect("engines on the CPU do not fail");
    for (id, _, account) in accounts(run, event, Prospect::Passing) {
        let id = SubscriptionId(id);
        let comes = rows.row(0).contains(&id) && run.tracker.takes_passing(id, event);
        assert_eq!(account.matched, comes, "{place}: {account:?}");
    }
}
