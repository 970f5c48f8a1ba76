//! The experiments of GAIN ("GAIN: GPU-based constraint checking for context consistency", section 5) over an hour of Shenzhen's taxis.
//!
//! Only the medium hour is at hand. The others are made of it: taxis go in or out of service until as many reports in a hundred are in service
//! as the paper's Table 2 says. Every answer is compared with that of `sequential`: links told and evaluations that are violated.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use checks::engine::Engine;
use checks::{Arrival, Bounds, Check, Checker, Kind, Sets};
use checks_gpu::{Gpu, Granularity, Kernels, Settings, Transmission};
use matcher::World;

#[path = "../../../checks/tests/it/documents.rs"]
mod documents;
#[path = "../../../checks/tests/it/reports.rs"]
#[allow(dead_code, reason = "tests look at more of a report")]
mod reports;

const RULES: &str = include_str!("../../../checks/tests/data/taxis.json");
/// The 33 random constraints of Table 1's families and the three of the appendix, over taxis.
const SHAPES: &str = include_str!("shapes.json");

/// Workloads: name, and share of reports in service in a thousand (Table 2; `extreme` is section 5.3.7's).
const WORKLOADS: [(&str, u32); 4] = [("light", 56), ("medium", 248), ("heavy", 374), ("extreme", 1_000)];
/// The longest that an engine takes for a case; what it did until then counts.
const PATIENCE: Duration = Duration::from_secs(1);
/// Contexts by which engines that are measured warm are warmed up, at least.
const WARM_UP: usize = 500;
/// Contexts that wait before one is missed, in the experiment on budgets.
const BUFFER: usize = 64;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Contexts of a segment; the paper has 5,000.
    pub contexts: usize,
    /// Turns of an engine on the processor, and on a device.
    pub rounds: [usize; 2],
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The paper's figure or table.
    pub section: String,
    /// Constraint, or set of them.
    pub case: String,
    /// What it is done to.
    pub workload: String,
    /// Engine and variant.
    pub engine: String,
    /// Number of the turn.
    pub round: usize,
    /// Contexts that were taken in.
    pub contexts: usize,
    /// How long that took.
    pub seconds: f64,
    /// Links that were told.
    pub told: usize,
}

/// An engine of the comparison.
#[derive(Clone, Copy)]
enum Contender<'a> {
    Cpu(Kind),
    Gpu(&'a Kernels, Settings),
    /// With this number of contexts at once.
    Batches(&'a Kernels, usize),
}

impl Contender<'_> {
    fn engine(self, check: &Arc<Check>) -> Box<dyn Engine> {
        match self {
            Self::Cpu(kind) => kind.engine(check, Bounds::default()),
            Self::Gpu(kernels, settings) => {
                Box::new(Gpu::new(check.clone(), Bounds::default(), kernels, settings))
            }
            Self::Batches(kernels, _) => {
                Box::new(Gpu::new(check.clone(), Bounds::default(), kernels, Settings::default()))
            }
        }
    }

    /// Contexts that are given at once.
    fn at_once(self) -> usize {
        match self {
            Self::Cpu(_) | Self::Gpu(..) => 1,
            Self::Batches(_, at_once) => at_once,
        }
    }

    fn is_cpu(self) -> bool {
        matches!(self, Self::Cpu(_))
    }
}

/// Takes contexts in; how many links were told, and evaluations violated.
fn take(checker: &mut Checker<()>, arrivals: &[Arrival]) -> usize {
    let mut told = 0;
    checker.take_all(arrivals.iter().map(|arrival| ((), arrival.clone())), |_, taken| {
        let outcome = taken.expect("shapes have few links");
        told += outcome.map_or(0, |outcome| outcome.told.len() + usize::from(outcome.violated));
        ControlFlow::Continue(())
    });
    told
}

type Named<'a> = (&'static str, Contender<'a>);

/// Figures as they are made.
pub struct Measuring<'a> {
    scale: Scale,
    kernels: Option<&'a Kernels>,
    reports: Vec<reports::Report>,
    /// All figures so far.
    pub rows: Vec<Row>,
    /// What `sequential` told, by section, case, workload and contexts.
    expected: BTreeMap<(String, String, usize), usize>,
}

