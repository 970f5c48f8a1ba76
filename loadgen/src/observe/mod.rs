//! Looks at the target and at the load itself, once a second, from a thread of its own.

mod machine;
mod metrics;
mod process;

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::report::record::Second;
use crate::report::timeline::Timeline;
use metrics::Scraper;
pub use process::Meter;

const SECOND: Duration = Duration::from_secs(1);

/// What is looked at besides the load's own process.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// The target's process, where it is on this machine.
    pub pid: Option<u32>,
    /// Where it has `/metrics`, if it has.
    pub metrics: Option<MetricsAt>,
}

/// Where Prometheus' text is: at `/metrics`.
#[derive(Clone, Debug)]
pub struct MetricsAt {
    /// Whose.
    pub endpoint: Endpoint,
    /// What goes into `Authorization: Bearer`.
    pub token: Option<String>,
}

/// A thread that looks.
#[derive(Debug)]
pub struct Observer {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Observed>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Second by second.
    pub timeline: Vec<Second>,
    /// Why `/metrics` was not read, the last time that it was not.
    pub metrics_failure: Option<String>,
}

impl Observer {
    /// Begins to look. Times are from `begun`.
    ///
    /// Each second `count` is given a row that has its time and what the processes used, and fills in what the load has counted
    /// since it was last called, at the end for what is left once more. What it takes delays the row after it. `/metrics` is asked afterwards.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        watched: &Watched,
        begun: Instant,
        count: impl FnMut(&mut Second) + Send + 'static,
    ) -> io::Result<Self> {
        let mut look = Look {
            begun,
            seen_s: begun.elapsed().as_secs_f64(),
            broker: watched.pid.map(Meter::of),
            load: Meter::own(),
            scraper: watched.metrics.clone().map(Scraper::new),
            count: Box::new(count),
        };
        look.warm();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("observer".to_owned()).spawn(move || look.run(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Looks once more and ends.
    #[must_use]
    pub fn finish(self) -> Observed {
        // Where it is gone already, it has panicked, and so does this.
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(observed) => observed,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// What the thread has.
struct Look {
    begun: Instant,
    /// When the last row ended.
    seen_s: f64,
    broker: Option<Meter>,
    load: Meter,
    scraper: Option<Scraper>,
    count: Box<dyn FnMut(&mut Second) + Send>,
}

impl Look {
    /// What later figures are the differences from.
    fn warm(&mut self) {
        let _ = (self.broker.as_mut().map(Meter::read), self.load.read());
        let _ = self.scraper.as_mut().map(Scraper::scrape);
    }

    fn run(mut self, stopped: &mpsc::Receiver<()>) -> Observed {
        let mut timeline = Timeline::default();
        let mut due = Instant::now() + SECOND;
        while stopped.recv_timeout(due.saturating_duration_since(Instant::now()))
            == Err(RecvTimeoutError::Timeout)
        {
            timeline.push(self.row());
            // Seconds that were missed are in the row that came late.
            let now = Instant::now();
            while due <= now {
                due += SECOND;
            }
        }
        let rest = self.row();
        if rest.span_s < 0.5 {
            timeline.extend_last(rest)
        } else {
            timeline.push(rest)
        }
        Observed {
            timeline: timeline.into_rows(),
            metrics_failure: self.scraper.and_then(|scraper| scraper.failure),
        }
    }

    fn row(&mut self) -> Second {
        let at_s = self.begun.elapsed().as_secs_f64();
        let mut row = Second { at_s, span_s: at_s - self.seen_s, ..Second::default() };
        self.seen_s = at_s;
        row.broker = self.broker.as_mut().and_then(Meter::read);
        row.load = self.load.read();
        (self.count)(&mut row);
        row.scraped = self.scraper.as_mut().map(Scraper::scrape).unwrap_or_default();
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::Usage;

    #[cfg(target_os = "linux")]
    #[test]
    fn rows_come_each_second_with_what_was_counted_and_used() {
        let begun = Instant::now();
        let observer =
            Observer::start(&Watched { pid: Some(std::process::id()), metrics: None }, begun, |row| {
                row.deliveries = 1;
            })
            .unwrap();
        // In nanoseconds: another of the kernel's accounts than the one that is tested.
        let own_ns = || {
            let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        let before_ns = own_ns();
        while begun.elapsed() < Duration::from_millis(2_200) || own_ns() - before_ns < 500_000_000 {
            std::hint::black_box(
                (0..10_000_u64).fold(0, |sum: u64, number| sum ^ std::hint::black_box(number)),
            );
        }
        let used_s = Duration::from_nanos(own_ns() - before_ns).as_secs_f64();
        let observed = observer.finish();
        let rows = &observed.timeline;
        let counted: u64 = rows.iter().map(|row| row.deliveries).sum();
        assert!(counted >= 2, "each second, and for the rest: {rows:?}");
        let spans: f64 = rows.iter().map(|row| row.span_s).sum();
        assert!(spans > 2.1 && (spans - rows.last().unwrap().at_s).abs() < 0.1, "{rows:?}");
        for of in [|row: &Second| row.broker, |row: &Second| row.load] {
            let seen_s = |figure: fn(Usage) -> f64| -> f64 {
                rows.iter().map(|row| figure(of(row).unwrap()) * row.span_s).sum()
            };
            // Other tests run in this process as well; no thread has more than a core.
            let (all_s, busiest_s) =
                (seen_s(|usage| usage.cpu_cores), seen_s(|usage| usage.busiest_thread_cores));
            assert!(all_s > used_s - 0.05 && busiest_s > 0.9 * used_s - 0.05, "{used_s} {rows:?}");
            assert!(busiest_s < 1.1 * spans, "{rows:?}");
            assert!(rows.iter().all(|row| of(row).unwrap().resident_bytes > 1_000_000), "{rows:?}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_no_hindrance() {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let metrics = MetricsAt { endpoint: Endpoint::plain(unused), token: None };
        let watched = Watched { pid: Some(u32::MAX), metrics: Some(metrics) };
        let observed = Observer::start(&watched, Instant::now(), |_| ()).unwrap().finish();
        assert_eq!(observed.timeline.len(), 1);
        assert!(observed.timeline[0].broker.is_none() && observed.timeline[0].scraped.is_empty());
        assert!(observed.metrics_failure.unwrap().contains("refused"));
    }
}
