//! Clusters: which filters lie together, by the names that they require.
//!
//! A cluster is a set of up to six names that filters use together. A filter lies in a cluster that has its names,
//! with an interval of codes for each (see `codes`): an event compares all filters of a cluster with one vector
//! of its values, in which absent ones have a code of their own. Filters with an equality lie in a cluster of that value
//! alone. An event finds the clusters under its names and its values. Names that are used together in too many ways
//! share a *masked* cluster instead, whose filters each have a 32-bit mask of their names (CLCB, section 4.3).

use wide::u16x16;

use super::coded::Coded;
use super::codes::{ABSENT, Interval, ValueCode};
use crate::compiled::NONE;
use crate::compiled::constraints::{Bound, bounds, has_residual};
use crate::compiled::names;
use crate::compiled::slab::Slab;
use crate::compiled::table::NumberTable;
use crate::compiled::texts::Texts;
use crate::compiled::view::{Kind, scalar_bits};

/// Names of a cluster; further names of a filter are left to its exact constraints.
pub(super) const COLUMNS: usize = 6;
/// Clusters of a name, the masked one not counted.
const CLUSTERS_PER_NAME: usize = 4;

/// Names, with the clusters of each.
pub(super) type Names = names::Names<ClustersOfName>;

/// Which clusters a name leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct ClustersOfName {
    /// The clusters that have it among their names, those of values aside.
    clusters: Vec<u32>,
    /// How many clusters are of one of its values.
    value_clusters: u32,
}

/// Clusters by number.
#[derive(Debug)]
pub(super) struct Clusters {
    held: Slab<Cluster>,
    by_value: NumberTable,
    /// The cluster of filters that require no name.
    nameless: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cluster {
    anchor: Anchor,
    /// `NONE` where a column is free.
    names: [u32; COLUMNS],
    /// How many filters require each.
    uses: [u32; COLUMNS],
    filters: u32,
}

/// Attributes that an event must have to look into a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Anchor {
    #[default]
    Nothing,
    /// One of its names.
    Names,
    /// Its only name; filters have masks instead of intervals.
    MaskedName,
    Value(u32, Kind, u64),
}

impl Default for Cluster {
    fn default() -> Self {
        Self { anchor: Anchor::Nothing, names: [NONE; COLUMNS], uses: [0; COLUMNS], filters: 0 }
    }
}

/// Where a filter lies: its cluster and, as bits, the columns of the names that it requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    pub(super) cluster: u32,
    pub(super) required: u8,
}

/// A filter's intervals in the columns of its cluster: the low ends, then the complements of the high ends. In a masked
/// cluster, the halves of its mask come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) fields: [u16; 2 * COLUMNS],
    /// Whether the filter's constraints hold for certain where the event's values are strictly inside.
    pub(super) complete: bool,
}

/// The side of an event in its comparison with the filters of a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClusterProbe {
    pub(super) cluster: u32,
    pub(super) masked: bool,
    /// The columns whose names the event lacks, as bits; those without a name not counted.
    pub(super) absent: u8,
    /// The codes of its values in the columns, and their complements.
    pub(super) codes: u16x16,
}

impl Clusters {
    pub(super) fn new() -> Self {
        Self { held: Slab::new(), by_value: NumberTable::new(), nameless: NONE }
    }

    /// Where a filter of these compiled constraints is to lie; counts it in. `None` when numbers are used up.
    pub(super) fn acquire(&mut self, words: &[u64], names: &mut Names) -> Option<Membership> {
        let by_value = bounds(words).filter_map(|bound| value_anchor(&bound));
        let rarest = by_value.min_by_key(|anchor| {
            let cluster = self.find_value(*anchor);
            if cluster == NONE { 0 } else { self.held[cluster].filters }
        });
        let required = required_names(words, rarest);
        let cluster = match rarest {
            Some(anchor) => match self.find_value(anchor) {
                NONE => self.add(anchor, names)?,
                cluster => cluster,
            },
            None if required.is_empty() => {
                if self.nameless == NONE {
                    self.nameless = self.add(Anchor::Nothing, names)?;
                }
                self.nameless
            }
            None => match self.fitting(&required, names) {
                Some(cluster) => cluster,
                None if required.iter().all(|name| self.count(*name, names) < CLUSTERS_PER_NAME) => {
                    self.add(Anchor::Names, names)?
                }
                None => return self.acquire_masked(&required, names),
            },
        };
        Some(self.join(cluster, &required, names))
    }

