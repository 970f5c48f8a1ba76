//! Which of two engines a batch goes to, from how long earlier batches took.
//!
//! It is told times and asked for a side; it knows no clock and no engine, so the same times give the same answers. Batches
//! fall into classes by size, a power of two each. In each class the median of a side's last times stands for it; where
//! a side has none yet, the times of other classes say what it takes at least, so that it is tried where it may win.
//!
//! The slower side of a class is tried again now and then with a real batch: when what that is expected to cost is a small
//! share of the time spent in the class since the last try. Each try that changes nothing doubles the wait.

use std::time::Duration;

/// The engine that gets a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Cells,
    Device,
}

/// Classes of sizes: 1, 2 to 3, 4 to 7 and on; the last one has no end. Engines take no larger batches from the broker.
const CLASSES: usize = 17;
/// Times that a median is taken of: two outliers among them change nothing.
const SAMPLES: usize = 5;
/// A side is left only for one that takes less than this share of its time: noise of a tenth is usual.
const CLEARLY: f64 = 0.9;
/// Inverse of the share of all time that trying the slower side takes, about, at most.
const PARTS: f64 = 64.0;
/// How often the wait between tries doubles.
const DOUBLINGS_MAX: i32 = 6;
/// A try that differs from what was known by this factor is worth another one soon.
const SURPRISE: f64 = 2.0;

/// The decision.
#[derive(Clone, Debug)]
pub(super) struct Crossover {
    classes: [Class; CLASSES],
    /// Filters when the figures were last declared old.
    load: usize,
    /// The least size from which on every class that is known goes to the device.
    device_from: Option<usize>,
}

/// Measurements of batches of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    cells: Times,
    device: Times,
    /// The side that was better last.
    kept: Option<Side>,
    /// Seconds spent on the better side since the other was tried.
    spent: f64,
    doublings: i32,
}

/// The last times of a side, in seconds for each event.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    samples: [f64; SAMPLES],
    count: usize,
    next: usize,
    median: f64,
    /// The next time takes the place of all.
    old: bool,
}

impl Crossover {
    pub(super) fn new() -> Self {
        Self { classes: [Class::default(); CLASSES], load: 1, device_from: None }
    }

    /// The side that a batch of `events` events should go to.
    pub(super) fn side(&self, events: usize) -> Side {
        let index = class_of(events);
        let better = self.better(index);
        if self.is_due(index, better, events) { better.other() } else { better }
    }

    /// How long a batch took there.
    pub(super) fn record(&mut self, side: Side, events: usize, took: Duration) {
        if events == 0 {
            return;
        }
        let index = class_of(events);
        let better = self.better(index);
        let cost = took.as_secs_f64() / events as f64;
        let known = *self.times(side, index);
        self.classes[index].times_mut(side).push(cost);
        let better_now = self.better(index);
        let class = &mut self.classes[index];
        if side == better {
            class.spent += took.as_secs_f64();
        } else {
            class.spent = 0.0;
            let ratio = cost / known.median;
            let surprising = known.count == 0 || !(1.0 / SURPRISE..SURPRISE).contains(&ratio);
            class.doublings = if surprising { 0 } else { (class.doublings + 1).min(DOUBLINGS_MAX) };
        }
        if class.kept != Some(better_now) {
            (class.kept, class.spent, class.doublings) = (Some(better_now), 0.0, 0);
            self.device_from = self.find_device_from();
        }
    }

    /// How many filters there are now. When that has doubled or halved, what was measured is old.
    pub(super) fn load(&mut self, filters: usize) {
        let filters = filters.max(1);
        if filters < self.load.saturating_mul(2) && self.load < filters.saturating_mul(2) {
            return;
        }
        self.load = filters;
        for class in &mut self.classes {
            (class.cells.old, class.device.old, class.doublings) = (true, true, 0);
        }
    }

    /// From how many events on batches go to the device, as far as is known; `None` while there is no such size.
    pub(super) fn device_from(&self) -> Option<usize> {
        self.device_from
    }

