//! A street network in flat arrays.

use std::f64::consts::FRAC_PI_2;

use matcher::geo::{EARTH_RADIUS_M, World};

/// No arc, node or name.
pub const NONE: u32 = u32::MAX;

/// What kind of street, from the most to the least important; links count as what they link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "OpenStreetMap's words")]
pub enum Class {
    Motorway,
    Trunk,
    Primary,
    Secondary,
    Tertiary,
    Unclassified,
    Residential,
    Living,
    Service,
}

impl Class {
    /// The class of a value of OpenStreetMap's `highway`; none where no cars drive.
    #[must_use]
    pub fn of(highway: &str) -> Option<Self> {
        Some(match highway.strip_suffix("_link").unwrap_or(highway) {
            "motorway" => Self::Motorway,
            "trunk" => Self::Trunk,
            "primary" => Self::Primary,
            "secondary" => Self::Secondary,
            "tertiary" => Self::Tertiary,
            "unclassified" | "road" => Self::Unclassified,
            "residential" => Self::Residential,
            "living_street" => Self::Living,
            "service" => Self::Service,
            _ => return None,
        })
    }

    /// The speed limit where none is posted, in km/h.
    #[must_use]
    pub fn limit_kmh(self) -> f64 {
        match self {
            Self::Motorway => 110.0,
            Self::Trunk => 80.0,
            Self::Primary => 60.0,
            Self::Secondary | Self::Tertiary | Self::Unclassified => 50.0,
            Self::Residential => 30.0,
            Self::Living => 10.0,
            Self::Service => 15.0,
        }
    }

    /// How many lanes one direction has where nobody says.
    #[must_use]
    pub fn lanes(self, is_oneway: bool) -> u8 {
        match self {
            Self::Motorway => 2,
            Self::Trunk | Self::Primary if is_oneway => 2,
            Self::Trunk
            | Self::Primary
            | Self::Secondary
            | Self::Tertiary
            | Self::Unclassified
            | Self::Residential
            | Self::Living
            | Self::Service => 1,
        }
    }
}

/// What was read, left out, and cut off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    /// Junctions and ends of streets, before the cut.
    pub nodes: usize,
    /// Directed arcs, before the cut.
    pub arcs: usize,
    /// Nodes outside of the largest strongly connected part.
    pub nodes_cut: usize,
    /// Arcs that do not lie within it.
    pub arcs_cut: usize,
    /// How long those are together, in metres.
    pub length_cut_m: f64,
    /// Records that made no sense.
    pub skipped: u64,
    /// The first of these: where, and what is wrong.
    pub first_problem: Option<String>,
}

impl Census {
    /// Counts a record that is left out.
    pub(crate) fn skip(&mut self, problem: impl FnOnce() -> String) {
        self.skipped += 1;
        self.first_problem.get_or_insert_with(problem);
    }
}

/// Streets as a directed graph. Nodes, arcs, names are numbers from 0; arcs are in the order of the nodes that they leave.
///
/// Immutable, and flat: each array is what a GPU would get.
#[derive(Clone, Debug)]
pub struct Network {
    pub(crate) world: World,
    pub(crate) census: Census,
    /// The source's number of each node.
    pub(crate) node_id: Vec<i64>,
    /// `[longitude, latitude]` or `[x, y]`.
    pub(crate) node_at: Vec<[f64; 2]>,
    pub(crate) node_has_signals: Vec<bool>,
    pub(crate) arc_from: Vec<u32>,
    pub(crate) arc_to: Vec<u32>,
    pub(crate) arc_length_m: Vec<f64>,
    /// Metres a second.
    pub(crate) arc_limit_ms: Vec<f32>,
    pub(crate) arc_lanes: Vec<u8>,
    pub(crate) arc_class: Vec<Class>,
    pub(crate) arc_reverse: Vec<u32>,
    pub(crate) arc_name: Vec<u32>,
    /// The arcs that leave node n are `out_start[n]..out_start[n + 1]`.
    pub(crate) out_start: Vec<u32>,
    /// The arcs that reach node n are `in_arcs[in_start[n]..in_start[n + 1]]`.
    pub(crate) in_start: Vec<u32>,
    pub(crate) in_arcs: Vec<u32>,
    /// The shape of arc a is `shape[shape_start[a]..shape_start[a + 1]]`, both ends included.
    pub(crate) shape_start: Vec<u32>,
    pub(crate) shape: Vec<[f64; 2]>,
    /// How far along the arc each point of its shape is, in metres; the last one's is the arc's length.
    pub(crate) shape_along_m: Vec<f64>,
    pub(crate) names: Vec<String>,
}

impl Network {
    /// What coordinates are.
    #[must_use]
    pub fn world(&self) -> World {
        self.world
    }

    /// What was read, left out, and cut off.
    #[must_use]
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes_count(&self) -> usize {
        self.node_at.len()
    }

    /// How many directed arcs there are.
    #[must_use]
    pub fn arcs_count(&self) -> usize {
        self.arc_from.len()
    }

    /// The source's number of a node.
    #[must_use]
    pub fn node_id(&self, node: u32) -> i64 {
        self.node_id[node as usize]
    }

    /// Where a node is: `[longitude, latitude]` or `[x, y]`.
    #[must_use]
    pub fn node_at(&self, node: u32) -> [f64; 2] {
        self.node_at[node as usize]
    }

    /// Whether the source says that a node has signals.
    #[must_use]
    pub fn has_signals(&self, node: u32) -> bool {
        self.node_has_signals[node as usize]
    }

    /// The node that an arc leaves.
    #[must_use]
    pub fn from(&self, arc: u32) -> u32 {
        self.arc_from[arc as usize]
    }

