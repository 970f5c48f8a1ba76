//! Which level each of many routes is found at, so that all come by a moment and are worth as much as can be: a *contract*.
//!
//! How long a route of each level takes is known from a [`Profile`]. Of the levels only those on the convex hull of worth over time are ever
//! chosen, and then at most two of them at once: with any other choice another one is worth more in the same time.
//!
//! Source: Mangharam and Saba, "Anytime algorithms for GPU architectures", RTSS 2011, sections V and VI (`offline`, `online`).

use crate::levels::{LEVELS, SCORES};

/// How much longer than planned `online` lets a batch take, in percent, before it plans anew.
const MARGIN_PERCENT: u64 = 10;

/// How long a route of each level takes, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile(pub [u64; LEVELS]);

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plan([usize; LEVELS]);

impl Profile {
    /// Levels from `finest` on that are worth choosing, the quickest first.
    fn hull(&self, finest: usize) -> Vec<usize> {
        let mut hull: Vec<usize> = Vec::new();
        let (time, score) = (|level: usize| self.0[level].max(1), |level: usize| u64::from(SCORES[level]));
        let mut levels: Vec<usize> = (finest..LEVELS).collect();
        levels.sort_by_key(|level| (time(*level), *level));
        for level in levels {
            // Slower and worth no more.
            if hull.last().is_some_and(|last| score(*last) >= score(level)) {
                continue;
            }
            // What lies below the line from the one before it, or from nothing, to the new one, is worth less in the same time.
            while let Some(last) = hull.last().copied() {
                let before = hull.len().checked_sub(2).map(|place| hull[place]);
                let (time_before, score_before) = before.map_or((0, 0), |level| (time(level), score(level)));
                let gain = (score(last) - score_before) * (time(level) - time_before);
                if gain > (score(level) - score_before) * (time(last) - time_before) {
                    break;
                }
                hull.pop();
            }
            hull.push(level);
        }
        hull
    }

    /// As many routes of a level as fit.
    fn at(&self, level: usize, count: usize, left_ns: u64) -> Plan {
        let mut plan = Plan::default();
        plan.0[level] = usize::try_from(left_ns / self.0[level].max(1)).unwrap_or(count).min(count);
        plan
    }

    /// Comes half the way to what was measured. What was stopped would have taken longer than that.
    fn correct(&mut self, planned_ns: u64, took_ns: u64, is_stopped: bool) {
        let planned_ns = planned_ns.max(1);
        let took_ns = if is_stopped { took_ns.max(3 * planned_ns) } else { took_ns };
        for level_ns in &mut self.0 {
            let corrected =
                u128::from(*level_ns) * u128::from(planned_ns + took_ns) / u128::from(2 * planned_ns);
            *level_ns = u64::try_from(corrected).unwrap_or(u64::MAX / 2).clamp(1, u64::MAX / 2);
        }
    }

    /// The plan that is worth most for `count` routes in the time that is left.
    fn plan(&self, finest: usize, count: usize, left_ns: u64) -> Plan {
        let mut plan = Plan::default();
        let (count_ns, hull) = (count as u64, self.hull(finest));
        let mut before: Option<usize> = None;
        for level in hull {
            let (before_ns, all_before) =
                before.map_or((0, 0), |before| (self.0[before], count_ns * self.0[before]));
            let more_ns = (self.0[level] - before_ns).max(1);
            let fitting = usize::try_from(left_ns.saturating_sub(all_before) / more_ns).unwrap_or(count);
            let at_level = fitting.min(count);
            if at_level == 0 {
                break;
            }
            plan = Plan::default();
            plan.0[level] = at_level;
            if let Some(before) = before {
                plan.0[before] = count - at_level;
            }
            if at_level < count {
                break;
            }
            before = Some(level);
        }
        plan
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
        let mut profile = *profile;
        // The next ones are the last.
        let mut waiting: Vec<_> = (0..count).rev().collect();
        while !waiting.is_empty() {
            let began_ns = now_ns();
            let left_ns = contract_ns.map(|contract_ns| contract_ns.saturating_sub(began_ns));
            // The finest come first: what is left of the time in the end is filled best with what is quick.
            let Some((level, planned)) = self.next(&profile, finest, waiting.len(), left_ns) else { break };
            let size = planned.min(batch.max(1));
            let planned_ns = profile.0[level] * size as u64;
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
        count: usize,
        left_ns: Option<u64>,
    ) -> Option<(usize, usize)> {
        let Some(left_ns) = left_ns else {
            return Some((if let Self::Static(level) = self { level } else { finest }, count));
        };
        let plan = match self {
            Self::Static(level) => profile.at(level, count, left_ns),
            Self::Offline | Self::Online => profile.plan(finest, count, left_ns),
        };
        plan.0.into_iter().enumerate().find(|(_, planned)| *planned > 0)
    }
}

/// Routes that a processor has found before levels are chosen anew.
pub const BATCH: usize = 64;

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
        let find = |number, level: usize| clock.set(clock.get() + PROFILE.0[level] * slow(number));
        let find = one_by_one(|| clock.get(), find);
        let levels = scheduler.run(&PROFILE, (BATCH, 0, count), Some(contract_ns), || clock.get(), find);
        (levels.iter().flatten().map(|level| SCORES[*level]).sum(), clock.get())
    }

    const PROFILE: Profile = Profile([4_000, 1_000, 300, 100]);

    #[test]
    fn only_levels_on_the_hull_are_chosen() {
        assert_eq!(PROFILE.hull(0), [3, 2, 1, 0]);
        assert_eq!(PROFILE.hull(2), [3, 2]);
        // Level 1 is nearly as slow as level 0, and level 3 slower than level 2.
        assert_eq!(Profile([1_000, 900, 100, 200]).hull(0), [2, 0]);
        // An exact engine that is quicker than all coarser ones.
        assert_eq!(Profile([10, 800, 300, 100]).hull(0), [0]);
    }

    #[test]
    fn a_plan_is_worth_most() {
        for left_ns in [0, 99, 100, 1_000, 2_500, 3_000, 9_999, 10_000, 25_000, 40_000, 99_000] {
            let plan = PROFILE.plan(0, 10, left_ns);
            let spent: u64 = plan.0.iter().zip(PROFILE.0).map(|(count, ns)| *count as u64 * ns).sum();
            assert!(spent <= left_ns && plan.0.iter().sum::<usize>() <= 10, "{left_ns}: {plan:?}");
            let worth = |plan: &[usize; 4]| {
                plan.iter().zip(SCORES).map(|(count, score)| count * score as usize).sum::<usize>()
            };
            let mut best = 0;
            for a in 0..=10 {
                for b in 0..=10 - a {
                    for c in 0..=10 - a - b {
                        for d in 0..=10 - a - b - c {
                            let ns = a as u64 * 4_000 + b as u64 * 1_000 + c as u64 * 300 + d as u64 * 100;
                            if ns <= left_ns {
                                best = best.max(worth(&[a, b, c, d]));
                            }
                        }
                    }
                }
            }
            // Whole numbers of routes may leave a little of the time.
            assert!(
                worth(&plan.0) + 4 >= best,
                "{left_ns}: {plan:?} is worth {}, not {best}",
                worth(&plan.0)
            );
        }
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
