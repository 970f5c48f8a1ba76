//! The output of the demo: the addresses to look at, a line that lives, and a summary.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::check;
use super::oracle::{Fact, Figures};

/// How often the line changes on a terminal.
const REFRESH: Duration = Duration::from_millis(500);
/// How often a line is written where there is none.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// A schedule that is missed by less than this is kept.
const BEHIND_MIN: Duration = Duration::from_millis(250);

/// How the replay gets on: written by the replay, read by the display.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<State>);

#[derive(Debug, Default)]
struct State {
    behind_ms: AtomicU64,
    refused: AtomicU64,
    /// The title of the first refusal.
    refusal: OnceLock<String>,
}

impl Progress {
    /// Sets how far the replay is behind its schedule.
    pub(super) fn set_behind(&self, behind: Duration) {
        self.0.behind_ms.store(u64::try_from(behind.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Counts a request that the broker has refused for now, by the title of the problem.
    pub(super) fn refused(&self, title: &str) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        self.0.refusal.get_or_init(|| title.to_owned());
    }

    fn behind(&self) -> Duration {
        Duration::from_millis(self.0.behind_ms.load(Ordering::Relaxed))
    }

    /// How many requests were refused, and why the first was; `None` where none was.
    fn refusals(&self) -> Option<(u64, &str)> {
        Some((self.0.refused.load(Ordering::Relaxed), self.0.refusal.get()?))
    }
}

/// Says where the broker listens and what a reader can try beside the demo.
pub(super) fn links(broker: SocketAddr, speed: f64) {
    println!();
    if nearcast_web::built() {
        println!("  console    http://{broker}/?colour=status");
        println!("  phone      http://{broker}/phone");
    } else {
        println!("  console    http://{broker}/  is not built into this program, and says there how it is");
    }
    println!("  the check  http://{broker}/v1/checks/{}/findings", check::NAME);
    let (max_m_per_s, for_s) = check::limits(speed);
    println!(
        "             no taxi, {speed} times faster than life, exceeds {max_m_per_s:.0} m/s between two reports"
    );
    println!("             within {for_s} s; the console and the phone page mark the taxis that seem to");
    println!("  the API    http://{broker}/docs");
    println!("  figures    http://{broker}/v1/stats");
    println!("  listen     websocat ws://{broker}/v1/clients/me/ws");
    println!("  or         curl -N http://{broker}/v1/clients/me/events");
    println!("  subscribe  curl -X PUT http://{broker}/v1/clients/me/subscriptions/near \\");
    println!("               -H 'content-type: application/json' -d \\");
    println!(
        r#"               '{{"filters": [{{"area": {{"center": [114.06, 22.54], "radius_m": 3000}}, "where": "speed_kmh >= 60"}}]}}'"#
    );
    println!();
}

/// Shows how things stand until `done`.
pub(super) async fn show(facts: mpsc::Sender<Fact>, progress: Progress, done: CancellationToken) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let on_terminal = !bar.is_hidden();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    let period = if on_terminal { REFRESH } else { LINE_EVERY };
    let mut last: Option<(Instant, Figures)> = None;
    loop {
        let since = Instant::now();
        tokio::select! {
            () = tokio::time::sleep(period) => {}
            () = done.cancelled() => break,
        }
        let Some(figures) = ask(&facts).await else { break };
        let elapsed = last.as_ref().map_or(since, |(at, _)| *at).elapsed();
        let line = Line {
            now: &figures,
            before: last.as_ref().map(|(_, figures)| figures),
            elapsed,
            progress: &progress,
        };
        if on_terminal {
            bar.tick();
            bar.set_message(line.to_string());
        } else {
            println!("{}", line.to_string().replace(LINE_BREAK, " "));
        }
        last = Some((Instant::now(), figures));
    }
    bar.finish_and_clear();
}

async fn ask(facts: &mpsc::Sender<Fact>) -> Option<Figures> {
    let (answer, figures) = oneshot::channel();
    facts.send(Fact::Asked { answer }).await.ok()?;
    figures.await.ok()
}

/// Where the live line is cut in two, each part of which fits into 80 columns.
const LINE_BREAK: &str = "\n  ";

/// The live line: rates of the time since the one before.
struct Line<'a> {
    now: &'a Figures,
    before: Option<&'a Figures>,
    elapsed: Duration,
    progress: &'a Progress,
}

impl Line<'_> {
    fn rate(&self, count: impl Fn(&Figures) -> u64) -> f64 {
        let more = count(self.now) - self.before.map_or(0, &count);
        more as f64 / self.elapsed.as_secs_f64()
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} vehicles, {:.0} moves/s, {:.0} events/s, {:.0} deliveries/s,",
            self.now.vehicles,
            self.rate(|figures| figures.moves),
            self.rate(|figures| figures.events),
            self.rate(|figures| figures.deliveries),
        )?;
        write!(f, "{LINE_BREAK}{}, {:.0} % near somebody", Latency(&self.now.latency_us), share(self.now))?;
        let behind = self.progress.behind();
        if behind >= BEHIND_MIN {
            write!(f, ", {:.1} s behind", behind.as_secs_f64())?;
        }
        if self.now.violations > 0 {
            write!(f, ", {} jumps", self.now.violations)?;
        }
        if let Some((count, _)) = self.progress.refusals() {
            write!(f, ", {count} refused and sent again")?;
        }
        Ok(())
    }
}

fn share(figures: &Figures) -> f64 {
    100.0 * figures.events_matched as f64 / figures.events.max(1) as f64
}

/// A distribution of latencies, in milliseconds.
struct Latency<'a>(&'a Histogram<u64>);

impl fmt::Display for Latency<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |quantile| self.0.value_at_quantile(quantile) as f64 / 1_000.0;
        write!(f, "publish to delivery p50 {:.2} ms, p99 {:.2} ms", ms(0.5), ms(0.99))
    }
}

/// The end.
pub(super) struct Summary {
    pub(super) figures: Figures,
    pub(super) elapsed: Duration,
    pub(super) speed: f64,
    pub(super) progress: Progress,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = &self.figures;
        writeln!(
            f,
            "replayed {:.1} s at {} times the speed of life: {} vehicles, {} moves, {} events, {:.0} % of them near somebody",
            self.elapsed.as_secs_f64(),
            self.speed,
            figures.vehicles,
            figures.moves,
            figures.events,
            share(figures),
        )?;
        let behind = self.progress.behind();
        if behind >= BEHIND_MIN {
            writeln!(f, "the replay ended {:.1} s behind its schedule", behind.as_secs_f64())?;
        }
        if let Some((count, title)) = self.progress.refusals() {
            writeln!(f, "the broker was busy ({title}): {count} requests were refused and were sent again")?;
        }
        writeln!(
            f,
            "{}, max {:.2} ms",
            Latency(&figures.latency_us),
            figures.latency_us.max() as f64 / 1_000.0
        )?;
        writeln!(
            f,
            "the check {} has found {} pairs of reports that do not fit together",
            check::NAME,
            figures.violations
        )?;
        if figures.foreign > 0 {
            writeln!(
                f,
                "{} deliveries of events that others published, which were not checked",
                figures.foreign
            )?;
        }
        figures.examples.iter().try_for_each(|example| writeln!(f, "  {example}"))?;
        writeln!(f, "gaps {}, duplicates {}", figures.gaps, figures.duplicates)?;
        write!(
            f,
            "deliveries {}, missing {}, spurious {}",
            figures.deliveries, figures.missing, figures.spurious
        )
    }
}
