//! Which level each of many routes is found at, so that all come by a moment and are worth as much as can be: a *contract*.
//!
//! How long routes of each level take is known from a [`Profile`]. Two bounds, on time and on the number of routes, leave two levels at most
//! in the best plan, so that all pairs of levels are weighed.
//!
//! Source: Mangharam and Saba, "Anytime algorithms for GPU architectures", RTSS 2011, sections V and VI (`offline`, `online`).

use crate::levels::{LEVELS, SCORES};

/// Routes that a processor has found before levels are chosen anew.
pub const BATCH: usize = 64;

/// How much longer than planned `online` lets a batch take, in percent, before it plans anew.
const MARGIN_PERCENT: u64 = 10;

/// How much longer than planned the last batch may take, in percent, so that it still comes in time.
const RESERVE_PERCENT: u64 = 4;

/// How long routes of each level take, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Each route.
    pub each_ns: [u64; LEVELS],
    /// A batch besides, however many routes it has.
    pub batch_ns: [u64; LEVELS],
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

impl Profile {
    /// Notes how many routes of a level two batches had, the first fewer, and how long these took.
    pub fn note(&mut self, level: usize, [few, many]: [(usize, u64); 2]) {
        let more = many.0.saturating_sub(few.0).max(1) as u64;
        self.each_ns[level] = many.1.saturating_sub(few.1) / more;
        self.batch_ns[level] = few.1.saturating_sub(few.0 as u64 * self.each_ns[level]);
    }

    /// What some routes of a level take in batches.
    fn takes_ns(&self, level: usize, count: usize, batch: usize) -> u64 {
        count as u64 * self.each_ns[level] + count.div_ceil(batch) as u64 * self.batch_ns[level]
    }

    /// The most routes of a level, `count` at most, that fit beside `rest_ns(count)`, which is less the more they are.
    fn most(
        &self,
        level: usize,
        (count, batch): (usize, usize),
        left_ns: u64,
        rest_ns: impl Fn(usize) -> u64,
    ) -> usize {
        let (mut fits, mut more) = (0, count + 1);
        while more - fits > 1 {
            let tried = fits.midpoint(more);
            // The last batch may take longer than in the mean, and what comes late is worth nothing.
            let reserve_ns = self.takes_ns(level, tried.min(batch), batch) * RESERVE_PERCENT / 100;
            let takes_ns = self.takes_ns(level, tried, batch) + reserve_ns;
            let takes_ns = takes_ns.saturating_add(rest_ns(tried));
            if takes_ns <= left_ns { fits = tried } else { more = tried }
        }
        fits
    }

    /// The plan that is worth most for `count` routes in the time that is left, of levels from `finest` on.
    fn plan(&self, finest: usize, (count, batch): (usize, usize), left_ns: u64) -> Plan {
        let mut best = (0, Plan::default());
        for level in finest..LEVELS {
            let alone = self.most(level, (count, batch), left_ns, |_| 0);
            let mut plan = Plan::default();
            plan.0[level] = alone;
            best = best.max((plan.worth(), plan));
            for coarser in level + 1..LEVELS {
                let rest = |finer: usize| self.takes_ns(coarser, count - finer, batch);
                let mut plan = Plan::default();
                plan.0[level] = self.most(level, (count, batch), left_ns, rest);
                if plan.0[level] > 0 {
                    plan.0[coarser] = count - plan.0[level];
                    best = best.max((plan.worth(), plan));
                }
            }
        }
        best.1
    }

    /// As many routes of a level as fit.
    fn at(&self, level: usize, sizes: (usize, usize), left_ns: u64) -> Plan {
        let mut plan = Plan::default();
        plan.0[level] = self.most(level, sizes, left_ns, |_| 0);
        plan
    }

    /// Comes half the way to what was measured. What was stopped would have taken longer than that.
    fn correct(&mut self, planned_ns: u64, took_ns: u64, is_stopped: bool) {
        let planned_ns = planned_ns.max(1);
        let took_ns = if is_stopped { took_ns.max(3 * planned_ns) } else { took_ns };
        for level_ns in self.each_ns.iter_mut().chain(&mut self.batch_ns) {
            let corrected =
                u128::from(*level_ns) * u128::from(planned_ns + took_ns) / u128::from(2 * planned_ns);
            *level_ns = u64::try_from(corrected).unwrap_or(u64::MAX).min(u64::MAX >> 32);
        }
    }
}

impl Plan {
    fn worth(&self) -> u64 {
        self.0.iter().zip(SCORES).map(|(count, score)| *count as u64 * u64::from(score)).sum()
    }
}

