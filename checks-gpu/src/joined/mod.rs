//! Past GAIN: many changes at once, each with the answers that it has by itself, and joins.
//!
//! Events do not change; sets do. So the leaves of an assignment are worked out once for a batch, and the assignment is true in a range of
//! the batch's states, of which there is one before it and one after each change. A word has 64 of them, and connectives and quantifiers
//! work on words. What is told is where the states of a link begin: nothing that comes and goes within a batch is missed.
//!
//! Assignments are those of the plans of [`Incremental`](checks::engine::Incremental): by hash on `=`, by grid on `DISTANCE`, `SPEED`,
//! `ELAPSED` and bounded differences. One that some leaf forbids is not kept. Links that neither came nor went stay on the device.

mod memory;
mod products;
mod program;

use std::collections::BTreeSet;

use checks::engine::incremental::outline::Access;
use checks::engine::{Engine, Evaluation, Sequential};
use checks::{Bounds, Check, Link, Sets, Slot, Step};
use device::DriverError;
use kernels::checks::{ABSENT, Layout as Leaves};
use kernels::checks_joined::{
    self as k, Decision, JOINED_CHUNK, JOINED_DOUBTS, JOINED_ENTRIES, JOINED_KEYS, JOINED_LOOKUPS,
    JOINED_TOLD, Layout, Member,
};
use matcher::World;
use matcher::condition::expression::Truth;
use matcher::predicate::Subject;

use self::memory::Counted;
pub(crate) use self::memory::Memory;
use self::program::Program;
use crate::compile::{Unfit, u32_of};
use crate::engine::event;
use crate::launchers::Kernels;
use crate::memory::{Settings, room};

/// The most changes of a batch: sixteen words for each assignment.
pub(crate) const STEPS_MAX: usize = 16 * JOINED_CHUNK;
/// Entries that each node has room for to begin with.
const ENTRIES_ROOM: usize = 1 << 10;
/// Links that are fetched with the counts, so that mostly one wait is enough.
const TOLD_FIRST: usize = 1 << 8;
/// Bytes of the runtime tree's nodes that [`Settings::nodes_max`] counts.
const NODE_BYTES: usize = 9;

/// The device's side of a check for batches.
pub(crate) struct Joined {
    program: Program,
    memory: Memory,
    /// By slot: one more than the number of the event that the device has there.
    known: Vec<u64>,
    /// By slot: the first state of the batch in which the event is there.
    from: Vec<u32>,
    room: usize,
    told_room: usize,
}

/// What batches came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) doubts: u64,
    pub(crate) launches: u64,
    /// Assignments that were kept.
    pub(crate) entries: u64,
}

/// Members of all sets in a batch.
struct Batch {
    members: Vec<Member>,
    /// Where the members of each set are: the first, and how many.
    ranges: Vec<(u32, u32)>,
    chunks: usize,
}

impl Joined {
    /// # Errors
    /// The check does not fit, or the device has no room for it.
    pub(crate) fn new(
        check: &Check,
        kernels: &Kernels,
        settings: &Settings,
    ) -> Result<Result<Self, DriverError>, Unfit> {
        let program = Program::new(check)?;
        let memory = Memory::new(kernels, settings, JOINED_ENTRIES + program.nodes.len());
        Ok(memory.map(|memory| Self {
            program,
            memory,
            known: Vec::new(),
            from: Vec::new(),
            room: ENTRIES_ROOM,
            told_room: TOLD_FIRST,
        }))
    }

