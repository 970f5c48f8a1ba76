//! Axes with round ticks, straight or by factors.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use super::text;

/// How an axis goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From zero, by equal steps.
    Linear,
    /// By factors of ten.
    Log,
}

/// What the numbers of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Their unit, if they have one, is in the axis' name.
    Plain,
    /// Microseconds; shown in the unit that suits each.
    Microseconds,
    /// 1 / (1 - q), shown as the percentile q.
    Percentile,
}

/// The ends and ticks of an axis. Where it is logarithmic, it works with logarithms.
#[derive(Clone)]
pub(super) struct Axis {
    inner: RangedCoordf64,
    ticks: Vec<f64>,
    scale: Scale,
    unit: Unit,
}

impl Axis {
    /// Around these values; not more ticks than `ticks_max`.
    pub(super) fn around(ends: Range<f64>, scale: Scale, unit: Unit, ticks_max: u32) -> Self {
        let most = f64::from(ticks_max);
        let (range, step) = match scale {
            Scale::Linear => {
                let largest = if ends.end > 0.0 { ends.end } else { 1.0 };
                let power = 10_f64.powf((largest / most).log10().floor());
                let steps = [1.0, 2.0, 2.5, 5.0].map(|factor| factor * power);
                let step = steps.into_iter().find(|step| largest / step <= most).unwrap_or(power * 10.0);
                (0.0..largest * 1.02, step)
            }
            Scale::Log => {
                let low = ends.start.max(f64::MIN_POSITIVE).log10().floor();
                // What is the largest by a hair of rounding needs no power of ten of its own.
                let end = ends.end.max(f64::MIN_POSITIVE).log10() - 1e-9;
                // The last percentile is that of the largest value, wherever it is.
                let high = if unit == Unit::Percentile { end } else { end.ceil() }.max(low + 1.0);
                (low..high, ((high - low) / most).ceil())
            }
        };
        let (first, last) = (range.start, range.end);
        let ticks = (0..=ticks_max).map(|index| first + f64::from(index) * step);
        let ticks = ticks.take_while(|tick| *tick <= last + step * 1e-6).collect();
        Self { inner: range.into(), ticks, scale, unit }
    }

    /// Where a value is on it.
    pub(super) fn place(&self, value: f64) -> f64 {
        let range = self.inner.range();
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
        }
        .clamp(range.start, range.end)
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

    fn range(&self) -> Range<f64> {
        self.inner.range()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let value = if self.scale == Scale::Log { 10_f64.powf(*value) } else { *value };
        match self.unit {
            Unit::Plain => plain(value),
            Unit::Microseconds if value >= 1e6 => format!("{} s", plain(value / 1e6)),
            Unit::Microseconds if value >= 1e3 => format!("{} ms", plain(value / 1e3)),
            Unit::Microseconds => format!("{} µs", plain(value)),
            Unit::Percentile => format!("{} %", plain(100.0 * (1.0 - 1.0 / value))),
        }
    }
}

/// Thousands apart, no needless decimals; large ones in thousands and millions.
fn plain(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let rounded = format!("{value:.6}");
    let text = rounded.trim_end_matches('0').trim_end_matches('.');
    if text.len() > 3 && !text.contains('.') {
        text::digits(value) + suffix
    } else {
        format!("{text}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ends: Range<f64>, scale: Scale, unit: Unit) -> Vec<String> {
        let axis = Axis::around(ends, scale, unit, 6);
        axis.ticks.iter().map(|tick| axis.format_ext(tick)).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        use Scale::{Linear, Log};
        use Unit::{Microseconds, Percentile, Plain};
        assert_eq!(labels(0.0..70.0, Linear, Plain), ["0", "20", "40", "60"]);
        assert_eq!(labels(0.0..0.7, Linear, Plain), ["0", "0.2", "0.4", "0.6"]);
        assert_eq!(labels(0.0..24_000.0, Linear, Plain), ["0", "5,000", "10 k", "15 k", "20 k"]);
        assert_eq!(labels(0.0..0.0, Linear, Plain).len(), 6);
        assert_eq!(labels(300.0..90_000.0, Log, Microseconds), ["100 µs", "1 ms", "10 ms", "100 ms"]);
        assert_eq!(labels(1.0..24_000.0, Log, Percentile), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!(labels(1.0..1e12, Log, Microseconds).len(), 7);
        assert_eq!(labels(0.0..0.0, Log, Plain).len(), 2);
    }
}
