//! A world in which who matches what needs no geometry: spots far from each other, events of few kinds, and areas that hold
//! one spot or all of them.

use serde_json::{Value, json};

/// One of the spots, by number. They are eight kilometres and more apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot(pub(crate) u32);

/// How many spots there are.
pub(crate) const SPOTS: u32 = 10;

/// How many kinds of events there are.
pub(crate) const KINDS: u64 = 8;

/// The kind of the event that all clients read to.
pub(crate) const LAST_KIND: u64 = 99;

/// Areas are so large, and a little more: how much more tells one version of a subscription from all others.
const RADIUS_M: f64 = 500.0;

/// Holds all spots.
const WIDE_M: f64 = 500_000.0;

/// A place at a spot, with a number that no other place has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) spot: Spot,
    pub(crate) number: u32,
}

/// What a subscription asks for; all of them are durable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wish {
    pub(crate) area: Area,
    pub(crate) kind: Option<u64>,
    pub(crate) transitions: bool,
    /// No other version of any subscription has it.
    pub(crate) number: u32,
}

/// Where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Area {
    Following,
    At(Spot),
    Wide,
    /// No area at all.
    Everywhere,
}

impl Place {
    /// A place in degrees, within ten metres of the spot's middle as long as there are fewer than a million of them.
    pub(crate) fn coordinates(self) -> [f64; 2] {
        let [column, row] = [self.spot.0 % 4, self.spot.0 / 4].map(f64::from);
        // Nine decimals: what the text says is what is read.
        let rounded = |degrees: f64| (degrees * 1e9).round() / 1e9;
        [rounded(9.0 + column * 0.2), rounded(45.0 + row * 0.1 + f64::from(self.number) * 1e-9)]
    }
}

impl Wish {
    /// As PROTOCOL writes it.
    pub(crate) fn document(&self) -> Value {
        let more_m = f64::from(self.number) / 1024.0 / 1024.0;
        let middle = |spot: Spot| Place { spot, number: 0 }.coordinates();
        let area = match self.area {
            Area::Following => json!({"radius_m": RADIUS_M + more_m}),
            Area::At(spot) => json!({"center": middle(spot), "radius_m": RADIUS_M + more_m}),
            Area::Wide => json!({"center": middle(Spot(5)), "radius_m": WIDE_M + more_m}),
            Area::Everywhere => Value::Null,
        };
        let mut document = json!({"filters": [{}], "durable": true});
        if !area.is_null() {
            document["filters"][0]["area"] = area;
        }
        if let Some(kind) = self.kind {
            document["filters"][0]["where"] = json!(format!("kind = {kind}"));
        }
        if self.transitions {
            document["on"] = json!(["enter", "exit"]);
            document["initial"] = json!(true);
        }
        document
    }

    /// Whether a normalised form that the broker shows is this very wish.
    pub(crate) fn is_shown_by(&self, form: &Value) -> bool {
        let document = self.document();
        form["filters"] == document["filters"]
            && form["durable"] == true
            && (form["on"] == json!(["event"])) != self.transitions
    }

    /// Whether an event matches for a client at a spot.
    pub(crate) fn takes(&self, spot: Option<Spot>, event_spot: Spot, kind: u64) -> bool {
        let is_inside = match self.area {
            Area::Following => spot == Some(event_spot),
            Area::At(spot) => spot == event_spot,
            Area::Wide => event_spot.0 < SPOTS,
            Area::Everywhere => true,
        };
        is_inside && self.kind.is_none_or(|asked| asked == kind)
    }
}
