//! Brute force: every filter, with the distance itself and the condition as it was written. Shares no code
//! with what it checks but the meaning of a distance and of an expression.

use matcher::area::Area;
use matcher::condition::expression::Truth;
use matcher::event::Event;
use matcher::fixtures::workload::Workload;
use matcher::geo::{Position, World};
use matcher::subscription::ClientId;

use super::contender::Finds;
use super::race::Entrant;
use super::report::thousands;

/// How many found numbers there are, and a sum over them in which their order does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// The sum of their hashes.
    pub checksum: u64,
}

impl Tally {
    /// Counts what one event found.
    pub fn of(found: impl IntoIterator<Item = u32>) -> Self {
        let mut tally = Self::default();
        found.into_iter().for_each(|id| tally.add(id));
        tally
    }

    fn add(&mut self, id: u32) {
        self.count += 1;
        self.checksum = self.checksum.wrapping_add(mix(id));
    }
}

/// Spreads a number over 64 bits, so that sums of different sets differ (the finaliser of `SplitMix64`).
fn mix(id: u32) -> u64 {
    let mut z = u64::from(id).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Events that the contents of all filters are compared with: a second each at ten million filters.
const CONTENT_EVENTS_MAX: usize = 20;

/// What one event finds by location, or by location and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truths {
    /// The subscriptions that it satisfies.
    pub subscriptions: Tally,
    /// The filters whose area holds it.
    pub filters_nearby: Tally,
}

/// The oracle.
pub struct Oracle<'a> {
    workload: &'a Workload,
    clients: Vec<Position>,
    /// One centre for each client, or for each filter where those do not follow.
    centres: Vec<[f64; 3]>,
    /// Squared reach that no area passes, in the units of the centres.
    reach_sq: f64,
}

impl<'a> Oracle<'a> {
    /// For the workload with all clients where they are at first.
    #[must_use]
    pub fn new(workload: &'a Workload) -> Self {
        let config = workload.config();
        let ids = 0..config.subscriptions;
        let clients: Vec<Position> =
            ids.clone().map(|index| workload.position(workload.home(ClientId(index)))).collect();
        let centres = if config.co_located {
            clients.iter().map(|client| *client.point()).collect()
        } else {
            let filters =
                ids.flat_map(|index| (0..config.filters_per_subscription).map(move |number| (index, number)));
            filters.map(|(index, number)| centre(&workload.area(index, number))).collect()
        };
        // A millimetre more than the chords: this only spares distances, it decides nothing.
        let slack = match workload.world() {
            World::Planar => 1e-3,
            World::Geodetic => 1e-9,
        };
        let chord = workload.radii().iter().map(|radius| radius.chord()).fold(0.0, f64::max);
        let reach_sq = if chord < 1.9 || workload.world() == World::Planar {
            (chord * (1.0 + 1e-6) + slack).powi(2)
        } else {
            f64::INFINITY
        };
        Self { workload, clients, centres, reach_sq }
    }

    /// Puts a client somewhere else.
    pub fn move_client(&mut self, client: ClientId, position: Position) {
        self.clients[client.0 as usize] = position;
        if self.workload.config().co_located {
            self.centres[client.0 as usize] = *position.point();
        }
    }

    /// What an event finds.
    #[must_use]
    pub fn truths(&self, event: &Event) -> Truths {
        let per_subscription = self.workload.config().filters_per_subscription;
        let (mut satisfied, mut nearby) = (Vec::new(), Vec::new());
        let [x, y, z] = *event.position.point();
        for (index, [centre_x, centre_y, centre_z]) in (0..).zip(&self.centres) {
            let (dx, dy, dz) = (x - centre_x, y - centre_y, z - centre_z);
            if dx * dx + dy * dy + dz * dz > self.reach_sq {
                continue;
            }
            if self.workload.config().co_located {
                let filters = 0..per_subscription;
                filters.for_each(|number| self.look(event, index, number, &mut nearby, &mut satisfied));
            } else {
                let (subscription, number) = (index / per_subscription, index % per_subscription);
                self.look(event, subscription, number, &mut nearby, &mut satisfied);
            }
        }
        satisfied.dedup();
        Truths { subscriptions: Tally::of(satisfied), filters_nearby: Tally::of(nearby) }
    }

