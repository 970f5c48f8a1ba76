//! One active member and two standbys under every fault of the log and of theirs, in virtual time.

mod judge;
mod node;

use std::time::Duration;

use cluster::ledger::Beat;
use cluster::log::Bounds;
use cluster::simulated::{Faults, Partition, World};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use judge::{Judge, Tally};
use node::{Node, Role};

/// Faults happen until then; after that there are none, and everything has to recover.
const FAULTY: Duration = Duration::from_secs(90);
const WHOLE: Duration = Duration::from_secs(130);
const TICK: Duration = Duration::from_millis(25);
/// Where no fault is under way, something is acknowledged in each stretch as long as this: 7 s until an owner is gone, a second
/// until somebody looks, 2 s that a replica is behind, and two answers that are lost.
const BOUND: Duration = Duration::from_secs(14);

struct Simulation {
    random: StdRng,
    world: World,
    nodes: Vec<Node>,
    judge: Judge,
    beats: Vec<(&'static str, Beat)>,
    /// No fault is under way from then on, and something was acknowledged.
    quiet_since: Duration,
    next_fault: Duration,
    is_log_safe: bool,
    rows: u64,
}

fn faults(is_fenced: bool) -> Faults {
    Faults { lost_requests: 0.002, lost_answers: 0.005, duplicates: 0.02, is_fenced, ..Faults::default() }
}

impl Simulation {
    fn new(seed: u64, is_fenced: bool) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let world = World::new(random.random(), faults(is_fenced));
        let mut judge = Judge::new(world.clone());
        let nodes = ["a", "b", "c"].map(|name| Node::new(name, world.log(), judge.nonce())).into();
        Self {
            is_log_safe: random.random_bool(0.8),
            random,
            world,
            nodes,
            judge,
            beats: Vec::new(),
            quiet_since: Duration::ZERO,
            next_fault: Duration::from_secs(2),
            rows: 0,
        }
    }

    fn run(mut self) -> Result<Tally, String> {
        let (mut now, mut ticks) = (Duration::ZERO, 0_u64);
        while now < WHOLE {
            now += TICK;
            ticks += 1;
            while self.world.step(now) {
                self.run_nodes()?;
            }
            if now >= self.next_fault && now < FAULTY {
                self.break_something(now)?;
            }
            if now >= FAULTY && now < FAULTY + TICK {
                self.mend();
            }
            if self.judge.is_beyond_help {
                break;
            }
            self.restart(now);
            self.meet(now, ticks);
            self.push(now);
            self.run_nodes()?;
            self.check_liveness(now)?;
        }
        let is_true = |node: &&Node| node.last().is_some_and(|last| self.world.has(&last));
        let states = self.nodes.iter().filter(is_true).filter_map(Node::state);
        self.judge.check(&self.world.history(), states)?;
        if self.has_to_tell() && !self.judge.is_beyond_help {
            return Err("somebody has not told of what is gone".to_owned());
        }
        self.judge.tally.truncated += u64::from(self.world.bounds().first > 1);
        Ok(self.judge.tally)
    }

    fn run_nodes(&mut self) -> Result<(), String> {
        let now = self.world.now();
        self.nodes.iter_mut().try_for_each(|node| node.run(now, &mut self.judge))
    }

    fn break_something(&mut self, now: Duration) -> Result<(), String> {
        let random = &mut self.random;
        self.next_fault = now + Duration::from_millis(random.random_range(500..9_000));
        let mut seconds = |least: f64, most: f64| Duration::from_secs_f64(random.random_range(least..most));
        let (pause, stop, down, behind) =
            (seconds(4.0, 9.0), seconds(0.5, 30.0), seconds(0.1, 20.0), seconds(0.0, 2.0));
        let owner = self.nodes.iter().position(|node| matches!(node.role, Role::Active { .. }));
        let any = random.random_range(0..self.nodes.len());
        // Owners are what is interesting.
        let node = &mut self.nodes[owner.filter(|_| random.random_bool(0.5)).unwrap_or(any)];
        match random.random_range(0..12_u8) {
            0..2 => self.world.pause(pause),
            2..4 => node.log.set_partition(Partition::Requests),
            4 => node.log.set_partition(Partition::Answers),
            5 => node.log.set_behind(behind),
            6..8 => node.stopped_until = now + stop,
            8..10 => {
                self.judge.has_news = true;
                node.die(now + down);
            }
            10 if !self.is_log_safe => {
                let gone = self.world.go_back(random.random_range(1..6));
                self.judge.went_back(&gone)?;
            }
            _ => self.nodes.iter().for_each(|node| node.log.set_partition(Partition::None)),
        }
        Ok(())
    }