    /// The node that an arc reaches.
    #[must_use]
    pub fn to(&self, arc: u32) -> u32 {
        self.arc_to[arc as usize]
    }

    /// How long an arc is, in metres; at least a millimetre.
    #[must_use]
    pub fn length_m(&self, arc: u32) -> f64 {
        self.arc_length_m[arc as usize]
    }

    /// The speed limit in metres a second.
    #[must_use]
    pub fn limit_ms(&self, arc: u32) -> f32 {
        self.arc_limit_ms[arc as usize]
    }

    /// How many lanes an arc has.
    #[must_use]
    pub fn lanes(&self, arc: u32) -> u8 {
        self.arc_lanes[arc as usize]
    }

    /// What kind of street.
    #[must_use]
    pub fn class(&self, arc: u32) -> Class {
        self.arc_class[arc as usize]
    }

    /// The arc of the same street in the other direction; none of a one-way street.
    #[must_use]
    pub fn reverse(&self, arc: u32) -> Option<u32> {
        Some(self.arc_reverse[arc as usize]).filter(|reverse| *reverse != NONE)
    }

    /// The street's name.
    #[must_use]
    pub fn name(&self, arc: u32) -> Option<&str> {
        self.names.get(self.arc_name[arc as usize] as usize).map(String::as_str)
    }

    /// The arcs that leave a node.
    #[must_use]
    pub fn arcs_from(&self, node: u32) -> std::ops::Range<u32> {
        self.out_start[node as usize]..self.out_start[node as usize + 1]
    }

    /// The arcs that reach a node.
    #[must_use]
    pub fn arcs_to(&self, node: u32) -> &[u32] {
        &self.in_arcs[self.in_start[node as usize] as usize..self.in_start[node as usize + 1] as usize]
    }

    /// The length of all arcs together, in metres: a street that goes both ways counts twice.
    #[must_use]
    pub fn arcs_m(&self) -> f64 {
        self.arc_length_m.iter().sum()
    }

    /// The length of all lanes of all arcs together, in metres.
    #[must_use]
    pub fn lanes_m(&self) -> f64 {
        self.arc_length_m
            .iter()
            .zip(&self.arc_lanes)
            .map(|(length_m, lanes)| length_m * f64::from(*lanes))
            .sum()
    }

    /// The length of all streets, each counted once, in metres.
    #[must_use]
    pub fn streets_m(&self) -> f64 {
        let both = self.arc_length_m.iter().zip(&self.arc_reverse);
        both.map(|(length_m, reverse)| if *reverse == NONE { *length_m } else { length_m / 2.0 }).sum()
    }

    /// The points of an arc's shape, both ends included.
    #[must_use]
    pub fn shape(&self, arc: u32) -> &[[f64; 2]] {
        &self.shape[self.shape_range(arc)]
    }

    /// Where one is `along_m` metres behind the beginning of an arc; its ends for what lies outside.
    #[must_use]
    pub fn point(&self, arc: u32, along_m: f64) -> [f64; 2] {
        let (begin, end, share) = self.segment(arc, along_m);
        [begin[0] + (end[0] - begin[0]) * share, begin[1] + (end[1] - begin[1]) * share]
    }

    /// Where one drives there: degrees clockwise from north (from y), 0 to 360.
    #[must_use]
    pub fn heading_deg(&self, arc: u32, along_m: f64) -> f64 {
        let (begin, end, _) = self.segment(arc, along_m);
        heading_deg(self.world, begin, end)
    }

    fn shape_range(&self, arc: u32) -> std::ops::Range<usize> {
        self.shape_start[arc as usize] as usize..self.shape_start[arc as usize + 1] as usize
    }

    /// The piece of an arc's shape that holds a place, and which share of the piece lies before it.
    fn segment(&self, arc: u32, along_m: f64) -> ([f64; 2], [f64; 2], f64) {
        let range = self.shape_range(arc);
        let (shape, along) = (&self.shape[range.clone()], &self.shape_along_m[range]);
        let end = along.partition_point(|at_m| *at_m < along_m).clamp(1, along.len() - 1);
        let (begin_m, end_m) = (along[end - 1], along[end]);
        let share =
            if end_m > begin_m { ((along_m - begin_m) / (end_m - begin_m)).clamp(0.0, 1.0) } else { 1.0 };
        (shape[end - 1], shape[end], share)
    }
}

/// The direction from one place to another near by.
pub(crate) fn heading_deg(world: World, from: [f64; 2], to: [f64; 2]) -> f64 {
    let squeeze = match world {
        World::Geodetic => from[1].to_radians().cos(),
        World::Planar => 1.0,
    };
    let angle = ((to[0] - from[0]) * squeeze).atan2(to[1] - from[1]);
    angle.to_degrees().rem_euclid(360.0)
}

/// A place at a distance in metres to the east and north of another: exact in the plane, on the sphere for what is near.
#[must_use]
pub fn displaced(world: World, from: [f64; 2], [east_m, north_m]: [f64; 2]) -> [f64; 2] {
    match world {
        World::Planar => [from[0] + east_m, from[1] + north_m],
        World::Geodetic => {
            let lat = (from[1].to_radians() + north_m / EARTH_RADIUS_M).clamp(-FRAC_PI_2, FRAC_PI_2);
            // Within a metre of a pole every longitude is as good as another.
            let turn = east_m / (EARTH_RADIUS_M * from[1].to_radians().cos().max(1e-6));
            let lon = from[0] + turn.to_degrees();
            [if lon.abs() <= 180.0 { lon } else { (lon + 180.0).rem_euclid(360.0) - 180.0 }, lat.to_degrees()]
        }
    }
}
