//! Bundles: up to ten filters that follow one client with one radius, side by side.
//!
//! A bundle has one place in the grid, so that a move of its client changes one place instead of ten. An event that is
//! near compares the clusters of all its filters with those that it looks for, in one comparison, and reads the fences of
//! those alone that are in one of them. Where many bundles are in a cell that would be too many: there the filters lie in
//! the runs of their clusters, as those without a bundle do, and the bundle is *loose*.

use wide::u16x16;

use super::arena::LINE_BYTES;
use super::records::Records;
use super::runs::{FENCE_BYTES, Lane, Spot, fence_bytes, lane_of};
use crate::compiled::NONE;

/// Filters of a bundle: what of each is read first fits into the line that all begin with.
pub(super) const ROOM_MAX: usize = 10;
/// Clusters of larger numbers do not fit. Their filters are few and found fast by what they ask.
const CLUSTER_MAX: u32 = u16::MAX as u32;
const FENCES_PER_LINE: usize = LINE_BYTES / FENCE_BYTES;
/// The first fence, counted in fences from the beginning.
#[expect(clippy::cast_possible_truncation, reason = "two")]
const FIRST_FENCE: u32 = FENCES_PER_LINE as u32;

/// The line that a bundle begins with; the fences of its filters follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Bundle {
    /// Its lane in the roll of its cell, or [`Self::LOOSE`], or [`Self::NOWHERE`].
    lane: u32,
    pub(super) client: u32,
    /// The other bundles of the client.
    pub(super) next: u32,
    pub(super) previous: u32,
    pub(super) shape: u32,
    /// How many filters it can have: an even number.
    room: u16,
    len: u16,
    unused: [u32; 2],
    /// The clusters of its filters.
    clusters: [u16; ROOM_MAX],
    /// The names that they require, as bits; beyond all of them whatever makes a line.
    required: [u8; ROOM_MAX + 2],
}
const _: () = assert!(size_of::<Bundle>() == LINE_BYTES);

/// Where the filters of a bundle are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The client is nowhere.
    Nowhere,
    /// In a lane of their cell's roll.
    Whole(u16),
    /// Each in a run of its cluster.
    Loose,
}

impl Bundle {
    const LOOSE: u32 = u32::MAX - 1;
    const NOWHERE: u32 = u32::MAX;

    /// Whether a filter in a cluster can be in a bundle.
    pub(super) fn takes(cluster: u32) -> bool {
        cluster <= CLUSTER_MAX
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "lanes are few")]
    pub(super) fn standing(&self) -> Standing {
        match self.lane {
            Self::NOWHERE => Standing::Nowhere,
            Self::LOOSE => Standing::Loose,
            lane => Standing::Whole(lane as u16),
        }
    }

    pub(super) fn set_standing(&mut self, standing: Standing) {
        self.lane = match standing {
            Standing::Nowhere => Self::NOWHERE,
            Standing::Whole(lane) => lane.into(),
            Standing::Loose => Self::LOOSE,
        };
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.room
    }

    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    pub(super) fn room(&self) -> usize {
        self.room.into()
    }

    /// Filters that are in a cluster and require none of the absent names, as bits.
    #[inline]
    pub(super) fn fitting(&self, cluster: u32, absent: u8) -> u32 {
        // Clusters beyond are in no bundle; here they look like others, whose fences must not be compared with theirs.
        let Ok(cluster) = u16::try_from(cluster) else { return 0 };
        // Bytes of `required` stand behind the clusters, and do not count.
        let mut clusters = [0; 16];
        clusters[..ROOM_MAX].copy_from_slice(&self.clusters);
        let same = u16x16::new(clusters).simd_eq(u16x16::splat(cluster)).to_bitmask();
        let mut same = same & ((1 << self.len) - 1);
        let mut fitting = 0;
        while same != 0 {
            let index = same.trailing_zeros();
            same &= same - 1;
            fitting |= u32::from(self.required[index as usize] & absent == 0) << index;
        }
        fitting
    }
}

/// The lines of a bundle.
fn lines(room: usize) -> usize {
    1 + room / FENCES_PER_LINE
}

