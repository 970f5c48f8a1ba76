//! The first groups by their ranking, and some more.
//!
//! A window has every group that ranks before its *cut*, and nothing is known of those behind. As long as it has as many groups as are reported,
//! a change costs only the groups of the object that changed. It begins with twice as many and grows to twice that, so that it takes many
//! changes until the groups behind the cut are looked for again.

use std::cmp::Ordering;
use std::sync::Arc;

use super::candidates::{Id, Objects};
use super::definition::ROLES_MAX;
use super::{Change, Group};

/// Groups beyond the reported ones that a window has at least after it was cut.
const SPARE: usize = 64;

/// Groups up to which each is put into its place; more are sorted together.
const PLACED_MAX: usize = 8;

/// The first groups.
#[derive(Debug)]
pub(super) struct Window {
    /// In their order, except in a window that groups are still looked for.
    entries: Vec<Entry>,
    /// The first rank of which nothing is known; `None` where all groups are there.
    cut: Option<Cut>,
    roles: usize,
    limit: usize,
}

/// A group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    value: f64,
    objects: [Id; ROLES_MAX],
    is_told: bool,
}

/// A rank, also of a group that is there no more.
#[derive(Debug)]
struct Cut {
    value: f64,
    names: Box<[Arc<str>]>,
}

impl Entry {
    pub(super) fn new(value: f64, objects: [Id; ROLES_MAX]) -> Self {
        Self { value, objects, is_told: false }
    }

