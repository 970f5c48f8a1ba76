//! Why an event comes to a subscription now, or does not, with all that a tracker knows.

use std::num::NonZeroU32;
use std::ops::ControlFlow;

use super::nearest::anchor;
use super::places::Places;
use super::standing::Standing;
use super::tracker::{Tracker, Watch};
use super::{Fix, Interest, Moment};
use crate::area::Area;
use crate::condition::expression::Truth;
use crate::evaluation::reaches;
use crate::event::Event;
use crate::explain::{Explanation, explain};
use crate::geo::squared_chord;
use crate::subscription::Filter;

/// The most live events that are counted to say which of the nearest an event is, unless more count as such.
const RANK_MAX: usize = 1_000;

/// Why an event comes to a subscription now, or does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Whether it does, or, for transitions, whether its object comes inside or stays there; an object that only a
    /// hysteresis keeps inside does not.
    pub matched: bool,
    /// The outcomes of the filters by themselves.
    pub parts: Explanation,
    /// Further account of each filter.
    pub filters: Vec<FilterAccount>,
    /// How its object stands to the subscription.
    pub membership: Membership,
    is_live: bool,
    is_full: bool,
    fix: Option<Fix>,
    interest: Interest,
}

/// Account of a filter beside area and condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterAccount {
    /// Whether it lets the event in.
    pub matched: bool,
    /// Whether its area waits for a better fix: it then neither lets in nor out.
    pub is_held: bool,
    /// Where only the nearest count: the place among them.
    pub nearest: Option<Rank>,
}

/// The place of an event among the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// How many count.
    pub k: NonZeroU32,
    /// Which it is, from 1, among the live events that the filter takes. `None` for an event that the filter does not
    /// take or that is not live, where there is nothing to measure from, and past the thousandth that counts for
    /// nothing.
    pub rank: Option<u64>,
    /// Whether it is among those that count.
    pub holds: bool,
}

/// How an object stands to a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// The subscription does not know it.
    Outside,
    /// It is there, and enters when it has stayed for long enough.
    Waiting {
        /// When that is.
        until: Moment,
    },
    /// It is inside; for a subscription to events, the event has come.
    Inside,
}

/// A live event and why it comes, or does not.
#[derive(Clone, Debug)]
pub struct LiveAccount<'a, P> {
    /// Why.
    pub account: Account,
    /// Payload that goes out with the event.
    pub payload: &'a P,
    /// When its life is over.
    pub expires: Moment,
}

/// The life of an event that is not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect<'a> {
    /// It would be over at once.
    Passing,
    /// It would be live, in the place of what is live of that object.
    Live {
        /// Its object, where that can be known.
        object: Option<&'a str>,
    },
}

/// An event among live ones.
struct Subject<'a> {
    event: &'a Event,
    /// The number of its object among the live ones, if it is there.
    number: Option<u32>,
    /// `None` for one that is not live.
    sequence: Option<u64>,
    standing: Option<Standing>,
}

