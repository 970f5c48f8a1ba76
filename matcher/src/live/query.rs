//! Questions for what is live: by place, by content, by what a client's subscriptions take.
//!
//! A question is looked into a little at a time. In between the tracker goes on: what is still to be looked at is kept as regions
//! of the world, which stay what they are. So is the order of the answer made of what does not change while an event is live, its
//! place and its number: with circles the nearest come first, else events come in the order of a walk through the tree of places.
//! A page begins behind the last place of the page before. Whatever comes and goes meanwhile, what stays live is met once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::points::{KEY_BYTES, Key, Part, Points, Region};
use super::rectangle::Rectangle;
use super::standing::{LOOK_NS, Scene};
use super::tracker::{Tracker, Watch};
use super::{Fix, Partition};
use crate::area::{Area, Ball};
use crate::condition::expression::{Expression, Truth};
use crate::condition::reading::Reading;
use crate::event::Event;
use crate::geo::{Position, Radius, World, squared_chord};
use crate::subscription::{ClientId, SubscriptionId};

/// Where live events are asked for.
#[derive(Clone, Debug)]
pub enum Within {
    /// Wherever they are.
    Everywhere,
    /// In a rectangle.
    Rectangle(Rectangle),
    /// In a circle, the nearest first. By straight lines that are rounded to a
    /// millimetre, which next to the other side of the globe says less.
    Circle {
        /// Its centre.
        centre: Position,
        /// Its radius.
        radius: Radius,
    },
}

/// From where the subscriptions of a client are looked at.
#[derive(Clone, Debug)]
pub enum View {
    /// From where the client is, with what it has inside.
    Own,
    /// From somewhere, or nowhere, as if the client had just come there; filters that count the nearest take nothing.
    From(Option<Fix>),
    /// As [`View::From`], with these in place of the client's subscriptions.
    Instead(Arc<[Watch]>, Option<Fix>),
}

/// A question.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where events can be met.
    pub partition: Partition,
    /// Where they are.
    pub within: Within,
    /// What has to be true of their content.
    pub condition: Expression,
    /// A client that has a subscription which takes them.
    pub client: Option<(ClientId, View)>,
    /// Only events behind this place.
    pub after: Option<Place>,
    /// How many are wanted at most.
    pub most: usize,
}

/// A place in the order of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Bits of the squared distance where the nearest come first. It is not negative, and so is ordered as its bits are.
    square: u64,
    key: Key,
}

/// Bytes of a [`Place`] that is written out.
pub const PLACE_BYTES: usize = 8 + KEY_BYTES;

/// A question that is being looked into. See [`Tracker::query`].
#[derive(Debug)]
pub struct Query {
    wanted: Wanted,
    bounds: Bounds,
    /// Regions that have not been looked at, by their least places, with how many of the digits are free.
    regions: BinaryHeap<Reverse<(Place, Ordered)>>,
    /// Points of the region at hand.
    points: Vec<(Place, u32)>,
    /// The first that are wanted, the last of them on top: as many as are wanted and one more. With their sequence numbers.
    found: BinaryHeap<(Place, u32, u64)>,
}

/// Part of an answer.
#[derive(Clone, Debug)]
pub struct Page<P> {
    /// Payloads of events, each with its place.
    pub events: Vec<(Place, P)>,
    /// The last place, if there are more events behind it.
    pub next: Option<Place>,
}

/// A region that is ordered by its place alone.
#[derive(Clone, Copy, Debug)]
struct Ordered(Region);

/// Regions in which there may be something that is wanted.
#[derive(Debug)]
enum Bounds {
    World,
    Rectangle(Rectangle),
    Ball(Ball),
}

/// Balls of the filters of a client that are looked at for each region: a client with more has all regions looked into.
const BALLS_MAX: usize = 64;

impl PartialEq for Ordered {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Place {
    /// The place as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..8].copy_from_slice(&self.square.to_be_bytes());
        bytes[8..].copy_from_slice(&self.key.to_bytes());
        bytes
    }

    /// The place of some bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PLACE_BYTES]) -> Self {
        let (mut square, mut key) = ([0; 8], [0; KEY_BYTES]);
        square.copy_from_slice(&bytes[..8]);
        key.copy_from_slice(&bytes[8..]);
        Self { square: u64::from_be_bytes(square), key: Key::from_bytes(&key) }
    }
}

impl Within {
    /// The place of a point. All points of a finest cell are equally far away, so that a crowd at one place is in the order of its
    /// numbers, and need not be looked at again from its beginning for each page.
    fn place(&self, key: Key) -> Place {
        let square = match self {
            Self::Circle { centre, .. } => squared_chord(&key.corner(), centre.point()),
            Self::Everywhere | Self::Rectangle(_) => 0.0,
        };
        Place { square: square.to_bits(), key }
    }

