//! The decision over made-up costs.

use super::*;

/// Microseconds that a batch takes: a part for itself and a part for each event.
#[derive(Clone, Copy)]
struct Costs {
    cells: [f64; 2],
    device: [f64; 2],
}

const COSTS: Costs = Costs { cells: [0.0, 2.0], device: [20.0, 0.02] };

impl Costs {
    fn us(&self, side: Side, events: usize) -> f64 {
        let [fixed, each] = match side {
            Side::Cells => self.cells,
            Side::Device => self.device,
        };
        fixed + each * events as f64
    }

    fn best(&self, events: usize) -> Side {
        if self.us(Side::Device, events) < self.us(Side::Cells, events) { Side::Device } else { Side::Cells }
    }
}

/// A crossover at work: how long everything took, and what it would have taken at best.
struct Run {
    crossover: Crossover,
    dice: u64,
    /// Times are wrong by up to this share.
    noise: f64,
    total_us: f64,
    best_us: f64,
}

impl Run {
    fn new() -> Self {
        Self { crossover: Crossover::new(), dice: 1, noise: 0.0, total_us: 0.0, best_us: 0.0 }
    }

    /// A number from 0 to 1.
    fn random(&mut self) -> f64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Sends a batch and returns where it went.
    fn batch(&mut self, costs: &Costs, events: usize) -> Side {
        let side = self.crossover.side(events);
        let us = costs.us(side, events) * (1.0 + self.noise * (2.0 * self.random() - 1.0));
        self.crossover.record(side, events, Duration::from_secs_f64(us * 1e-6));
        self.total_us += us;
        self.best_us += costs.us(costs.best(events), events);
        side
    }

    /// How many batches of so many go to the device.
    fn on_device(&mut self, costs: &Costs, events: usize, batches: usize) -> usize {
        (0..batches).filter(|_| self.batch(costs, events) == Side::Device).count()
    }
}

#[test]
fn small_batches_go_to_cells_and_large_ones_to_the_device() {
    let mut run = Run::new();
    for events in [1, 2, 5, 16, 64, 1_000, 65_536, 1_000_000] {
        let right = if COSTS.best(events) == Side::Device { 1_000 } else { 0 };
        // It may be wrong once to learn, and then rarely to see whether it still is.
        let wrong = run.on_device(&COSTS, events, 1_000).abs_diff(right);
        assert!(wrong <= 15, "{wrong} of 1000 batches of {events} went to the wrong side");
    }
    assert_eq!(run.crossover.device_from(), Some(16));
}

#[test]
fn nothing_is_presumed_of_either_side() {
    let swapped = Costs { cells: COSTS.device, device: COSTS.cells };
    let mut run = Run::new();
    assert!(run.on_device(&swapped, 1, 1_000) >= 980);
    assert!(run.on_device(&swapped, 1_000, 1_000) <= 15);
    assert_eq!(run.crossover.device_from(), None, "larger batches go elsewhere");
    let slow = Costs { device: [1_000_000.0, 2.0], ..COSTS };
    let mut run = Run::new();
    for events in [1, 10, 100, 1_000] {
        assert!(run.on_device(&slow, events, 2_000) <= 2);
    }
}

#[test]
fn the_first_batches_try_both_sides_and_no_more() {
    let mut run = Run::new();
    let sides: Vec<Side> = (0..20).map(|_| run.batch(&COSTS, 4_096)).collect();
    assert_eq!(sides[..2], [Side::Cells, Side::Device]);
    assert!(sides[2..].iter().all(|side| *side == Side::Device), "{sides:?}");
}

#[test]
fn a_first_time_that_was_far_too_long_does_not_stay() {
    let mut run = Run::new();
    assert_eq!(run.batch(&COSTS, 256), Side::Cells);
    let warming_up = Costs { device: [5_000.0, 0.02], ..COSTS };
    assert_eq!(run.batch(&warming_up, 256), Side::Device);
    assert_eq!(run.batch(&COSTS, 256), Side::Cells);
    run.on_device(&COSTS, 256, 1_000);
    assert!(run.on_device(&COSTS, 256, 1_000) >= 950);
}

