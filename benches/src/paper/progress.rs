//! How far a run has come, and about how long it will still take.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Between two lines, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A bar on a terminal, lines elsewhere.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    start: Instant,
    said: Option<Instant>,
    expected: f64,
    done: f64,
}

impl Progress {
    /// On standard error.
    #[must_use]
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
            let bar = ProgressBar::new(1_000);
            bar.enable_steady_tick(Duration::from_millis(500));
            // The template is constant; were it wrong, the default one would do.
            style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
        });
        Self { bar, start: Instant::now(), said: None, expected: 1.0, done: 0.0 }
    }

    /// About so many seconds of work are ahead.
    pub fn expect(&mut self, seconds: f64) {
        self.expected = seconds.max(f64::MIN_POSITIVE);
        self.start = Instant::now();
    }

    /// Says what is being done.
    pub fn doing(&mut self, what: &str) {
        let share = (self.done / self.expected).min(1.0);
        let message = format!("{what}; {}", self.left(share));
        if let Some(bar) = &self.bar {
            let position = std::time::Duration::from_secs_f64(share).as_millis();
            bar.set_position(u64::try_from(position).unwrap_or(u64::MAX));
            bar.set_message(message);
        } else if self.said.is_none_or(|said| said.elapsed() >= LINE_EVERY) {
            self.said = Some(Instant::now());
            eprintln!("{:3.0} %  {message}", share * 100.0);
        }
    }

    /// So many of the expected seconds are done.
    pub fn done(&mut self, seconds: f64) {
        self.done += seconds;
    }

    /// How long the run has taken.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// The estimate stretched by what the done part took.
    fn left(&self, share: f64) -> String {
        let passed = self.start.elapsed().as_secs_f64();
        // Too little has passed to tell more than the estimate does.
        let left = if share < 0.02 { self.expected - self.done } else { passed / share * (1.0 - share) };
        let seconds = left.max(0.0).ceil();
        if seconds < 90.0 {
            format!("about {seconds} s left")
        } else {
            format!("about {} min left", (seconds / 60.0).ceil())
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
