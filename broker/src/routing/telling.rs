//! Areas along routes as they are shown: to their client those that are in force; to others what those would be if the client were where it is shown
//! to others, for the way in force would say more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use matcher::area::CORRIDOR_POSITIONS_MAX;
use matcher::geo::{Position, Radius};
use routes::Cost;
use wire::{ClientRoute, LineStringKind, RouteLine, RouteState};

use super::costs::SlowedCosts;
use super::{Lead, Memories, SLICE, SNAP_M, Streets, Turn, thousandths};
use crate::ingest::area::RouteTo;
use crate::model::error::ApiError;
use crate::model::way::Way;

/// An area along a route as its shard has it.
#[derive(Debug)]
pub(crate) struct AreaHeld {
    pub(crate) subscription: Arc<str>,
    /// The filter whose area it is.
    pub(crate) filter: usize,
    pub(crate) to: RouteTo,
    pub(crate) radius: Radius,
    /// Where it leads, once that was looked for.
    pub(crate) way: Option<Arc<Way>>,
    /// Whether it lies along that.
    pub(crate) is_laid: bool,
}

/// The areas of a client that somebody asks for.
#[derive(Debug)]
pub(crate) struct AreasAsked {
    pub(crate) to_itself: bool,
    pub(crate) after: Option<AreaAfter>,
    /// How many, at most.
    pub(crate) most: usize,
}

/// The last area of a page, after which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AreaAfter {
    pub(crate) subscription: Arc<str>,
    filter: usize,
}

/// What a page may have at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageBounds {
    pub(crate) areas: usize,
    /// Bytes of all areas but the first, which is always there.
    pub(crate) bytes: usize,
}

/// Areas of a page as JSON.
#[derive(Debug, Default)]
pub(crate) struct AreasPage {
    pub(crate) areas: Vec<String>,
    bytes: usize,
    /// The last one, unless there are no more.
    pub(crate) next: Option<AreaAfter>,
}

impl AreasPage {
    /// Adds an area, if there is room; says whether there was.
    fn push(&mut self, after: AreaAfter, told: &ClientRoute, bounds: PageBounds) -> bool {
        let text = serde_json::to_string(told).unwrap_or_default();
        let bytes = self.bytes + text.len();
        let is_there_room = self.areas.is_empty() || self.areas.len() < bounds.areas && bytes <= bounds.bytes;
        if is_there_room {
            self.bytes = bytes;
            self.areas.push(text);
            self.next = Some(after);
        }
        is_there_room
    }
}

impl AreaHeld {
    fn after(&self) -> AreaAfter {
        AreaAfter { subscription: Arc::clone(&self.subscription), filter: self.filter }
    }
}

impl AreaAfter {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (filter, subscription) = text.split_once(':')?;
        Some(Self { subscription: subscription.into(), filter: filter.parse().ok()? })
    }

    pub(crate) fn text(&self) -> String {
        format!("{}:{}", self.filter, self.subscription)
    }

    /// Whether an area comes after it.
    pub(crate) fn is_before(&self, area: &AreaHeld) -> bool {
        (&self.subscription, self.filter) < (&area.subscription, area.filter)
    }
}

impl Streets {
    /// Tells where areas of a client at a place lie, as many as there is room for on a page, and charges for the time that this took. Others have their
    /// turns in between.
    pub(crate) async fn tell(
        self: &Arc<Self>,
        tenant: Arc<str>,
        at: Option<Position>,
        areas: Vec<AreaHeld>,
        to_itself: bool,
        bounds: PageBounds,
        charge: impl Fn(Duration) + Clone + Send + 'static,
    ) -> Result<AreasPage, ApiError> {
        let (mut left, mut page, mut is_over) = (VecDeque::from(areas), AreasPage::default(), false);
        while !is_over {
            let (tenant, charge) = (Arc::clone(&tenant), charge.clone());
            let slice = move |streets: &Self, memories: &mut Memories, _: &mut Turn| {
                let began = Instant::now();
                let mut is_over = left.is_empty();
                while !is_over && began.elapsed() < SLICE {
                    let area = left.pop_front();
                    let told = area.map(|area| {
                        (area.after(), streets.shown(&tenant, at.as_ref(), area, to_itself, memories))
                    });
                    let is_told = told.is_some_and(|(after, told)| page.push(after, &told, bounds));
                    is_over = !is_told || left.is_empty();
                    if is_told && is_over {
                        page.next = None;
                    }
                }
                charge(began.elapsed());
                (left, page, is_over)
            };
            (left, page, is_over) = self.aside(None, slice).await?;
        }
        Ok(page)
    }

