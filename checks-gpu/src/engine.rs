//! The engine `gpu`: GAIN's Algorithm 2.

use std::sync::Arc;

use checks::engine::{Engine, Evaluation, Sequential};
use checks::{Bounds, Check, Link, Overflow, Sets, Slot, Step};
use device::DriverError;
use kernels::checks::{
    ABSENT, Change, Decision, Doubt, EXISTS, Event, FORALL, HEAD_BEGIN, HEAD_DOUBTS, HEAD_LENGTH, HEAD_LINKS,
    HEAD_OVERFLOW, HEAD_ROOT, Layout, Unit,
};
use matcher::World;
use matcher::predicate::Subject;

use crate::compile::{Program, Unfit, u32_of};
use crate::joined::{Joined, STEPS_MAX, Work};
use crate::launchers::Kernels;
use crate::members::Members;
use crate::memory::{Granularity, Memory, Settings, room};
use crate::tree::Tree;

/// Lanes of a warp.
const WARP: u32 = 32;
/// From this number of copies on, each has a thread to itself: their warps fill a large device.
const COPIES_BY_THREAD: u32 = 8_192;
/// Room for links to begin with.
const LINKS_ROOM: usize = 1 << 12;
/// Times up to here have differences that fit.
const TIME_MAX: i64 = i64::MAX / 2;

/// What an engine did where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Evaluations by the device.
    pub on_device: u64,
    /// Evaluations by the processor, since the device had too little room or the check does not fit.
    pub on_host: u64,
    /// Leaves that the processor decided for the device.
    pub doubts: u64,
    /// Launches of kernels that evaluate.
    pub launches: u64,
    /// Evaluations of those by the device that were made several at once.
    pub at_once: u64,
    /// Assignments that these looked at and kept.
    pub entries: u64,
}

/// GAIN on a device.
pub struct Gpu {
    check: Arc<Check>,
    settings: Settings,
    bounds: Bounds,
    /// Evaluates where the device does not, and keeps what was told.
    host: Sequential,
    members: Members,
    side: Result<Box<Side>, Reason>,
    /// For several changes at once.
    joined: Result<Box<Joined>, Reason>,
    /// Whether the links before a change are those of the sets before it.
    is_in_step: bool,
    figures: Figures,
}

/// The device's side of a check.
struct Side {
    program: Program,
    memory: Memory,
    /// Changes that the device has not seen yet.
    changes: Vec<Change>,
    /// Whether the device's sets and events have to be sent whole.
    is_stale: bool,
}

/// Why a check is not on the device.
#[derive(Clone, Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Unfit(Unfit),
    #[error(transparent)]
    Driver(DriverError),
}

/// What an evaluation on the device came to.
enum Found {
    Holds,
    Violated(Vec<Link>),
    /// The processor has to do it.
    TooLarge,
}

impl Gpu {
    /// An engine that has seen nothing. Without room for it on the device, and for a formula that does not fit, the processor does all of the work:
    /// [`Gpu::refusal`] tells.
    #[must_use]
    pub fn new(check: Arc<Check>, bounds: Bounds, kernels: &Kernels, settings: Settings) -> Self {
        let side = Program::new(&check).map_err(Reason::Unfit).and_then(|program| {
            let memory = Memory::new(kernels, &settings).map_err(Reason::Driver)?;
            Ok(Box::new(Side { program, memory, changes: Vec::new(), is_stale: false }))
        });
        let host = Sequential::new(check.clone(), bounds);
        let members = Members::new(check.sets_count());
        let joined = match Joined::new(&check, kernels, &settings) {
            Ok(joined) => joined.map(Box::new).map_err(Reason::Driver),
            Err(unfit) => Err(Reason::Unfit(unfit)),
        };
        let figures = Figures::default();
        Self { check, settings, bounds, host, members, side, joined, is_in_step: false, figures }
    }