    /// A place that none in a region is before, and one that none is behind. Rounding keeps order, so that neither needs a margin.
    fn places(&self, region: &Region) -> [Place; 2] {
        let [least, greatest] = [region.least(), region.greatest()];
        let Self::Circle { centre, .. } = self else { return [self.place(least), self.place(greatest)] };
        let corners = [least.corner(), greatest.corner()];
        let [near, far] = [nearest(&corners, centre.point()), furthest(&corners, centre.point())];
        [Place { square: near.to_bits(), key: least }, Place { square: far.to_bits(), key: greatest }]
    }

    fn bounds(&self, world: World) -> Bounds {
        match self {
            Self::Everywhere => Bounds::World,
            Self::Rectangle(rectangle) => Bounds::Rectangle(*rectangle),
            Self::Circle { centre, radius } => {
                let area = Area::Circle { centre: *centre, radius: *radius };
                Bounds::Ball(area.ball(world, None).unwrap_or(Ball::UNBOUNDED))
            }
        }
    }

    fn holds(&self, world: World, position: &Position) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Rectangle(rectangle) => rectangle.holds(position),
            Self::Circle { centre, radius } => radius.holds(world, centre, position),
        }
    }
}

/// The squared distances from a point to what is nearest in a box, and to its furthest corner.
fn nearest([least, largest]: &[[f64; 3]; 2], from: &[f64; 3]) -> f64 {
    let [x, y, z] = [0, 1, 2].map(|axis| (least[axis] - from[axis]).max(from[axis] - largest[axis]).max(0.0));
    x * x + y * y + z * z
}

fn furthest([least, largest]: &[[f64; 3]; 2], from: &[f64; 3]) -> f64 {
    let [x, y, z] = [0, 1, 2].map(|axis| (from[axis] - least[axis]).max(largest[axis] - from[axis]));
    x * x + y * y + z * z
}

fn may_touch(ball: &Ball, extent: &[[f64; 3]; 2]) -> bool {
    nearest(extent, &ball.centre) <= ball.reach * ball.reach
}

impl Bounds {
    fn may_touch(&self, extent: &[[f64; 3]; 2]) -> bool {
        match self {
            Self::World => true,
            Self::Rectangle(rectangle) => rectangle.may_touch(extent),
            Self::Ball(ball) => may_touch(ball, extent),
        }
    }
}

impl Query {
    /// Whether what comes no earlier than a place can be left out: it was told before, or there are enough before it.
    fn is_full_before(&self, place: &Place) -> bool {
        self.found.len() > self.wanted.most && self.found.peek().is_some_and(|(last, ..)| place > last)
    }

    fn is_told(&self, last: &Place) -> bool {
        self.wanted.after.is_some_and(|after| *last <= after)
    }

    /// Takes the next region apart.
    fn open(&mut self, points: &Points, balls: Option<&[Ball]>, region: &Region) {
        let Self { wanted, bounds, regions, points: at_hand, .. } = self;
        points.open(region, |part| match part {
            Part::Point(number, key) => at_hand.push((wanted.within.place(key), number)),
            Part::Region(part) => {
                let [first, last] = wanted.within.places(&part);
                let extent = part.extent();
                let is_near = |ball: &Ball| may_touch(ball, &extent);
                if wanted.after.is_none_or(|after| last > after)
                    && bounds.may_touch(&extent)
                    && balls.is_none_or(|balls| balls.iter().any(is_near))
                {
                    regions.push(Reverse((first, Ordered(part))));
                }
            }
        });
    }

    fn keep(&mut self, place: Place, number: u32, sequence: u64) {
        self.found.push((place, number, sequence));
        if self.found.len() > self.wanted.most + 1 {
            self.found.pop();
        }
    }
}

impl<P: Clone> Tracker<P> {
    /// Begins to look into a question. Nothing is looked at yet.
    #[must_use]
    pub fn query(&self, wanted: Wanted) -> Query {
        let bounds = wanted.within.bounds(self.scene().world);
        let [first, _] = wanted.within.places(&Region::all());
        let regions = BinaryHeap::from([Reverse((first, Ordered(Region::all())))]);
        Query { wanted, bounds, regions, points: Vec::new(), found: BinaryHeap::new() }
    }

