//! Axes with round ticks, straight or by powers of ten.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

/// The ends and ticks of an axis, as plotters asks for them.
#[derive(Clone)]
pub(super) struct Axis {
    inner: RangedCoordf64,
    ticks: Vec<f64>,
    log: bool,
}

impl Axis {
    /// From zero to a little more than the largest value, with at most six round steps.
    pub(super) fn linear(largest: f64) -> Self {
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let power = 10_f64.powf((largest / 6.0).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| largest / step <= 6.0).unwrap_or(power * 10.0);
        let ticks = (0..).map(|index| f64::from(index) * step).take_while(|tick| *tick <= largest * 1.001);
        Self { inner: (0.0..largest * 1.04).into(), ticks: ticks.collect(), log: false }
    }

    /// The powers of ten around these logarithms.
    pub(super) fn log(low: f64, high: f64) -> Self {
        let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        let ticks = (0..).map(|step| low + f64::from(step)).take_while(|tick| *tick <= high);
        Self { ticks: ticks.collect(), inner: (low..high).into(), log: true }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.inner.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.inner.range()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        label(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        label(if self.log { 10_f64.powf(*value) } else { *value })
    }
}

/// A number as a label: thousands apart, no needless decimals.
fn label(number: f64) -> String {
    if number.abs() < 1.0 {
        let text = format!("{number:.6}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let whole = format!("{:.0}", number.abs().floor());
    let groups: Vec<&str> = whole
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    let fraction = format!("{:.2}", number.fract().abs());
    let fraction = fraction.trim_start_matches('0').trim_end_matches('0').trim_end_matches('.');
    format!("{}{fraction}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(Axis::linear(1_000.0).ticks, [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0]);
        assert_eq!(Axis::linear(100.0).ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert!(Axis::linear(0.0).ticks.len() > 1);
    }

    #[test]
    fn labels_are_short() {
        let numbers = [0.0, 0.001, 0.1, 2.5, 1_000.0, 12_345_678.0].map(label);
        assert_eq!(numbers, ["0", "0.001", "0.1", "2.5", "1,000", "12,345,678"]);
    }
}
