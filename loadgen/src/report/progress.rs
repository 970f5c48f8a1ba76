//! One live line while a run goes on.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::record::Second;
use super::text::{clock, count, digits, float, microseconds};

/// So long apart are lines where there is no terminal.
const LINE_EVERY_S: f64 = 10.0;

/// The live line on standard error; where that is no terminal, a line now and then.
#[derive(Debug)]
pub struct Progress {
    run_s: f64,
    errors: u64,
    gap_deliveries: u64,
    bar: ProgressBar,
    /// When the last line was written, where there is no terminal.
    written_s: f64,
}

impl Progress {
    /// Progress of a run that takes `run`, warm-up included.
    #[must_use]
    pub fn new(run: Duration) -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        Self {
            run_s: run.as_secs_f64(),
            errors: 0,
            gap_deliveries: 0,
            bar: ProgressBar::new_spinner().with_style(style),
            written_s: 0.0,
        }
    }

    /// Shows a second.
    pub fn tell(&mut self, second: &Second) {
        self.errors += second.errors;
        self.gap_deliveries += second.gap_deliveries;
        let line = self.line(second);
        if !self.bar.is_hidden() {
            self.bar.set_message(line);
            self.bar.tick();
        } else if second.at_s - self.written_s >= LINE_EVERY_S - 0.5 {
            self.written_s = second.at_s;
            eprintln!("{line}");
        }
    }

    /// Takes the live line away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, second: &Second) -> String {
        let rate = |number: u64| digits(float(number) / second.span_s.max(1e-3));
        let p99 = second.delivery.map_or_else(|| "-".to_owned(), |delivery| microseconds(delivery.p99_us));
        let mut line = format!(
            "{}, {} left | events/s {} due, {} sent | deliveries/s {} | p99 {p99}",
            clock(second.at_s),
            clock(self.run_s - second.at_s),
            rate(second.events_intended),
            rate(second.events_sent),
            rate(second.deliveries),
        );
        for (number, what) in
            [(self.errors, "errors"), (self.gap_deliveries, "lost"), (second.refused, "refused")]
        {
            if number > 0 {
                line.push_str(&format!(" | {} {what}", count(number)));
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Percentiles;
    use super::*;

    #[test]
    fn the_line_says_where_it_is_and_adds_errors_up() {
        let mut progress = Progress::new(Duration::from_secs(90));
        let delivery = Some(Percentiles { p99_us: 2_340, ..Percentiles::default() });
        let mut second = Second {
            at_s: 30.0,
            span_s: 2.0,
            events_intended: 4_000,
            events_sent: 3_998,
            ..Second::default()
        };
        assert_eq!(
            progress.line(&second),
            "0:30, 1:00 left | events/s 2,000 due, 1,999 sent | deliveries/s 0 | p99 -"
        );
        second = Second { delivery, deliveries: 24_000, errors: 2, ..second };
        progress.tell(&second);
        progress.tell(&second);
        assert_eq!(
            progress.line(&second),
            "0:30, 1:00 left | events/s 2,000 due, 1,999 sent | deliveries/s 12,000 | p99 2.34 ms | 4 errors"
        );
    }
}
