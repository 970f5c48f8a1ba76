//! Cuts tiles out of a city.

use super::city::City;
use super::kinds::Layer;
use super::mvt::{self, EXTENT, Form, LayerDraft, Property, Unit};
use super::osm::{Shape, Spot};

/// Units around a tile that belong to it, so that wide lines and names go on where the next tile begins.
const BUFFER: i32 = 96;
/// Areas that are smaller than this, in units, are not seen.
const AREA_MIN: i32 = 12;
/// Corners closer than this to the one before, in units, are left out unless it is the last zoom: an eighth of a pixel and more.
const STEP_MIN: i32 = 6;
/// The most shapes of a tile. The rest is left out, smallest kinds first, for they come later.
const SHAPES_MAX: usize = 60_000;

/// Makes a tile.
pub(super) fn make(city: &City, zoom: u8, [x, y]: [u32; 2]) -> Vec<u8> {
    let view = View::new(zoom, [x, y]);
    let mut drafts = Layer::ALL.map(|layer| (layer, LayerDraft::default()));
    let (low, high) = view.reach();
    let mut shapes = city.about(low, high);
    shapes.retain(|shape| shape.kind.zoom <= zoom);
    shapes.sort_by_key(|shape| shape.kind.zoom);
    for shape in shapes.into_iter().take(SHAPES_MAX) {
        let Some((form, parts)) = view.cut(shape) else { continue };
        let draft = drafts.iter_mut().find(|(layer, _)| *layer == shape.kind.layer);
        if let Some((_, draft)) = draft {
            draft.add(form, &parts, &properties(shape, form));
        }
    }
    mvt::pack(drafts.into_iter().map(|(layer, draft)| (layer.name(), draft)))
}

fn properties(shape: &Shape, form: Form) -> Vec<(&'static str, Property<'_>)> {
    let mut properties = vec![("kind", Property::Text(shape.kind.kind))];
    if !shape.kind.detail.is_empty() {
        properties.push(("kind_detail", Property::Text(shape.kind.detail)));
    }
    // Names of areas stand at points of their own.
    if let Some(name) = shape.name.as_deref().filter(|_| form != Form::Area) {
        properties.push(("name", Property::Text(name)));
    }
    if shape.kind.rank > 0 {
        properties.push(("population_rank", Property::Number(shape.kind.rank.into())));
    }
    properties
}

/// A tile as a window.
struct View {
    /// Its north-west corner.
    corner: [i64; 2],
    /// Bits of a spot that are finer than a unit.
    shift: u32,
    is_last: bool,
}

impl View {
    fn new(zoom: u8, tile: [u32; 2]) -> Self {
        let side = 32 - u32::from(zoom);
        Self {
            corner: tile.map(|part| i64::from(part) << side),
            shift: side - EXTENT.ilog2(),
            is_last: City::is_last(zoom),
        }
    }

    /// The rectangle that it needs to know of.
    fn reach(&self) -> ([i64; 2], [i64; 2]) {
        let low = self.corner.map(|part| part - (i64::from(BUFFER) << self.shift));
        let high = self.corner.map(|part| part + (i64::from(EXTENT + BUFFER) << self.shift));
        (low, high)
    }

    /// The parts of a shape that are in the tile; none where it is not seen.
    fn cut(&self, shape: &Shape) -> Option<(Form, Vec<Vec<Unit>>)> {
        let lines = shape.parts.iter().map(|part| self.units(part));
        let (form, parts): (_, Vec<_>) = if shape.kind.is_area {
            let mut rings = lines.enumerate().filter_map(|(idx, ring)| ring_of(ring, idx == 0));
            let outer = rings.next()?;
            (Form::Area, std::iter::once(outer).chain(rings).collect())
        } else if shape.parts.first().is_some_and(|part| part.len() == 1) {
            let inside = |unit: &Unit| unit.iter().all(|part| (-BUFFER..EXTENT + BUFFER).contains(part));
            (Form::Point, lines.filter(|line| line.first().is_some_and(inside)).collect())
        } else {
            (Form::Line, lines.flat_map(|line| pieces(&line)).collect())
        };
        (!parts.is_empty()).then_some((form, parts))
    }

    fn units(&self, spots: &[Spot]) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::with_capacity(spots.len());
        for (idx, spot) in spots.iter().enumerate() {
            let unit = [0, 1].map(|axis| {
                let away = (i64::from(spot[axis]) - self.corner[axis]) >> self.shift;
                i32::try_from(away).unwrap_or(if away < 0 { i32::MIN / 4 } else { i32::MAX / 4 })
            });
            let is_end = idx + 1 == spots.len();
            let least = if self.is_last { 1 } else { STEP_MIN };
            let is_far = units.last().is_none_or(|before| {
                (before[0] - unit[0]).saturating_abs().saturating_add((before[1] - unit[1]).saturating_abs())
                    >= least
            });
            if is_far || (is_end && units.last() != Some(&unit)) {
                units.push(unit);
            }
        }
        units
    }
}

const LOW: i32 = -BUFFER;
const HIGH: i32 = EXTENT + BUFFER;