    /// What it did where.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Why the processor does all of the work, where it does.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        self.side.as_ref().err().map(ToString::to_string)
    }

    /// Why it takes changes one by one, where it does.
    #[must_use]
    pub fn refusal_of_batches(&self) -> Option<String> {
        self.joined.as_ref().err().map(ToString::to_string)
    }

    /// Evaluates after each of several changes; `None` where each is to be done by itself.
    fn at_once(&mut self, sets: &Sets, steps: &[Step], is_in_step: bool) -> Option<Vec<Evaluation>> {
        let Self { check, settings, bounds, host, joined, figures, .. } = self;
        let joined_side = joined.as_mut().ok()?;
        let mut work = Work::default();
        let found =
            joined_side.evaluate(check, (settings, *bounds), sets, (steps, is_in_step), host, &mut work);
        figures.doubts += work.doubts;
        figures.launches += work.launches;
        match found {
            Ok(None) => None,
            Ok(Some(evaluations)) => {
                figures.on_device += steps.len() as u64;
                figures.at_once += steps.len() as u64;
                figures.entries += work.entries;
                Some(evaluations)
            }
            Err(DriverError::OutOfMemory { .. } | DriverError::OutOfPinnedMemory { .. }) => {
                joined_side.clear();
                None
            }
            Err(error) => {
                *joined = Err(Reason::Driver(error));
                None
            }
        }
    }

    fn on_device(&mut self, sets: &Sets) -> Result<Found, DriverError> {
        let Self { check, settings, bounds, members, side, figures, .. } = self;
        let Ok(side) = side else {
            members.follow(sets, &mut Vec::new());
            return Ok(Found::TooLarge);
        };
        if !members.follow(sets, &mut side.changes) {
            side.is_stale = true;
        }
        let counts = members.counts();
        // Before anything is sent: what is too large for the device costs no copies.
        let Some(tree) = Tree::new(&side.program.units, &counts, settings.nodes_max) else {
            side.changes.clear();
            side.is_stale = true;
            return Ok(Found::TooLarge);
        };
        match side.evaluate(check, settings, *bounds, members, sets, &tree, figures) {
            Err(DriverError::OutOfMemory { .. } | DriverError::OutOfPinnedMemory { .. }) => {
                side.changes.clear();
                side.is_stale = true;
                Ok(Found::TooLarge)
            }
            result => result,
        }
    }
}

impl Side {
    #[expect(clippy::too_many_arguments, reason = "the parts of one engine")]
    fn evaluate(
        &mut self,
        check: &Check,
        settings: &Settings,
        bounds: Bounds,
        members: &Members,
        sets: &Sets,
        tree: &Tree,
        figures: &mut Figures,
    ) -> Result<Found, DriverError> {
        self.update(members, sets)?;
        let doubts_max = settings.doubts_max.min(tree.size);
        self.memory.room_for_tree(tree.size, doubts_max)?;
        let mut layout = Layout {
            columns: u32_of(self.program.columns.count()),
            capacity: u32_of(members.capacity),
            variables: u32_of(check.variables().len()),
            geodetic: (check.world() == World::Geodetic).into(),
            together: 1,
            buffering: (settings.buffering && settings.granularity == Granularity::Unit).into(),
            decided: 0,
            doubts_max: u32_of(doubts_max),
            links_max: u32_of(bounds.links_max.min(1 << 26)),
            room: 0,
        };
        let launches = launches(settings, tree, self.memory.device.is_host());
        for round in 0..2 {
            layout.decided = round;
            self.memory.clear_head()?;
            for (unit, together) in &launches {
                layout.together = *together;
                self.memory.truth(unit, &layout)?;
            }
            figures.launches += launches.len() as u64;
            let head = self.memory.read_head()?;
            let Ok(doubts) = usize::try_from(head[HEAD_DOUBTS]) else { return Ok(Found::TooLarge) };
            if doubts > doubts_max {
                return Ok(Found::TooLarge);
            }
            if doubts > 0 {
                debug_assert_eq!(round, 0, "what was decided is in no doubt");
                figures.doubts += doubts as u64;
                let doubts = self.memory.read_doubts(doubts)?;
                let decide = |doubt: &Doubt| self.program.decide(check, members, sets, tree, doubt);
                let decisions: Vec<_> = doubts.iter().map(decide).collect();
                self.memory.decide(&decisions)?;
                continue;
            }
            if head[HEAD_ROOT] != 0 {
                return Ok(Found::Holds);
            }
            break;
        }
        self.links(&launches, layout, settings, sets, figures)
    }

