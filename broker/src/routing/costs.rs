//! What streets cost each tenant, while some of them are slow.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use matcher::area::Corridor;
use matcher::geo::{Position, Radius};
use routes::{Cost, Metric};
use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};
use streets::Network;
use wire::RouteBy;

use super::Streets;

/// An arc by the box that holds it, in degrees.
type BoxedArc = GeomWithData<Rectangle<[f64; 2]>, u32>;

/// Metres of a degree of latitude, a little fewer than there are.
const METRES_PER_DEGREE: f64 = 111_000.0;

/// The streets that are slow, tenant by tenant.
#[derive(Debug)]
pub(super) struct Traffic {
    arcs: RTree<BoxedArc>,
    last_number: AtomicU64,
    /// A std lock: held to copy a pointer.
    tenants: RwLock<HashMap<Arc<str>, Arc<TenantCosts>>>,
    usual: Arc<TenantCosts>,
}

/// What streets cost a tenant.
#[derive(Debug, Default)]
pub(super) struct TenantCosts {
    /// Costs of a greater number are newer.
    pub(super) number: u64,
    /// `None` where no street is slow.
    pub(super) costs: Option<SlowedCosts>,
}

/// Costs while some streets are slow.
#[derive(Debug)]
pub(super) struct SlowedCosts {
    pub(super) durations_ms: Vec<Cost>,
    by_duration: Metric,
    by_length: Metric,
    /// The arcs that are slow.
    slow: BTreeSet<u32>,
}

impl SlowedCosts {
    pub(super) fn metric(&self, by: RouteBy) -> &Metric {
        match by {
            RouteBy::Duration => &self.by_duration,
            RouteBy::Length => &self.by_length,
        }
    }
}

impl Traffic {
    pub(super) fn new(network: &Network) -> Self {
        let arcs = u32::try_from(network.arcs_count()).unwrap_or(u32::MAX);
        let boxed = |arc: u32| {
            let shape = network.shape(arc);
            let corner = |pick: fn(f64, f64) -> f64| {
                shape
                    .iter()
                    .copied()
                    .reduce(|one, two| [pick(one[0], two[0]), pick(one[1], two[1])])
                    .unwrap_or_default()
            };
            BoxedArc::new(Rectangle::from_corners(corner(f64::min), corner(f64::max)), arc)
        };
        Self {
            arcs: RTree::bulk_load((0..arcs).map(boxed).collect()),
            last_number: AtomicU64::new(0),
            tenants: RwLock::default(),
            usual: Arc::default(),
        }
    }

    /// What streets cost a tenant now.
    pub(super) fn of(&self, tenant: &str) -> Arc<TenantCosts> {
        // A panic under the lock is impossible but for memory running out.
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tenants.get(tenant).unwrap_or(&self.usual))
    }
}

impl Streets {
    /// The arcs that come within a radius of a place.
    ///
    /// Cost: the logarithm of the arcs, and a look at each that is near.
    pub(crate) fn arcs_near(&self, place: &Position, radius: Radius) -> Vec<u32> {
        let world = self.network.world();
        let reach = radius.metres() / METRES_PER_DEGREE;
        let along = reach / place.y().to_radians().cos().abs().max(1e-3);
        let near = AABB::from_corners(
            [place.x() - along, place.y() - reach],
            [place.x() + along, place.y() + reach],
        );
        let holds = |arc: &u32| {
            let shape = self.network.shape(*arc).iter().filter_map(|at| world.position(at).ok());
            let shape: Vec<_> = shape.collect();
            // Of a great radius most arcs have a node within it, which is quick to see.
            let ends = [shape.first(), shape.last()];
            ends.into_iter().flatten().any(|end| radius.holds(world, place, end))
                || Corridor::new(world, &shape, radius).is_ok_and(|corridor| corridor.holds(world, place))
        };
        let found = self.traffic.arcs.locate_in_envelope_intersecting(near);
        found.map(|arc| arc.data).filter(holds).collect()
    }

    /// Puts into force which arcs are slow for a tenant, and gives back those that were not before. Blocks: some milliseconds for a city.
    pub(crate) fn slow_down(&self, tenant: &Arc<str>, slow: BTreeSet<u32>, factor: f64) -> BTreeSet<u32> {
        let before = self.traffic.of(tenant);
        let slow_before = before.costs.as_ref().map(|costs| &costs.slow);
        let more =
            slow_before.map_or_else(|| slow.clone(), |before| slow.difference(before).copied().collect());
        let costs = (!slow.is_empty()).then(|| {
            let slowed = |costs: &[Cost]| {
                let mut costs = costs.to_vec();
                for arc in &slow {
                    if let Some(cost) = costs.get_mut(*arc as usize) {
                        *cost = times(*cost, factor);
                    }
                }
                costs
            };
            let durations_ms = slowed(&self.by_duration.of_arcs);
            let by_duration = self.hierarchy.customise(&durations_ms);
            let by_length = self.hierarchy.customise(&slowed(&self.by_length.of_arcs));
            SlowedCosts { durations_ms, by_duration, by_length, slow }
        });
        let number = self.traffic.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let mut tenants = self.traffic.tenants.write().unwrap_or_else(PoisonError::into_inner);
        tenants.insert(Arc::clone(tenant), Arc::new(TenantCosts { number, costs }));
        drop(tenants);
        more
    }
}

/// A cost multiplied by a factor. What cannot be used stays so.
fn times(cost: Cost, factor: f64) -> Cost {
    if cost == routes::UNREACHABLE {
        return cost;
    }
    #[expect(clippy::cast_precision_loss, reason = "an arc is no longer than 2^52 mm or ms")]
    let product = cost as f64 * factor;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "costs and factors are not negative, and what is too large becomes the largest"
    )]
    let product = product.round() as Cost;
    product
}