/// Bundles are known by their first block among the records.
impl Records {
    /// A new bundle for so many filters, which is nowhere and in no list; `None` when numbers or memory are used up.
    pub(super) fn add_bundle(&mut self, client: u32, shape: u32, room: usize) -> Option<u32> {
        let room = room.next_multiple_of(FENCES_PER_LINE).min(ROOM_MAX);
        let number = self.allocate_lines(lines(room))?;
        *self.bundle_mut(number) = Bundle {
            lane: Bundle::NOWHERE,
            client,
            next: NONE,
            previous: NONE,
            shape,
            room: u16::try_from(room).ok()?,
            len: 0,
            unused: [0; 2],
            clusters: [0; ROOM_MAX],
            required: [0; ROOM_MAX + 2],
        };
        Some(number)
    }

    /// A copy of a bundle with more room; its filters are told. The old one is given back.
    pub(super) fn enlarge_bundle(&mut self, number: u32, room: usize) -> Option<u32> {
        let old = *self.bundle(number);
        let enlarged = self.add_bundle(old.client, old.shape, room)?;
        let held = self.lines(number, lines(old.room())).to_vec();
        let room = self.bundle(enlarged).room;
        self.lines_mut(enlarged, lines(old.room())).copy_from_slice(&held);
        self.bundle_mut(enlarged).room = room;
        for index in 0..old.len() {
            let record = self.member(enlarged, index, Spot::default()).1.owner.record;
            self.set_bundle(record, enlarged);
        }
        self.release_lines(number, lines(old.room()));
        Some(enlarged)
    }

    /// Gives an empty bundle back.
    pub(super) fn remove_bundle(&mut self, number: u32) {
        let room = self.bundle(number).room();
        self.release_lines(number, lines(room));
    }

    #[inline]
    pub(super) fn bundle(&self, number: u32) -> &Bundle {
        bytemuck::from_bytes(self.lines(number, 1))
    }

    #[inline]
    pub(super) fn bundle_mut(&mut self, number: u32) -> &mut Bundle {
        bytemuck::from_bytes_mut(self.lines_mut(number, 1))
    }

    /// The block of the fence of a bundle's filter.
    #[inline]
    pub(super) fn fence_of(number: u32, index: u32) -> u32 {
        number + FIRST_FENCE + index
    }

    /// A bundle's filter: its cluster, and its lane when the bundle is at a spot.
    pub(super) fn member(&self, number: u32, index: usize, spot: Spot) -> (u32, Lane) {
        let bundle = self.bundle(number);
        #[expect(clippy::cast_possible_truncation, reason = "at most ten")]
        let fence = self.block(Self::fence_of(number, index as u32));
        (bundle.clusters[index].into(), lane_of(spot, bundle.required[index], fence))
    }

    /// Puts a filter into a bundle that has room for it.
    pub(super) fn push_member(&mut self, number: u32, cluster: u32, lane: &Lane) {
        let len = self.bundle(number).len();
        let bundle = self.bundle_mut(number);
        #[expect(clippy::cast_possible_truncation, reason = "`takes` says so")]
        let cluster = cluster as u16;
        (bundle.clusters[len], bundle.required[len]) = (cluster, lane.required);
        bundle.len += 1;
        self.set_fence(number, len, &fence_bytes(lane));
        self.set_bundle(lane.owner.record, number);
    }

    /// Takes the filter of a record out of its bundle. The last one fills the gap.
    pub(super) fn remove_member(&mut self, number: u32, record: u32) {
        let len = self.bundle(number).len();
        let is_it = |index: &usize| self.member(number, *index, Spot::default()).1.owner.record == record;
        let Some(index) = (0..len).find(is_it) else { return };
        let (_, last) = self.member(number, len - 1, Spot::default());
        self.set_fence(number, index, &fence_bytes(&last));
        let bundle = self.bundle_mut(number);
        bundle.clusters[index] = bundle.clusters[len - 1];
        bundle.required[index] = bundle.required[len - 1];
        bundle.len -= 1;
        self.set_bundle(record, NONE);
    }

    fn set_fence(&mut self, number: u32, index: usize, fence: &[u8; FENCE_BYTES]) {
        let start = LINE_BYTES + index * FENCE_BYTES;
        self.lines_mut(number, lines(index + FENCES_PER_LINE))[start..][..FENCE_BYTES].copy_from_slice(fence);
    }
}