    /// Evaluates the check after each of some changes; `None` where that is to be done one by one. Unless it is in step with the sets before
    /// them, these held nothing, and nothing was evaluated.
    pub(crate) fn evaluate(
        &mut self,
        check: &Check,
        (settings, bounds): (&Settings, Bounds),
        sets: &Sets,
        (steps, is_in_step): (&[Step], bool),
        host: &mut Sequential,
        work: &mut Work,
    ) -> Result<Option<Vec<Evaluation>>, DriverError> {
        let batch = self.batch(check, sets, steps);
        if !self.send(sets, &batch)? {
            return Ok(None);
        }
        let mut layout = self.layout(check, settings, &batch);
        room(&self.memory.device, &mut self.memory.doubts, settings.doubts_max)?;
        self.index(&batch, &mut layout, work)?;
        let Some(counts) = self.entries(check, settings, sets, &batch, &mut layout, work)? else {
            return Ok(None);
        };
        self.truths(&counts, &layout, work)?;
        let found = if self.program.joins_links {
            let found = self.found(&counts, &layout)?;
            // As many as a part may have in all states together.
            let links_max = settings.links_max.min(64 * bounds.links_max);
            let told = products::told(check, &self.program, &found, links_max);
            told.map(|told| Counted { root: found.words[self.program.root()].clone(), told })
        } else {
            self.links(settings, &counts, &mut layout, work)?
        };
        let Some(Counted { root, mut told }) = found else { return Ok(None) };
        if !is_in_step && root[0] & 1 == 1 {
            tell_without_events(&mut told, layout.leaves.variables as usize);
        }
        Ok(tell(sets, steps.len(), bounds, &root, &told, layout.leaves.variables as usize, host))
    }