impl<'a> Measuring<'a> {
    /// Reads the hour; `None` where there are no data.
    #[must_use]
    pub fn new(scale: Scale, kernels: Option<&'a Kernels>) -> Option<Self> {
        let reports = reports::reports(&reports::folder()?, "taxi_h11.csv.gz");
        Some(Self { scale, kernels, reports, rows: Vec::new(), expected: BTreeMap::new() })
    }

    /// Does all experiments, and shows what there is after each.
    ///
    /// # Panics
    /// With the first wrong answer.
    pub fn all(&mut self, mut show: impl FnMut(&[Row])) {
        for experiment in
            [Self::factors, Self::large, Self::budget, Self::workload, Self::structure, Self::day]
        {
            experiment(self);
            show(&self.rows);
        }
        self.past(show);
    }

    /// Does the experiments past the paper: several contexts at once, and sets that are larger than those of any of the paper's workloads.
    ///
    /// # Panics
    /// With the first wrong answer.
    pub fn past(&mut self, mut show: impl FnMut(&[Row])) {
        for experiment in [Self::batches, Self::dense] {
            experiment(self);
            show(&self.rows);
        }
    }

    /// Arrivals with a share of them in service.
    fn arrivals(&self, per_mille: u32, count: usize) -> Vec<Arrival> {
        let in_service = self.reports.iter().filter(|report| report.status != 0.0).count();
        let own = u32::try_from(in_service * 1_000 / self.reports.len()).expect("a share");
        let status = |report: &reports::Report| {
            // The same for all reports of a taxi within half a minute, as its own would be.
            let key = format!("{} {}", report.taxi_id, report.ts_ms / 30_000);
            let drawn = key.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(16_777_619) ^ u32::from(byte));
            let drawn = (drawn ^ drawn >> 15).wrapping_mul(0x2c1b_3c6d) >> 12;
            let is_on = report.status != 0.0;
            let goes = match per_mille {
                _ if per_mille.abs_diff(own) < 2 => is_on,
                _ if per_mille < own => is_on && drawn % own < per_mille,
                _ => is_on || drawn % (1_000 - own) < per_mille - own,
            };
            if goes { 1.0 } else { 0.0 }
        };
        let changed = |report: &reports::Report| reports::Report { status: status(report), ..report.clone() };
        self.reports.iter().take(count).map(|report| changed(report).arrival()).collect()
    }

    fn cpu(&self) -> Vec<Named<'a>> {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let half = NonZeroUsize::new(threads.get() / 2).unwrap_or(NonZeroUsize::MIN);
        vec![
            ("Seq-C", Contender::Cpu(Kind::Sequential)),
            ("Con-C", Contender::Cpu(Kind::Concurrent(threads))),
            ("Con-C half", Contender::Cpu(Kind::Concurrent(half))),
            ("incremental", Contender::Cpu(Kind::Incremental)),
        ]
    }

    /// GAIN with a thread for each copy, its variants, and warps that share a quantifier.
    fn gpu(&self) -> Vec<Named<'a>> {
        let Some(kernels) = self.kernels else { return Vec::new() };
        let one_by_one = Settings { batches: false, ..Settings::default() };
        let gain = Settings { warps: false, ..one_by_one };
        [
            ("GAIN", gain),
            ("GAIN node", Settings { granularity: Granularity::Node, ..gain }),
            ("GAIN synchronous", Settings { transmission: Transmission::Synchronous, ..gain }),
            ("GAIN unbuffered", Settings { buffering: false, ..gain }),
            ("gpu", one_by_one),
        ]
        .map(|(name, settings)| (name, Contender::Gpu(kernels, settings)))
        .to_vec()
    }

    fn all_of_them(&self) -> Vec<Named<'a>> {
        [self.cpu(), self.gpu()].concat()
    }

    /// Lets engines take turns over checks.
    fn turns(
        &mut self,
        section: &'static str,
        case: &str,
        workload: &str,
        checks: &[Arc<Check>],
        arrivals: &[Arrival],
        engines: &[Named<'_>],
    ) {
        for round in 0..self.scale.rounds[0].max(self.scale.rounds[1]) {
            for (name, contender) in engines {
                let rounds = self.scale.rounds[usize::from(!contender.is_cpu())];
                if round >= rounds {
                    continue;
                }
                let new =
                    |check: &Arc<Check>| Checker::<()>::with_engine(check.clone(), contender.engine(check));
                let mut checkers: Vec<_> = checks.iter().map(new).collect();
                if section == "batches" && !contender.is_cpu() {
                    warm_up(&mut checkers, arrivals, contender.at_once());
                }
                let (mut told, mut contexts) = (0, 0);
                let began = Instant::now();
                let mut rest = arrivals;
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(contender.at_once().min(rest.len()));
                    rest = later;
                    told += checkers.iter_mut().map(|checker| take(checker, now)).sum::<usize>();
                    let before = contexts;
                    contexts += now.len();
                    if contexts / 100 > before / 100 && began.elapsed() > PATIENCE {
                        break;
                    }
                }
                let seconds = began.elapsed().as_secs_f64();
                let key = (format!("{section} {case}"), workload.to_owned(), contexts);
                let expected = *self.expected.entry(key).or_insert(told);
                assert_eq!(told, expected, "{section}, {case}, {workload}: {name} against the one before");
                let (case, workload, engine) = (case.to_owned(), workload.to_owned(), (*name).to_owned());
                self.rows.push(Row {
                    section: section.to_owned(),
                    case,
                    workload,
                    engine,
                    round,
                    contexts,
                    seconds,
                    told,
                });
            }
        }
    }

    fn rules() -> Vec<Arc<Check>> {
        documents::read(World::Geodetic, RULES).into_iter().map(|(_, check)| check).collect()
    }

    fn shapes() -> Vec<(String, Arc<Check>)> {
        documents::read(World::Geodetic, SHAPES)
    }

    /// Fig. 7: granularity, transmission, buffering.
    fn factors(&mut self) {
        let rules = Self::rules();
        for (workload, share) in &WORKLOADS[..3] {
            let arrivals = self.arrivals(*share, self.scale.contexts);
            let engines = self.all_of_them();
            self.turns("fig7", "12 rules", workload, &rules, &arrivals, &engines);
        }
    }

    /// Fig. 8 to 10: the structure of constraints.
    fn structure(&mut self) {
        for (case, check) in Self::shapes().iter().filter(|(name, _)| !name.ends_with('*')) {
            let arrivals = self.arrivals(WORKLOADS[1].1, self.scale.contexts);
            let engines = self.all_of_them();
            let engines: Vec<_> = engines
                .into_iter()
                .filter(|(name, _)| ["Seq-C", "Con-C", "incremental", "GAIN", "gpu"].contains(name))
                .collect();
            self.turns("fig8-10", case, WORKLOADS[1].0, std::slice::from_ref(check), &arrivals, &engines);
        }
    }

    /// Fig. 11: three constraints under each workload.
    fn workload(&mut self) {
        for (case, check) in Self::shapes().iter().filter(|(name, _)| name.ends_with('*')) {
            for (workload, share) in WORKLOADS {
                let arrivals = self.arrivals(share, self.scale.contexts);
                let engines = self.all_of_them();
                self.turns("fig11", case, workload, std::slice::from_ref(check), &arrivals, &engines);
            }
        }
    }

    /// Past the paper: contexts that are evaluated several at once, each with its own answer.
    fn batches(&mut self) {
        let Some(kernels) = self.kernels else { return };
        let at_once = [("gpu 63 at once", 63), ("gpu 1008 at once", 1_008)];
        let at_once = at_once.map(|(name, count)| (name, Contender::Batches(kernels, count)));
        let names = ["Con-C", "incremental", "GAIN", "gpu"];
        let one_by_one = self.all_of_them().into_iter().filter(|(name, _)| names.contains(name));
        let engines: Vec<_> = one_by_one.chain(at_once).collect();
        let shapes = Self::shapes().into_iter().filter(|(name, _)| name.ends_with('*'));
        let cases: Vec<_> = std::iter::once(("12 rules".to_owned(), Self::rules()))
            .chain(shapes.map(|(name, check)| (name, vec![check])))
            .collect();
        for (case, checks) in cases {
            for (workload, share) in WORKLOADS {
                let arrivals = self.arrivals(share, self.scale.contexts);
                self.turns("batches", &case, workload, &checks, &arrivals, &engines);
            }
        }
    }

    /// Past the paper: a thousand changes of sets with this number of events.
    fn dense(&mut self) {
        let Some(kernels) = self.kernels else { return };
        let engines: [Named<'_>; 2] = [
            ("incremental", Contender::Cpu(Kind::Incremental)),
            ("gpu 1008 at once", Contender::Batches(kernels, 1_008)),
        ];
        for (case, check) in Self::shapes().iter().filter(|(name, _)| ["D*", "H*"].contains(&&**name)) {
            let for_ms = if case == "D*" { 48_000 } else { 20_000 };
            for held in [1_000_usize, 3_000, 10_000, 30_000] {
                let mut arrivals = self.arrivals(1_000, held + 1_008);
                for (at, arrival) in arrivals.iter_mut().enumerate() {
                    // As many as are to be held come while the set holds one.
                    let time_ms = i64::try_from(at * for_ms / held).expect("a moment");
                    arrival.time_ms = Some(time_ms);
                    arrival.arrival_ms = time_ms;
                }
                let (before, timed) = arrivals.split_at(held);
                for round in 0..self.scale.rounds[1] {
                    for (name, contender) in engines {
                        let engine = contender.engine(check);
                        let mut checker = Checker::<()>::with_engine(check.clone(), engine);
                        take(&mut checker, before);
                        let began = Instant::now();
                        let told = take(&mut checker, timed);
                        let seconds = began.elapsed().as_secs_f64();
                        let key = (format!("dense {case}"), held.to_string(), timed.len());
                        let expected = *self.expected.entry(key).or_insert(told);
                        assert_eq!(told, expected, "dense, {case}, {held}: {name}");
                        self.rows.push(Row {
                            section: "dense".to_owned(),
                            case: case.clone(),
                            workload: held.to_string(),
                            engine: name.to_owned(),
                            round,
                            contexts: timed.len(),
                            seconds,
                            told,
                        });
                    }
                }
            }
        }
    }

    /// Fig. 12: hours of a day. Shares of taxis in service lie on straight lines between the three that the paper tells.
    fn day(&mut self) {
        let rounds = std::mem::replace(&mut self.scale.rounds, [1, 3]);
        let rules = Self::rules();
        let known = [(5, 56), (11, 248), (18, 374), (29, 56)];
        for hour in 0..24_u32 {
            let at = if hour < 5 { hour + 24 } else { hour };
            let after = known.iter().position(|(known, _)| *known > at).unwrap_or(3).max(1);
            let ((from, low), (to, high)) = (known[after - 1], known[after]);
            let share = (low * (to - at) + high * (at - from)) / (to - from);
            let arrivals = self.arrivals(share, self.scale.contexts.min(1_000));
            let engines = self.all_of_them();
            self.turns("fig12", "12 rules", &hour.to_string(), &rules, &arrivals, &engines);
        }
        self.scale.rounds = rounds;
    }

    /// Past the paper: a single evaluation over sets of thousands, where the device is at its best.
    fn large(&mut self) {
        let shapes = Self::shapes();
        let (_, check) = shapes.iter().find(|(name, _)| name == "H*").expect("it is there");
        for count in [300, 1_000, 3_000, 6_000] {
            if self.kernels.is_none() && count > 1_000 {
                continue;
            }
            let mut arrivals = self.arrivals(1_000, count);
            for arrival in &mut arrivals {
                // All within the set's time.
                arrival.time_ms = Some(1_000);
                arrival.arrival_ms = 1_000;
            }
            let engines = self.all_of_them();
            for (name, contender) in engines.into_iter().filter(|(name, _)| *name != "incremental") {
                let mut sets = Sets::new(check);
                for arrival in &arrivals {
                    sets.settle();
                    sets.admit(check, arrival);
                }
                let mut engine = contender.engine(check);
                // The first one sends everything.
                let first = engine.evaluate(&sets).expect("few links");
                sets.settle();
                let told = first.told.len();
                let key = ("large".to_owned(), count.to_string(), count);
                assert_eq!(told, *self.expected.entry(key).or_insert(told), "large, {count}: {name}");
                for round in 0..self.scale.rounds[usize::from(!contender.is_cpu())] {
                    let began = Instant::now();
                    let again = engine.evaluate(&sets).expect("few links");
                    let seconds = began.elapsed().as_secs_f64();
                    assert!(again.told.is_empty(), "nothing came");
                    let (case, workload, engine) = ("H*".to_owned(), count.to_string(), name.to_owned());
                    self.rows.push(Row {
                        section: "large".to_owned(),
                        case,
                        workload,
                        engine,
                        round,
                        contexts: 1,
                        seconds,
                        told,
                    });
                }
            }
        }
    }

    /// Table 3: contexts that are missed where they come at their own speed and faster, with all processors and with half of them. A context is
    /// missed when as many as the buffer holds wait before it; how long each takes is measured, when it comes is in its report.
    fn budget(&mut self) {
        let rules = Self::rules();
        for (workload, share) in WORKLOADS {
            let arrivals = self.arrivals(share, self.scale.contexts);
            for (name, contender) in self.all_of_them() {
                if !["Seq-C", "Con-C", "Con-C half", "incremental", "gpu"].contains(&name) {
                    continue;
                }
                let mut checkers: Vec<_> = rules
                    .iter()
                    .map(|check| Checker::<()>::with_engine(check.clone(), contender.engine(check)))
                    .collect();
                let took: Vec<f64> = arrivals
                    .iter()
                    .map(|arrival| {
                        let began = Instant::now();
                        for checker in &mut checkers {
                            checker.take((), arrival).expect("few links");
                        }
                        began.elapsed().as_secs_f64()
                    })
                    .collect();
                for speed in [1_u32, 10, 100, 1_000] {
                    let missed = missed(&arrivals, &took, speed);
                    let (case, workload) = (format!("{speed} times as fast"), workload.to_owned());
                    let (engine, contexts) = (name.to_owned(), arrivals.len() - missed);
                    let seconds = took.iter().sum();
                    self.rows.push(Row {
                        section: "table3".to_owned(),
                        case,
                        workload,
                        engine,
                        round: 0,
                        contexts,
                        seconds,
                        told: 0,
                    });
                }
            }
        }
    }
}