/// The pieces of a line inside the window.
fn pieces(line: &[Unit]) -> Vec<Vec<Unit>> {
    let mut pieces: Vec<Vec<Unit>> = Vec::new();
    for pair in line.windows(2) {
        let Some([from, to]) = clipped(pair[0], pair[1]) else { continue };
        match pieces.last_mut() {
            Some(piece) if piece.last() == Some(&from) => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
    }
    pieces.retain(|piece| piece.len() > 2 || piece[0] != piece[1]);
    pieces
}

/// The piece of a segment inside the window (Liang and Barsky 1984).
fn clipped(from: Unit, to: Unit) -> Option<[Unit; 2]> {
    let (mut begin, mut end) = (0.0_f64, 1.0_f64);
    let [from_f, to_f] = [from, to].map(|unit| unit.map(f64::from));
    for axis in 0..2 {
        let step = to_f[axis] - from_f[axis];
        for (slope, room) in [(-step, from_f[axis] - f64::from(LOW)), (step, f64::from(HIGH) - from_f[axis])]
        {
            if slope == 0.0 {
                if room < 0.0 {
                    return None;
                }
                continue;
            }
            let at = room / slope;
            if slope < 0.0 { begin = begin.max(at) } else { end = end.min(at) }
        }
    }
    (begin <= end).then(|| {
        let at = |part: f64| [0, 1].map(|axis| rounded(from_f[axis] + (to_f[axis] - from_f[axis]) * part));
        [if begin > 0.0 { at(begin) } else { from }, if end < 1.0 { at(end) } else { to }]
    })
}

/// A ring inside the window, without its last corner; none where it is not seen. Outer rings go clockwise on the screen, inner ones the other way.
fn ring_of(mut ring: Vec<Unit>, is_outer: bool) -> Option<Vec<Unit>> {
    if ring.first() == ring.last() {
        ring.pop();
    }
    let size = |axis: usize| {
        let parts = || ring.iter().map(|unit| unit[axis]);
        parts().max().unwrap_or_default().saturating_sub(parts().min().unwrap_or_default())
    };
    if size(0).max(size(1)) < AREA_MIN {
        return None;
    }
    for (axis, bound, is_low) in [(0, LOW, true), (0, HIGH, false), (1, LOW, true), (1, HIGH, false)] {
        ring = half(&ring, axis, bound, is_low);
    }
    ring.dedup();
    let twice_area: i64 = (0..ring.len())
        .map(|idx| {
            let ([x1, y1], [x2, y2]) =
                (ring[idx].map(i64::from), ring[(idx + 1) % ring.len()].map(i64::from));
            x1 * y2 - x2 * y1
        })
        .sum();
    if ring.len() < 3 || twice_area == 0 {
        return None;
    }
    if (twice_area > 0) != is_outer {
        ring.reverse();
    }
    Some(ring)
}

/// A ring without what is beyond a bound (Sutherland and Hodgman 1974).
fn half(ring: &[Unit], axis: usize, bound: i32, is_low: bool) -> Vec<Unit> {
    let inside = |unit: Unit| if is_low { unit[axis] >= bound } else { unit[axis] <= bound };
    let mut kept = Vec::with_capacity(ring.len());
    for (idx, to) in ring.iter().copied().enumerate() {
        let from = ring[(idx + ring.len() - 1) % ring.len()];
        if inside(from) != inside(to) {
            let [from, to] = [from, to].map(|unit| unit.map(f64::from));
            let part = (f64::from(bound) - from[axis]) / (to[axis] - from[axis]);
            let mut cross = [0, 1].map(|axis| rounded(from[axis] + (to[axis] - from[axis]) * part));
            cross[axis] = bound;
            kept.push(cross);
        }
        if inside(to) {
            kept.push(to);
        }
    }
    kept
}

#[expect(clippy::cast_possible_truncation, reason = "a cast of a float goes to the nearest that there is")]
fn rounded(unit: f64) -> i32 {
    unit.round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_the_window() {
        assert_eq!(pieces(&[[0, 0], [100, 100], [200, 0]]), [vec![[0, 0], [100, 100], [200, 0]]]);
        assert_eq!(pieces(&[[-1000, 50], [5000, 50]]), [vec![[LOW, 50], [HIGH, 50]]]);
        assert_eq!(pieces(&[[-1000, 50], [-500, 50], [-500, 9000]]), Vec::<Vec<Unit>>::new());
        // Out and in again.
        assert_eq!(pieces(&[[0, 0], [0, -500], [100, -500], [100, 0]]).len(), 2);
    }

    #[test]
    fn rings_are_cut_and_turned() {
        let square = vec![[0, 0], [100, 0], [100, 100], [0, 100], [0, 0]];
        let outer = ring_of(square.clone(), true).unwrap();
        assert_eq!(outer, [[0, 0], [100, 0], [100, 100], [0, 100]]);
        assert_eq!(ring_of(square, false).unwrap(), [[0, 100], [100, 100], [100, 0], [0, 0]]);
        let large = vec![[-9000, -9000], [9000, -9000], [9000, 9000], [-9000, 9000], [-9000, -9000]];
        let mut corners = ring_of(large, true).unwrap();
        corners.sort_unstable();
        assert_eq!(corners, [[LOW, LOW], [LOW, HIGH], [HIGH, LOW], [HIGH, HIGH]]);
        assert_eq!(ring_of(vec![[0, 0], [5, 0], [5, 5], [0, 0]], true), None);
        assert_eq!(ring_of(vec![[-900, 0], [-800, 0], [-800, 50], [-900, 0]], true), None);
    }
}
