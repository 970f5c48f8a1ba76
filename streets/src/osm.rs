//! What OpenStreetMap's ways and tags mean to somebody who drives, whatever they were packed in.

use std::collections::HashMap;
use std::path::Path;

use matcher::geo::World;

use crate::StreetsError;
use crate::draft::{Draft, DraftEdge, DraftNode, Lane};
use crate::network::{Census, Class, NONE};

/// The value of a tag.
pub(crate) type Tags<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// What a file holds.
pub(crate) enum Item<'a> {
    /// A place.
    Node { id: i64, lon: f64, lat: f64, tags: Tags<'a> },
    /// A line through places.
    Way { id: i64, refs: &'a [i64], tags: Tags<'a> },
    /// Something that was to be one of these.
    Broken(String),
}

/// Which items a pass is for. Ways come first, for they say which nodes are wanted, and of these there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Ways,
    Nodes,
}

/// Reads a file from its beginning to its end.
pub(crate) type Read = fn(&Path, Pass, &mut dyn FnMut(Item<'_>)) -> Result<(), StreetsError>;

/// A street as it was drawn.
struct Way {
    id: i64,
    refs: Vec<i64>,
    class: Class,
    forward: Option<Lane>,
    backward: Option<Lane>,
    name: u32,
}

/// A node that streets use.
#[derive(Clone, Copy, Default)]
struct Used {
    at: Option<[f64; 2]>,
    has_signals: bool,
    times: u32,
    number: Option<u32>,
}

/// The streets of a file.
pub(crate) fn draft(path: &Path, read: Read) -> Result<Draft, StreetsError> {
    let mut census = Census::default();
    let mut names = Names::default();
    let mut ways = Vec::new();
    let mut used = HashMap::<i64, Used>::new();
    read(path, Pass::Ways, &mut |item| match item {
        Item::Way { id, refs, tags } => {
            let Some(way) = way(id, refs, tags, &mut names, &mut census) else { return };
            for (at, node) in way.refs.iter().enumerate() {
                // Both ends are ends of arcs, whichever other way comes by.
                let times = if at == 0 || at + 1 == way.refs.len() { 2 } else { 1 };
                used.entry(*node).or_default().times += times;
            }
            ways.push(way);
        }
        Item::Broken(problem) => census.skip(|| problem),
        Item::Node { .. } => {}
    })?;
    read(path, Pass::Nodes, &mut |item| {
        let (id, at, tags) = match item {
            Item::Node { id, lon, lat, tags } => (id, [lon, lat], tags),
            Item::Broken(problem) => return census.skip(|| problem),
            Item::Way { .. } => return,
        };
        let Some(node) = used.get_mut(&id) else { return };
        match World::Geodetic.position(&at) {
            Ok(_) => node.at = Some(at),
            Err(problem) => census.skip(|| format!("node {id}: {problem}")),
        }
        node.has_signals = tags("highway") == Some("traffic_signals");
    })?;
    let mut draft =
        Draft { world: World::Geodetic, nodes: Vec::new(), edges: Vec::new(), names: Vec::new(), census };
    for way in &ways {
        split(way, &mut used, &mut draft);
    }
    draft.names = names.texts;
    Ok(draft)
}

/// Names by number, each once.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    /// The number of a name; [`NONE`] for an empty one.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return NONE;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(NONE);
        self.texts.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// A way, if cars drive on it.
fn way(id: i64, refs: &[i64], tags: Tags<'_>, names: &mut Names, census: &mut Census) -> Option<Way> {
    let class = Class::of(tags("highway")?)?;
    if tags("area") == Some("yes") {
        return None;
    }
    if refs.len() < 2 {
        census.skip(|| format!("way {id}: fewer than two nodes"));
        return None;
    }
    let (is_forward, is_backward) = match tags("oneway") {
        Some("yes" | "true" | "1") => (true, false),
        Some("-1" | "reverse") => (false, true),
        Some("no" | "false" | "0") => (true, true),
        _ => (true, class != Class::Motorway && !matches!(tags("junction"), Some("roundabout" | "circular"))),
    };
    let is_oneway = is_forward != is_backward;
    let mut limit = |keys: [&str; 2]| {
        let posted = keys.iter().find_map(|key| tags(key));
        let speed = posted.and_then(posted_ms);
        if let (Some(text), None) = (posted, speed)
            && text.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        {
            census.skip(|| format!("way {id}: {text:?} is not a speed limit"));
        }
        speed.unwrap_or(default_ms(class))
    };
    let lanes_all = tags("lanes").and_then(|text| text.trim().parse::<u8>().ok()).filter(|lanes| *lanes > 0);
    let lanes = match lanes_all {
        Some(all) if is_oneway => all.min(4),
        Some(all) => (all / 2).clamp(1, 4),
        None => class.lanes(is_oneway),
    };
    let forward = is_forward.then(|| Lane { limit_ms: limit(["maxspeed:forward", "maxspeed"]), lanes });
    let backward = is_backward.then(|| Lane { limit_ms: limit(["maxspeed:backward", "maxspeed"]), lanes });
    let name = names.number(tags("name").unwrap_or_default());
    Some(Way { id, refs: refs.to_vec(), class, forward, backward, name })
}

/// Cuts a way where it meets others. What has no place is left out, and the street has a gap there.
fn split(way: &Way, used: &mut HashMap<i64, Used>, draft: &mut Draft) {
    let mut begin = None;
    let mut shape = Vec::new();
    for (nth, id) in way.refs.iter().enumerate() {
        let node = used.entry(*id).or_default();
        let Some(at) = node.at else {
            draft.census.skip(|| format!("way {}: node {id} has no place", way.id));
            begin = None;
            shape.clear();
            continue;
        };
        if nth > 0 && way.refs[nth - 1] == *id {
            continue;
        }
        shape.push(at);
        // Next to a gap a street ends, too.
        let is_last = nth + 1 == way.refs.len();
        if begin.is_some() && node.times < 2 && !is_last {
            continue;
        }
        let number = *node.number.get_or_insert_with(|| {
            draft.nodes.push(DraftNode { id: *id, at, has_signals: node.has_signals });
            u32::try_from(draft.nodes.len() - 1).unwrap_or(NONE)
        });
        if let Some(from) = begin {
            let Way { class, forward, backward, name, .. } = *way;
            let shape = std::mem::take(&mut shape);
            draft.edges.push(DraftEdge {
                from,
                to: number,
                length_m: None,
                shape,
                forward,
                backward,
                class,
                name,
            });
        }
        shape = vec![at];
        begin = Some(number);
    }
}

/// The limit where none is posted.
pub(crate) fn default_ms(class: Class) -> f32 {
    narrow(class.limit_kmh() / 3.6)
}

/// The speed that a value of `maxspeed` stands for, in metres a second; none for what is no number of its own (`signals`,
/// `DE:urban`), or outside of 1 to 200 km/h.
pub(crate) fn posted_ms(text: &str) -> Option<f32> {
    // Where there are several, for lanes or times of the day, the first.
    let text = text.split([';', '|', ',']).next()?.trim();
    if text == "walk" {
        return Some(narrow(7.0 / 3.6));
    }
    if text == "none" {
        return Some(narrow(130.0 / 3.6));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..digits].parse::<f64>().ok()?;
    let kmh = match text[digits..].trim() {
        "" | "km/h" | "kmh" | "kph" => number,
        "mph" => number * 1.609_344,
        "knots" => number * 1.852,
        _ => return None,
    };
    (1.0..=200.0).contains(&kmh).then(|| narrow(kmh / 3.6))
}

#[expect(clippy::cast_possible_truncation, reason = "a speed needs no more digits")]
fn narrow(speed: f64) -> f32 {
    speed as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_limits_as_people_write_them() {
        for (text, kmh) in [
            ("50", Some(50.0)),
            ("50 km/h", Some(50.0)),
            ("30 mph", Some(48.28)),
            ("30mph", Some(48.28)),
            ("10 knots", Some(18.52)),
            ("walk", Some(7.0)),
            ("none", Some(130.0)),
            ("60;80", Some(60.0)),
            ("DE:urban", None),
            ("signals", None),
            ("0", None),
            ("-5", None),
            ("NaN", None),
            ("1e300", None),
            ("50 furlongs", None),
            ("", None),
        ] {
            let found = posted_ms(text).map(|speed| speed * 3.6);
            assert!(
                found.zip(kmh).map_or(found.is_none() && kmh.is_none(), |(a, b)| (a - b).abs() < 0.01),
                "{text}: {found:?}"
            );
        }
    }
}
