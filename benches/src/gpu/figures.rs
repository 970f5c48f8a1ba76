//! What was measured: medians with their spread, as they go into tables and files.

use std::time::Duration;

use crate::engines::report::digits;

/// One figure with where it belongs.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Which part of the bench.
    pub section: &'static str,
    /// `default`, or another workload.
    pub scenario: String,
    /// Filters installed.
    pub filters: u64,
    /// Whose it is.
    pub engine: String,
    /// What was varied or measured: a batch size, a step.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// Ascending, one a round.
    pub values: Vec<f64>,
}

impl Figure {
    /// The median of the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.values.get(self.values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Median and, in parentheses, the least and the largest.
    #[must_use]
    pub fn text(&self) -> String {
        match (self.values.first(), self.values.last()) {
            (Some(least), Some(largest)) if self.values.len() > 1 => {
                format!(
                    "{} ({} to {})",
                    digits_small(self.median()),
                    digits_small(*least),
                    digits_small(*largest)
                )
            }
            _ => digits_small(self.median()),
        }
    }
}

/// All figures of a run.
#[derive(Debug, Default)]
pub struct Figures {
    all: Vec<Figure>,
}

impl Figures {
    /// Adds one; its values may come in any order.
    pub fn push(&mut self, mut figure: Figure) {
        figure.values.sort_by(f64::total_cmp);
        eprintln!(
            "{} {} {} filters, {} {}: {} {}",
            figure.section,
            figure.scenario,
            figure.filters,
            figure.engine,
            figure.what,
            figure.text(),
            figure.unit
        );
        self.all.push(figure);
    }

    /// Figures of a section, in the order in which they were measured.
    pub fn of<'a>(&'a self, section: &'a str) -> impl Iterator<Item = &'a Figure> {
        self.all.iter().filter(move |figure| figure.section == section)
    }

    /// A line for each, with every round.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text =
            String::from("section,scenario,filters,engine,what,unit,median,least,largest,rounds\n");
        for figure in &self.all {
            let Figure { section, scenario, filters, engine, what, unit, values } = figure;
            let [least, largest] =
                [values.first(), values.last()].map(|value| value.copied().unwrap_or(f64::NAN));
            let median = figure.median();
            text.push_str(&format!(
                "{section},{scenario},{filters},{engine},{what},{unit},{median},{least},{largest},{}\n",
                values.len()
            ));
        }
        text
    }
}

/// Microseconds of a duration shared by so many.
#[must_use]
pub fn us_each(duration: Duration, count: usize) -> f64 {
    duration.as_secs_f64() * 1e6 / count as f64
}

/// Three significant digits also of what is far below one.
#[must_use]
pub fn digits_small(number: f64) -> String {
    if number.abs() >= 0.1 || number == 0.0 {
        return digits(number);
    }
    let mut decimals = 4;
    let mut size = number.abs();
    while size < 0.01 && decimals < 9 {
        size *= 10.0;
        decimals += 1;
    }
    format!("{number:.decimals$}")
}