    /// Makes the device's sets those of the host: Algorithm 2, lines 1 and 2.
    fn update(&mut self, members: &Members, sets: &Sets) -> Result<(), DriverError> {
        let Self { program, memory, changes, is_stale } = self;
        if program.columns.is_stale(sets.events_count()) {
            program.columns.forget();
            *is_stale = true;
        }
        memory.room_for_events(members.slots(), program.columns.count())?;
        let words = members.capacity * members.of_set.len();
        if memory.members.len() < words {
            room(&memory.device, &mut memory.members, words)?;
            *is_stale = true;
        }
        let mut cells = Vec::new();
        if *is_stale {
            let mut sent = vec![0; words];
            for (set, slots) in members.of_set.iter().enumerate() {
                sent[set * members.capacity..][..slots.len()].copy_from_slice(slots);
            }
            memory.send_members(&sent)?;
            let mut held: Vec<Slot> = members.of_set.iter().flatten().copied().collect();
            held.sort_unstable();
            held.dedup();
            for slot in held {
                cells.clear();
                program.columns.fill(sets.subject(slot), &mut cells);
                memory.send_events(slot, &[event(sets.subject(slot))], &cells)?;
            }
            changes.clear();
            *is_stale = false;
            return Ok(());
        }
        if let Some(slot) = sets.changes().added {
            program.columns.fill(sets.subject(slot), &mut cells);
            memory.send_events(slot, &[event(sets.subject(slot))], &cells)?;
        }
        memory.change(changes, members.of_set.len(), members.capacity)?;
        changes.clear();
        Ok(())
    }

    fn links(
        &mut self,
        launches: &[(Unit, u32)],
        mut layout: Layout,
        settings: &Settings,
        sets: &Sets,
        figures: &mut Figures,
    ) -> Result<Found, DriverError> {
        let variables = layout.variables as usize;
        let mut needed = LINKS_ROOM.min(settings.links_max);
        loop {
            room(&self.memory.device, &mut self.memory.links, needed * variables)?;
            let has = self.memory.links.len().checked_div(variables).unwrap_or(needed);
            layout.room = u32_of(has.min(settings.links_max));
            self.memory.clear_head()?;
            for (unit, together) in launches {
                layout.together = *together;
                self.memory.link(unit, &layout)?;
            }
            figures.launches += launches.len() as u64;
            let head = self.memory.read_head()?.map(|word| usize::try_from(word).unwrap_or(usize::MAX));
            if head[HEAD_OVERFLOW] == 0 {
                let (begin, length) = (head[HEAD_BEGIN], head[HEAD_LENGTH]);
                let words = self.memory.read_links(begin * variables..(begin + length) * variables)?;
                let bindings = |words: &[u32]| {
                    let bound = words.iter().copied().enumerate().filter(|(_, slot)| *slot != ABSENT);
                    Link::of(sets, bound)
                };
                let links = words.chunks(variables.max(1)).map(bindings).collect();
                return Ok(Found::Violated(links));
            }
            // More than a node may have, or than the store: what each part needs is known only once those below it fit.
            if head[HEAD_LINKS] <= layout.room as usize || layout.room as usize >= settings.links_max {
                return Ok(Found::TooLarge);
            }
            needed = (2 * layout.room as usize).max(head[HEAD_LINKS]).min(settings.links_max);
        }
    }
}

/// Units from bottom to top, by the launch, each with the threads that work at a copy together.
fn launches(settings: &Settings, tree: &Tree, is_host: bool) -> Vec<(Unit, u32)> {
    let mut launches = Vec::new();
    for unit in tree.units.iter().rev().filter(|unit| unit.copies > 0) {
        let is_wide = |kind: u32, count: u32| (kind == FORALL || kind == EXISTS) && count >= WARP;
        let nodes = &unit.nodes[..unit.nodes_count as usize];
        let by_warp = settings.warps
            && !is_host
            && unit.copies < COPIES_BY_THREAD
            && nodes.iter().any(|node| is_wide(node.kind, node.count));
        let together = if by_warp { WARP } else { 1 };
        match settings.granularity {
            Granularity::Unit => launches.push((Unit { begin: 0, end: unit.nodes_count, ..*unit }, together)),
            Granularity::Node => {
                let one = |node| (Unit { begin: node, end: node + 1, ..*unit }, together);
                launches.extend((0..unit.nodes_count).rev().map(one));
            }
        }
    }
    launches
}

