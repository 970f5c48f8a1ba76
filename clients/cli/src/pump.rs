//! From an input to the broker: at once while entries trickle, in batches while they pour, one request under way.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nearcast_client::batch::Report;
use nearcast_client::documents::Warning;
use nearcast_client::{Error, Problem};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::access::{in_words, refusal};
use crate::input::{Entry, Origin};
use crate::print::{Out, count, json_text, plain, tell};

/// Entries that go in one request.
const BATCH: usize = 500;
/// Faults that are reported one by one; further ones are counted.
const TOLD: u64 = 20;
/// Faults that are listed at the end, where that is JSON.
const LISTED: usize = 1000;

/// Time after which the program says that it waits for the broker.
const PATIENCE: Duration = Duration::from_secs(10);

/// How entries are sent.
pub(crate) struct Pump {
    /// Name of the input.
    pub(crate) name: String,
    /// Ends at the first entry that is refused.
    pub(crate) strict: bool,
    /// Whether a live line is of use.
    pub(crate) shows_progress: bool,
    /// Word for what becomes of entries that are taken: `published`.
    pub(crate) done: &'static str,
}

/// Outcome of an input.
#[derive(Default)]
struct Outcome {
    accepted: u64,
    rejected: u64,
    listed: Vec<Fault>,
    /// Places in entries of which the broker has warned, each reported once.
    warned: BTreeSet<String>,
    /// Why it ended before the input did.
    ended: Option<String>,
    /// Whether somebody wanted it to end.
    is_interrupted: bool,
}

struct Fault {
    origin: Origin,
    why: String,
    problem: Option<Problem>,
}

impl Pump {
    /// Sends what comes until the input ends, or something ends it before, and says what became of it.
    pub(crate) async fn run_to_end<T>(
        &self,
        entries: Receiver<Entry<T>>,
        stop: &CancellationToken,
        json: bool,
        send: impl AsyncFnMut(Vec<T>) -> Result<Report, Error>,
    ) -> anyhow::Result<ExitCode> {
        let outcome = self.run(entries, stop, send).await;
        let summary = if json { json_text(&outcome.json())? } else { outcome.summary(self.done) };
        Out::new().write(&format!("{summary}\n")).await?;
        if let Some(why) = &outcome.ended {
            tell(&format!("nearcast: {why}"));
        }
        Ok(outcome.exit_code())
    }

