//! What OpenStreetMap's tags are on the map, in the names of Protomaps' schema, which the pages know.

/// The value of a tag.
pub(super) type Tags<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// A layer of the tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Landuse,
    Water,
    Buildings,
    Roads,
    Pois,
    Places,
}

impl Layer {
    pub(super) const ALL: [Self; 6] =
        [Self::Landuse, Self::Water, Self::Buildings, Self::Roads, Self::Pois, Self::Places];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Landuse => "landuse",
            Self::Water => "water",
            Self::Buildings => "buildings",
            Self::Roads => "roads",
            Self::Pois => "pois",
            Self::Places => "places",
        }
    }
}

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) layer: Layer,
    pub(super) kind: &'static str,
    pub(super) detail: &'static str,
    /// The zoom from which on it is in the tiles.
    pub(super) zoom: u8,
    pub(super) is_area: bool,
    /// Larger for what matters more; 0 where nothing is known.
    pub(super) rank: u8,
}

impl Kind {
    const fn line(layer: Layer, kind: &'static str, detail: &'static str, zoom: u8) -> Self {
        Self { layer, kind, detail, zoom, is_area: false, rank: 0 }
    }

    const fn area(layer: Layer, kind: &'static str, zoom: u8) -> Self {
        Self { layer, kind, detail: "", zoom, is_area: true, rank: 0 }
    }
}

/// Values of `highway`, with the kind and the zoom of their streets. A link is drawn as what it links to.
const HIGHWAYS: [(&str, &str, u8); 19] = [
    ("motorway", "highway", 5),
    ("trunk", "major_road", 6),
    ("primary", "major_road", 7),
    ("secondary", "major_road", 9),
    ("tertiary", "major_road", 10),
    ("residential", "minor_road", 12),
    ("unclassified", "minor_road", 12),
    ("living_street", "minor_road", 13),
    ("road", "minor_road", 13),
    ("service", "minor_road", 14),
    ("track", "minor_road", 14),
    ("pedestrian", "path", 14),
    ("footway", "path", 14),
    ("path", "path", 14),
    ("cycleway", "path", 14),
    ("steps", "path", 15),
    ("bridleway", "path", 14),
    ("busway", "minor_road", 14),
    ("raceway", "minor_road", 14),
];

const LEISURE: [&str; 8] =
    ["park", "garden", "golf_course", "pitch", "playground", "nature_reserve", "recreation_ground", "common"];
const LANDUSE_GREEN: [&str; 9] = [
    "forest",
    "grass",
    "meadow",
    "cemetery",
    "allotments",
    "village_green",
    "recreation_ground",
    "orchard",
    "vineyard",
];
const NATURAL_GREEN: [&str; 4] = ["wood", "scrub", "grassland", "heath"];
const NATURAL_SAND: [&str; 2] = ["beach", "sand"];
const LANDUSE_SITES: [&str; 5] = ["industrial", "commercial", "retail", "railway", "military"];
const AMENITY_SITES: [&str; 4] = ["hospital", "school", "university", "college"];
const PLACES: [(&str, &str, u8, u8); 8] = [
    ("city", "locality", 5, 12),
    ("town", "locality", 7, 9),
    ("village", "locality", 9, 6),
    ("hamlet", "locality", 11, 4),
    ("suburb", "neighbourhood", 10, 5),
    ("quarter", "neighbourhood", 11, 4),
    ("neighbourhood", "neighbourhood", 12, 3),
    ("borough", "neighbourhood", 10, 6),
];

/// What a way is, or an area of several ways; none where it is not drawn.
pub(super) fn of_way(tags: Tags<'_>, is_closed: bool) -> Option<Kind> {
    // A closed street is an area only where it is said to be one, and other closed ways only where they are no lines.
    line(tags).or_else(|| if is_closed { area(tags) } else { None })
}

fn line(tags: Tags<'_>) -> Option<Kind> {
    let is_area = tags("area") == Some("yes");
    if let Some(value) = tags("highway").filter(|_| !is_area) {
        let class = value.strip_suffix("_link").unwrap_or(value);
        let (detail, kind, zoom) = *HIGHWAYS.iter().find(|(name, ..)| *name == class)?;
        return Some(Kind::line(Layer::Roads, kind, detail, zoom));
    }
    let is_tunnel = tags("tunnel").is_some_and(|value| value != "no");
    if let Some(detail) =
        known(tags("railway"), &["rail", "light_rail", "tram", "narrow_gauge"]).filter(|_| !is_tunnel)
    {
        let zoom = if tags("service").is_some() { 14 } else { 10 };
        return Some(Kind::line(Layer::Roads, "rail", detail, zoom));
    }
    if let Some(detail) = known(tags("aeroway"), &["runway", "taxiway"]).filter(|_| !is_area) {
        return Some(Kind::line(Layer::Roads, "aeroway", detail, 11));
    }
    if let Some(kind) = known(tags("waterway"), &["river", "canal", "stream", "ditch"]).filter(|_| !is_tunnel)
    {
        let zoom = match kind {
            "river" => 9,
            "canal" => 11,
            "stream" => 13,
            _ => 15,
        };
        return Some(Kind::line(Layer::Water, kind, "", zoom));
    }
    (tags("natural") == Some("coastline")).then(|| Kind::line(Layer::Water, "coastline", "", 6))
}