impl<P: Clone> Tracker<P> {
    /// Why the newest live event of an id, of those that `counts` lets be asked for, comes to a subscription whose client is
    /// there, or does not; `None` without such an event. Nothing changes.
    #[must_use]
    pub fn account_of_live(
        &self,
        watch: &Watch,
        fix: Option<&Fix>,
        id: &str,
        counts: impl Fn(&P) -> bool,
    ) -> Option<LiveAccount<'_, P>> {
        let events = &self.scene().events;
        let numbers = events.of_id(id).into_iter();
        let found = numbers.filter_map(|number| Some((events.get(number)?, number)));
        let (live, number) =
            found.filter(|(live, _)| counts(&live.payload)).max_by_key(|(live, _)| live.sequence)?;
        let subject = Subject {
            event: &live.event,
            number: Some(number),
            sequence: Some(live.sequence),
            standing: watch.known.get(number),
        };
        let account = self.account(watch, fix, &subject);
        Some(LiveAccount { account, payload: &live.payload, expires: live.expires })
    }

    /// Why an event would come to a subscription whose client is there, were it published now, or would not. Nothing
    /// changes.
    #[must_use]
    pub fn account_of(
        &self,
        watch: &Watch,
        fix: Option<&Fix>,
        event: &Event,
        prospect: Prospect<'_>,
    ) -> Account {
        let number = match prospect {
            Prospect::Passing | Prospect::Live { object: None } => None,
            Prospect::Live { object: Some(object) } => self.scene().events.of_object(object),
        };
        let subject = Subject {
            event,
            number,
            // Newer than all that there are.
            sequence: (prospect != Prospect::Passing).then_some(u64::MAX),
            // For a subscription to events a newer event is another event.
            standing: number
                .and_then(|number| watch.known.get(number))
                .filter(|_| watch.is_for_transitions()),
        };
        self.account(watch, fix, &subject)
    }

    fn account(&self, watch: &Watch, fix: Option<&Fix>, subject: &Subject<'_>) -> Account {
        let scene = self.scene();
        let parts = explain(scene.world, watch.filters(), fix.map(|fix| &fix.position), subject.event);
        let filters: Vec<FilterAccount> = watch
            .filters()
            .iter()
            .zip(&parts.filters)
            .enumerate()
            .map(|(index, (filter, part))| {
                let is_held = watch.is_held(&scene.settings, &filter.area, fix);
                let is_there =
                    if is_held { subject.standing == Some(Standing::Inside) } else { part.area.holds };
                let takes = is_there && part.condition.truth == Truth::True;
                let nearest = watch.nearest(index).map(|k| self.rank(watch, filter, fix, subject, takes, k));
                FilterAccount { matched: takes && nearest.is_none_or(|rank| rank.holds), is_held, nearest }
            })
            .collect();
        let is_live = subject.sequence.is_some();
        let is_reached = parts.reach.is_none_or(|reach| reach.holds);
        let is_told = is_live || !watch.is_for_transitions();
        Account {
            matched: is_told && is_reached && filters.iter().any(|filter| filter.matched),
            parts,
            filters,
            membership: match subject.standing {
                None => Membership::Outside,
                Some(Standing::Waiting { until, .. }) => Membership::Waiting { until },
                Some(Standing::Inside) => Membership::Inside,
            },
            is_live,
            is_full: watch.room(&scene.settings) == 0,
            fix: fix.copied(),
            interest: *watch.interest(),
        }
    }

    /// The place of an event, which the filter takes or not, among the nearest that it takes.
    fn rank(
        &self,
        watch: &Watch,
        filter: &Filter,
        fix: Option<&Fix>,
        subject: &Subject<'_>,
        takes: bool,
        k: NonZeroU32,
    ) -> Rank {
        let scene = self.scene();
        let position = fix.map(|fix| &fix.position);
        let nowhere = Rank { k, rank: None, holds: false };
        let (Some(anchor), Some(sequence), true) =
            (anchor(filter, fix), subject.sequence, takes && reaches(scene.world, subject.event, position))
        else {
            return nowhere;
        };
        if watch.is_held(&scene.settings, &filter.area, fix) {
            // What is inside stays, however many there are.
            return Rank { holds: true, ..nowhere };
        }
        let own_distance = squared_chord(anchor.point(), subject.event.position.point());
        let counted_max = RANK_MAX.max(usize::try_from(k.get()).unwrap_or(usize::MAX));
        let mut nearer_count = 0;
        let mut count = |number: u32, distance: f64| {
            if distance > own_distance || nearer_count >= counted_max {
                return ControlFlow::Break(());
            }
            let is_nearer = Some(number) != subject.number
                && scene.events.get(number).is_some_and(|live| {
                    (distance, live.sequence) < (own_distance, sequence)
                        && reaches(scene.world, &live.event, position)
                        && watch.holds(scene, filter, fix, &live.event, None)
                });
            nearer_count += usize::from(is_nearer);
            ControlFlow::Continue(())
        };
        // There is something live: the event itself, or what it would be measured against.
        let no_places = Places::default();
        let points = scene.events.places(watch.partition).unwrap_or(&no_places).points();
        match (&filter.area, filter.area.ball(scene.world, position)) {
            (Area::Circle { .. } | Area::Polygon(_) | Area::Corridor(_), Some(ball)) => {
                points.within(&ball, |number| {
                    if let Some(distance) = scene.squared_distance(number, anchor) {
                        // Others may be nearer: the points come in no order.
                        let _ = count(number, distance);
                    }
                });
            }
            (_, _) => points.by_distance(anchor.point(), count),
        }
        Rank {
            k,
            rank: (nearer_count < counted_max).then_some(nearer_count as u64 + 1),
            holds: nearer_count < counted_max.min(k.get() as usize),
        }
    }
}