    async fn run<T>(
        &self,
        mut entries: Receiver<Entry<T>>,
        stop: &CancellationToken,
        mut send: impl AsyncFnMut(Vec<T>) -> Result<Report, Error>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let progress = self.progress();
        let started = Instant::now();
        let mut batch = Vec::with_capacity(BATCH);
        while outcome.ended.is_none() {
            let taken = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    outcome.is_interrupted = true;
                    break;
                }
                taken = entries.recv_many(&mut batch, BATCH) => taken,
            };
            if taken == 0 {
                break;
            }
            self.batch(&mut batch, &mut outcome, stop, &progress, &mut send).await;
            let rate = outcome.accepted / started.elapsed().as_secs().max(1);
            progress.set_message(format!("{}, {} a second", outcome.summary(self.done), count(rate)));
        }
        progress.finish_and_clear();
        outcome
    }

    /// Sends entries, up to the first that is none where that ends it.
    async fn batch<T>(
        &self,
        batch: &mut Vec<Entry<T>>,
        outcome: &mut Outcome,
        stop: &CancellationToken,
        progress: &ProgressBar,
        send: &mut impl AsyncFnMut(Vec<T>) -> Result<Report, Error>,
    ) {
        let mut origins = Vec::with_capacity(batch.len());
        let mut contents = Vec::with_capacity(batch.len());
        // The places that these take in the queue are free when they are sent.
        let mut rooms = Vec::with_capacity(batch.len());
        let mut last = None;
        for entry in batch.drain(..) {
            match entry.content {
                Ok(content) => {
                    origins.push(entry.origin);
                    contents.push(content);
                    rooms.push(entry.room);
                }
                Err(fault) if fault.is_last => {
                    last = Some(format!("{}: {}; nothing behind it was read", entry.origin, fault.why));
                    break;
                }
                Err(fault) => {
                    let fault = Fault { origin: entry.origin, why: fault.why, problem: None };
                    self.refuse(fault, outcome, progress);
                    if self.strict {
                        last = Some(format!("{}: nothing from there on was {}", entry.origin, self.done));
                        break;
                    }
                }
            }
        }
        if !contents.is_empty() {
            let hint = async {
                tokio::select! {
                    () = sleep(PATIENCE) => {}
                    () = async { stop.cancelled().await; sleep(Duration::from_secs(1)).await } => {}
                }
                let text =
                    self.place(&format!("{}: waiting for the broker; Ctrl-C twice ends at once", origins[0]));
                progress.suspend(|| tell(&format!("nearcast: {text}")));
                std::future::pending::<Infallible>().await
            };
            let sent = tokio::select! {
                sent = send(contents) => sent,
                never = hint => match never {},
            };
            self.take_down(sent, &origins, outcome, progress);
        }
        if let (None, Some(last)) = (&outcome.ended, last) {
            outcome.ended = Some(self.place(&last));
        }
    }

    fn take_down(
        &self,
        sent: Result<Report, Error>,
        origins: &[Origin],
        outcome: &mut Outcome,
        progress: &ProgressBar,
    ) {
        let (report, broken) = match sent {
            Ok(report) => (report, None),
            Err(Error::Batch { report, index, source, .. }) => (report, Some((index, *source))),
            Err(error) => (Report::default(), Some((0, error))),
        };
        outcome.accepted += report.accepted;
        outcome.rejected += report.rejected_unlisted;
        for Warning { index, pointer, detail } in report.warnings {
            let index = index.and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
            let Some(origin) = origins.get(index) else { continue };
            if (outcome.warned.len() as u64) < TOLD && outcome.warned.insert(pointer) {
                let text = self.place(&format!("{origin}: {detail}"));
                progress.suspend(|| tell(&format!("nearcast: {text}")));
            }
        }
        for rejected in report.rejected {
            let index = usize::try_from(rejected.index).unwrap_or(usize::MAX);
            let Some(&origin) = origins.get(index) else { continue };
            let why = refusal(&rejected.problem);
            self.refuse(Fault { origin, why, problem: Some(rejected.problem) }, outcome, progress);
            if self.strict {
                let last = origins.last().map(|last| format!(" up to {last}")).unwrap_or_default();
                let text = format!(
                    "{origin}: ended there; what came with it in a batch{last} was {}, and nothing behind that",
                    self.done
                );
                outcome.ended.get_or_insert(self.place(&text));
            }
        }
        if let Some((index, error)) = broken {
            let begin = usize::try_from(index).unwrap_or(usize::MAX).min(origins.len() - 1);
            let (first, last) = (origins[begin], origins[origins.len() - 1]);
            // A problem says that nothing more was done. Without an answer, or where the disk failed, nobody knows.
            let is_known = error.code().is_some_and(|code| code != "storage");
            let rest = match is_known {
                true => format!("nothing from there on was {}", self.done),
                false if first == last => {
                    format!("whether this was {} is not known, and nothing behind it was", self.done)
                }
                false => format!(
                    "whether what is there up to {last} was {} is not known, and nothing behind it was",
                    self.done
                ),
            };
            let text = format!("{first}: {}; {rest}", in_words(&error));
            outcome.ended = Some(self.place(&text));
        }
    }

    fn refuse(&self, fault: Fault, outcome: &mut Outcome, progress: &ProgressBar) {
        outcome.rejected += 1;
        if outcome.rejected <= TOLD {
            let text = format!("nearcast: {}", self.place(&format!("{}: {}", fault.origin, fault.why)));
            progress.suspend(|| tell(&text));
        }
        if outcome.rejected == TOLD + 1 {
            progress.suspend(|| tell("nearcast: further ones that are refused are only counted"));
        }
        if outcome.listed.len() < LISTED {
            outcome.listed.push(fault);
        }
    }

    /// `line 17: …` with the name of the input.
    fn place(&self, text: &str) -> String {
        let (place, rest) = text.split_once(": ").unwrap_or((text, ""));
        plain(&format!("{place} of {}: {rest}", self.name))
    }

    fn progress(&self) -> ProgressBar {
        if !self.shows_progress {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{spinner} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        // Nothing is drawn where standard error is no terminal.
        let progress = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        progress.enable_steady_tick(Duration::from_millis(250));
        progress
    }
}

impl Outcome {
    /// The outcome in words.
    fn summary(&self, done: &str) -> String {
        let mut text = format!("{} {done}", count(self.accepted));
        if self.rejected > 0 {
            text.push_str(&format!(", {} refused", count(self.rejected)));
        }
        text
    }

    /// The outcome as JSON, with the entries that were refused and listed.
    fn json(&self) -> Value {
        let listed = self.listed.iter().map(|Fault { origin, why, problem }| {
            let mut fault = json!({"line": origin.line, "why": why});
            if let Some(feature) = origin.feature {
                fault["feature"] = feature.into();
            }
            if let Some(problem) = problem {
                fault["problem"] = json!(problem);
            }
            fault
        });
        let mut summary = json!({
            "accepted": self.accepted,
            "rejected": listed.collect::<Vec<_>>(),
            "rejected_unlisted": self.rejected - self.listed.len() as u64,
        });
        if let Some(why) = &self.ended {
            summary["ended"] = why.as_str().into();
        }
        if self.is_interrupted {
            summary["interrupted"] = true.into();
        }
        summary
    }

    /// Exit code of the program.
    fn exit_code(&self) -> ExitCode {
        if self.is_interrupted {
            return ExitCode::from(130);
        }
        u8::from(self.rejected > 0 || self.ended.is_some()).into()
    }
}
