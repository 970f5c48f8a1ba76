//! Which level each of many routes is found at, so that all come by a moment and are worth as much as can be: a *contract*.
//!
//! How long routes of each level take is known from a [`Profile`]. Two bounds, on time and on the number of routes, leave two levels at most
//! in the best plan, so that all pairs of levels are weighed.
//!
//! `online` looks into a batch that takes longer than planned, and ends it or stops it, whichever is worth more. When all routes have been found and time is
//! left, those of coarser levels are looked for again at finer ones.
//!
//! Source: Mangharam and Saba, "Anytime algorithms for GPU architectures", RTSS 2011, sections V and VI (`offline`, `online`).

use crate::levels::{LEVELS, SCORES};
use crate::profile::{Profile, bounded};

/// Routes that a processor has found before levels are chosen anew.
pub const BATCH: usize = 64;

/// How much longer than planned `online` lets a batch take, in percent, before it plans anew.
const MARGIN_PERCENT: u64 = 10;

/// How much longer than planned the last batch may take, in percent, so that it still comes in time.
const RESERVE_PERCENT: u64 = 10;

/// How a batch is to be found.
pub struct Batch<'a> {
    /// The level of its routes.
    pub level: usize,
    /// Blocks of nodes that each search works on at once; as many as it can where nothing is known of that.
    pub blocks: u32,
    /// Rounds that it takes by the profile; 0 where they are not counted.
    pub rounds: u32,
    /// The end of the contract, for an engine that can stop before it.
    pub until_ns: Option<u64>,
    /// `None` for one that goes on to its end.
    probe: Option<&'a mut dyn FnMut(f64, usize) -> bool>,
}

impl Batch<'_> {
    /// A batch of no contract, which takes as long as one that can be stopped: to measure that.
    #[must_use]
    pub fn whole(level: usize, blocks: u32, rounds: u32) -> Self {
        Self { level, blocks, rounds, until_ns: Some(u64::MAX), probe: None }
    }

    /// Whether to go on, by the part of the work that is done (0 to 1) and the number of routes that have been found.
    pub fn goes_on(&mut self, part: f64, found: usize) -> bool {
        self.probe.as_mut().is_none_or(|probe| probe(part, found))
    }
}

/// How levels are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Always the same one, until the time is over.
    Static(usize),
    /// Batches, planned anew after each.
    Offline,
    /// Batches, planned anew after each and as soon as one takes longer than planned.
    Online,
}

/// How many routes of each level; the rest is not looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Plan([usize; LEVELS]);

impl Plan {
    fn worth(&self) -> u64 {
        self.0.iter().zip(SCORES).map(|(count, score)| *count as u64 * u64::from(score)).sum()
    }
}

/// What plans are made by.
#[derive(Clone, Copy, Debug)]
struct Planner<'a> {
    profile: &'a Profile,
    /// Routes of a batch of each level, at most.
    sizes: [usize; LEVELS],
    /// How long batches take by now, as a percentage of what is in the profile.
    percent: u64,
}

impl<'a> Planner<'a> {
    /// Of batches as long as the profile says.
    fn new(profile: &'a Profile, batch: usize) -> Self {
        Self { profile, sizes: std::array::from_fn(|level| profile.size(level, batch.max(1))), percent: 100 }
    }

    /// A planner of batches that take this percentage of what is in the profile, or what they took before if that is more.
    fn slower(self, percent: u64) -> Self {
        Self { percent: percent.max(self.percent), ..self }
    }

    fn by_now(&self, ns: u64) -> u64 {
        bounded(u128::from(ns) * u128::from(self.percent) / 100)
    }

    /// What some routes of a level take in batches.
    fn takes_ns(&self, level: usize, count: usize) -> u64 {
        let size = self.sizes[level];
        let whole = u128::from(self.profile.batch_ns(level, size)) * (count / size) as u128;
        self.by_now(bounded(whole).saturating_add(self.profile.batch_ns(level, count % size)))
    }