/// Lets engines take most of their memory, and empties them.
fn warm_up(checkers: &mut [Checker<()>], arrivals: &[Arrival], at_once: usize) {
    for batch in arrivals[..arrivals.len().min(at_once.max(WARM_UP))].chunks(at_once) {
        checkers.iter_mut().for_each(|checker| {
            take(checker, batch);
        });
    }
    checkers.iter_mut().for_each(Checker::clear);
}

/// Contexts that find the buffer full.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of an hour")]
fn missed(arrivals: &[Arrival], took: &[f64], speed: u32) -> usize {
    let start = arrivals.first().map_or(0, |arrival| arrival.arrival_ms);
    // When those that were taken are done.
    let mut done: std::collections::VecDeque<f64> = std::collections::VecDeque::new();
    let mut missed = 0;
    for (arrival, took) in arrivals.iter().zip(took) {
        let now = (arrival.arrival_ms - start) as f64 / 1_000.0 / f64::from(speed);
        while done.front().is_some_and(|done| *done <= now) {
            done.pop_front();
        }
        if done.len() > BUFFER {
            missed += 1;
            continue;
        }
        done.push_back(done.back().copied().unwrap_or(now).max(now) + took);
    }
    missed
}

/// All figures as CSV.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let mut text = "section,case,workload,engine,round,contexts,seconds,told\n".to_owned();
    for Row { section, case, workload, engine, round, contexts, seconds, told } in rows {
        text.push_str(&format!(
            "{section},{case},{workload},{engine},{round},{contexts},{seconds:.6},{told}\n"
        ));
    }
    text
}
