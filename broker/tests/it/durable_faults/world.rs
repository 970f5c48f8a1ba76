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
    /// The spots that a track led over, a bit each; none for a position without a track.
    pub(crate) passed: u16,
}

/// What a subscription asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wish {
    pub(crate) area: Area,
    pub(crate) kind: Option<u64>,
    pub(crate) on: On,
    pub(crate) durable: bool,
    /// No other version of any subscription has it.
    pub(crate) number: u32,
}

/// What is told. At rest all kinds of transitions come to the same: objects dwell, are far from all edges, and are few.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum On {
    Events,
    Transitions,
    /// Of those that stay.
    Dwelling,
    /// With a hysteresis.
    Reluctant,
    /// Of the nearest, so many that it is all.
    Nearest,
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

impl Spot {
    fn middle(self) -> [f64; 2] {
        Place { spot: self, number: 0, passed: 0 }.coordinates()
    }

    fn column_and_row(self) -> [i64; 2] {
        [self.0 % 4, self.0 / 4].map(i64::from)
    }

    /// The spots on the straight way to another, both included, a bit each: the globe bends it by metres only.
    fn on_the_way_to(self, other: Self) -> u16 {
        let ([ax, ay], [bx, by]) = (self.column_and_row(), other.column_and_row());
        let is_between = |spot: &u32| {
            let [x, y] = Self(*spot).column_and_row();
            (bx - ax) * (y - ay) == (by - ay) * (x - ax)
                && (ax.min(bx)..=ax.max(bx)).contains(&x)
                && (ay.min(by)..=ay.max(by)).contains(&y)
        };
        (0..SPOTS).filter(is_between).fold(0, |passed, spot| passed | 1 << spot)
    }
}

impl Place {
    /// One that is reached over spots, and the track that tells of it.
    pub(crate) fn reached_over(self, spots: &[Spot]) -> (Self, Value) {
        let way = spots.iter().copied().chain([self.spot]).collect::<Vec<_>>();
        let passed = way.windows(2).fold(0, |passed, leg| passed | leg[0].on_the_way_to(leg[1]));
        let points = spots.iter().map(|spot| spot.middle()).chain([self.coordinates()]);
        let points = points.enumerate().map(|(idx, [x, y])| json!([x, y, 1_772_350_200 + idx]));
        (Self { passed, ..self }, points.collect())
    }

    /// Whether its track led over a spot.
    pub(crate) fn has_passed(self, spot: Spot) -> bool {
        spot.0 < SPOTS && self.passed & (1 << spot.0) != 0
    }

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
        let mut area = match self.area {
            Area::Following => json!({"radius_m": RADIUS_M + more_m}),
            Area::At(spot) => json!({"center": spot.middle(), "radius_m": RADIUS_M + more_m}),
            Area::Wide => json!({"center": Spot(5).middle(), "radius_m": WIDE_M + more_m}),
            Area::Everywhere => Value::Null,
        };
        if self.on == On::Nearest {
            area["nearest"] = json!(1_000);
        }
        let mut document = json!({"filters": [{}], "durable": self.durable});
        if !area.is_null() {
            document["filters"][0]["area"] = area;
        }
        if let Some(kind) = self.kind {
            document["filters"][0]["where"] = json!(format!("kind = {kind}"));
        }
        if self.on != On::Events {
            document["on"] = json!(["enter", "exit"]);
            document["initial"] = json!(true);
        }
        match self.on {
            On::Dwelling => document["dwell_s"] = json!(0.25),
            On::Reluctant => document["hysteresis_m"] = json!(50.5),
            On::Events | On::Transitions | On::Nearest => {}
        }
        document
    }

    /// Whether a normalised form that the broker shows is this very wish.
    pub(crate) fn is_shown_by(&self, form: &Value) -> bool {
        let document = self.document();
        form["filters"] == document["filters"]
            && form["durable"] == self.durable
            && (form["on"] == json!(["event"])) == (self.on == On::Events)
            && ["dwell_s", "hysteresis_m"]
                .iter()
                .all(|name| document[name].is_null() || form[name] == document[name])
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
