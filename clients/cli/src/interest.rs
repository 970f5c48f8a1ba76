//! A subscription by flags, or by a document.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use nearcast_client::{
    Area, Filter, Overflow, Subscription, around, circle, corridor, documents, everywhere, polygon,
};
use serde_json::Value;

use crate::input::Source;
use crate::usage;
use crate::values::{self, Circle, Corridor};

/// What a subscription can be told. Of several areas one has to hold.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "A subscription")]
pub(crate) struct Interest {
    /// Within so far of the client, wherever it moves
    #[arg(long, value_name = "METRES", value_parser = values::metres, allow_negative_numbers = true)]
    around: Option<f64>,
    /// A circle that stays
    #[arg(long, value_name = "LON,LAT,METRES", value_parser = values::circle, allow_hyphen_values = true)]
    circle: Vec<Circle>,
    /// The polygons of a GeoJSON file
    #[arg(long, value_name = "FILE")]
    polygon: Vec<PathBuf>,
    /// Within so far of the lines of a GeoJSON file
    #[arg(long, value_name = "FILE,METRES", value_parser = values::corridor)]
    corridor: Vec<Corridor>,
    /// Wherever it is
    #[arg(long, conflicts_with_all = ["around", "circle", "polygon", "corridor"])]
    everywhere: bool,
    /// Only so many live objects that are nearest, in each area
    #[arg(long, value_name = "K")]
    nearest: Option<u32>,
    /// Only where this CQL2 condition is true, such as "severity >= 3"
    #[arg(long = "where", value_name = "CQL2")]
    condition: Option<String>,
    /// What is told: events, or live objects that enter or exit
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    on: Vec<On>,
    /// Begin with what is inside already, for transitions
    #[arg(long)]
    initial: bool,
    /// How long an object has to be inside before it enters
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    dwell: Option<Duration>,
    /// How far outside an object has to be before it leaves
    #[arg(long, value_name = "METRES", value_parser = values::metres, allow_negative_numbers = true)]
    hysteresis: Option<f64>,
    /// What is lost where the client does not keep up
    #[arg(long, value_name = "POLICY")]
    overflow: Option<OverflowName>,
    /// A subscription as JSON in a file, in place of all these; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["around", "circle", "polygon", "corridor", "everywhere", "nearest",
        "condition", "on", "initial", "dwell", "hysteresis", "overflow"])]
    document: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    Event,
    Enter,
    Exit,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverflowName {
    DropOldest,
    KeepLatest,
    Disconnect,
}

impl Interest {
    /// Whether standard input is read for it.
    pub(crate) fn reads_stdin(&self) -> bool {
        let files = self
            .polygon
            .iter()
            .chain(self.corridor.iter().map(|corridor| &corridor.file))
            .chain(&self.document);
        files.into_iter().any(|file| file.as_os_str() == "-")
    }

    /// Whether an area is around the client.
    pub(crate) fn follows_client(&self) -> bool {
        self.around.is_some()
    }

    /// The subscription, where there is one; and its id, where a document has one.
    pub(crate) async fn subscription(&self) -> anyhow::Result<Option<(Option<String>, Subscription)>> {
        if let Some(path) = &self.document {
            let source = Source::open(path)?;
            let name = source.name.clone();
            let document = read_document(&source.read().await?).with_context(|| name)?;
            return Ok(Some((document.id.clone(), document.into())));
        }
        let Some(filters) = self.filters().await? else { return Ok(None) };
        let mut subscription = Subscription::any(filters);
        if self.on.contains(&On::Event) && self.on.len() > 1 {
            return Err(usage("--on is event, or enter, exit or both"));
        }
        for on in &self.on {
            subscription = match on {
                On::Event => subscription,
                On::Enter => subscription.enters(),
                On::Exit => subscription.exits(),
            };
        }
        if self.initial {
            subscription = subscription.initial();
        }
        if let Some(dwell) = self.dwell {
            subscription = subscription.dwell(dwell);
        }
        if let Some(hysteresis_m) = self.hysteresis {
            subscription = subscription.hysteresis_m(hysteresis_m);
        }
        Ok(Some((
            None,
            match self.overflow {
                None => subscription,
                Some(OverflowName::DropOldest) => subscription.overflow(Overflow::DropOldest),
                Some(OverflowName::KeepLatest) => subscription.overflow(Overflow::KeepLatest),
                Some(OverflowName::Disconnect) => subscription.overflow(Overflow::Disconnect),
            },
        )))
    }

