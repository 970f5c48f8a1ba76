//! Areas along routes: where they lie.

use std::sync::Arc;
use std::time::{Duration, Instant};

use matcher::area::{CORRIDOR_POSITIONS_MAX, Corridor};
use matcher::geo::{Position, Radius};

use super::{Memories, SNAP_M, Streets};
use crate::ingest::area::RouteTo;
use crate::ingest::subscription::{Prepared, RouteArea};
use crate::model::error::ApiError;
use crate::model::way::Way;
use wire::Fault;

/// Where an area lies from now on.
#[derive(Debug)]
pub(crate) enum Lead {
    /// Where it lay before: the same streets, or none as before.
    Same(Way),
    /// Along another way.
    Along(Way, Corridor),
    /// Nowhere: no way leads there.
    Nowhere(Way),
}

impl Streets {
    /// Where an area lies that leads from one place to another.
    pub(super) fn lead(
        &self,
        tenant: &str,
        from: &Position,
        to: RouteTo,
        radius: Radius,
        before: Option<&Way>,
        memories: &mut Memories,
    ) -> Lead {
        let costs = self.traffic.of(tenant);
        let mut way = Way { from: self.node_near(from), arcs: Box::default(), costs: costs.number };
        if let Some(before) = before.filter(|before| before.from == way.from && before.costs == way.costs) {
            way.arcs.clone_from(&before.arcs);
            return Lead::Same(way);
        }
        let found = way.from.zip(self.node_near(&to.to)).and_then(|(from, to_node)| {
            let (_, route) = self.route(to.by, [from, to_node], 0, costs.costs.as_ref(), memories)?;
            Some((from, route))
        });
        let Some((from, route)) = found else { return Lead::Nowhere(way) };
        way.arcs = route.arcs.clone().into();
        if before
            .is_some_and(|before| before.from == way.from && before.arcs == way.arcs && !way.arcs.is_empty())
        {
            return Lead::Same(way);
        }
        let world = self.network.world();
        let mut line: Vec<_> =
            self.line(&route.arcs, from).iter().filter_map(|at| world.position(at).ok()).collect();
        // The rest is found when the client has come to the end of this.
        line.truncate(CORRIDOR_POSITIONS_MAX);
        match Corridor::new(world, &line, radius) {
            Ok(corridor) => Lead::Along(way, corridor),
            // Streets that join opposite sides of the globe are no streets.
            Err(_) => Lead::Nowhere(way),
        }
    }

    /// Lays the areas of a subscription along the routes from where its client is, if that is known. Gives those back that cannot lie anywhere,
    /// each with its place in the document, for no street is near one of the ends or no way leads there; and how long it took to find the routes.
    pub(crate) async fn lay(
        self: &Arc<Self>,
        tenant: Arc<str>,
        from: Option<Position>,
        prepared: &mut Prepared,
    ) -> Result<(Vec<Fault>, Duration), ApiError> {
        let routes = prepared.routes.clone();
        let leads = self.aside(None, move |streets, memories, _| {
            let began = Instant::now();
            let leads = routes.iter().map(|route| streets.lead_or_fault(&tenant, from, route, memories));
            (leads.collect::<Vec<_>>(), began.elapsed())
        });
        let (leads, took) = leads.await?;
        let mut faults = Vec::new();
        for (index, lead) in leads.into_iter().enumerate() {
            match lead {
                Ok(Some((way, corridor))) => prepared.lay(index, Arc::new(way), corridor),
                Ok(None) => {}
                Err(fault) => faults.push(fault),
            }
        }
        Ok((faults, took))
    }

    /// Lays the areas of a subscription that was there before the broker began, as far as ways are found. Blocks.
    pub(crate) fn lay_again(&self, tenant: &str, from: &Position, prepared: &mut Prepared) {
        for index in 0..prepared.routes.len() {
            let RouteArea { to, radius, .. } = prepared.routes[index];
            let lead = self.with_memories(|memories| self.lead(tenant, from, to, radius, None, memories));
            if let Lead::Along(way, corridor) = lead {
                prepared.lay(index, Arc::new(way), corridor);
            }
        }
    }

    fn lead_or_fault(
        &self,
        tenant: &str,
        from: Option<Position>,
        route: &RouteArea,
        memories: &mut Memories,
    ) -> Result<Option<(Way, Corridor)>, Fault> {
        let fault = |member: &str, detail: String| Fault {
            pointer: format!("/filters/{}/area/route{member}", route.filter),
            detail,
        };
        if self.node_near(&route.to.to).is_none() {
            let swapped = self.swapped(&route.to.to);
            return Err(fault("/to", format!("there is no street within {SNAP_M} m of it{swapped}")));
        }
        let Some(from) = from else { return Ok(None) };
        match self.lead(tenant, &from, route.to, route.radius, None, memories) {
            Lead::Along(way, corridor) => Ok(Some((way, corridor))),
            Lead::Same(way) | Lead::Nowhere(way) if way.from.is_none() => {
                Err(fault("", format!("there is no street within {SNAP_M} m of where the client is")))
            }
            Lead::Same(_) | Lead::Nowhere(_) => {
                Err(fault("/to", "no way leads there along the streets from where the client is".to_owned()))
            }
        }
    }
}