impl Account {
    /// All of it in a sentence.
    #[must_use]
    pub fn why(&self) -> String {
        let Interest::Transitions(transitions) = &self.interest else {
            return self.why_as_event();
        };
        if !self.is_live {
            let why = self.parts.why();
            return format!("{why}, and it is not live, so that it neither enters nor leaves");
        }
        let why = if self.matched && !self.parts.matched { self.why_held() } else { self.why_as_event() };
        match self.membership {
            Membership::Outside if self.matched && self.is_full => {
                format!("{why}, but the subscription has as many objects inside as it may")
            }
            Membership::Waiting { .. } if self.matched => {
                format!("{why}, and its object enters when it has stayed for long enough")
            }
            Membership::Inside if !self.matched && transitions.hysteresis_m > 0.0 => {
                format!(
                    "{why}; its object leaves when it is more than {} m outside",
                    transitions.hysteresis_m
                )
            }
            Membership::Outside | Membership::Waiting { .. } | Membership::Inside => why,
        }
    }

    fn why_as_event(&self) -> String {
        if self.matched || !self.parts.matched {
            return self.parts.why();
        }
        // Area and condition of some filter hold, and still it does not let the event in.
        let mut stopped = self.filters.iter().zip(&self.parts.filters).filter(|(_, part)| part.matched);
        let Some((filter, _)) = stopped.next() else { return self.parts.why() };
        match filter.nearest {
            _ if filter.is_held => self.why_held(),
            Some(Rank { k, rank: Some(rank), .. }) => format!(
                "the event is number {rank} of the live events that the filter takes, of which only the nearest {k} count"
            ),
            Some(_) if !self.is_live => {
                "only the nearest live events count, and the event is not live".to_owned()
            }
            Some(Rank { k, .. }) => {
                format!("only the nearest {k} live events count, and the event is none of them")
            }
            None => self.parts.why(),
        }
    }