    /// The most routes of a level, `count` at most, that fit beside `rest_ns(count)`, which is less the more they are.
    fn most(&self, level: usize, count: usize, left_ns: u64, rest_ns: impl Fn(usize) -> u64) -> usize {
        let (mut fits, mut more) = (0, count + 1);
        while more - fits > 1 {
            let tried = fits.midpoint(more);
            // The last batch may take longer than in the mean, and what comes late is worth nothing.
            let reserve_ns = self.takes_ns(level, tried.min(self.sizes[level])) * RESERVE_PERCENT / 100;
            let takes_ns = self.takes_ns(level, tried) + reserve_ns;
            let takes_ns = takes_ns.saturating_add(rest_ns(tried));
            if takes_ns <= left_ns { fits = tried } else { more = tried }
        }
        fits
    }

    /// The plan that is worth most for `count` routes in the time that is left, of levels from `finest` on.
    fn plan(&self, finest: usize, count: usize, left_ns: u64) -> Plan {
        let mut best = (0, Plan::default());
        for level in finest..LEVELS {
            let plan = self.at(level, count, left_ns);
            best = best.max((plan.worth(), plan));
            for coarser in level + 1..LEVELS {
                let rest = |finer: usize| self.takes_ns(coarser, count - finer);
                let mut plan = Plan::default();
                plan.0[level] = self.most(level, count, left_ns, rest);
                if plan.0[level] > 0 {
                    plan.0[coarser] = count - plan.0[level];
                    best = best.max((plan.worth(), plan));
                }
            }
        }
        best.1
    }

    /// As many routes of a level as fit.
    fn at(&self, level: usize, count: usize, left_ns: u64) -> Plan {
        let mut plan = Plan::default();
        plan.0[level] = self.most(level, count, left_ns, |_| 0);
        plan
    }

    /// Learns how long a batch takes. More is believed at once. That it lasts is believed half as much after each batch: what slows an engine down comes
    /// and goes.
    fn learn(&mut self, percent: u64) {
        self.percent = if percent > self.percent { percent } else { self.percent.midpoint(percent) };
    }

    /// A level at which routes that have been found at a coarser one would be worth most more in the time that is left, that coarser one, and how many.
    fn better(
        &self,
        finest: usize,
        found: &[Vec<usize>; LEVELS],
        left_ns: u64,
    ) -> Option<(usize, usize, usize)> {
        let pairs =
            (finest..LEVELS).flat_map(|level| (level + 1..LEVELS).map(move |coarser| (level, coarser)));
        let choices = pairs.filter_map(|(level, coarser)| {
            let count = self.at(level, found[coarser].len(), left_ns).0[level].min(self.sizes[level]);
            let more = u64::from(SCORES[level] - SCORES[coarser]) * count as u64;
            (count > 0).then_some((more, (level, coarser, count)))
        });
        choices.max().map(|(_, choice)| choice)
    }

    /// Whether a batch is worth ending: if it is, the time that is then left is for the routes that wait; if it is not, also for those of the batch that have
    /// not been found.
    fn is_worth_ending(&self, batch: &Underway, waiting: usize) -> bool {
        let worth = |count, left_ns| self.plan(batch.finest, count, left_ns).worth();
        let missing = batch.missing;
        let ended = batch
            .left_ns
            .checked_sub(batch.whole_ns)
            .map(|left_ns| missing as u64 * u64::from(SCORES[batch.level]) + worth(waiting, left_ns));
        let stopped = worth(waiting + missing, batch.left_ns.saturating_sub(batch.took_ns));
        ended.is_some_and(|ended| ended >= stopped)
    }
}

/// A batch that is being found.
struct Underway {
    level: usize,
    finest: usize,
    /// Routes that it has not found, of those that nobody knows at another level.
    missing: usize,
    /// How long it took so far, how long it takes in all, and what was left of the time when it began.
    took_ns: u64,
    whole_ns: u64,
    left_ns: u64,
}

/// How long a batch takes in all, by how long a part of it took.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
fn whole(took_ns: u64, part: f64) -> u64 {
    (took_ns as f64 / part.clamp(1e-3, 1.0)) as u64
}

