//! Conditions as users write them, each beside what it means, written by hand over the properties.

use jiff::Timestamp;
use jiff::civil::{Date, date};
use serde_json::{Value, json};

/// A condition, in CQL2 text or JSON, and its meaning.
pub(crate) struct Condition {
    /// `where`; `None` for an absent one.
    pub(crate) text: fn() -> Option<Value>,
    /// Whether an event with these properties satisfies it.
    pub(crate) holds: fn(&Value) -> bool,
}

/// Short for a row of the table with a text.
macro_rules! text {
    ($text:literal, $holds:expr) => {
        Condition { text: || Some(json!($text)), holds: $holds }
    };
}

fn speed(p: &Value) -> Option<f64> {
    p["speed_kmh"].as_f64()
}

fn status(p: &Value) -> Option<f64> {
    p["status"].as_f64()
}

fn plate(p: &Value) -> Option<&str> {
    p["plate"].as_str()
}

fn tags(p: &Value) -> Option<Vec<&str>> {
    Some(p["tags"].as_array()?.iter().filter_map(Value::as_str).collect())
}

fn some<T>(value: Option<T>, test: impl FnOnce(T) -> bool) -> bool {
    value.is_some_and(test)
}

fn since(p: &Value) -> Option<&str> {
    p["since"].as_str()
}

fn day(p: &Value) -> Option<Date> {
    since(p).filter(|text| text.len() == 10)?.parse().ok()
}

fn instant(p: &Value) -> Option<Timestamp> {
    since(p).filter(|text| text.len() > 10)?.parse().ok()
}

fn noon() -> Timestamp {
    "2026-03-14T12:00:00Z".parse().expect("a timestamp")
}