    /// One filter less.
    pub(super) fn release(&mut self, membership: Membership, names: &mut Names) {
        let Membership { cluster: number, required } = membership;
        let cluster = &mut self.held[number];
        cluster.filters -= 1;
        for column in (0..COLUMNS).filter(|column| required >> column & 1 == 1) {
            cluster.uses[column] -= 1;
            if cluster.uses[column] == 0 {
                let name = std::mem::replace(&mut cluster.names[column], NONE);
                names.name_mut(name).payload.clusters.retain(|held| *held != number);
            }
        }
        if cluster.filters > 0 {
            return;
        }
        match cluster.anchor {
            Anchor::Nothing => self.nameless = NONE,
            Anchor::Names | Anchor::MaskedName => {}
            Anchor::Value(name, ..) => {
                let hash = hash_anchor(cluster.anchor);
                names.name_mut(name).payload.value_clusters -= 1;
                self.by_value.remove(hash, number);
            }
        }
        self.held.remove(number);
    }

    /// The fence of a filter whose compiled constraints these are; `mask` is that of the names that it requires.
    pub(super) fn fence(&self, membership: Membership, words: &[u64], mask: u32) -> Fence {
        let Cluster { anchor, names, .. } = self.held[membership.cluster];
        let mut fence = Fence { complete: !has_residual(words), ..Fence::OPEN };
        if anchor == Anchor::MaskedName {
            [fence.fields[0], fence.fields[1]] = bytemuck::cast(mask);
            fence.complete = false;
            return fence;
        }
        let mut intervals = [Interval::ANYTHING; COLUMNS];
        for bound in bounds(words) {
            if value_anchor(&bound) == Some(anchor) {
                continue;
            }
            let is_it =
                |column: &usize| membership.required >> column & 1 == 1 && names[*column] == bound.name;
            let column = (0..COLUMNS).find(is_it).filter(|_| bound.requires_presence);
            if let Some(column) = column {
                intervals[column] = intervals[column].and(bound.interval.into());
            }
            fence.complete &= bound.complete && column.is_some();
        }
        for (column, Interval { low, high }) in intervals.into_iter().enumerate() {
            fence.fields[column] = low;
            fence.fields[COLUMNS + column] = !high;
        }
        fence
    }

    /// Appends probes for the clusters that an event has to look into.
    pub(super) fn append_probes(
        &self,
        coded: &Coded<'_>,
        names: &Names,
        texts: &Texts,
        probes: &mut Vec<ClusterProbe>,
    ) {
        let start = probes.len();
        if self.nameless != NONE {
            probes.push(self.probe(self.nameless, coded));
        }
        for attribute in coded.viewed.attributes {
            let name = &names.name(attribute.name).payload;
            for cluster in &name.clusters {
                if probes[start..].iter().all(|probe| probe.cluster != *cluster) {
                    probes.push(self.probe(*cluster, coded));
                }
            }
            if name.value_clusters == 0 {
                continue;
            }
            if attribute.kind != Kind::Array {
                let cluster = self.find_value(Anchor::Value(attribute.name, attribute.kind, attribute.bits));
                if cluster != NONE {
                    probes.push(self.probe(cluster, coded));
                }
                continue;
            }
            let elements = coded.viewed.event.attributes[attribute.source as usize].value.elements();
            let mut found: Vec<u32> = elements
                .iter()
                .map(|element| scalar_bits(element, texts))
                .map(|(kind, bits)| self.find_value(Anchor::Value(attribute.name, kind, bits)))
                .filter(|cluster| *cluster != NONE)
                .collect();
            // An array may hold a value twice.
            found.sort_unstable();
            found.dedup();
            probes.extend(found.into_iter().map(|cluster| self.probe(cluster, coded)));
        }
    }

    #[inline]
    fn probe(&self, number: u32, coded: &Coded<'_>) -> ClusterProbe {
        let cluster = &self.held[number];
        let mut absent = 0;
        // Behind the fence lies its owner, which is not to be compared.
        let mut codes = [u16::MAX; 16];
        for (column, name) in cluster.names.iter().enumerate() {
            let ValueCode { low, high } = match coded.code(*name) {
                Some(code) => *code,
                None => {
                    absent |= u8::from(*name != NONE) << column;
                    ABSENT
                }
            };
            (codes[column], codes[COLUMNS + column]) = (low, high);
        }
        let masked = cluster.anchor == Anchor::MaskedName;
        ClusterProbe { cluster: number, masked, absent, codes: u16x16::new(codes) }
    }

    pub(super) fn bytes(&self) -> usize {
        self.held.bytes() + self.by_value.bytes()
    }