impl Program {
    /// The truth of a leaf by the processor.
    fn decide(&self, check: &Check, members: &Members, sets: &Sets, tree: &Tree, doubt: &Doubt) -> Decision {
        let (number, node) = (doubt.unit as usize, doubt.node as usize);
        let (branches, place) = tree.place(number, doubt.copy);
        let unit = &self.units[number];
        let slot =
            |(at, branch): (usize, &u32)| members.of_set[unit.fixed.set[at] as usize][*branch as usize];
        let frame: Vec<_> =
            branches.iter().enumerate().map(slot).map(|slot| Some(sets.subject(slot))).collect();
        let leaf = unit.leaves[node].expect("only leaves are in doubt");
        let truth = check.predicate(leaf).truth(&frame) == matcher::condition::expression::Truth::True;
        Decision { at: place + doubt.node, truth: truth.into() }
    }
}

pub(crate) fn event(subject: Subject<'_>) -> Event {
    let position = &subject.event.position;
    let is_near = (-TIME_MAX..=TIME_MAX).contains(&subject.time_ms);
    Event {
        point: *position.point(),
        x: position.x(),
        y: position.y(),
        time: if is_near { subject.time_ms } else { i64::MIN },
    }
}

impl Engine for Gpu {
    fn name(&self) -> &'static str {
        if self.side.is_ok() { "gpu" } else { self.host.name() }
    }

    fn steps_max(&self) -> usize {
        if self.settings.batches && self.joined.is_ok() { STEPS_MAX } else { 1 }
    }

    fn evaluate_all(&mut self, sets: &Sets, steps: &[Step]) -> Option<Vec<Evaluation>> {
        // What sets held before anything was evaluated was told to nobody.
        if !self.is_in_step && sets.events_count() != steps.len()
            || steps.is_empty()
            || steps.len() > STEPS_MAX
        {
            return None;
        }
        let evaluations = self.at_once(sets, steps, self.is_in_step)?;
        self.is_in_step = true;
        // The sets that the other form has on the device are old.
        self.members = Members::new(self.check.sets_count());
        if let Ok(side) = &mut self.side {
            side.changes.clear();
            side.is_stale = true;
        }
        Some(evaluations)
    }

    fn evaluate(&mut self, sets: &Sets) -> Result<Evaluation, Overflow> {
        self.is_in_step = true;
        match self.on_device(sets) {
            Ok(Found::Holds) => {
                self.figures.on_device += 1;
                Ok(self.host.adopt(None::<std::iter::Empty<Link>>))
            }
            Ok(Found::Violated(links)) => {
                self.figures.on_device += 1;
                Ok(self.host.adopt(Some(links.into_iter())))
            }
            Ok(Found::TooLarge) => {
                self.figures.on_host += 1;
                self.host.evaluate(sets)
            }
            Err(error) => {
                self.side = Err(Reason::Driver(error));
                self.figures.on_host += 1;
                self.host.evaluate(sets)
            }
        }
    }

    fn links(&self, sets: &Sets) -> Vec<Link> {
        self.host.links(sets)
    }

    fn links_count(&self) -> usize {
        self.host.links_count()
    }

    fn clear(&mut self) {
        self.host.clear();
        self.members = Members::new(self.check.sets_count());
        if let Ok(side) = &mut self.side {
            side.changes.clear();
            side.program.columns.forget();
            side.is_stale = true;
        }
        if let Ok(joined) = &mut self.joined {
            joined.clear();
        }
        self.is_in_step = false;
    }

    fn bytes(&self) -> usize {
        let side = self.side.as_ref().map_or(0, |side| side.memory.bytes() + side.program.columns.bytes());
        let joined = self.joined.as_ref().map_or(0, |joined| joined.bytes());
        self.host.bytes() + self.members.bytes() + side + joined
    }

    fn remark(&self) -> Option<String> {
        let Figures { on_device, on_host, doubts, at_once, .. } = self.figures;
        let place = match &self.side {
            Ok(side) => side.memory.device.name().to_owned(),
            Err(reason) => format!("the processor, since {reason}"),
        };
        Some(format!(
            "{on_device} evaluations on the device, {at_once} of them several at once, {on_host} on the processor, {doubts} leaves in doubt ({place})"
        ))
    }
}
