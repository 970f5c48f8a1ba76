//! Constraints grouped by attribute name, as in CCM: each name has runs of slots in one array on the device. The first run
//! is short, since most of many names have few constraints; the others are pages.

use kernels::clcb::{PAGE, Task};

/// Slots of a group's first run.
const FIRST: usize = 16;

/// The slots of one name.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Where each run begins.
    runs: Vec<u32>,
    /// Slots given out, free ones among them.
    used: usize,
    free: Vec<u32>,
}

/// Gives runs of slots out.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Where free first runs begin, and free pages.
    free_firsts: Vec<u32>,
    free_pages: Vec<u32>,
    end: usize,
}

impl Slots {
    /// One past the last slot given out.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Whether this number of further constraints, of whatever names, is sure to have slots.
    pub(super) fn has_room(&self, constraints: usize) -> bool {
        constraints < (u32::MAX as usize - self.end) / PAGE
    }

    /// A slot for one more constraint of a group, for which there is room.
    pub(super) fn acquire(&mut self, group: &mut Group) -> u32 {
        if let Some(slot) = group.free.pop() {
            return slot;
        }
        let (run, within) = place(group.used);
        if run == group.runs.len() {
            group.runs.push(if run == 0 { self.first() } else { self.page() });
        }
        group.used += 1;
        group.runs[run] + within
    }

    /// One constraint less; an empty group gives its runs back.
    pub(super) fn release(&mut self, group: &mut Group, slot: u32) {
        group.free.push(slot);
        if group.free.len() == group.used {
            let mut runs = std::mem::take(group).runs.into_iter();
            self.free_firsts.extend(runs.next());
            self.free_pages.extend(runs);
        }
    }

    fn first(&mut self) -> u32 {
        if self.free_firsts.is_empty() {
            let page = self.page();
            self.free_firsts.extend((page..).step_by(FIRST).take(PAGE / FIRST));
        }
        self.free_firsts.pop().expect("there is one")
    }

    fn page(&mut self) -> u32 {
        self.free_pages.pop().unwrap_or_else(|| {
            let page = u32::try_from(self.end).expect("room was asked for");
            self.end += PAGE;
            page
        })
    }
}

/// The run that a group's slot is in, and where.
fn place(slot: usize) -> (usize, u32) {
    let (run, within) = match slot.checked_sub(FIRST) {
        None => (0, slot),
        Some(slot) => (1 + slot / PAGE, slot % PAGE),
    };
    #[expect(clippy::cast_possible_truncation, reason = "a run is short")]
    (run, within as u32)
}

impl Group {
    /// Appends what Cont has to do for a value with this code, or for one that is several: a task a run.
    pub(super) fn append_tasks(&self, code: Option<u32>, tasks: &mut Vec<Task>) {
        let (code, anything) = (code.unwrap_or_default(), u32::from(code.is_none()));
        let mut left = self.used;
        for (index, start) in self.runs.iter().enumerate() {
            let count = left.min(if index == 0 { FIRST } else { PAGE });
            left -= count;
            #[expect(clippy::cast_possible_truncation, reason = "a run is short")]
            tasks.push(Task { start: *start, count: count as u32, code, anything });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_groups_do_not_overlap_and_come_back() {
        let mut slots = Slots::default();
        let mut groups = vec![Group::default(); 80];
        let mut held = vec![Vec::new(); 80];
        for index in 0..5 * PAGE {
            // Two large groups, and small ones.
            let which = if index % 10 == 0 { 2 + index / 10 % 78 } else { usize::from(index % 3 == 0) };
            held[which].push(slots.acquire(&mut groups[which]));
        }
        let mut all: Vec<u32> = held.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5 * PAGE);
        assert!(all.iter().all(|slot| (*slot as usize) < slots.end()));
        for (group, held) in groups.iter().zip(&held) {
            let mut tasks = Vec::new();
            group.append_tasks(Some(7), &mut tasks);
            let mut covered: Vec<u32> =
                tasks.iter().flat_map(|task| task.start..task.start + task.count).collect();
            covered.sort_unstable();
            let mut held = held.clone();
            held.sort_unstable();
            assert_eq!(covered, held);
        }
        let end = slots.end();
        for (group, held) in groups.iter_mut().zip(&held) {
            held.iter().for_each(|slot| slots.release(group, *slot));
        }
        let mut tasks = Vec::new();
        groups.iter().for_each(|group| group.append_tasks(Some(7), &mut tasks));
        assert_eq!(tasks, []);
        assert_eq!(slots.free_pages.len() * PAGE + slots.free_firsts.len() * FIRST, end);
    }

    #[test]
    fn there_is_room_until_slots_have_no_numbers() {
        let mut slots = Slots { end: (1 << 32) - 3 * PAGE, ..Slots::default() };
        assert!(slots.has_room(1) && !slots.has_room(2));
        let mut group = Group::default();
        let last = (0..=FIRST).map(|_| slots.acquire(&mut group)).last();
        assert_eq!(last.map(|slot| slot as usize), Some((1 << 32) - 2 * PAGE));
        assert!(!slots.has_room(1));
    }
}