impl Scheduler {
    /// Has `count` routes found within a contract, some at once. Returns the level that each was found at; `None` for those that there was no time
    /// for.
    ///
    /// Shape: `batch` is how many are found at once, at most; `finest` is the best level that may be chosen; `now_ns` is a clock that begins at 0.
    /// `find` has the routes of some numbers found as a batch says, and says of which it has found out. It may ask [`Batch::goes_on`] on its way, and
    /// stop when that says so.
    /// Without a contract all routes are of the level of [`Static`](Self::Static), or of the finest.
    pub fn run(
        self,
        profile: &Profile,
        (batch, finest, count): (usize, usize, usize),
        contract_ns: Option<u64>,
        now_ns: impl Fn() -> u64,
        mut find: impl FnMut(&[usize], &mut Batch<'_>) -> Vec<bool>,
    ) -> Vec<Option<usize>> {
        let mut planner = Planner::new(profile, batch);
        // The next ones are the last.
        let mut waiting: Vec<_> = (0..count).rev().collect();
        let mut found: [Vec<usize>; LEVELS] = Default::default();
        loop {
            let left_ns = contract_ns.map(|contract_ns| contract_ns.saturating_sub(now_ns()));
            let is_first = !waiting.is_empty();
            let next = if is_first {
                self.next(&planner, finest, waiting.len(), left_ns)
                    .map(|(level, planned)| (level, None, planned))
            } else {
                let left_ns = left_ns.filter(|_| self == Self::Online);
                let better = left_ns.and_then(|left_ns| planner.better(finest, &found, left_ns));
                better.map(|(level, coarser, count)| (level, Some(coarser), count))
            };
            let Some((level, coarser, planned)) = next else { break };
            let from = coarser.map_or(&mut waiting, |coarser| &mut found[coarser]);
            let mut numbers = from.split_off(from.len() - planned.min(planner.sizes[level]));
            numbers.reverse();
            let size = numbers.len();
            let (profile_ns, planned_ns) =
                (profile.batch_ns(level, size).max(1), planner.takes_ns(level, size));
            let worst_ns = planner.by_now(profile.worst_ns(level, size));
            // How long it may take until that is looked into.
            let mut longest_ns = worst_ns.max(planned_ns * (100 + MARGIN_PERCENT) / 100);
            let mut percent = None;
            // Planning takes a part of a short contract.
            let began_ns = now_ns();
            let left_ns = contract_ns.map(|contract_ns| contract_ns.saturating_sub(began_ns));
            let until_ns = contract_ns.filter(|_| self == Self::Online);
            let mut probe = |part: f64, found_count: usize| {
                let (Some(until_ns), Some(left_ns)) = (until_ns, left_ns) else { return true };
                let now_ns = now_ns();
                let took_ns = now_ns - began_ns;
                let whole_ns = whole(took_ns, part);
                percent = Some(bounded(u128::from(whole_ns) * 100 / u128::from(profile_ns)));
                if now_ns >= until_ns || whole_ns <= longest_ns {
                    return now_ns < until_ns;
                }
                longest_ns = whole_ns.saturating_add(whole_ns / 4);
                // As with those that follow, it is half believed of the rest that it takes as long.
                let whole_ns = took_ns.saturating_add(
                    whole_ns.saturating_sub(took_ns).midpoint(planned_ns.saturating_sub(took_ns)),
                );
                let planner = planner.slower(percent.unwrap_or(100));
                let missing = if is_first { size - found_count } else { 0 };
                let underway = Underway { level, finest, missing, took_ns, whole_ns, left_ns };
                planner.is_worth_ending(&underway, waiting.len())
            };
            let sample = profile.near(level, size);
            let (blocks, rounds) = sample.map_or((u32::MAX, 0), |sample| (sample.blocks, sample.rounds));
            let are_found =
                find(&numbers, &mut Batch { level, blocks, rounds, until_ns, probe: Some(&mut probe) });
            let is_stopped = are_found.contains(&false);
            let is_better = coarser.is_none() || are_found.contains(&true);
            for (number, is_found) in numbers.into_iter().zip(are_found).rev() {
                match coarser {
                    _ if is_found => found[level].push(number),
                    Some(coarser) => found[coarser].push(number),
                    None => waiting.push(number),
                }
            }
            if !is_better {
                break;
            }
            if self == Self::Online {
                let took = bounded(u128::from(now_ns() - began_ns) * 100 / u128::from(profile_ns));
                planner.learn(percent.filter(|_| is_stopped).unwrap_or(took).max(1));
            }
        }
        let mut levels = vec![None; count];
        for (level, numbers) in found.iter().enumerate() {
            numbers.iter().for_each(|number| levels[*number] = Some(level));
        }
        levels
    }

    /// The level of the next routes, and how many there may be of it.
    fn next(
        self,
        planner: &Planner<'_>,
        finest: usize,
        count: usize,
        left_ns: Option<u64>,
    ) -> Option<(usize, usize)> {
        let Some(left_ns) = left_ns else {
            return Some((if let Self::Static(level) = self { level } else { finest }, count));
        };
        let plan = match self {
            Self::Static(level) => planner.at(level, count, left_ns),
            Self::Offline | Self::Online => planner.plan(finest, count, left_ns),
        };
        let of_level = plan.0.into_iter().enumerate().filter(|(_, planned)| *planned > 0);
        // Those first that are worth most for their time: what is lost should time become short is worth least.
        of_level.min_by_key(|(level, planned)| {
            planner.takes_ns(*level, *planned) * 1_000 / (*planned as u64 * u64::from(SCORES[*level]))
        })
    }
}

/// What has routes found for [`Scheduler::run`] by an engine that finds one after another: it is given the number of each and its level.
pub fn one_by_one(mut find: impl FnMut(usize, usize)) -> impl FnMut(&[usize], &mut Batch<'_>) -> Vec<bool> {
    move |numbers, batch| {
        let mut found = vec![false; numbers.len()];
        for (count, number) in numbers.iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "batches are small")]
            let part = count as f64 / numbers.len() as f64;
            if count > 0 && !batch.goes_on(part, count) {
                break;
            }
            find(*number, batch.level);
            found[count] = true;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::profile::Sample;

