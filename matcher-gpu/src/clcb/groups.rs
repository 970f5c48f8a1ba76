//! Constraints grouped by attribute name, as in CCM: each name has pages of slots in one array on the device.

use kernels::clcb::{PAGE, Task};

/// The pages of one name.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pages: Vec<u32>,
    /// Slots given out, free ones among them.
    used: usize,
    free: Vec<u32>,
}

/// Gives pages out.
#[derive(Debug, Default)]
pub(super) struct Pages {
    free: Vec<u32>,
    count: u32,
}

impl Pages {
    /// Slots in all pages.
    pub(super) fn slots_end(&self) -> usize {
        self.count as usize * PAGE
    }

    /// A slot for one more constraint of a group.
    pub(super) fn acquire(&mut self, group: &mut Group) -> u32 {
        if let Some(slot) = group.free.pop() {
            return slot;
        }
        if group.used == group.pages.len() * PAGE {
            let page = self.free.pop().unwrap_or_else(|| {
                self.count += 1;
                self.count - 1
            });
            group.pages.push(page);
        }
        let slot = group.pages[group.used / PAGE] as usize * PAGE + group.used % PAGE;
        group.used += 1;
        u32::try_from(slot)
            .expect("constraints of fewer than 2^27 filters of at most 32 each have 32-bit slots")
    }

    /// One constraint less; an empty group gives its pages back.
    pub(super) fn release(&mut self, group: &mut Group, slot: u32) {
        group.free.push(slot);
        if group.free.len() == group.used {
            self.free.append(&mut group.pages);
            *group = Group::default();
        }
    }
}

impl Group {
    /// Appends what Cont has to do for a value with this code, or for one that is several: a task a page.
    pub(super) fn append_tasks(&self, code: Option<u32>, tasks: &mut Vec<Task>) {
        let (code, anything) = (code.unwrap_or_default(), u32::from(code.is_none()));
        for (index, page) in self.pages.iter().enumerate() {
            let count = (self.used - index * PAGE).min(PAGE);
            #[expect(clippy::cast_possible_truncation, reason = "a page is small")]
            tasks.push(Task { page: *page, count: count as u32, code, anything });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_groups_do_not_overlap_and_pages_come_back() {
        let mut pages = Pages::default();
        let mut groups = [Group::default(), Group::default()];
        let mut slots = [Vec::new(), Vec::new()];
        for index in 0..5 * PAGE {
            let which = usize::from(index % 3 == 0);
            slots[which].push(pages.acquire(&mut groups[which]));
        }
        let mut all: Vec<u32> = slots.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5 * PAGE);
        let mut tasks = Vec::new();
        groups[0].append_tasks(Some(7), &mut tasks);
        groups[1].append_tasks(None, &mut tasks);
        assert_eq!(tasks.iter().map(|task| task.count as usize).sum::<usize>(), 5 * PAGE);
        for (group, slots) in groups.iter_mut().zip(&slots) {
            slots.iter().for_each(|slot| pages.release(group, *slot));
        }
        tasks.clear();
        groups.iter().for_each(|group| group.append_tasks(Some(7), &mut tasks));
        assert_eq!(tasks, []);
        assert_eq!(pages.free.len(), pages.count as usize);
    }
}