    /// The side that is expected to be quicker. One that was better stays until the other clearly is.
    fn better(&self, index: usize) -> Side {
        let [cells, device] = [Side::Cells, Side::Device].map(|side| self.at_least(side, index));
        match self.classes[index].kept {
            Some(Side::Cells) if device < cells * CLEARLY => Side::Device,
            Some(Side::Device) if cells < device * CLEARLY => Side::Cells,
            Some(kept) => kept,
            None if device < cells => Side::Device,
            None => Side::Cells,
        }
    }

    /// Whether the other side should be tried now.
    fn is_due(&self, index: usize, better: Side, events: usize) -> bool {
        let Class { spent, doublings, .. } = self.classes[index];
        let expected = self.at_most(better.other(), index);
        let usual = self.at_least(better, index);
        let extra = (expected - usual).max(usual) * events as f64;
        spent > 0.0 && spent >= PARTS * 2_f64.powi(doublings) * extra
    }

    /// Lower bound on the time that an event takes in a class: the median, or the bound that other classes give. A
    /// batch takes no less than a smaller one, and no less than its share of a larger one.
    fn at_least(&self, side: Side, index: usize) -> f64 {
        let times = self.times(side, index);
        if times.count > 0 {
            return times.median;
        }
        let below = self.nearest_below(side, index).map(|(classes, median)| median * halved(classes));
        let above = self.nearest_above(side, index).map(|(_, median)| median);
        below.unwrap_or_default().max(above.unwrap_or_default())
    }

    /// Upper bound on the time that an event takes in a class: the median, or the bound that other classes give. A
    /// batch takes no longer than its parts one by one, and no longer than a larger one.
    fn at_most(&self, side: Side, index: usize) -> f64 {
        let times = self.times(side, index);
        if times.count > 0 {
            return times.median;
        }
        let below = self.nearest_below(side, index).map(|(_, median)| median);
        let above = self.nearest_above(side, index).map(|(classes, median)| median / halved(classes));
        below.unwrap_or(f64::INFINITY).min(above.unwrap_or(f64::INFINITY))
    }

    /// The next smaller class with times: how far away it is, and its median.
    fn nearest_below(&self, side: Side, index: usize) -> Option<(usize, f64)> {
        let known = (0..index).rev().find(|known| self.times(side, *known).count > 0)?;
        Some((index - known, self.times(side, known).median))
    }

    fn nearest_above(&self, side: Side, index: usize) -> Option<(usize, f64)> {
        let known = (index + 1..CLASSES).find(|known| self.times(side, *known).count > 0)?;
        Some((known - index, self.times(side, known).median))
    }

    fn times(&self, side: Side, index: usize) -> &Times {
        match side {
            Side::Cells => &self.classes[index].cells,
            Side::Device => &self.classes[index].device,
        }
    }

    fn find_device_from(&self) -> Option<usize> {
        let known = self.classes.iter().enumerate().filter_map(|(index, class)| Some((index, class.kept?)));
        let mut from = None;
        for (index, kept) in known {
            match kept {
                Side::Cells => from = None,
                Side::Device => from = from.or(Some(1 << index)),
            }
        }
        from
    }
}

impl Class {
    fn times_mut(&mut self, side: Side) -> &mut Times {
        match side {
            Side::Cells => &mut self.cells,
            Side::Device => &mut self.device,
        }
    }
}

impl Times {
    fn push(&mut self, cost: f64) {
        if std::mem::take(&mut self.old) {
            (self.count, self.next) = (0, 0);
        }
        self.samples[self.next] = cost;
        self.next = (self.next + 1) % SAMPLES;
        self.count = (self.count + 1).min(SAMPLES);
        let mut sorted = self.samples;
        let sorted = &mut sorted[..self.count];
        sorted.sort_unstable_by(f64::total_cmp);
        // Of two the lower one: what makes a time wrong makes it longer.
        self.median = sorted[(self.count - 1) / 2];
    }
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Cells => Self::Device,
            Self::Device => Self::Cells,
        }
    }
}

fn class_of(events: usize) -> usize {
    (events.max(1).ilog2() as usize).min(CLASSES - 1)
}

/// Share that is left after `times` halvings.
fn halved(times: usize) -> f64 {
    0.5_f64.powi(i32::try_from(times).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests;