    /// An area as it is shown to its client, or to others.
    fn shown(
        &self,
        tenant: &str,
        at: Option<&Position>,
        mut area: AreaHeld,
        to_itself: bool,
        memories: &mut Memories,
    ) -> ClientRoute {
        if !to_itself {
            let lead = at.map(|shown| self.lead(tenant, shown, area.to, area.radius, None, memories));
            area.is_laid = matches!(lead, Some(Lead::Along(..)));
            area.way = lead.map(|(Lead::Same(way) | Lead::Along(way, _) | Lead::Nowhere(way))| Arc::new(way));
        }
        ClientRoute { approximate: !to_itself, ..self.told(tenant, at, &area, memories) }
    }

    fn told(
        &self,
        tenant: &str,
        at: Option<&Position>,
        area: &AreaHeld,
        memories: &mut Memories,
    ) -> ClientRoute {
        let costs = self.traffic.of(tenant);
        let slowed = costs.costs.as_ref();
        let AreaHeld { to, radius, .. } = *area;
        let found = area.way.as_deref().filter(|_| area.is_laid);
        let mut told = ClientRoute {
            subscription: area.subscription.to_string(),
            filter: area.filter,
            to: [to.to.x(), to.to.y()],
            by: to.by,
            radius_m: radius.metres(),
            state: RouteState::Found,
            why: None,
            route: None,
            left_m: None,
            left_s: None,
            approximate: false,
        };
        if let Some((way, from)) = found.and_then(|way| Some((way, way.from?))) {
            let mut coordinates = self.line(&way.arcs, from);
            coordinates.truncate(CORRIDOR_POSITIONS_MAX);
            told.route = Some(RouteLine { kind: LineStringKind::LineString, coordinates });
            let left = at.map(|at| self.left(&way.arcs, at, slowed));
            (told.left_m, told.left_s) = (left.map(|left| left[0]), left.map(|left| left[1]));
        } else {
            let (state, why) = self.missing(at, area, slowed, memories);
            (told.state, told.why) = (state, Some(why));
        }
        told
    }

    /// The reason for which an area lies nowhere.
    fn missing(
        &self,
        at: Option<&Position>,
        area: &AreaHeld,
        slowed: Option<&SlowedCosts>,
        memories: &mut Memories,
    ) -> (RouteState, String) {
        let no_street =
            |of: &str| (RouteState::OffStreets, format!("there is no street within {SNAP_M} m of {of}"));
        let Some(way) = &area.way else {
            return match at {
                Some(_) => (RouteState::Sought, "the way is being looked for".to_owned()),
                None => (RouteState::NoPosition, "the client has told no position".to_owned()),
            };
        };
        let Some(from) = way.from else { return no_street("where the client is") };
        let Some(to) = self.node_near(&area.to.to) else { return no_street("the destination") };
        if self.route(area.to.by, [from, to], 0, slowed, memories).is_none() {
            let why = "no way leads there along the streets from where the client is";
            return (RouteState::Unreachable, why.to_owned());
        }
        let why = "the corridor has no room (routes.client_bytes, routes.tenant_bytes)";
        (RouteState::NoRoom, why.to_owned())
    }