    async fn filters(&self) -> anyhow::Result<Option<Vec<Filter>>> {
        let mut areas: Vec<Area> = Vec::new();
        areas.extend(self.around.map(around));
        areas.extend(self.circle.iter().map(|wanted| circle(wanted.center, wanted.radius_m)));
        for path in &self.polygon {
            areas.extend(geometries(path, &["Polygon", "MultiPolygon"]).await?.into_iter().map(polygon));
        }
        for wanted in &self.corridor {
            let lines = geometries(&wanted.file, &["LineString"]).await?;
            areas.extend(lines.into_iter().map(|line| corridor(line, wanted.radius_m)));
        }
        if areas.is_empty() {
            if !self.everywhere && self.nearest.is_none() && self.condition.is_none() {
                let rest =
                    !self.on.is_empty() || self.initial || self.dwell.is_some() || self.hysteresis.is_some();
                return if rest || self.overflow.is_some() {
                    Err(usage(
                        "a subscription needs an area or a condition: --around, --circle, --where, … or --everywhere",
                    ))
                } else {
                    Ok(None)
                };
            }
            areas.push(everywhere());
        }
        let filter = |area: Area| {
            let area = match self.nearest {
                None => area,
                Some(k) => area.nearest(k),
            };
            match &self.condition {
                None => Filter::from(area),
                Some(condition) => area.when(condition.as_str()),
            }
        };
        Ok(Some(areas.into_iter().map(filter).collect()))
    }
}

/// The geometries of these kinds in a file: a geometry, a Feature, or a collection of Features.
async fn geometries(path: &Path, kinds: &[&str]) -> anyhow::Result<Vec<Value>> {
    let source = Source::open(path)?;
    let name = source.name.clone();
    let document: Value = serde_json::from_str(&source.read().await?).with_context(|| name.clone())?;
    let found = geometries_in(document, kinds);
    if found.is_empty() {
        bail!("{name}: there is no {}", kinds.join(" and no "));
    }
    Ok(found)
}

fn geometries_in(mut document: Value, kinds: &[&str]) -> Vec<Value> {
    match document["type"].as_str() {
        Some("Feature") => geometries_in(document["geometry"].take(), kinds),
        Some("FeatureCollection") => {
            let Value::Array(features) = document["features"].take() else { return Vec::new() };
            features.into_iter().flat_map(|feature| geometries_in(feature, kinds)).collect()
        }
        Some(kind) if kinds.contains(&kind) => vec![document],
        _ => Vec::new(),
    }
}

/// Reads a subscription. A member that would be passed over is a fault, for it could widen what matches.
fn read_document(text: &str) -> anyhow::Result<documents::Subscription> {
    let given: Value = serde_json::from_str(text)?;
    let document: documents::Subscription = serde_json::from_value(given.clone())?;
    let read = serde_json::to_value(&document)?;
    match lost(&given, &read, "") {
        Some(pointer) => bail!("{pointer}: a subscription has no such member"),
        None => Ok(document),
    }
}

/// Where something was given that was not read. What says the same as nothing may be gone.
fn lost(given: &Value, read: &Value, pointer: &str) -> Option<String> {
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => given.iter().find_map(|(name, value)| {
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            match read.get(name) {
                Some(read) => lost(value, read, &pointer),
                None if matches!(value, Value::Null | Value::Bool(false))
                    || *value == serde_json::json!(["event"]) =>
                {
                    None
                }
                None => Some(pointer),
            }
        }),
        (Value::Array(given), Value::Array(read)) => {
            let pairs = given.iter().zip(read).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (given, read))| lost(given, read, &format!("{pointer}/{index}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_lose_nothing() {
        for right in [
            json!({"filters": [{}]}),
            json!({"id": "s", "filters": [{"area": {"radius_m": 5}, "where": "a = 1"}, {"area": {"center": [1, 2], "radius_m": 5, "nearest": 3}}],
                   "on": ["event"], "durable": false, "overflow": null}),
            json!({"filters": [{"where": {"op": "=", "args": [{"property": "a"}, 1]}}], "on": ["enter", "exit"], "dwell_s": 2, "durable": true}),
        ] {
            assert!(read_document(&right.to_string()).is_ok(), "{right}");
        }
        for (wrong, place) in [
            (json!({"filters": [{"wher": "a = 1"}]}), "/filters/0/wher"),
            (json!({"filters": [{}], "dwel_s": 1}), "/dwel_s"),
            (json!({"filters": [{"area": {"radius_m": 5, "centre": [1, 2]}}]}), "/filters/0/area/centre"),
        ] {
            let error = read_document(&wrong.to_string()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{place}:")), "{error}");
        }
    }

    #[test]
    fn geometries_are_found_in_what_geojson_puts_around_them() {
        let square = json!({"type": "Polygon", "coordinates": []});
        let line = json!({"type": "LineString", "coordinates": []});
        let feature = json!({"type": "Feature", "geometry": square, "properties": {}});
        let other = json!({"type": "Feature", "geometry": line, "properties": {}});
        let all = json!({"type": "FeatureCollection", "features": [feature, other, feature]});
        assert_eq!(geometries_in(square.clone(), &["Polygon"]), vec![square.clone()]);
        assert_eq!(geometries_in(all.clone(), &["Polygon"]), [square.clone(), square]);
        assert_eq!(geometries_in(all, &["LineString"]), [line]);
        assert!(geometries_in(json!([1]), &["Polygon"]).is_empty());
    }
}