    /// The cluster that shares the most names with a filter, and at least half of them, if it can have all.
    fn fitting(&self, required: &[u32], names: &Names) -> Option<u32> {
        let candidates = required.iter().flat_map(|name| &names.name(*name).payload.clusters);
        let fits = |number: &u32| {
            let cluster = &self.held[*number];
            let (shared, others): (Vec<u32>, Vec<u32>) =
                required.iter().partition(|name| cluster.names.contains(*name));
            let free = cluster.names.iter().filter(|name| **name == NONE).count();
            let fits = cluster.anchor == Anchor::Names
                && others.len() <= free
                && others.len() <= shared.len()
                && others.iter().all(|name| self.count(*name, names) < CLUSTERS_PER_NAME);
            fits.then_some((shared.len(), *number))
        };
        candidates.filter_map(fits).max().map(|(_, number)| number)
    }

    /// How many clusters have a name among theirs, the masked one not counted.
    fn count(&self, name: u32, names: &Names) -> usize {
        let clusters = names.name(name).payload.clusters.iter();
        clusters.filter(|cluster| self.held[**cluster].anchor == Anchor::Names).count()
    }

    /// Puts a filter under the rarest of its names alone.
    fn acquire_masked(&mut self, required: &[u32], names: &mut Names) -> Option<Membership> {
        let rarest = *required.iter().min_by_key(|name| (names.name(**name).uses, **name))?;
        let mut clusters = names.name(rarest).payload.clusters.iter().copied();
        let cluster = match clusters.find(|cluster| self.held[*cluster].anchor == Anchor::MaskedName) {
            Some(cluster) => cluster,
            None => self.add(Anchor::MaskedName, names)?,
        };
        Some(self.join(cluster, &[rarest], names))
    }

    /// Counts a filter into a cluster and gives its names columns there, as far as there are free ones.
    fn join(&mut self, number: u32, required: &[u32], names: &mut Names) -> Membership {
        let cluster = &mut self.held[number];
        cluster.filters += 1;
        let mut bits = 0;
        for name in required {
            let held = cluster.names.iter().position(|held| held == name);
            let Some(column) = held.or_else(|| cluster.names.iter().position(|held| *held == NONE)) else {
                break;
            };
            if held.is_none() {
                cluster.names[column] = *name;
                if matches!(cluster.anchor, Anchor::Names | Anchor::MaskedName) {
                    names.name_mut(*name).payload.clusters.push(number);
                }
            }
            cluster.uses[column] += 1;
            bits |= 1 << column;
        }
        Membership { cluster: number, required: bits }
    }

    fn add(&mut self, anchor: Anchor, names: &mut Names) -> Option<u32> {
        let number = self.held.insert(Cluster { anchor, ..Cluster::default() })?;
        if let Anchor::Value(name, ..) = anchor {
            names.name_mut(name).payload.value_clusters += 1;
            let held = &self.held;
            let rehash = |other: &u32| hash_anchor(held[*other].anchor);
            self.by_value.insert(hash_anchor(anchor), number, rehash);
        }
        Some(number)
    }

    #[inline]
    fn find_value(&self, anchor: Anchor) -> u32 {
        self.by_value
            .find(hash_anchor(anchor), |cluster| self.held[*cluster].anchor == anchor)
            .unwrap_or(NONE)
    }
}

impl Fence {
    /// Around everything.
    pub(super) const OPEN: Self = Self { fields: [0; 2 * COLUMNS], complete: true };
}

/// The names that a filter requires beside its anchor's, ascending; as many as a cluster can have.
fn required_names(words: &[u64], anchor: Option<Anchor>) -> Vec<u32> {
    let mut names: Vec<u32> = bounds(words)
        .filter(|bound| bound.requires_presence)
        .map(|bound| bound.name)
        .filter(|name| !matches!(anchor, Some(Anchor::Value(anchored, ..)) if anchored == *name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(COLUMNS);
    names
}

/// The anchor that a plain equality can be.
fn value_anchor(bound: &Bound) -> Option<Anchor> {
    bound.equal.map(|(kind, bits)| Anchor::Value(bound.name, kind, bits))
}

#[inline]
fn hash_anchor(anchor: Anchor) -> u64 {
    let Anchor::Value(name, kind, bits) = anchor else { return 0 };
    let key = u64::from(name) << 2 | kind as u64;
    let product = u128::from(key ^ 0xd6e8_feb8_6659_fd93) * u128::from(bits ^ 0x9e37_79b9_7f4a_7c15);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}