    /// Metres and seconds from the place of a way that is nearest to where the client is to its end.
    ///
    /// Pieces of streets are taken as straight in degrees, which is the same to decimetres. Cost: the points of the way.
    fn left(&self, arcs: &[u32], at: &Position, slowed: Option<&SlowedCosts>) -> [f64; 2] {
        let mut nearest = (f64::INFINITY, 0, 0.0);
        for (index, arc) in arcs.iter().enumerate() {
            let (away, behind) = along(self.network.shape(*arc), [at.x(), at.y()]);
            if away < nearest.0 {
                nearest = (away, index, behind);
            }
        }
        let (_, first, behind) = nearest;
        [&self.by_length.of_arcs, self.durations_ms(slowed)].map(|costs: &[Cost]| {
            let costs = arcs.iter().skip(first).map(|arc| costs[*arc as usize]);
            let on_first = costs.clone().next().map_or(0.0, |cost| thousandths(cost) * behind);
            // A position is not known to less than a decimetre.
            ((thousandths(costs.sum()) - on_first) * 10.0).round() / 10.0
        })
    }
}

/// How far a place is from a line, squared in degrees of latitude, and which part of the line lies before the place of it that is nearest.
fn along(line: &[[f64; 2]], [x, y]: [f64; 2]) -> (f64, f64) {
    let wide = y.to_radians().cos();
    // Lines may cross the antimeridian.
    let from_here = |[lon, lat]: [f64; 2]| [((lon - x + 540.0).rem_euclid(360.0) - 180.0) * wide, lat - y];
    let (mut nearest, mut behind, mut length) = (f64::INFINITY, 0.0, 0.0);
    for ends in line.windows(2) {
        let [[x1, y1], [x2, y2]] = [from_here(ends[0]), from_here(ends[1])];
        let (dx, dy) = (x2 - x1, y2 - y1);
        let piece = dx.hypot(dy);
        let part = if piece > 0.0 { (-(x1 * dx + y1 * dy) / (piece * piece)).clamp(0.0, 1.0) } else { 0.0 };
        let away = (x1 + dx * part).powi(2) + (y1 + dy * part).powi(2);
        if away < nearest {
            (nearest, behind) = (away, length + piece * part);
        }
        length += piece;
    }
    (nearest, if length > 0.0 { behind / length } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_first_area_however_long_it_is_and_others_while_there_is_room() {
        let told = |why: usize| ClientRoute {
            subscription: "s".to_owned(),
            filter: 0,
            to: [0.0; 2],
            by: wire::RouteBy::Duration,
            radius_m: 1.0,
            state: RouteState::Sought,
            why: Some("x".repeat(why)),
            route: None,
            left_m: None,
            left_s: None,
            approximate: false,
        };
        let after = |filter| AreaAfter { subscription: "s:1".into(), filter };
        let (mut page, bounds) = (AreasPage::default(), PageBounds { areas: 3, bytes: 3_000 });
        let is_added = [5_000, 1].map(|why| page.push(after(why), &told(why), bounds));
        assert_eq!(is_added, [true, false]);
        page = AreasPage::default();
        let is_added = [1_000, 1_000, 1_000, 1, 1].map(|why| page.push(after(why), &told(why), bounds));
        assert_eq!(is_added, [true, true, false, true, false]);
        assert_eq!(page.next.and_then(|next| AreaAfter::read(&next.text())), Some(after(1)));
        assert_eq!(["", "s", ":s", "-1:s"].map(AreaAfter::read), [None, None, None, None]);
    }

    #[test]
    fn a_place_lies_along_a_line() {
        let line = [[179.9, 0.0], [-179.9, 0.0], [-179.9, 0.2]];
        for (place, away, part) in [
            ([180.0, 0.05], 0.05, 0.25),
            ([-180.0, -0.05], 0.05, 0.25),
            ([-179.8, 0.1], 0.1, 0.75),
            ([179.0, 0.0], 0.9, 0.0),
            ([-179.9, 9.0], 8.8, 1.0),
        ] {
            let (found, behind) = along(&line, place);
            assert!(
                (found.sqrt() - away).abs() < 1e-6 && (behind - part).abs() < 1e-5,
                "{place:?}: {found}, {behind}"
            );
        }
        assert_eq!(along(&[[1.0, 0.0], [1.0, 0.0]], [1.0, 0.0]).1, 0.0);
    }
}