/// All of them.
///
/// Properties: `taxi_id` (number), `speed_kmh` (number, absent in some), `status` (number), `plate` (text), `district`
/// (text in varied case), `road.name` (text, absent in some), `road.lanes` (number), `tags` (array of texts, absent in
/// some), `note` (text, `null` or absent), `free` (boolean), `mixed` (number, text or boolean), `readings` (numbers),
/// `since` (date, timestamp, another text, number, or absent).
pub(crate) const CONDITIONS: &[Condition] = &[
    Condition { text: || None, holds: |_| true },
    text!("speed_kmh < 10 AND status > 0", |p| some(speed(p), |v| v < 10.0) && some(status(p), |v| v > 0.0)),
    text!("speed_kmh >= 60", |p| some(speed(p), |v| v >= 60.0)),
    text!("status = 0", |p| some(status(p), |v| v == 0.0)),
    text!("status <> 0", |p| some(status(p), |v| v != 0.0)),
    text!("60 < speed_kmh", |p| some(speed(p), |v| v > 60.0)),
    text!("speed_kmh BETWEEN 20 AND 40", |p| some(speed(p), |v| (20.0..=40.0).contains(&v))),
    text!("speed_kmh NOT BETWEEN 5 AND 50", |p| some(speed(p), |v| !(5.0..=50.0).contains(&v))),
    text!("status IN (1, 2)", |p| some(status(p), |v| v == 1.0 || v == 2.0)),
    text!("status NOT IN (0, 7)", |p| some(status(p), |v| v != 0.0 && v != 7.0)),
    text!("plate LIKE 'B-12%'", |p| some(plate(p), |t| t.starts_with("B-12"))),
    text!("plate LIKE '%7'", |p| some(plate(p), |t| t.ends_with('7'))),
    text!("plate LIKE 'B-1_1%'", |p| {
        some(plate(p), |t| t.starts_with("B-1") && t.as_bytes().get(4) == Some(&b'1'))
    }),
    text!("plate NOT LIKE '%1%'", |p| some(plate(p), |t| !t.contains('1'))),
    text!("plate >= 'B-20'", |p| some(plate(p), |t| t >= "B-20")),
    text!("NOT (speed_kmh > 30)", |p| some(speed(p), |v| v <= 30.0)),
    text!("NOT (speed_kmh > 30 OR status = 0)", |p| {
        some(speed(p), |v| v <= 30.0) && some(status(p), |v| v != 0.0)
    }),
    text!("speed_kmh IS NULL", |p| p["speed_kmh"].is_null()),
    text!("note IS NULL AND status > 0", |p| p["note"].is_null() && some(status(p), |v| v > 0.0)),
    text!("note IS NOT NULL", |p| !p["note"].is_null()),
    text!("NOT (note IS NULL) AND note <> 'it''s late'", |p| some(p["note"].as_str(), |t| t != "it's late")),
    text!("note = 'it''s late'", |p| p["note"] == "it's late"),
    text!("CASEI(district) = CASEI('NanShan')", |p| {
        some(p["district"].as_str(), |t| t.to_lowercase() == "nanshan")
    }),
    text!("CASEI(district) LIKE CASEI('FU%')", |p| {
        some(p["district"].as_str(), |t| t.to_lowercase().starts_with("fu"))
    }),
    text!("district = 'Nanshan'", |p| p["district"] == "Nanshan"),
    text!("road.name = 'G4' OR road.lanes > 3", |p| {
        p["road"]["name"] == "G4" || some(p["road"]["lanes"].as_f64(), |v| v > 3.0)
    }),
    text!("\"road.name\" <> 'G4'", |p| some(p["road"]["name"].as_str(), |t| t != "G4")),
    text!("road.name IS NULL", |p| p["road"]["name"].is_null()),
    text!("tags = 'airport'", |p| some(tags(p), |t| t.contains(&"airport"))),
    text!("NOT (tags = 'airport')", |p| some(tags(p), |t| !t.contains(&"airport"))),
    text!("tags IN ('rank', 'hotel') AND speed_kmh < 30", |p| {
        some(tags(p), |t| t.contains(&"rank") || t.contains(&"hotel")) && some(speed(p), |v| v < 30.0)
    }),
    text!("readings > 80", |p| {
        some(p["readings"].as_array(), |r| r.iter().any(|v| some(v.as_f64(), |v| v > 80.0)))
    }),
    text!("free = TRUE", |p| p["free"] == true),
    text!("free = FALSE AND speed_kmh > 50", |p| p["free"] == false && some(speed(p), |v| v > 50.0)),
    text!("mixed = 3", |p| p["mixed"] == 3),
    text!("mixed = '3'", |p| p["mixed"] == "3"),
    text!("mixed <> 3", |p| some(p["mixed"].as_f64(), |v| v != 3.0)),
    text!("NOT (mixed = 3)", |p| some(p["mixed"].as_f64(), |v| v != 3.0)),
    text!("plate < DATE('2026-03-01') OR NOT (plate < TIMESTAMP('2026-03-01T00:00:00Z'))", |_| false),
    text!("since >= DATE('2026-03-09')", |p| some(day(p), |d| d >= date(2026, 3, 9))),
    text!("NOT (since BETWEEN DATE('2026-03-09') AND DATE('2026-03-20'))", |p| {
        some(day(p), |d| d < date(2026, 3, 9) || d > date(2026, 3, 20))
    }),
    text!("since < TIMESTAMP('2026-03-14T12:00:00Z')", |p| some(instant(p), |i| i < noon())),
    text!("since > TIMESTAMP('2026-03-14T12:00:00Z') OR since < DATE('2026-03-02')", |p| {
        some(instant(p), |i| i > noon()) || some(day(p), |d| d < date(2026, 3, 2))
    }),
    text!("since < 'u'", |p| some(p["since"].as_str(), |t| t < "u")),
    text!("plate > 5 OR NOT (plate > 5)", |_| false),
    text!("absent = 1 OR NOT (absent = 1)", |_| false),
    text!("(status = 1 OR status = 2) AND (speed_kmh < 5 OR speed_kmh > 70)", |p| {
        some(status(p), |v| v == 1.0 || v == 2.0) && some(speed(p), |v| !(5.0..=70.0).contains(&v))
    }),
    text!("speed_kmh = 0 AND NOT (status = 2 OR note IS NULL)", |p| {
        some(speed(p), |v| v == 0.0) && some(status(p), |v| v != 2.0) && !p["note"].is_null()
    }),
    text!("taxi_id > 15000 AND taxi_id <= 20000 AND speed_kmh > 1.5e1", |p| {
        some(p["taxi_id"].as_f64(), |v| v > 15000.0 && v <= 20000.0) && some(speed(p), |v| v > 15.0)
    }),
    text!("speed_kmh > 95", |p| some(speed(p), |v| v > 95.0)),
    text!("taxi_id BETWEEN 12160 AND 12170 AND free = TRUE", |p| {
        some(p["taxi_id"].as_f64(), |v| (12160.0..=12170.0).contains(&v)) && p["free"] == true
    }),
    text!("readings = 99 AND status = 1", |p| {
        some(p["readings"].as_array(), |r| r.contains(&json!(99))) && some(status(p), |v| v == 1.0)
    }),
    Condition {
        text: || {
            Some(json!({"op": "in", "args": [
                {"property": "since"}, [{"date": "2026-03-07"}, {"timestamp": "2026-03-09T08:30:00Z"}]]}))
        },
        holds: |p| {
            some(day(p), |d| d == date(2026, 3, 7))
                || some(instant(p), |i| i.to_string() == "2026-03-09T08:30:00Z")
        },
    },
    Condition {
        text: || {
            Some(json!({"op": "and", "args": [
                {"op": "<", "args": [{"property": "speed_kmh"}, 30]},
                {"op": "=", "args": [{"property": "status"}, 1]}]}))
        },
        holds: |p| some(speed(p), |v| v < 30.0) && some(status(p), |v| v == 1.0),
    },
    Condition {
        text: || {
            Some(json!({"op": "or", "args": [
                {"op": "between", "args": [{"property": "speed_kmh"}, 80, 90]},
                {"op": "in", "args": [{"property": "road.name"}, ["G4", "S33"]]}]}))
        },
        holds: |p| {
            some(speed(p), |v| (80.0..=90.0).contains(&v))
                || some(p["road"]["name"].as_str(), |t| t == "G4" || t == "S33")
        },
    },
    Condition {
        text: || {
            Some(json!({"op": "and", "args": [
                {"op": "not", "args": [{"op": "isNull", "args": [{"property": "note"}]}]},
                {"op": "like", "args": [{"property": "plate"}, "B-1%"]}]}))
        },
        holds: |p| !p["note"].is_null() && some(plate(p), |t| t.starts_with("B-1")),
    },
    Condition {
        text: || {
            Some(json!({"op": "=", "args": [
                {"op": "casei", "args": [{"property": "district"}]},
                {"op": "casei", "args": ["FUTIAN"]}]}))
        },
        holds: |p| some(p["district"].as_str(), |t| t.to_lowercase() == "futian"),
    },
];
