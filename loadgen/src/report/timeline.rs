//! The seconds of a run, however long it is, and where they were heading.

use std::ops::Range;

use super::record::{Percentiles, Second, Slope, Slopes, Usage};

/// So many rows at most: more than an hour in seconds. Beyond it rows become twice as long, again and again.
pub const ROWS_MAX: usize = 4_096;

/// Grows second by second, in bounded memory.
#[derive(Clone, Debug)]
pub struct Timeline {
    rows: Vec<Second>,
    /// Seconds that a row is to have.
    row_seconds: usize,
    /// Seconds that the last row has.
    last_seconds: usize,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { rows: Vec::new(), row_seconds: 1, last_seconds: 1 }
    }
}

impl Timeline {
    /// Appends a second.
    pub fn push(&mut self, second: Second) {
        if self.last_seconds < self.row_seconds {
            self.extend_last(second);
            self.last_seconds += 1;
            return;
        }
        if self.rows.len() == ROWS_MAX {
            self.halve();
        }
        self.rows.push(second);
        self.last_seconds = 1;
    }

    /// Makes the last row longer by what was left at the end.
    pub fn extend_last(&mut self, rest: Second) {
        match self.rows.last_mut() {
            Some(last) => last.absorb(rest),
            None => self.rows.push(rest),
        }
    }

    /// All rows.
    #[must_use]
    pub fn into_rows(self) -> Vec<Second> {
        self.rows
    }

    fn halve(&mut self) {
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        while let Some(mut row) = rows.next() {
            if let Some(next) = rows.next() {
                row.absorb(next);
            }
            self.rows.push(row);
        }
        self.row_seconds *= 2;
    }
}

impl Second {
    /// Becomes one row with the next: counts and spans are added, processor time is that of both; latencies and scraped
    /// figures are the worse of the two, for percentiles of both cannot be known.
    pub fn absorb(&mut self, next: Self) {
        let share =
            if self.span_s + next.span_s > 0.0 { next.span_s / (self.span_s + next.span_s) } else { 0.5 };
        self.at_s = next.at_s;
        self.span_s += next.span_s;
        self.events_intended += next.events_intended;
        self.events_sent += next.events_sent;
        self.deliveries += next.deliveries;
        self.late += next.late;
        self.moves += next.moves;
        self.refused += next.refused;
        self.errors += next.errors;
        self.gap_deliveries += next.gap_deliveries;
        self.delivery = worse(self.delivery, next.delivery);
        self.move_in_force = worse(self.move_in_force, next.move_in_force);
        self.broker = of_both(self.broker, next.broker, share);
        self.load = of_both(self.load, next.load, share);
        for (name, value) in next.scraped {
            let larger = self.scraped.entry(name).or_insert(value);
            *larger = larger.max(value);
        }
    }
}

fn worse(one: Option<Percentiles>, other: Option<Percentiles>) -> Option<Percentiles> {
    let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
    Some(Percentiles {
        p50_us: a.p50_us.max(b.p50_us),
        p90_us: a.p90_us.max(b.p90_us),
        p99_us: a.p99_us.max(b.p99_us),
        p999_us: a.p999_us.max(b.p999_us),
        max_us: a.max_us.max(b.max_us),
    })
}

fn of_both(one: Option<Usage>, next: Option<Usage>, share: f64) -> Option<Usage> {
    let (Some(a), Some(b)) = (one, next) else { return one.or(next) };
    Some(Usage {
        cpu_cores: a.cpu_cores + (b.cpu_cores - a.cpu_cores) * share,
        busiest_thread_cores: a.busiest_thread_cores.max(b.busiest_thread_cores),
        resident_bytes: b.resident_bytes,
    })
}

impl Slopes {
    /// Slopes over the rows that lie in a part of the run, in seconds from its start. Warm-up does not belong in it.
    #[must_use]
    pub fn over(rows: &[Second], part_s: &Range<f64>) -> Self {
        let fit = |usage: fn(&Second) -> Option<Usage>, figure: fn(Usage) -> f64| {
            let rows = rows.iter().filter(|row| row.is_in(part_s));
            Slope::fit(rows.filter_map(|row| Some((row.at_s / 3_600.0, figure(usage(row)?)))))
        };
        Self {
            broker_mb: fit(|row| row.broker, megabytes),
            broker_cores: fit(|row| row.broker, |usage| usage.cpu_cores),
            load_mb: fit(|row| row.load, megabytes),
            load_cores: fit(|row| row.load, |usage| usage.cpu_cores),
        }
    }
}

impl Second {
    /// Whether its middle lies there, in seconds from the start of the run.
    #[must_use]
    pub fn is_in(&self, part_s: &Range<f64>) -> bool {
        part_s.contains(&(self.at_s - self.span_s / 2.0))
    }
}

