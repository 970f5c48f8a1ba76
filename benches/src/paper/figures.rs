//! What was measured: every point with its spread, and what the checks have seen.

use anyhow::Context;

use crate::engines::oracle::Checked;
use crate::engines::report::thousands;
use crate::gpu::figures::digits_small;

/// One point of one curve.
#[derive(Clone, Debug)]
pub struct Point {
    /// The panel or table: `fig3a`, `table2`.
    pub panel: &'static str,
    /// Whose it is, and where one contender has several curves, which.
    pub series: String,
    /// Subscriptions.
    pub x: u32,
    /// The unit of the values.
    pub unit: &'static str,
    /// Ascending, one a round.
    pub values: Vec<f64>,
}

impl Point {
    /// The median of the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.values.get(self.values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The least round.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.values.first().copied().unwrap_or(f64::NAN)
    }

    /// The largest round.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.values.last().copied().unwrap_or(f64::NAN)
    }

    /// The median with three digits and, in parentheses, the spread.
    #[must_use]
    pub fn text(&self) -> String {
        let [median, least, largest] = [self.median(), self.least(), self.largest()].map(number);
        if self.values.len() < 2 { median } else { format!("{median} ({least} to {largest})") }
    }
}

/// Three digits, with the thousands of large numbers apart.
#[must_use]
pub fn number(number: f64) -> String {
    match format!("{number:.0}").parse() {
        Ok(whole) if number >= 999.5 => thousands(whole),
        _ => digits_small(number),
    }
}

/// Six decimals, which are picoseconds of a microsecond, without needless zeros.
fn short(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What the answers of a panel at one size were compared with.
#[derive(Clone, Debug)]
pub struct Check {
    /// The panel.
    pub panel: &'static str,
    /// Subscriptions.
    pub x: u32,
    /// What brute force has seen.
    pub checked: Checked,
    /// Events on which the contenders were compared with each other.
    pub events: usize,
}

/// All points and checks of a run.
#[derive(Debug, Default)]
pub struct Figures {
    points: Vec<Point>,
    checks: Vec<Check>,
}

impl Figures {
    /// Adds a point; its values may come in any order.
    pub fn push(
        &mut self,
        panel: &'static str,
        series: impl Into<String>,
        x: u32,
        unit: &'static str,
        mut values: Vec<f64>,
    ) {
        values.sort_by(f64::total_cmp);
        self.points.push(Point { panel, series: series.into(), x, unit, values });
    }

    /// Notes a check that went well.
    pub fn checked(&mut self, panel: &'static str, x: u32, checked: Checked, events: usize) {
        self.checks.push(Check { panel, x, checked, events });
    }

    /// The points of a panel, in the order in which they were measured.
    pub fn of<'a>(&'a self, panel: &'a str) -> impl Iterator<Item = &'a Point> {
        self.points.iter().filter(move |point| point.panel == panel)
    }

    /// One point.
    #[must_use]
    pub fn at(&self, panel: &str, series: &str, x: u32) -> Option<&Point> {
        self.points.iter().find(|point| point.panel == panel && point.series == series && point.x == x)
    }

    /// The curves of a panel, in the order in which they were first measured.
    #[must_use]
    pub fn series(&self, panel: &str) -> Vec<&str> {
        let mut series: Vec<&str> = Vec::new();
        for point in self.points.iter().filter(|point| point.panel == panel) {
            if !series.contains(&point.series.as_str()) {
                series.push(&point.series);
            }
        }
        series
    }

    /// The sizes of a panel, ascending.
    #[must_use]
    pub fn sizes(&self, panel: &str) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.of(panel).map(|point| point.x).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// All checks.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// A line for each point.
    ///
    /// # Errors
    /// Never: it is written to memory.
    pub fn csv(&self) -> anyhow::Result<String> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        csv.write_record(["section", "series", "x", "unit", "median", "least", "largest", "rounds"])?;
        for point in &self.points {
            let numbers = [point.median(), point.least(), point.largest()].map(short);
            let [median, least, largest] = &numbers;
            let (x, rounds) = (point.x.to_string(), point.values.len().to_string());
            csv.write_record([point.panel, &point.series, &x, point.unit, median, least, largest, &rounds])?;
        }
        String::from_utf8(csv.into_inner()?).context("numbers and labels are UTF-8")
    }
}