    /// Goes on with a question for as long as `goes_on` says so, which is asked after each look; says whether it has come to its
    /// end. `takes` says which events may be told at all.
    ///
    /// Cost: the regions and events near to what is wanted, from the page's beginning to its end; a test of the condition, and one of
    /// the client's subscriptions, for each event there.
    pub fn look_into(
        &self,
        query: &mut Query,
        takes: impl Fn(&Event, &P) -> bool,
        mut goes_on: impl FnMut() -> bool,
    ) -> bool {
        let scene = self.scene();
        let Some(places) = scene.events.places(query.wanted.partition) else { return true };
        let balls = query.wanted.client.as_ref().and_then(|(client, view)| self.balls(*client, view));
        loop {
            if let Some((place, number)) = query.points.pop() {
                self.look_at(query, place, number, &takes);
            } else {
                let Some(Reverse((place, Ordered(region)))) = query.regions.pop() else { return true };
                if query.is_full_before(&place) {
                    return true;
                }
                scene.work(1);
                query.open(places.points(), balls.as_deref(), &region);
            }
            if !goes_on() {
                return false;
            }
        }
    }

    /// Keeps an event, if it is wanted.
    fn look_at(&self, query: &mut Query, place: Place, number: u32, takes: impl Fn(&Event, &P) -> bool) {
        let scene = self.scene();
        // By now it may be another one's number.
        let is_there = |position: &Position| Key::new(number, position.point()) == place.key;
        let Some(live) = scene.events.get(number).filter(|live| is_there(&live.event.position)) else {
            return;
        };
        scene.work(1);
        let Wanted { within, condition, client, .. } = &query.wanted;
        let is_wanted = !query.is_told(&place)
            && !query.is_full_before(&place)
            && within.holds(scene.world, &live.event.position)
            && takes(&live.event, &live.payload)
            && holds(scene, condition, &live.event)
            && client
                .as_ref()
                .is_none_or(|(client, view)| self.has_inside(*client, view, number, &live.event));
        if is_wanted {
            query.keep(place, number, live.sequence);
        }
    }

    /// The answer, as far as it is known: in its order, and of what is still live.
    #[must_use]
    pub fn answer(&self, query: Query) -> Page<P> {
        let most = query.wanted.most;
        let mut found = query.found.into_sorted_vec();
        let next = (found.len() > most).then(|| found[..most].last().map(|(place, ..)| *place)).flatten();
        found.truncate(most);
        let events = found.into_iter().filter_map(|(place, number, sequence)| {
            let live = self.scene().events.get(number).filter(|live| live.sequence == sequence)?;
            Some((place, live.payload.clone()))
        });
        Page { events: events.collect(), next }
    }

    /// Whether a live event is inside of a subscription of a client.
    fn has_inside(&self, client: ClientId, view: &View, number: u32, event: &Event) -> bool {
        let (scene, mut watches) = (self.scene(), self.watches(client, view));
        match view {
            View::Own => {
                let fix = self.fix(client);
                watches.any(|watch| watch.is_inside_by_any(scene, fix, number))
            }
            View::From(fix) | View::Instead(_, fix) => {
                watches.any(|watch| watch.is_inside(scene, fix.as_ref(), event, None))
            }
        }
    }

    /// The subscriptions of a client as they are looked at.
    fn watches<'a>(&'a self, client: ClientId, view: &'a View) -> impl Iterator<Item = &'a Watch> {
        let (own, instead): (&[SubscriptionId], &[Watch]) = match view {
            View::Instead(watches, _) => (&[], watches),
            View::Own | View::From(_) => {
                let client = self.clients.get(client.0 as usize);
                (client.map_or(&[], |client| &client.subscriptions), &[])
            }
        };
        own.iter().filter_map(|id| self.watch(*id)).chain(instead)
    }

    /// Balls around all that the filters of a client may take; `None` where these are too many or too large.
    fn balls(&self, client: ClientId, view: &View) -> Option<Vec<Ball>> {
        let fix = match view {
            View::Own => self.fix(client),
            View::From(fix) | View::Instead(_, fix) => fix.as_ref(),
        };
        let mut balls = Vec::new();
        for watch in self.watches(client, view) {
            // What is inside of it may lie outside of its areas.
            if watch.is_for_transitions() || balls.len() + watch.filters().len() > BALLS_MAX {
                return None;
            }
            for filter in watch.filters() {
                balls.extend(filter.area.ball(self.scene().world, fix.map(|fix| &fix.position)));
            }
        }
        balls.iter().all(|ball| ball.reach.is_finite()).then_some(balls)
    }
}

fn holds<P>(scene: &Scene<P>, condition: &Expression, event: &Event) -> bool {
    let mut reading = Reading::default();
    let holds = condition.truth_by(event, &mut reading) == Truth::True;
    scene.work(reading.ns() / LOOK_NS);
    holds
}