    /// What the levels are worth, and when the last route was found; each takes `slow` times as long as in the profile.
    fn run(scheduler: Scheduler, count: usize, contract_ns: u64, slow: impl Fn(usize) -> u64) -> (u32, u64) {
        let clock = Cell::new(0);
        let find = |number, level: usize| clock.set(clock.get() + EACH_NS[level] * slow(number));
        let find = one_by_one(find);
        let levels =
            scheduler.run(&each(EACH_NS), (BATCH, 0, count), Some(contract_ns), || clock.get(), find);
        (levels.iter().flatten().map(|level| SCORES[*level]).sum(), clock.get())
    }

    const EACH_NS: [u64; LEVELS] = [4_000, 1_000, 300, 100];

    fn sample(count: usize, ns: u64) -> Sample {
        Sample { count, blocks: 1, ns, most_ns: ns, rounds: 0 }
    }

    /// The profile of an engine that finds one route after another.
    fn each(each_ns: [u64; LEVELS]) -> Profile {
        let mut profile = Profile::default();
        (0..LEVELS).for_each(|level| profile.note(level, sample(1, each_ns[level])));
        profile
    }

    /// The plan that is worth most, by trying all.
    fn best(planner: &Planner<'_>, count: usize, left_ns: u64) -> u64 {
        let mut best = 0;
        for a in 0..=count {
            for b in 0..=count - a {
                for c in 0..=count - a - b {
                    for d in 0..=count - a - b - c {
                        let plan = Plan([a, b, c, d]);
                        if takes_ns(planner, &plan) <= left_ns {
                            best = best.max(plan.worth());
                        }
                    }
                }
            }
        }
        best
    }

    fn takes_ns(planner: &Planner<'_>, plan: &Plan) -> u64 {
        plan.0.iter().enumerate().map(|(level, count)| planner.takes_ns(level, *count)).sum()
    }