    /// Forgets what the device has.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.program.columns.forget();
    }

    pub(crate) fn bytes(&self) -> usize {
        let host = 8 * self.known.capacity() + 4 * self.from.capacity() + self.program.columns.bytes();
        host + self.memory.bytes()
    }

    /// Which events are in the sets, from which state to which.
    fn batch(&mut self, check: &Check, sets: &Sets, steps: &[Step]) -> Batch {
        let last = |step: &Step| step.added as usize + 1;
        let slots = steps.iter().map(last).max().unwrap_or(0);
        if self.from.len() < slots {
            self.from.resize(slots, 0);
        }
        for (state, step) in (1..).zip(steps) {
            self.from[step.added as usize] = state;
        }
        let from = |slot: Slot| self.from.get(slot as usize).copied().unwrap_or(0);
        let mut gone = vec![Vec::new(); check.sets_count()];
        for (state, step) in (1..).zip(steps) {
            for removal in &sets.changes().removed[step.removed.clone()] {
                gone[removal.set].push(Member { slot: removal.slot, from: from(removal.slot), to: state });
            }
        }
        let mut batch =
            Batch { members: Vec::new(), ranges: Vec::new(), chunks: steps.len().div_ceil(JOINED_CHUNK) };
        for (set, gone) in gone.into_iter().enumerate() {
            let begin = batch.members.len();
            batch.members.extend(gone);
            let held = sets.members(set, 0..sets.count(set));
            batch.members.extend(held.map(|slot| Member { slot, from: from(slot), to: u32::MAX }));
            batch.ranges.push((u32_of(begin), u32_of(batch.members.len() - begin)));
        }
        steps.iter().for_each(|step| self.from[step.added as usize] = 0);
        batch
    }

    /// Sends members, and events that the device does not have; whether all fit.
    fn send(&mut self, sets: &Sets, batch: &Batch) -> Result<bool, DriverError> {
        if self.program.columns.is_stale(sets.events_count()) {
            self.clear();
        }
        let slots = batch.members.iter().map(|member| member.slot as usize + 1).max().unwrap_or(0);
        if self.known.len() < slots {
            self.known.resize(slots, 0);
        }
        let mut rows = Vec::new();
        let mut cells = Vec::new();
        let mut count = 0;
        for member in &batch.members {
            let subject = sets.subject(member.slot);
            if self.known[member.slot as usize] == subject.identity + 1 {
                continue;
            }
            self.known[member.slot as usize] = subject.identity + 1;
            count += 1;
            rows.push(u64::from(member.slot));
            rows.extend_from_slice(bytemuck::cast_slice(&[event(subject)]));
            cells.clear();
            self.program.columns.fill(subject, &mut cells);
            rows.extend_from_slice(bytemuck::cast_slice(&cells));
            if !self.keys(&subject, &mut rows) {
                self.known.clear();
                return Ok(false);
            }
        }
        let (columns, keys) = (self.program.columns.count(), self.program.keys_width());
        // The memory may grow by as much as it has.
        let capacity = self.known.len().next_power_of_two();
        self.memory.room_for_events(capacity, columns, keys)?;
        self.memory.send_rows(&rows)?;
        self.memory.send_members(&batch.members)?;
        let Memory { kernels, .. } = &self.memory;
        kernels.joined_events(&self.memory, count, columns, keys)?;
        Ok(true)
    }

    /// Appends what an event is found by and what is looked up for it; whether that fits.
    fn keys(&self, subject: &Subject<'_>, rows: &mut Vec<u64>) -> bool {
        let mut fits = true;
        let mut keys = Vec::new();
        let mut push = |keys: &mut Vec<u64>, is_all: bool, width: usize| {
            keys.sort_unstable();
            keys.dedup();
            rows.push(if is_all { u64::MAX } else { keys.len() as u64 });
            keys.resize(width, 0);
            rows.append(keys);
        };
        for (_, key) in &self.program.outline.indices {
            key.of_event(subject, |hash| keys.push(hash));
            fits &= keys.len() <= JOINED_KEYS;
            push(&mut keys, false, JOINED_KEYS);
        }
        for (index, probe) in &self.program.lookups {
            let is_found = self.program.outline.indices[*index].1.look_up(probe, subject, &mut keys);
            let is_all = !is_found || keys.len() > JOINED_LOOKUPS;
            push(&mut keys, is_all, JOINED_LOOKUPS);
        }
        fits
    }

    fn layout(&self, check: &Check, settings: &Settings, batch: &Batch) -> Layout {
        let leaves = Leaves {
            columns: u32_of(self.program.columns.count()),
            variables: u32_of(check.variables().len()),
            geodetic: (check.world() == World::Geodetic).into(),
            doubts_max: u32_of(settings.doubts_max),
            ..Leaves::default()
        };
        let keys = u32_of(self.program.keys_width());
        Layout { leaves, keys, chunks: u32_of(batch.chunks), ..Layout::default() }
    }

    /// Puts members into the buckets of indices.
    fn index(&mut self, batch: &Batch, layout: &mut Layout, work: &mut Work) -> Result<(), DriverError> {
        let indices = &self.program.outline.indices;
        if indices.is_empty() {
            return Ok(());
        }
        let largest = indices.iter().map(|(set, _)| batch.ranges[*set].1).max().unwrap_or(0) as usize;
        layout.buckets = u32_of(largest.max(32).next_power_of_two());
        layout.items = u32_of(largest * JOINED_KEYS);
        let memory = &mut self.memory;
        let words = 2 * indices.len() * layout.buckets as usize;
        room(&memory.device, &mut memory.buckets, words)?;
        room(&memory.device, &mut memory.cursors, indices.len())?;
        room(&memory.device, &mut memory.items, indices.len() * layout.items as usize)?;
        memory.stream.fill(&memory.buckets, 0..words, 0)?;
        memory.stream.fill(&memory.cursors, 0..indices.len(), 0)?;
        for (index, (set, _)) in indices.iter().enumerate() {
            memory.kernels.joined_index(memory, u32_of(index), batch.ranges[*set], layout)?;
            work.launches += 3;
        }
        Ok(())
    }

    /// Makes the entries of all nodes, and lets the processor decide what is in doubt. How many each node has; `None` where there are too
    /// many.
    fn entries(
        &mut self,
        check: &Check,
        settings: &Settings,
        sets: &Sets,
        batch: &Batch,
        layout: &mut Layout,
        work: &mut Work,
    ) -> Result<Option<Vec<u32>>, DriverError> {
        let root = self.program.root();
        let entry_bytes = (root + 1) * (size_of::<k::Entry>() + 16 * batch.chunks);
        let room_max = settings.nodes_max.saturating_mul(NODE_BYTES) / entry_bytes;
        let head = loop {
            layout.room = u32_of(self.room.min(room_max));
            if layout.room == 0 {
                return Ok(None);
            }
            let entries = (root + 1) * layout.room as usize;
            self.memory.room_for_entries(entries, batch.chunks)?;
            let mut head = vec![0; self.memory.head.len()];
            head[JOINED_ENTRIES + root] = 1;
            self.memory.send_head(&head)?;
            self.memory.send_root(root * layout.room as usize)?;
            for (idx, node) in self.program.nodes[..root].iter().enumerate() {
                if node.ways[0].around_count == 1 {
                    let begin = 2 * idx * layout.room as usize * batch.chunks;
                    let words = begin..begin + 2 * batch.chunks;
                    self.memory.stream.fill(&self.memory.any, words, 0)?;
                }
            }
            for idx in (0..root).rev() {
                let (members_begin, members_count) = batch.ranges[self.program.outline.nodes[idx].set];
                for (way, plan) in
                    self.program.nodes[idx].ways.iter().zip(&self.program.outline.nodes[idx].ways)
                {
                    let node = k::Node { members_begin, members_count, ..*way };
                    let joins = matches!(plan.access, Access::Probe { .. });
                    self.memory.kernels.joined_entries(&self.memory, &node, layout, joins)?;
                    work.launches += 1;
                }
            }
            let head = self.memory.read_head()?;
            let most = head[JOINED_ENTRIES..].iter().copied().max().unwrap_or(0);
            if most <= u64::from(layout.room) {
                break head;
            }
            // How many are inside those that did not fit is not known yet.
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            if most > room_max {
                return Ok(None);
            }
            self.room = most.next_power_of_two();
        };
        let counts = head[JOINED_ENTRIES..].iter();
        let counts: Vec<_> = counts.map(|count| u32::try_from(*count).expect("there is room")).collect();
        work.entries += counts.iter().map(|count| u64::from(*count)).sum::<u64>() - 1;
        let doubts = usize::try_from(head[JOINED_DOUBTS]).unwrap_or(usize::MAX);
        if doubts > settings.doubts_max {
            return Ok(None);
        }
        if doubts > 0 {
            work.doubts += doubts as u64;
            let is_true = |doubt: &&k::Doubt| {
                let node = &self.program.outline.nodes[doubt.node as usize];
                let frame: Vec<_> = (0..=node.depth)
                    .map(|depth| {
                        let is_bound = depth == node.depth || node.free.contains(&depth);
                        is_bound.then(|| sets.subject(doubt.slots[depth]))
                    })
                    .collect();
                let leaf = self.program.nodes[doubt.node as usize].leaves[doubt.leaf as usize];
                check.predicate(leaf).truth(&frame) == Truth::True
            };
            let room = layout.room;
            let decision =
                |doubt: &k::Doubt| Decision { at: doubt.node * room + doubt.entry, leaf: doubt.leaf };
            let doubts = self.memory.read_doubts(doubts)?;
            let decisions: Vec<_> = doubts.iter().filter(is_true).map(decision).collect();
            self.memory.decide(&decisions)?;
        }
        Ok(Some(counts))
    }

    /// In which states entries are true, from the innermost nodes outwards.
    fn truths(&self, counts: &[u32], layout: &Layout, work: &mut Work) -> Result<(), DriverError> {
        for (node, count) in self.program.nodes.iter().zip(counts).filter(|(_, count)| **count > 0) {
            self.memory.kernels.joined_truth(&self.memory, &node.ways[0], layout, *count)?;
            work.launches += 1;
        }
        Ok(())
    }

    /// All entries with their words.
    fn found(&mut self, counts: &[u32], layout: &Layout) -> Result<products::Found, DriverError> {
        let (room, chunks) = (layout.room as usize, layout.chunks as usize);
        let mut found = products::Found { entries: Vec::new(), any: Vec::new(), words: Vec::new(), chunks };
        for (idx, node) in self.program.nodes.iter().enumerate() {
            let count = counts[idx] as usize;
            found.entries.push(self.memory.read_entries(idx * room, count)?);
            let outer = counts[node.outer] as usize;
            found.any.push(self.memory.read_any(idx * room * chunks, outer * chunks)?);
            found.words.push(self.memory.read_words(idx * room * chunks, count * chunks)?);
        }
        Ok(found)
    }

    /// The root's states, and the links that came or went; `None` where these are too many.
    fn links(
        &mut self,
        settings: &Settings,
        counts: &[u32],
        layout: &mut Layout,
        work: &mut Work,
    ) -> Result<Option<Counted>, DriverError> {
        let width = 2 + (layout.leaves.variables as usize).div_ceil(2);
        let mut head = vec![0; self.memory.head.len()];
        for (word, count) in head[JOINED_ENTRIES..].iter_mut().zip(counts) {
            *word = (*count).into();
        }
        loop {
            room(&self.memory.device, &mut self.memory.told, self.told_room * width)?;
            layout.told_max = u32_of(self.told_room);
            // With the outermost nodes first.
            for (node, count) in self.program.nodes.iter().zip(counts).rev() {
                if node.is_linked && *count > 0 {
                    self.memory.kernels.joined_links(&self.memory, &node.ways[0], layout, *count)?;
                    work.launches += 1;
                }
            }
            let begin = self.program.root() * layout.room as usize * layout.chunks as usize;
            let first = TOLD_FIRST * width;
            let root = begin..begin + layout.chunks as usize;
            let (head_now, mut found) = self.memory.read_result(root.clone(), first)?;
            let count = usize::try_from(head_now[JOINED_TOLD]).unwrap_or(usize::MAX);
            if count <= TOLD_FIRST {
                found.told.truncate(count * width);
                return Ok(Some(found));
            }
            if count <= self.told_room {
                return Ok(Some(self.memory.read_result(root, count * width)?.1));
            }
            if count > settings.links_max {
                return Ok(None);
            }
            self.told_room = count.next_power_of_two();
            self.memory.send_head(&head)?;
        }
    }
}