    /// The filters whose content each event satisfies, wherever they are. Draws each filter once for all events, for
    /// that takes longer than to look at it.
    pub fn by_content<'e>(&self, events: impl Iterator<Item = &'e Event> + Clone) -> Vec<Tally> {
        let config = self.workload.config();
        let mut tallies = vec![Tally::default(); events.clone().count()];
        for subscription in 0..config.subscriptions {
            for number in 0..config.filters_per_subscription {
                let filter = self.workload.filter(subscription, number);
                let expression = filter.condition.expression();
                for (tally, event) in tallies.iter_mut().zip(events.clone()) {
                    if expression.truth(event) == Truth::True {
                        tally.add(subscription * config.filters_per_subscription + number);
                    }
                }
            }
        }
        tallies
    }

    fn look(
        &self,
        event: &Event,
        subscription: u32,
        number: u32,
        nearby: &mut Vec<u32>,
        satisfied: &mut Vec<u32>,
    ) {
        let client = &self.clients[subscription as usize];
        let (centre, radius) = match self.workload.area(subscription, number) {
            Area::Circle { centre, radius } => (centre, radius),
            Area::Following(radius) => (*client, radius),
            Area::Everywhere | Area::Polygon(_) | Area::Corridor(_) => unreachable!("workloads have circles"),
        };
        if self.workload.world().distance_m(&centre, &event.position) > radius.metres() {
            return;
        }
        nearby.push(subscription * self.workload.config().filters_per_subscription + number);
        // Filters come by ascending subscription: one that is satisfied already is the last.
        if satisfied.last() == Some(&subscription) {
            return;
        }
        let filter = self.workload.filter(subscription, number);
        if filter.condition.expression().truth(event) == Truth::True {
            satisfied.push(subscription);
        }
    }
}

fn centre(area: &Area) -> [f64; 3] {
    match area {
        Area::Circle { centre, .. } => *centre.point(),
        Area::Following(_) | Area::Everywhere | Area::Polygon(_) | Area::Corridor(_) => {
            unreachable!("areas that do not follow are circles")
        }
    }
}

/// What one event ought to find: by brute force, or else what the first contender of a kind found.
#[derive(Default)]
struct Expected {
    subscriptions: Option<Tally>,
    nearby: Option<Tally>,
    by_content: Option<Tally>,
}

impl Expected {
    fn of(&mut self, finds: Finds) -> &mut Option<Tally> {
        match finds {
            Finds::Subscriptions => &mut self.subscriptions,
            Finds::FiltersNearby => &mut self.nearby,
            Finds::FiltersByContent => &mut self.by_content,
        }
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    /// Events that brute force was asked about.
    pub events: usize,
    /// (event, subscription) pairs among these.
    pub pairs: u64,
    /// (event, filter) pairs by location alone.
    pub nearby: u64,
    /// Events of which the filters by content alone were asked for, too.
    pub content_events: usize,
    /// (event, filter) pairs by content alone.
    pub by_content: u64,
    /// The sum of the hashes of the (event, subscription) pairs.
    pub checksum: u64,
}

/// Compares the contenders with brute force on the first `sample` timed events, those that know content only on
/// some of these, and with each other on all. All have the same events.
///
/// # Errors
/// The first event on which a contender is wrong.
pub fn check(oracle: &Oracle<'_>, entrants: &mut [Entrant<'_>], sample: usize) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    let Some(events) = entrants.first().map(|entrant| entrant.events) else { return Ok(checked) };
    let by_content = entrants.iter().any(|entrant| entrant.contender.finds() == Finds::FiltersByContent);
    let content_sample = if by_content { sample.min(CONTENT_EVENTS_MAX) } else { 0 };
    let content_events = events.timed.iter().take(content_sample).map(|event| &event.event);
    let by_content = oracle.by_content(content_events);
    for (index, event) in events.timed.iter().enumerate() {
        let mut truths = Expected { by_content: by_content.get(index).copied(), ..Expected::default() };
        if index < sample {
            let Truths { subscriptions, filters_nearby } = oracle.truths(&event.event);
            truths.subscriptions = Some(subscriptions);
            truths.nearby = Some(filters_nearby);
            checked.add(&truths);
        }
        for entrant in entrants.iter_mut() {
            entrant.contender.find(event);
            let found = Tally::of(entrant.contender.answer());
            let expected = *truths.of(entrant.contender.finds()).get_or_insert(found);
            anyhow::ensure!(
                found == expected,
                "event {index}: {} found {found:?}, expected {expected:?}",
                entrant.label
            );
        }
    }
    Ok(checked)
}

impl Checked {
    /// One line for the report.
    #[must_use]
    pub fn describe(&self, workload: &Workload) -> String {
        let by_content = match self.content_events {
            0 => String::new(),
            events => format!("{} by content on {events}, ", thousands(self.by_content)),
        };
        format!(
            "answers equal brute force over {} filters on {} events ({} pairs of {} by location, {by_content}checksum \
             {:016x}), and each other on all events",
            thousands(workload.filters_count() as u64),
            thousands(self.events as u64),
            thousands(self.pairs),
            thousands(self.nearby),
            self.checksum,
        )
    }

    fn add(&mut self, truths: &Expected) {
        let subscriptions = truths.subscriptions.unwrap_or_default();
        // The rotation tells events apart: the same answers to other events give another sum.
        let event = u32::try_from(self.events % 64).unwrap_or_default();
        self.checksum = self.checksum.wrapping_add(subscriptions.checksum.rotate_left(event));
        self.events += 1;
        self.pairs += subscriptions.count;
        self.nearby += truths.nearby.unwrap_or_default().count;
        self.content_events += usize::from(truths.by_content.is_some());
        self.by_content += truths.by_content.unwrap_or_default().count;
    }
}
