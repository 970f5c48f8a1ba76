//! What it costs to tell an engine where a client is.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use matcher::engine::Engine;
use matcher::fixtures::workload::{Spot, Workload};
use matcher::geo::Position;
use matcher::subscription::ClientId;

use super::process::{Stopwatch, waited};
use super::race::nanoseconds;
use crate::baseline::counting::{Counting, Location};
use crate::baseline::rtree::Circles;
use crate::baseline::{Circle, Contents};

/// Moves that are drawn ahead of the clock at a time.
const CHUNK: u64 = 1_000;

/// Moves that take longer may have waited for a core.
const SUSPICIOUS: Duration = Duration::from_micros(20);

/// How far a move goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Travel {
    /// To anywhere that clients are found.
    Jump,
    /// About so many metres.
    Step(f64),
}

/// What moves cost.
#[derive(Clone, Debug)]
pub struct MoveTiming {
    /// Moves per clocking: as many again were timed in chunks, for the mean.
    pub moves: u64,
    /// Mean of a client's move, without the clock's cost and waits for a core.
    pub mean_ns: f64,
    /// Single moves, with them.
    pub moves_ns: Histogram<u64>,
    /// The longest one, less the time for which this thread was waiting for a core in it.
    pub longest_own: Duration,
}

/// Clients on their way.
pub struct Travellers<'a> {
    workload: &'a Workload,
    spots: Vec<Spot>,
    index: u64,
}

impl<'a> Travellers<'a> {
    /// All clients where they are at first.
    #[must_use]
    pub fn new(workload: &'a Workload) -> Self {
        let clients = 0..workload.config().subscriptions;
        Self { workload, spots: clients.map(|client| workload.home(ClientId(client))).collect(), index: 0 }
    }

    /// Where each client is now.
    pub fn positions(&self) -> impl Iterator<Item = (ClientId, Position)> {
        (0..).map(ClientId).zip(self.spots.iter().map(|spot| self.workload.position(*spot)))
    }

    /// The next moves of random clients.
    fn draw(&mut self, travel: Travel) -> Vec<(ClientId, Position)> {
        let one = |index: u64| {
            let (client, anywhere) = self.workload.jump(index);
            let spot = &mut self.spots[client.0 as usize];
            *spot = match travel {
                Travel::Jump => anywhere,
                Travel::Step(step_m) => self.workload.step(index, *spot, step_m),
            };
            (client, self.workload.position(*spot))
        };
        let moves = (self.index..self.index + CHUNK).map(one).collect();
        self.index += CHUNK;
        moves
    }

    /// Moves random clients, twice `moves` times: chunks are timed as a whole and move by move in turns.
    ///
    /// # Errors
    /// When a move takes longer than an hour.
    pub fn travel(
        &mut self,
        engine: &mut dyn Engine,
        travel: Travel,
        moves: u64,
    ) -> anyhow::Result<MoveTiming> {
        let chunks = moves.div_ceil(CHUNK);
        let mut whole = Duration::ZERO;
        let mut longest_own = Duration::ZERO;
        let mut moves_ns = Histogram::new_with_max(3_600_000_000_000, 3)?;
        for _ in 0..chunks {
            let chunk = self.draw(travel);
            let stopwatch = Stopwatch::start();
            for (client, position) in &chunk {
                engine.move_client(*client, Some(*position));
            }
            whole += stopwatch.stop();

            let chunk = self.draw(travel);
            let mut waited_until = waited();
            for (client, position) in &chunk {
                let start = Instant::now();
                engine.move_client(*client, Some(*position));
                let elapsed = start.elapsed();
                moves_ns.record(nanoseconds(elapsed))?;
                if elapsed > SUSPICIOUS {
                    // Waits since the last look: nearly all of them fell into moves that were looked at.
                    let waited_now = waited();
                    let own = elapsed.saturating_sub(waited_now.saturating_sub(waited_until));
                    waited_until = waited_now;
                    longest_own = longest_own.max(own);
                } else {
                    longest_own = longest_own.max(elapsed);
                }
            }
        }
        let moves = chunks * CHUNK;
        Ok(MoveTiming { moves, mean_ns: whole.as_nanos() as f64 / moves as f64, moves_ns, longest_own })
    }
}

/// Mean nanoseconds for which an R*-tree is busy with the move of one filter.
///
/// # Errors
/// When the tree has lost a circle.
pub fn rtree_move_ns(workload: &Workload, moves: u64) -> anyhow::Result<f64> {
    let mut circles = crate::baseline::circles(workload)?;
    let mut tree: Circles = Circles::new(&circles);
    let filters_per_subscription = workload.config().filters_per_subscription;
    let mut busy = Duration::ZERO;
    for index in 0..moves {
        let (client, spot) = workload.jump(index);
        let position = workload.position(spot);
        // One filter of the client, another each time.
        let number = u32::try_from(index % u64::from(filters_per_subscription))?;
        let filter = client.0 * filters_per_subscription + number;
        let from = &mut circles[filter as usize];
        let to = Circle { centre: [position.x(), position.y()], radius_m: from.radius_m };
        let start = Instant::now();
        let found = tree.relocate(filter, *from, to);
        busy += start.elapsed();
        anyhow::ensure!(found, "the tree has lost filter {filter}");
        *from = to;
    }
    Ok(busy.as_nanos() as f64 / moves as f64)
}

/// Mean nanoseconds for which a counting matcher is busy with the move of one filter.
#[derive(Clone, Copy, Debug)]
pub struct CountingMoves {
    /// When the filter's constraints are removed from the sorted arrays and inserted again.
    pub relocate_ns: f64,
    /// When all arrays are built anew from the filters, as SFF does.
    pub rebuild_ns: f64,
}

/// Moves single filters of a counting matcher that has location encoded, and rebuilds another one.
///
/// # Errors
/// When the matcher has lost a filter, or knows no location.
pub fn counting_moves(
    workload: &Workload,
    location: Location,
    travel: Travel,
    (moves, rebuilds): (u64, u64),
) -> anyhow::Result<CountingMoves> {
    let mut circles = crate::baseline::circles(workload)?;
    let contents = Contents::new(workload)?;
    let (names_count, per_subscription) =
        (workload.names().len(), workload.config().filters_per_subscription);
    let build =
        |circles: &[Circle]| Counting::new(&contents, circles, names_count, per_subscription, location);
    let mut rebuilding = Duration::ZERO;
    for _ in 0..rebuilds {
        let stopwatch = Stopwatch::start();
        std::hint::black_box(build(&circles)?);
        rebuilding += stopwatch.stop();
    }
    let mut counting = build(&circles)?;
    let mut travellers = Travellers::new(workload);
    let mut relocating = Duration::ZERO;
    let mut index = 0;
    while index < moves {
        for (client, position) in travellers.draw(travel).into_iter().take(usize::try_from(moves - index)?) {
            // One filter of the client, another each time.
            let number = u32::try_from(index % u64::from(per_subscription))?;
            let filter = client.0 * per_subscription + number;
            let to = &mut circles[filter as usize];
            to.centre = [position.x(), position.y()];
            let start = Instant::now();
            let found = counting.relocate(filter, *to);
            relocating += start.elapsed();
            anyhow::ensure!(found, "the counting matcher has lost filter {filter}");
            index += 1;
        }
    }
    let mean_ns = |whole: Duration, count: u64| whole.as_nanos() as f64 / count as f64;
    Ok(CountingMoves { relocate_ns: mean_ns(relocating, moves), rebuild_ns: mean_ns(rebuilding, rebuilds) })
}