#[expect(clippy::cast_precision_loss, reason = "memory ends before 2^52 bytes")]
fn megabytes(usage: Usage) -> f64 {
    usage.resident_bytes as f64 / 1e6
}

impl Slope {
    /// The straight line with the least squares through points (hours, value); none of fewer than three, nor of points above
    /// each other.
    pub fn fit(points: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let points: Vec<(f64, f64)> = points.into_iter().collect();
        if points.len() < 3 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "there are some thousand rows at most")]
        let count = points.len() as f64;
        let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
        let xx: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let xy: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        if xx <= 0.0 {
            return None;
        }
        let per_hour = xy / xx;
        let beside = |(x, y): &(f64, f64)| (y - mean_y - per_hour * (x - mean_x)).powi(2);
        let error_per_hour = (points.iter().map(beside).sum::<f64>() / (count - 2.0) / xx).sqrt();
        Some(Self { per_hour, error_per_hour })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at_s: f64) -> Second {
        let usage = Usage { cpu_cores: 0.5, busiest_thread_cores: 0.5, resident_bytes: 0 };
        Second { at_s, span_s: 1.0, deliveries: 3, load: Some(usage), ..Second::default() }
    }

    #[test]
    fn a_day_fits_and_nothing_of_it_is_lost() {
        let mut timeline = Timeline::default();
        for at_s in 1..=86_400 {
            timeline.push(second(f64::from(at_s)));
        }
        let rows = timeline.into_rows();
        assert!((ROWS_MAX / 2..=ROWS_MAX).contains(&rows.len()), "{} rows", rows.len());
        assert_eq!(rows.iter().map(|row| row.deliveries).sum::<u64>(), 3 * 86_400);
        let spans: f64 = rows.iter().map(|row| row.span_s).sum();
        assert!((spans - 86_400.0).abs() < 1e-6, "{spans}");
        assert!(rows.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
        assert!(rows.iter().all(|row| row.load.is_some_and(|usage| (usage.cpu_cores - 0.5).abs() < 1e-9)));
    }

    #[test]
    fn an_hour_stays_as_it_is() {
        let mut timeline = Timeline::default();
        (1..=3_600).for_each(|at_s| timeline.push(second(f64::from(at_s))));
        assert_eq!(timeline.into_rows().len(), 3_600);
    }

    #[test]
    fn of_two_rows_the_worse_latency_stays_and_processor_time_is_by_time() {
        let percentiles = |us| Some(Percentiles { p50_us: us, max_us: 10 * us, ..Percentiles::default() });
        let mut row = Second { delivery: percentiles(7), ..second(1.0) };
        let used = Usage { cpu_cores: 2.0, busiest_thread_cores: 0.9, resident_bytes: 8 };
        row.absorb(Second { span_s: 2.0, delivery: percentiles(5), load: Some(used), ..second(3.0) });
        assert_eq!(row.delivery, percentiles(7));
        assert_eq!(row.load, Some(Usage { cpu_cores: 1.5, ..used }));
    }

    #[test]
    fn the_slope_of_a_known_line_is_found_with_its_error() {
        let exact = Slope::fit((0..100).map(|step| (f64::from(step), 3.0 - 0.25 * f64::from(step)))).unwrap();
        assert!((exact.per_hour + 0.25).abs() < 1e-12 && exact.error_per_hour < 1e-9, "{exact:?}");
        // By hand: x̄ 2, ȳ 2, Sxx 10, Sxy 8; beside the line -0.32, 0.84, -1, 0.76, -0.28: their squares 2.464, over 3, over 10.
        let points = [(0.0, 0.0), (1.0, 2.0), (2.0, 1.0), (3.0, 3.6), (4.0, 3.4)];
        let rough = Slope::fit(points).unwrap();
        assert!((rough.per_hour - 0.84).abs() < 1e-12, "{rough:?}");
        assert!((rough.error_per_hour.powi(2) - 2.464 / 30.0).abs() < 1e-12, "{rough:?}");
        assert_eq!(Slope::fit([(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Slope::fit([(1.0, 1.0); 5]), None);
    }

    #[test]
    fn slopes_are_of_the_measured_time_alone() {
        let row = |at_s: u32| {
            let resident_bytes = if at_s <= 10 { 900_000_000 } else { 1_000_000 * u64::from(at_s) };
            let usage = Usage { resident_bytes, ..Usage::default() };
            Second { broker: Some(usage), ..second(f64::from(at_s)) }
        };
        let rows: Vec<Second> = (1..=60).map(row).collect();
        let slopes = Slopes::over(&rows, &(10.0..60.0));
        assert!((slopes.broker_mb.unwrap().per_hour - 3_600.0).abs() < 1e-6, "{slopes:?}");
        assert_eq!(Slopes::over(&rows, &(58.0..60.0)).broker_mb, None);
    }
}