#[test]
fn a_change_of_load_turns_it_round() {
    let mut run = Run::new();
    run.crossover.load(1_000_000);
    run.on_device(&COSTS, 64, 5_000);
    assert!(run.on_device(&COSTS, 64, 1_000) >= 980);
    // Few filters: now cells takes 6 us where the device takes 21.
    let few = Costs { cells: [0.0, 0.1], ..COSTS };
    run.crossover.load(50_000);
    run.on_device(&few, 64, 1_000);
    assert!(run.on_device(&few, 64, 1_000) <= 20);
    run.crossover.load(1_000_000);
    run.on_device(&COSTS, 64, 1_000);
    assert!(run.on_device(&COSTS, 64, 1_000) >= 980);
}

#[test]
fn a_change_that_nobody_tells_is_found_too() {
    let mut run = Run::new();
    run.on_device(&COSTS, 64, 50_000);
    let few = Costs { cells: [0.0, 0.1], ..COSTS };
    run.on_device(&few, 64, 50_000);
    assert!(run.on_device(&few, 64, 1_000) <= 20);
    // The side at work has become slow: that shows at once.
    assert!(run.on_device(&COSTS, 64, 1_000) >= 950);
}

#[test]
fn a_load_that_grows_a_little_at_a_time_counts_from_the_last_measurement() {
    let mut crossover = Crossover::new();
    crossover.load(1_000);
    crossover.record(Side::Cells, 1, Duration::from_micros(2));
    let is_old = |crossover: &Crossover| crossover.times(Side::Cells, 0).old;
    for filters in [1_001, 1_500, 1_999, 501, 1_999] {
        crossover.load(filters);
        assert!(!is_old(&crossover), "{filters}");
    }
    crossover.load(2_000);
    assert!(is_old(&crossover));
    crossover.record(Side::Cells, 1, Duration::from_micros(8));
    assert_eq!(crossover.times(Side::Cells, 0).median, 8e-6);
}

#[test]
fn noise_does_not_make_it_flap() {
    let mut run = Run::new();
    run.noise = 0.4;
    // 21.3 us on the device, 12.8 and 32 us on cells.
    for (each, right) in [(0.2, Side::Cells), (0.5, Side::Device)] {
        let costs = Costs { cells: [0.0, each], ..COSTS };
        run.crossover.load(1);
        run.crossover.load(1_000);
        run.on_device(&costs, 64, 2_000);
        let mut changes = 0;
        let mut kept = run.crossover.classes[6].kept;
        for _ in 0..50_000 {
            run.batch(&costs, 64);
            changes += usize::from(run.crossover.classes[6].kept != kept);
            kept = run.crossover.classes[6].kept;
        }
        assert_eq!(kept, Some(right));
        assert!(changes <= 20, "{changes} changes in 50000 batches");
    }
}

#[test]
fn a_mixed_load_takes_nearly_the_best_total() {
    for noise in [0.0, 0.3] {
        let mut run = Run::new();
        run.noise = noise;
        for _ in 0..50_000 {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 65,536")]
            let events = 65_536_f64.powf(run.random()) as usize;
            run.batch(&COSTS, events);
        }
        let ratio = run.total_us / run.best_us;
        assert!(ratio < 1.05, "{ratio} times the best total with a noise of {noise}");
    }
}

#[test]
fn trying_the_slower_side_costs_little_and_ever_less() {
    let mut run = Run::new();
    for events in [1, 4_096] {
        run.on_device(&COSTS, events, 100);
        (run.total_us, run.best_us) = (0.0, 0.0);
        run.on_device(&COSTS, events, 200_000);
        let ratio = run.total_us / run.best_us;
        assert!((1.0..1.01).contains(&ratio), "{ratio} times the best total in batches of {events}");
    }
}

#[test]
fn the_same_times_give_the_same_sides() {
    let sides = || {
        let mut run = Run::new();
        run.noise = 0.5;
        (0..2_000).map(|index| run.batch(&COSTS, 1 << (index % 12))).collect::<Vec<_>>()
    };
    assert_eq!(sides(), sides());
}

#[test]
fn odd_times_and_sizes_are_taken() {
    let mut crossover = Crossover::new();
    crossover.record(Side::Cells, 0, Duration::MAX);
    for events in [0, 1, usize::MAX] {
        for took in [Duration::ZERO, Duration::MAX, Duration::ZERO] {
            crossover.record(crossover.side(events), events, took);
        }
    }
    crossover.load(0);
    crossover.load(usize::MAX);
    crossover.side(usize::MAX);
}