impl Scheduler {
    /// Has `count` routes found within a contract, some at once. Returns the level that each was found at; `None` for those that there was no time
    /// for.
    ///
    /// Shape: `batch` is how many are found at once, at most; `finest` is the best level that may be chosen; `now_ns` is a clock that begins at 0.
    /// `find` has the routes of some numbers found at a level until a moment, and says of which it has found out by then: always all where it
    /// is given no moment.
    /// Without a contract all routes are of the level of [`Static`](Self::Static), or of the finest.
    pub fn run(
        self,
        profile: &Profile,
        (batch, finest, count): (usize, usize, usize),
        contract_ns: Option<u64>,
        mut now_ns: impl FnMut() -> u64,
        mut find: impl FnMut(&[usize], usize, Option<u64>) -> Vec<bool>,
    ) -> Vec<Option<usize>> {
        let mut levels = vec![None; count];
        let (mut profile, batch) = (*profile, batch.max(1));
        // What takes no time would fit into none.
        profile.each_ns = profile.each_ns.map(|each_ns| each_ns.max(1));
        // The next ones are the last.
        let mut waiting: Vec<_> = (0..count).rev().collect();
        while !waiting.is_empty() {
            let began_ns = now_ns();
            let left_ns = contract_ns.map(|contract_ns| contract_ns.saturating_sub(began_ns));
            // The finest come first: what is left of the time in the end is filled best with what is quick.
            let Some((level, planned)) = self.next(&profile, finest, (waiting.len(), batch), left_ns) else {
                break;
            };
            let size = planned.min(batch);
            let planned_ns = profile.takes_ns(level, size, batch);
            let until_ns = contract_ns
                .filter(|_| self == Self::Online)
                .map(|contract_ns| contract_ns.min(began_ns + planned_ns * (100 + MARGIN_PERCENT) / 100));
            let mut numbers = waiting.split_off(waiting.len() - size);
            numbers.reverse();
            let found = find(&numbers, level, until_ns);
            let is_stopped = found.contains(&false);
            for (number, is_found) in numbers.into_iter().zip(found).rev() {
                if is_found {
                    levels[number] = Some(level);
                } else {
                    waiting.push(number);
                }
            }
            if self == Self::Online {
                profile.correct(planned_ns, now_ns() - began_ns, is_stopped);
            }
        }
        levels
    }

    /// The level of the next routes, and how many there may be of it.
    fn next(
        self,
        profile: &Profile,
        finest: usize,
        sizes: (usize, usize),
        left_ns: Option<u64>,
    ) -> Option<(usize, usize)> {
        let Some(left_ns) = left_ns else {
            return Some((if let Self::Static(level) = self { level } else { finest }, sizes.0));
        };
        let plan = match self {
            Self::Static(level) => profile.at(level, sizes, left_ns),
            Self::Offline | Self::Online => profile.plan(finest, sizes, left_ns),
        };
        plan.0.into_iter().enumerate().find(|(_, planned)| *planned > 0)
    }
}

/// What has routes found for [`Scheduler::run`] by an engine that finds one after another: it is given the number of each and its level.
pub fn one_by_one(
    now_ns: impl Fn() -> u64,
    mut find: impl FnMut(usize, usize),
) -> impl FnMut(&[usize], usize, Option<u64>) -> Vec<bool> {
    move |numbers, level, until_ns| {
        let mut one = |number: &usize| {
            let is_in_time = until_ns.is_none_or(|until_ns| now_ns() < until_ns);
            if is_in_time {
                find(*number, level);
            }
            is_in_time
        };
        numbers.iter().map(&mut one).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What the levels are worth, and when the last route was found; each takes `slow` times as long as in the profile.
    fn run(scheduler: Scheduler, count: usize, contract_ns: u64, slow: impl Fn(usize) -> u64) -> (u32, u64) {
        let clock = Cell::new(0);
        let find = |number, level: usize| clock.set(clock.get() + PROFILE.each_ns[level] * slow(number));
        let find = one_by_one(|| clock.get(), find);
        let levels = scheduler.run(&PROFILE, (BATCH, 0, count), Some(contract_ns), || clock.get(), find);
        (levels.iter().flatten().map(|level| SCORES[*level]).sum(), clock.get())
    }

    const PROFILE: Profile = Profile { each_ns: [4_000, 1_000, 300, 100], batch_ns: [0; LEVELS] };

    /// The plan that is worth most, by trying all.
    fn best(profile: &Profile, sizes: (usize, usize), left_ns: u64) -> u64 {
        let (count, mut best) = (sizes.0, 0);
        for a in 0..=count {
            for b in 0..=count - a {
                for c in 0..=count - a - b {
                    for d in 0..=count - a - b - c {
                        let plan = Plan([a, b, c, d]);
                        if takes_ns(profile, &plan, sizes.1) <= left_ns {
                            best = best.max(plan.worth());
                        }
                    }
                }
            }
        }
        best
    }

    fn takes_ns(profile: &Profile, plan: &Plan, batch: usize) -> u64 {
        plan.0.iter().enumerate().map(|(level, count)| profile.takes_ns(level, *count, batch)).sum()
    }

    #[test]
    fn a_plan_is_worth_most() {
        let profiles = [
            PROFILE,
            // Level 1 is nearly as slow as level 0, and level 3 slower than level 2.
            Profile { each_ns: [1_000, 900, 100, 200], ..Profile::default() },
            // An exact engine that is quicker than all coarser ones.
            Profile { each_ns: [10, 800, 300, 100], ..Profile::default() },
            // Batches cost most.
            Profile { each_ns: [900, 100, 30, 10], batch_ns: [500, 500, 200, 150] },
        ];
        for (profile, batch) in profiles.iter().flat_map(|profile| [(profile, 3), (profile, 64)]) {
            for left_ns in [0, 99, 100, 1_000, 2_500, 3_000, 9_999, 10_000, 25_000, 40_000, 99_000] {
                let plan = profile.plan(0, (10, batch), left_ns);
                assert!(takes_ns(profile, &plan, batch) <= left_ns && plan.0.iter().sum::<usize>() <= 10);
                let best = best(profile, (10, batch), left_ns * 100 / (100 + RESERVE_PERCENT));
                // A third level may fill what whole numbers of routes leave of the time.
                assert!(plan.worth() + 4 >= best, "{profile:?}, {left_ns}: {plan:?}, and {best} is possible");
            }
        }
        assert!(PROFILE.plan(2, (10, 64), 1_000_000).0[..2] == [0, 0], "the finest is level 2");
    }

    #[test]
    fn a_profile_without_times_ends_with_the_contract() {
        let clock = Cell::new(0);
        let find = one_by_one(|| clock.get(), |_, _| clock.set(clock.get() + 1_000));
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
}