fn area(tags: Tags<'_>) -> Option<Kind> {
    if tags("building").is_some_and(|value| value != "no") {
        return Some(Kind::area(Layer::Buildings, "building", 14));
    }
    let is_water = tags("natural") == Some("water")
        || tags("waterway") == Some("riverbank")
        || known(tags("landuse"), &["reservoir", "basin"]).is_some();
    if is_water {
        return Some(Kind::area(Layer::Water, "water", 6));
    }
    let green = known(tags("leisure"), &LEISURE)
        .or_else(|| known(tags("landuse"), &LANDUSE_GREEN))
        .or_else(|| known(tags("natural"), &NATURAL_GREEN))
        .or_else(|| known(tags("natural"), &NATURAL_SAND));
    let site = || {
        known(tags("landuse"), &LANDUSE_SITES)
            .or_else(|| known(tags("amenity"), &AMENITY_SITES))
            .or_else(|| known(tags("aeroway"), &["aerodrome"]))
    };
    green.or_else(site).map(|kind| Kind::area(Layer::Landuse, kind, 8))
}

/// What a node is, if it is a place with people in it.
pub(super) fn of_node(tags: Tags<'_>) -> Option<Kind> {
    let place = tags("place")?;
    let (detail, kind, zoom, rank) = *PLACES.iter().find(|(name, ..)| *name == place)?;
    let population = tags("population").and_then(|text| text.parse::<u32>().ok());
    // A city of a million goes before one of a hundred thousand.
    let larger = population.map_or(0, |count| count.max(1).ilog10().min(7));
    let rank = rank + u8::try_from(larger).unwrap_or_default();
    Some(Kind { rank, ..Kind::line(Layer::Places, kind, detail, zoom) })
}

/// A value that is one of these.
fn known(value: Option<&str>, values: &[&'static str]) -> Option<&'static str> {
    let value = value?;
    values.iter().find(|known| **known == value).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tags: &[(&str, &str)], is_closed: bool, expected: Option<(Layer, &str, &str, bool)>) {
        let find = |key: &str| tags.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let kind = of_way(&find, is_closed).map(|kind| (kind.layer, kind.kind, kind.detail, kind.is_area));
        assert_eq!(kind, expected, "{tags:?}");
    }

    #[test]
    fn ways_are_what_their_tags_say() {
        check(&[("highway", "motorway_link")], false, Some((Layer::Roads, "highway", "motorway", false)));
        check(&[("highway", "service")], true, Some((Layer::Roads, "minor_road", "service", false)));
        check(&[("highway", "proposed")], false, None);
        check(&[("highway", "pedestrian"), ("area", "yes")], true, None);
        check(&[("waterway", "river")], false, Some((Layer::Water, "river", "", false)));
        check(&[("waterway", "stream"), ("tunnel", "culvert")], false, None);
        check(&[("natural", "water")], true, Some((Layer::Water, "water", "", true)));
        check(&[("natural", "water")], false, None);
        check(&[("building", "no")], true, None);
        check(
            &[("building", "yes"), ("leisure", "park")],
            true,
            Some((Layer::Buildings, "building", "", true)),
        );
        check(&[("leisure", "park")], true, Some((Layer::Landuse, "park", "", true)));
        check(&[("amenity", "school")], true, Some((Layer::Landuse, "school", "", true)));
        check(&[("name", "x")], true, None);
    }

    #[test]
    fn places_are_in_the_order_of_their_people() {
        let rank = |place: &'static str, people: Option<&'static str>| {
            let tags = move |key: &str| match key {
                "place" => Some(place),
                "population" => people,
                _ => None,
            };
            of_node(&tags).map(|kind| kind.rank)
        };
        assert!(rank("city", Some("1000000")) > rank("city", Some("100000")));
        assert!(rank("city", None) > rank("town", None));
        assert_eq!(rank("town", Some("many")), rank("town", None));
        assert_eq!(rank("locality", None), None);
    }
}