    #[test]
    fn a_plan_is_worth_most() {
        let mut batches = Profile::default();
        for (level, (each_ns, batch_ns)) in
            [(900, 500), (100, 500), (30, 200), (10, 150)].into_iter().enumerate()
        {
            for count in [1, 3, 8] {
                batches.note(level, sample(count, batch_ns + count as u64 * each_ns));
            }
        }
        let profiles = [
            each(EACH_NS),
            // Level 1 is nearly as slow as level 0, and level 3 slower than level 2.
            each([1_000, 900, 100, 200]),
            // An exact engine that is quicker than all coarser ones.
            each([10, 800, 300, 100]),
            // Batches cost most.
            batches,
        ];
        for (profile, batch) in profiles.iter().flat_map(|profile| [(profile, 3), (profile, 64)]) {
            let planner = Planner::new(profile, batch);
            for left_ns in [0, 99, 100, 1_000, 2_500, 3_000, 9_999, 10_000, 25_000, 40_000, 99_000] {
                let plan = planner.plan(0, 10, left_ns);
                assert!(takes_ns(&planner, &plan) <= left_ns && plan.0.iter().sum::<usize>() <= 10);
                let best = best(&planner, 10, left_ns * 100 / (100 + RESERVE_PERCENT));
                // A third level may fill what whole numbers of routes leave of the time.
                assert!(plan.worth() + 4 >= best, "{profile:?}, {left_ns}: {plan:?}, and {best} is possible");
            }
        }
        let profile = &each(EACH_NS);
        let planner = Planner::new(profile, 64);
        assert!(planner.plan(2, 10, 1_000_000).0[..2] == [0, 0], "the finest is level 2");
    }

    #[test]
    fn a_profile_without_times_ends_with_the_contract() {
        let clock = Cell::new(0);
        let find = one_by_one(|_, _| clock.set(clock.get() + 1_000));
        let sizes = (BATCH, 0, 6_144);
        let levels = Scheduler::Online.run(&Profile::default(), sizes, Some(100_000), || clock.get(), find);
        assert!(levels.iter().flatten().count() > 0 && clock.get() <= 110_000, "{}", clock.get());
    }

    #[test]
    fn answers_come_in_time_and_are_worth_more_than_of_one_level() {
        for contract_ns in [10_000, 100_000, 614_400, 2_000_000, 9_000_000, 30_000_000] {
            let (online, ended) = run(Scheduler::Online, 6_144, contract_ns, |_| 1);
            assert!(ended <= contract_ns);
            let (offline, ended) = run(Scheduler::Offline, 6_144, contract_ns, |_| 1);
            assert!(ended <= contract_ns + 4_000);
            for level in 0..LEVELS {
                let (fixed, ended) = run(Scheduler::Static(level), 6_144, contract_ns, |_| 1);
                assert!(ended <= contract_ns);
                assert!(
                    fixed <= online + 64 && fixed <= offline + 64,
                    "level {level} in {contract_ns}: {fixed}, {online}, {offline}"
                );
            }
        }
    }

    #[test]
    fn online_makes_up_for_routes_that_take_longer() {
        // The first thousand take ten times as long.
        let slow = |number| if number < 1_000 { 10 } else { 1 };
        for contract_ns in [2_000_000, 9_000_000] {
            let (online, ended) = run(Scheduler::Online, 6_144, contract_ns, slow);
            assert!(ended <= contract_ns + contract_ns / 10, "{ended} of {contract_ns}");
            let (fixed, _) = run(Scheduler::Static(1), 6_144, contract_ns, slow);
            assert!(online >= fixed, "{online} and {fixed}");
        }
    }

    /// What batches of the paper's meshes took on a device: 1, 32, 1,024 and 6,144 searches at once (`docs/results/routes/contracts-h100.csv`), in ns.
    const DEVICE_NS: [[u64; 4]; LEVELS] = [
        [454_800, 927_700, 1_186_300, 6_734_100],
        [282_300, 542_000, 595_700, 1_158_500],
        [122_100, 180_300, 241_700, 413_900],
        [79_100, 96_100, 139_400, 282_600],
    ];

    fn of_device() -> Profile {
        let mut profile = Profile::default();
        for (level, took) in DEVICE_NS.iter().enumerate() {
            for (count, ns) in [1, 32, 1_024, 6_144].into_iter().zip(took) {
                profile.note(level, sample(count, *ns));
            }
        }
        profile
    }

    /// How much longer what a device does takes, in percent, by the routes that it looks for, the time and the contract.
    type Slow<'a> = &'a dyn Fn(&[usize], u64, u64) -> u64;