    fn why_held(&self) -> String {
        let accuracy_m = self.fix.map_or(0.0, |fix| fix.accuracy_m);
        format!(
            "the client's position may be {accuracy_m} m off, more than the radius of the area that follows it, which lets nothing in or out until a better one comes"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::condition::Condition;
    use crate::geo::{Position, Radius, World};
    use crate::live::{Announcement, Partition, Settings, Transitions};
    use crate::subscription::{ClientId, Subscription, SubscriptionId};

    const WORLD: World = World::Planar;
    const ID: SubscriptionId = SubscriptionId(0);

    fn at(x: f64) -> Position {
        WORLD.position(&[x, 0.0]).unwrap()
    }

    /// A tracker with one subscription of a client at 0, and live events `0`, `1` and on at some places.
    fn tracker(interest: Interest, k: u32, accuracy_m: f64, places: &[f64]) -> Tracker<u64> {
        let mut tracker =
            Tracker::new(WORLD, Settings { members_max: 3, members_per_client: 3, holds_inaccurate: true });
        let mut effects = Vec::new();
        let area = Area::Following(Radius::new(WORLD, 100.0).unwrap());
        let filters = vec![Filter { area, condition: Condition::always() }];
        let subscription = Subscription { client: ClientId(0), filters };
        let fix = |accuracy_m| Some(Fix { position: at(0.0), accuracy_m });
        tracker.move_client(ClientId(0), fix(0.0), Duration::ZERO, &mut effects);
        tracker.install(ID, subscription, vec![NonZeroU32::new(k)], interest, Duration::ZERO, &mut effects);
        for (sequence, place) in (0..).zip(places) {
            let new = Announcement {
                object: format!("id:{sequence}").into(),
                id: sequence.to_string().into(),
                sequence,
                expires: Duration::from_secs(10),
                partition: Partition::default(),
                event: Arc::new(Event::at(at(*place))),
                payload: sequence,
            };
            let row = if place.abs() <= 100.0 { &[ID][..] } else { &[] };
            tracker.publish(new, row, Duration::ZERO, &mut effects);
        }
        tracker.move_client(ClientId(0), fix(accuracy_m), Duration::ZERO, &mut effects);
        tracker
    }

    fn transitions(dwell_s: u64, hysteresis_m: f64) -> Interest {
        let dwell = Duration::from_secs(dwell_s);
        Interest::Transitions(Transitions { enter: true, exit: true, initial: false, dwell, hysteresis_m })
    }

    /// An event at a place, of the object of event `0` if it is live.
    #[track_caller]
    fn check(tracker: &Tracker<u64>, x: f64, is_live: bool, matched: bool, why: &str) {
        let prospect = if is_live { Prospect::Live { object: Some("id:0") } } else { Prospect::Passing };
        let watch = tracker.watch(ID).unwrap();
        let account = tracker.account_of(watch, tracker.fix(ClientId(0)), &Event::at(at(x)), prospect);
        assert_eq!((account.matched, account.why().as_str()), (matched, why));
    }

    #[test]
    fn the_nearest_have_places() {
        let tracker = tracker(Interest::Events, 2, 0.0, &[50.0, 10.0, 20.0, 30.0]);
        let watch = tracker.watch(ID).unwrap();
        let rank = |id: &str| {
            let found = tracker.account_of_live(watch, tracker.fix(ClientId(0)), id, |_| true).unwrap();
            found.account.filters[0].nearest.map(|rank| (rank.rank, rank.holds))
        };
        assert_eq!(rank("1"), Some((Some(1), true)));
        assert_eq!(rank("2"), Some((Some(2), true)));
        assert_eq!(rank("0"), Some((Some(4), false)));
        check(&tracker, 15.0, true, true, "the filter takes the event");
        check(
            &tracker,
            25.0,
            true,
            false,
            "the event is number 3 of the live events that the filter takes, of which only the nearest 2 count",
        );
        check(&tracker, 15.0, false, false, "only the nearest live events count, and the event is not live");
        check(&tracker, 150.0, true, false, "the event is 50 m outside of the circle around the client");
        assert!(tracker.account_of_live(watch, None, "9", |_| true).is_none());
    }

    #[test]
    fn a_transition_may_have_to_wait() {
        let takes = "the filter takes the event";
        let outside = "the event is 50 m outside of the circle around the client";
        check(&tracker(transitions(0, 0.0), 0, 0.0, &[]), 15.0, true, true, takes);
        let over = format!("{takes}, and it is not live, so that it neither enters nor leaves");
        check(&tracker(transitions(0, 0.0), 0, 0.0, &[]), 15.0, false, false, &over);
        let waits = format!("{takes}, and its object enters when it has stayed for long enough");
        check(&tracker(transitions(5, 0.0), 0, 0.0, &[10.0]), 15.0, true, true, &waits);
        let lingers = format!("{outside}; its object leaves when it is more than 70 m outside");
        check(&tracker(transitions(0, 70.0), 0, 0.0, &[10.0]), 150.0, true, false, &lingers);
        let full = format!("{takes}, but the subscription has as many objects inside as it may");
        check(&tracker(transitions(0, 0.0), 0, 0.0, &[900.0, 1.0, 2.0, 3.0]), 15.0, true, true, &full);
    }

    #[test]
    fn an_inaccurate_fix_lets_nothing_in_or_out() {
        let why = "the client's position may be 120 m off, more than the radius of the area that follows it, which lets nothing in or out until a better one comes";
        check(&tracker(transitions(0, 0.0), 0, 120.0, &[]), 15.0, true, false, why);
        check(&tracker(transitions(0, 0.0), 0, 120.0, &[10.0]), 150.0, true, true, why);
    }
}