    fn compare(&self, other: &Self, roles: usize, objects: &Objects) -> Ordering {
        self.value.total_cmp(&other.value).then_with(|| {
            let pairs = self.objects[..roles].iter().zip(&other.objects);
            let mut orders = pairs
                .map(|(a, b)| if a == b { Ordering::Equal } else { objects.name(*a).cmp(objects.name(*b)) });
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    fn is_before(&self, cut: &Cut, objects: &Objects) -> bool {
        let order = self
            .value
            .total_cmp(&cut.value)
            .then_with(|| self.objects[..cut.names.len()].iter().map(|id| objects.name(*id)).cmp(&cut.names));
        order.is_lt()
    }

    fn group(&self, roles: usize, objects: &Objects) -> Group {
        Group { objects: self.objects[..roles].iter().map(|id| objects.name(*id).clone()).collect() }
    }
}

impl Window {
    /// A window for all groups, of which there are none.
    pub(super) fn new(roles: usize, limit: usize) -> Self {
        Self { entries: Vec::new(), cut: None, roles, limit }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.cut = None;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Whether groups of a value may rank before the cut.
    pub(super) fn may_have(&self, value: f64) -> bool {
        self.cut.as_ref().is_none_or(|cut| value <= cut.value)
    }

    /// Whether a group ranks before the cut.
    pub(super) fn admits(&self, entry: &Entry, objects: &Objects) -> bool {
        self.cut.as_ref().is_none_or(|cut| entry.is_before(cut, objects))
    }

    /// Adds a group that ranks before the cut, in no order; where there are too many, the last ones leave. Cost: a constant number of
    /// comparisons, spread over all groups.
    pub(super) fn add(&mut self, entry: Entry, objects: &Objects) {
        self.entries.push(entry);
        if self.entries.len() > self.most() {
            let (roles, least) = (self.roles, self.least());
            self.entries.select_nth_unstable_by(least, |a, b| a.compare(b, roles, objects));
            self.cut_at(least, objects);
            self.entries.truncate(least);
        }
    }

    fn sort(&mut self, objects: &Objects) {
        let roles = self.roles;
        self.entries.sort_by(|a, b| a.compare(b, roles, objects));
    }

    fn place(&mut self, entry: Entry, objects: &Objects) {
        let roles = self.roles;
        let place = self.entries.partition_point(|other| other.compare(&entry, roles, objects).is_lt());
        self.entries.insert(place, entry);
    }

    /// Groups after a cut.
    fn least(&self) -> usize {
        self.limit.saturating_mul(2).saturating_add(SPARE)
    }

    /// Groups before one.
    fn most(&self) -> usize {
        self.least().saturating_mul(2)
    }

    fn cut_at(&mut self, place: usize, objects: &Objects) {
        let Entry { value, objects: ids, .. } = self.entries[place];
        let names = ids[..self.roles].iter().map(|id| objects.name(*id).clone()).collect();
        self.cut = Some(Cut { value, names });
    }

    /// Takes the groups of `found` in the place of those that an object was in. Those that were reported and left go to `left`. Whether anything
    /// is another than before.
    pub(super) fn merge(
        &mut self,
        id: Id,
        found: &mut Self,
        objects: &mut Objects,
        left: &mut Vec<Entry>,
    ) -> bool {
        let roles = self.roles;
        let is_changed = objects.get(id).kept > 0 || !found.entries.is_empty();
        if objects.get(id).kept > 0 {
            self.entries.retain(|entry| {
                let stays = !entry.objects[..roles].contains(&id);
                if !stays {
                    leave(entry, roles, objects, left);
                }
                stays
            });
        }
        let are_few = found.len() <= PLACED_MAX;
        for entry in found.entries.drain(..) {
            keep(&entry, roles, objects);
            if are_few {
                self.place(entry, objects);
            } else {
                self.entries.push(entry);
            }
        }
        if !are_few {
            self.sort(objects);
        }
        if let Some(cut) = found.cut.take() {
            let place = self.entries.partition_point(|entry| entry.is_before(&cut, objects));
            self.cut = Some(cut);
            self.truncate(place, objects, left);
        }
        if self.entries.len() > self.most() {
            self.cut_at(self.least(), objects);
            self.truncate(self.least(), objects, left);
        }
        is_changed
    }

    /// Takes the groups of `found` in the place of all.
    pub(super) fn replace(&mut self, found: &mut Self, objects: &mut Objects, left: &mut Vec<Entry>) {
        self.truncate(0, objects, left);
        std::mem::swap(&mut self.entries, &mut found.entries);
        self.cut = found.cut.take();
        self.sort(objects);
        self.entries.iter().for_each(|entry| keep(entry, self.roles, objects));
    }

    fn truncate(&mut self, place: usize, objects: &mut Objects, left: &mut Vec<Entry>) {
        let roles = self.roles;
        self.entries.drain(place..).for_each(|entry| leave(&entry, roles, objects, left));
    }

    /// The changes of the reported groups, where some of them have left the window, perhaps to come back.
    pub(super) fn tell(&mut self, mut left: Vec<Entry>, objects: &Objects) -> Vec<Change> {
        let (roles, limit) = (self.roles, self.limit);
        left.sort_unstable_by_key(|entry| entry.objects);
        let mut enters = Vec::new();
        let mut exits = Vec::new();
        for (place, entry) in self.entries.iter_mut().enumerate() {
            let is_first = place < limit;
            if is_first == entry.is_told {
                continue;
            }
            entry.is_told = is_first;
            if !is_first {
                exits.push(*entry);
                continue;
            }
            match left.binary_search_by_key(&entry.objects, |entry| entry.objects) {
                Ok(place) => left[place].is_told = false,
                Err(_) => enters.push(Change::Enter(entry.group(roles, objects))),
            }
        }
        exits.extend(left.into_iter().filter(|entry| entry.is_told));
        exits.sort_unstable_by(|a, b| a.compare(b, roles, objects));
        let exits = exits.iter().map(|entry| Change::Exit(entry.group(roles, objects)));
        exits.chain(enters).collect()
    }

    pub(super) fn groups(&self, objects: &Objects) -> Vec<Group> {
        self.entries.iter().take(self.limit).map(|entry| entry.group(self.roles, objects)).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

fn keep(entry: &Entry, roles: usize, objects: &mut Objects) {
    entry.objects[..roles].iter().for_each(|id| objects.get_mut(*id).kept += 1);
}

fn leave(entry: &Entry, roles: usize, objects: &mut Objects, left: &mut Vec<Entry>) {
    entry.objects[..roles].iter().for_each(|id| objects.get_mut(*id).kept -= 1);
    if entry.is_told {
        left.push(*entry);
    }
}