    /// What is found in time is worth on a device, and when it has ended. A batch that can be stopped is cut into four.
    fn on_device(scheduler: Scheduler, contract_ns: u64, slow: Slow<'_>) -> (u32, u64) {
        let (profile, clock) = (of_device(), Cell::new(0));
        let mut in_time = vec![0; 6_144];
        let find = |numbers: &[usize], batch: &mut Batch<'_>| {
            let whole_ns = profile.batch_ns(batch.level, numbers.len());
            // In thousandths of the work. Searches end one after another, the first when a third has been done.
            let ends = |number: usize| 333 + number as u64 * 7_919 % 667;
            let (mut part, mut slice) = (0, if batch.until_ns.is_some() { 250 } else { 1_000 });
            loop {
                let took_ns =
                    slice * whole_ns / 1_000 * (100 + slow(numbers, clock.get(), contract_ns)) / 100;
                clock.set(clock.get() + took_ns);
                part += slice;
                let found: Vec<_> = numbers.iter().map(|number| ends(*number) <= part).collect();
                let found_count = found.iter().filter(|is_found| **is_found).count();
                let left_ns =
                    batch.until_ns.map_or(u64::MAX, |until_ns| until_ns.saturating_sub(clock.get()));
                slice = (left_ns.saturating_mul(slice) / took_ns).min(250).min(1_000 - part);
                if slice > 0 && batch.goes_on(part as f64 / 1_000.0, found_count) {
                    continue;
                }
                if clock.get() <= contract_ns {
                    let found = numbers.iter().zip(&found).filter(|(_, is_found)| **is_found);
                    found.for_each(|(number, _)| in_time[*number] = SCORES[batch.level]);
                }
                return found;
            }
        };
        scheduler.run(&profile, (6_144, 0, 6_144), Some(contract_ns), || clock.get(), find);
        (in_time.into_iter().sum(), clock.get())
    }

    #[test]
    fn a_device_that_is_slowed_is_in_time_and_worth_more_than_one_level_that_knew_it() {
        const CONTRACTS_US: [u64; 10] = [362, 724, 1_086, 1_448, 2_172, 2_896, 4_343, 5_791, 7_239, 9_049];
        let worth = |scheduler, slow: Slow<'_>| -> Vec<u32> {
            let run = |contract_us: u64| {
                let contract_ns = contract_us * 1_000;
                let (worth, ended_ns) = on_device(scheduler, contract_ns, slow);
                let late = scheduler == Scheduler::Online && ended_ns > contract_ns + contract_ns / 50;
                assert!(!late, "{ended_ns} of {contract_ns} ns");
                worth
            };
            CONTRACTS_US.into_iter().map(run).collect()
        };
        let of_first = |numbers: &[usize]| numbers.iter().filter(|number| **number < 2_048).count();
        // As planned; the first third of the routes takes twice as long, the first third of the time, and all.
        let cases: [Slow<'_>; 4] = [
            &|_, _, _| 0,
            &|numbers, _, _| (100 * of_first(numbers) / numbers.len()) as u64,
            &|_, now_ns, contract_ns| if now_ns < contract_ns / 3 { 100 } else { 0 },
            &|_, _, _| 100,
        ];
        for (case, slow) in cases.into_iter().enumerate() {
            let levels: Vec<_> = (0..LEVELS).map(|level| worth(Scheduler::Static(level), slow)).collect();
            let best = |contract: usize| levels.iter().map(|worth| worth[contract]).max().unwrap();
            let online = worth(Scheduler::Online, slow);
            let fixed: u32 = (0..CONTRACTS_US.len()).map(best).sum();
            assert!(online.iter().sum::<u32>() > fixed, "case {case}: {online:?}, and {fixed} in all");
            let is_less = |contract: usize| online[contract] < best(contract);
            assert!(case > 0 || !(0..CONTRACTS_US.len()).any(is_less), "{online:?}");
        }
    }

    #[test]
    fn slowness_that_has_ended_is_forgotten() {
        // Nothing is found of the first batch but at three times its time; after that all is as planned, and so is the rest.
        let slow = |number| if number < BATCH { 3 } else { 1 };
        let (online, _) = run(Scheduler::Online, 6_144, 9_000_000, slow);
        let (as_planned, _) = run(Scheduler::Online, 6_144, 9_000_000, |_| 1);
        assert!(online * 100 >= as_planned * 97, "{online} and {as_planned}");
    }
}