/// A check that is violated without any event has the link that binds nothing, which was not told before the first evaluation.
fn tell_without_events(told: &mut Vec<u64>, variables: usize) {
    let width = 2 + variables.div_ceil(2);
    let binds_nothing = |record: &&mut [u64]| {
        let slots: &[u32] = bytemuck::cast_slice(&record[2..]);
        record[1] == 0 && slots[..variables].iter().all(|slot| *slot == ABSENT)
    };
    match told.chunks_exact_mut(width).find(binds_nothing) {
        Some(record) => record[0] &= !1,
        None => {
            told.extend([!1, 0]);
            told.resize(told.len() + width - 2, u64::MAX);
        }
    }
}

/// What each change tells, from the states of links that came or went; `None` where there are too many at once.
fn tell(
    sets: &Sets,
    steps: usize,
    bounds: Bounds,
    root: &[u64],
    told: &[u64],
    variables: usize,
    host: &mut Sequential,
) -> Option<Vec<Evaluation>> {
    let width = 2 + variables.div_ceil(2);
    // What two ways found stands here twice.
    let told: BTreeSet<&[u64]> = told.chunks_exact(width).collect();
    let mut came = vec![Vec::new(); steps];
    let mut went = vec![Vec::new(); steps];
    for record in told {
        let slots: &[u32] = bytemuck::cast_slice(&record[2..]);
        let bound = slots[..variables].iter().copied().enumerate().filter(|(_, slot)| *slot != ABSENT);
        let link = Link::of(sets, bound);
        let first = usize::try_from(record[1]).expect("a chunk") * JOINED_CHUNK;
        // Bit 1 is the state after the first change of the chunk.
        let mut edges = (record[0] ^ record[0] << 1) & !1;
        while edges != 0 {
            let bit = edges.trailing_zeros() as usize;
            edges &= edges - 1;
            let step = first + bit - 1;
            if step < steps {
                let list = if record[0] >> bit & 1 == 1 { &mut came[step] } else { &mut went[step] };
                list.push(link.clone());
            }
        }
    }
    let mut count = host.links_count();
    for (came, went) in came.iter().zip(&went) {
        count = count + came.len() - went.len();
        if count > bounds.links_max {
            return None;
        }
    }
    let mut evaluations = Vec::with_capacity(steps);
    for (step, (told, gone)) in came.into_iter().zip(went).enumerate() {
        host.follow(&told, &gone);
        let violated = root[step / JOINED_CHUNK] >> (step % JOINED_CHUNK + 1) & 1 == 1;
        evaluations.push(Evaluation { violated, told });
    }
    Some(evaluations)
}