    fn mend(&mut self) {
        self.world.set_faults(Faults::default());
        for node in &mut self.nodes {
            node.log.set_partition(Partition::None);
            node.log.set_behind(Duration::ZERO);
            node.stopped_until = Duration::ZERO;
        }
    }

    fn restart(&mut self, now: Duration) {
        for node in &mut self.nodes {
            if matches!(node.role, Role::Down { until } if until <= now || now >= FAULTY) {
                node.start(self.judge.nonce());
            }
        }
    }

    /// Members say that they are there, and look who is.
    fn meet(&mut self, now: Duration, ticks: u64) {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let turn = ticks + 13 * at as u64;
            if turn.is_multiple_of(60) && node.can_beat(now) {
                self.beats.retain(|(name, _)| *name != node.name);
                self.beats.push((node.name, Beat { nonce: node.nonce, count: ticks, is_leaving: false }));
            }
            if turn.is_multiple_of(40)
                && node.can_look(now)
                && let Role::Standby(standby) = &mut node.role
            {
                let beats: Vec<_> = self.beats.iter().map(|(_, beat)| beat.clone()).collect();
                standby.look(now, &beats);
            }
        }
    }

    fn push(&mut self, now: Duration) {
        for node in self.nodes.iter_mut().filter(|node| node.is_running(now)) {
            if self.random.random_bool(0.2) {
                for _ in 0..self.random.random_range(1..4) {
                    self.rows += 1;
                    let mut row = self.rows.to_le_bytes().to_vec();
                    // Some records are compressed.
                    row.resize(self.random.random_range(8..2_000), 0);
                    node.push(now, &row);
                }
            }
            if self.random.random_bool(0.005) {
                node.snapshot();
            }
        }
    }

    fn check_liveness(&mut self, now: Duration) -> Result<(), String> {
        let is_faulty = |node: &Node| node.log.partition() != Partition::None || node.stopped_until > now;
        // A log that went back is a fault until all members that have to notice have said so, which takes a while where all records are lost.
        let Bounds { first, last } = self.world.bounds();
        let has_fault = self.world.is_paused()
            || self.has_to_tell()
            || (first > 1 && first > last)
            || self.nodes.iter().any(is_faulty)
            || !self.nodes.iter().any(Node::is_up);
        let has_acknowledged = std::mem::take(&mut self.judge.has_acknowledged);
        // Where nothing fails any more, to begin anew is no progress.
        let has_progress =
            has_acknowledged || std::mem::take(&mut self.judge.has_news) && now < FAULTY + TICK;
        if has_fault || has_progress {
            self.quiet_since = self.quiet_since.max(now);
        }
        match now.checked_sub(self.quiet_since) {
            Some(quiet) if quiet > BOUND => Err(format!("nothing is acknowledged for {quiet:?}, at {now:?}")),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a process knows of a record that is gone, and has not told.
    fn has_to_tell(&self) -> bool {
        let mut last = self.nodes.iter().filter_map(Node::last);
        !self.is_log_safe && last.any(|last| !self.world.has(&last))
    }
}

/// The tally of seeds, or the first that fails and why.
fn simulate(seeds: impl IntoIterator<Item = u64>, is_fenced: bool) -> Result<Tally, String> {
    let mut sum = Tally::default();
    for seed in seeds {
        if seed % 1_000 == 999 {
            eprintln!("{seed}: {sum:?}");
        }
        let tally = Simulation::new(seed, is_fenced).run().map_err(|why| format!("seed {seed}: {why}"))?;
        sum += tally;
    }
    Ok(sum)
}

#[test]
fn nothing_acknowledged_is_lost_and_one_member_writes() {
    let seeds = match std::env::var("NEARCAST_SEED") {
        Ok(seed) => seed.parse().map(|seed| seed..seed + 1).unwrap(),
        Err(_) if crate::is_soak() => 0..10_000,
        Err(_) => 0..20,
    };
    let has_all = seeds.end - seeds.start > 1;
    let tally = simulate(seeds, true).unwrap_or_else(|why| panic!("{why}"));
    eprintln!("{tally:?}");
    let Tally { acknowledged, takeovers, fenced, gave_up, told, lost, restored, truncated, .. } = tally;
    let happened = [acknowledged, takeovers, fenced, gave_up, told, lost, restored, truncated];
    assert!(!has_all || happened.iter().all(|count| *count > 0), "{tally:?}");
}

#[test]
fn without_the_fence_it_would_be_noticed() {
    let found = simulate(0..20, false);
    assert!(found.is_err(), "{found:?}");
}
