//! The batched engine's kernels: changes of the table, the sort, the search.

use kernels::gpu::{CHUNK, Constraint, ConstraintUpdate, EntryUpdate, HeadUpdate, Move};

use crate::gpu::base::{Base, Sorter};
use crate::gpu::log::Log;
use crate::gpu::table::Table;
use device::{Buffer, Device, DriverError, Kernel, Parameter, SharedWords, Stream};

/// Threads a block: eight warps, as many as the search has queues for.
const BLOCK: u32 = 256;
/// Threads of a warp.
const WARP: u32 = 32;
/// Warps of a search are fewer.
const WARPS_END: u32 = 1 << 16;
/// Buckets that a warp adds up.
const CHUNK_BUCKETS: u32 = 1024;
const _: () = assert!(CHUNK == CHUNK_BUCKETS as usize);

#[derive(Debug)]
pub(crate) struct GpuKernels {
    /// Threads that work together: a warp, or one on the host.
    lanes: u32,
    put_entries: Kernel,
    put_constraints: Kernel,
    put_heads: Kernel,
    move_clients: Kernel,
    sort_keys: Kernel,
    sort_sums: Kernel,
    sort_starts: Kernel,
    sort_offsets: Kernel,
    sort_scatter: Kernel,
    search: Kernel,
}

/// How changes are entered: under which stamp, and whether in the log as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entering {
    pub(crate) stamp: u32,
    pub(crate) logging: bool,
}

/// A batch that was written down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) events: u32,
    /// Words of 64 bits, attributes included.
    pub(crate) words: usize,
    /// Warps an event.
    pub(crate) parts: u32,
    /// The first word that is an attribute.
    pub(crate) attributes_at: u32,
    /// Pairs that there is room for.
    pub(crate) capacity: u32,
}

/// Memory that a batch goes through.
#[derive(Debug)]
pub(crate) struct Through<'a> {
    pub(crate) sent: &'a mut SharedWords,
    /// Gets the count of pairs and one, as the last of all, and the pairs behind it.
    pub(crate) found: &'a mut SharedWords,
    /// 0 between two batches.
    pub(crate) tally: &'a Buffer<u64>,
}

impl GpuKernels {
    pub(crate) fn load(device: &Device) -> Result<Self, DriverError> {
        let table = device.module(&kernels::GPU_TABLE)?;
        let sort = device.module(&kernels::GPU_SORT)?;
        let search = device.module(&kernels::GPU_MATCH)?;
        Ok(Self {
            lanes: if device.is_host() { 1 } else { WARP },
            put_entries: table.kernel("gpu_put_entries")?,
            put_constraints: table.kernel("gpu_put_constraints")?,
            put_heads: table.kernel("gpu_put_heads")?,
            move_clients: table.kernel("gpu_move_clients")?,
            sort_keys: sort.kernel("gpu_sort_keys")?,
            sort_sums: sort.kernel("gpu_sort_sums")?,
            sort_starts: sort.kernel("gpu_sort_starts")?,
            sort_offsets: sort.kernel("gpu_sort_offsets")?,
            sort_scatter: sort.kernel("gpu_sort_scatter")?,
            search: search.kernel("gpu_match")?,
        })
    }

    /// Writes entries. Their numbers are below the table's lengths.
    pub(crate) fn put_entries(
        &self,
        stream: &Stream,
        updates: &Buffer<EntryUpdate>,
        count: u32,
        entering: Entering,
        table: &Table,
        log: &Log,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= updates.len(), "more updates than were sent");
        check_table(table);
        // SAFETY: the parameters are those of `gpu_put_entries` in kernel_gpu_table.cu; the entries' numbers are
        // below the table's lengths, for which room was made before they were sent; the ring is masked.
        unsafe {
            stream.launch(
                &self.put_entries,
                count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(updates),
                    Parameter::value(&count),
                    Parameter::value(&entering.stamp),
                    Parameter::value(&u32::from(entering.logging)),
                    Parameter::buffer(&table.places),
                    Parameter::buffer(&table.masks),
                    Parameter::buffer(&table.subscriptions),
                    Parameter::buffer(&table.starts),
                    Parameter::buffer(&table.kinds),
                    Parameter::buffer(&table.stamps),
                    Parameter::buffer(&table.next),
                    Parameter::value(&ring_mask(log)),
                    Parameter::buffer(&log.places),
                    Parameter::buffer(&log.masks),
                    Parameter::buffer(&log.entries),
                    Parameter::buffer(&log.stamps),
                ],
            )
        }
    }

    /// Writes constraints. Their places are below the array's length.
    pub(crate) fn put_constraints(
        &self,
        stream: &Stream,
        updates: &Buffer<ConstraintUpdate>,
        count: u32,
        constraints: &Buffer<Constraint>,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= updates.len(), "more updates than were sent");
        // SAFETY: the parameters are those of `gpu_put_constraints` in kernel_gpu_table.cu; room was made for the
        // places before they were sent.
        unsafe {
            stream.launch(
                &self.put_constraints,
                count.div_ceil(BLOCK),
                BLOCK,
                &mut [Parameter::buffer(updates), Parameter::value(&count), Parameter::buffer(constraints)],
            )
        }
    }

    /// Writes where lists begin. The clients' numbers are below the array's length.
    pub(crate) fn put_heads(
        &self,
        stream: &Stream,
        updates: &Buffer<HeadUpdate>,
        count: u32,
        heads: &Buffer<u32>,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= updates.len(), "more updates than were sent");
        // SAFETY: the parameters are those of `gpu_put_heads` in kernel_gpu_table.cu; room was made for the clients
        // before they were sent.
        unsafe {
            stream.launch(
                &self.put_heads,
                count.div_ceil(BLOCK),
                BLOCK,
                &mut [Parameter::buffer(updates), Parameter::value(&count), Parameter::buffer(heads)],
            )
        }
    }

    /// Moves clients, whose numbers are below the length of the heads.
    pub(crate) fn move_clients(
        &self,
        stream: &Stream,
        moves: &Buffer<Move>,
        count: u32,
        entering: Entering,
        table: &Table,
        log: &Log,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= moves.len(), "more moves than were sent");
        check_table(table);
        // SAFETY: the parameters are those of `gpu_move_clients` in kernel_gpu_table.cu; heads and links lead to
        // entries that were put there before, and end; the ring is masked.
        unsafe {
            stream.launch(
                &self.move_clients,
                count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(moves),
                    Parameter::value(&count),
                    Parameter::value(&entering.stamp),
                    Parameter::value(&u32::from(entering.logging)),
                    Parameter::buffer(&table.heads),
                    Parameter::buffer(&table.next),
                    Parameter::buffer(&table.masks),
                    Parameter::buffer(&table.places),
                    Parameter::buffer(&table.stamps),
                    Parameter::value(&ring_mask(log)),
                    Parameter::buffer(&log.places),
                    Parameter::buffer(&log.masks),
                    Parameter::buffer(&log.entries),
                    Parameter::buffer(&log.stamps),
                ],
            )
        }
    }

    /// Sorts the table's first entries into a base whose offsets and levels were cleared before on the same stream.
    pub(crate) fn sort(
        &self,
        stream: &Stream,
        table: &Table,
        sorter: &Sorter,
        base: &Base,
        entries_count: u32,
    ) -> Result<(), DriverError> {
        let entries = entries_count as usize;
        let chunks = (base.buckets_mask + 1) / CHUNK_BUCKETS;
        check_table(table);
        let room = [table.places.len(), sorter.keys.len(), sorter.ranks.len(), base.places.len()];
        let room = room.into_iter().chain([base.masks.len(), base.entries.len()]).min();
        assert!(
            room.is_some_and(|room| entries <= room)
                && base.offsets.len() > base.buckets_mask as usize + 1
                && sorter.sums.len() >= chunks as usize,
            "a sort needs room"
        );
        if entries == 0 {
            return Ok(());
        }
        let chunk_blocks = (chunks * self.lanes).div_ceil(BLOCK);
        // SAFETY: the parameters are those of `gpu_sort_keys` in kernel_gpu_sort.cu; lengths were checked above.
        unsafe {
            stream.launch(
                &self.sort_keys,
                entries_count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(&table.places),
                    Parameter::buffer(&table.kinds),
                    Parameter::value(&entries_count),
                    Parameter::value(&base.levels),
                    Parameter::value(&base.buckets_mask),
                    Parameter::buffer(&sorter.keys),
                    Parameter::buffer(&sorter.ranks),
                    Parameter::buffer(&base.offsets),
                    Parameter::buffer(&base.occupied),
                ],
            )
        }?;
        // SAFETY: as above, for `gpu_sort_sums`; the offsets hold all chunks.
        unsafe {
            stream.launch(
                &self.sort_sums,
                chunk_blocks,
                BLOCK,
                &mut [
                    Parameter::buffer(&base.offsets),
                    Parameter::value(&chunks),
                    Parameter::buffer(&sorter.sums),
                ],
            )
        }?;
        // SAFETY: as above, for `gpu_sort_starts`; one warp works on the sums of all chunks.
        unsafe {
            stream.launch(
                &self.sort_starts,
                1,
                WARP,
                &mut [Parameter::buffer(&sorter.sums), Parameter::value(&chunks)],
            )
        }?;
        // SAFETY: as above, for `gpu_sort_offsets`; the offsets hold all chunks and one more.
        unsafe {
            stream.launch(
                &self.sort_offsets,
                chunk_blocks,
                BLOCK,
                &mut [
                    Parameter::buffer(&sorter.sums),
                    Parameter::value(&chunks),
                    Parameter::buffer(&base.offsets),
                ],
            )
        }?;
        // SAFETY: as above, for `gpu_sort_scatter`; an entry's key and rank lead to a slot of its own below the number
        // of entries.
        unsafe {
            stream.launch(
                &self.sort_scatter,
                entries_count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(&sorter.keys),
                    Parameter::buffer(&sorter.ranks),
                    Parameter::value(&entries_count),
                    Parameter::buffer(&base.offsets),
                    Parameter::buffer(&table.places),
                    Parameter::buffer(&table.masks),
                    Parameter::buffer(&base.places),
                    Parameter::buffer(&base.masks),
                    Parameter::buffer(&base.entries),
                ],
            )
        }
    }

    /// Searches for the entries that each event of a batch may satisfy.
    pub(crate) fn search(
        &self,
        stream: &Stream,
        batch: Batch,
        through: Through<'_>,
        table: &Table,
        base: &Base,
        log: &Log,
    ) -> Result<(), DriverError> {
        let Batch { events, words, parts, attributes_at, capacity } = batch;
        let Through { sent, found, tally } = through;
        let (sent_len, found_len) = (sent.words().len(), found.words().len());
        assert!(attributes_at as usize <= words && words <= sent_len, "events and attributes were sent");
        assert!((capacity as usize) < found_len && !tally.is_empty(), "the answers need room");
        assert!(
            events.checked_mul(parts).is_some_and(|warps| warps < WARPS_END),
            "warps are counted in 16 bits"
        );
        check_table(table);
        assert!(base.offsets.len() > base.buckets_mask as usize + 1, "buckets end somewhere");
        // SAFETY: the parameters are those of `gpu_match` in kernel_gpu_match.cu; the events and their attributes are
        // among the words, as the encoder put them; answers end with the capacity; the base's offsets end with its
        // entries, entries lead to the table, and their constraints lie in its array.
        unsafe {
            stream.launch(
                &self.search,
                (events * parts * self.lanes).div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::shared(sent),
                    Parameter::value(&events),
                    Parameter::value(&parts),
                    Parameter::value(&attributes_at),
                    Parameter::shared(found),
                    Parameter::buffer(tally),
                    Parameter::value(&capacity),
                    Parameter::value(&base.levels),
                    Parameter::buffer(&base.occupied),
                    Parameter::buffer(&base.offsets),
                    Parameter::value(&base.buckets_mask),
                    Parameter::value(&base.epoch),
                    Parameter::buffer(&base.places),
                    Parameter::buffer(&base.masks),
                    Parameter::buffer(&base.entries),
                    Parameter::buffer(&log.places),
                    Parameter::buffer(&log.masks),
                    Parameter::buffer(&log.entries),
                    Parameter::buffer(&log.stamps),
                    Parameter::value(&log.start),
                    Parameter::value(&log.end),
                    Parameter::value(&ring_mask(log)),
                    Parameter::buffer(&table.stamps),
                    Parameter::buffer(&table.subscriptions),
                    Parameter::buffer(&table.kinds),
                    Parameter::buffer(&table.starts),
                    Parameter::buffer(&table.constraints),
                ],
            )
        }
    }
}

/// Holds the table's arrays against each other: what is below the length of one is below that of all.
fn check_table(table: &Table) {
    let len = table.places.len();
    let words = [&table.masks, &table.subscriptions, &table.starts, &table.kinds, &table.stamps, &table.next];
    assert!(words.iter().all(|array| array.len() >= len), "the table's arrays have room for all entries");
}

fn ring_mask(log: &Log) -> u32 {
    u32::try_from(log.places.len() - 1).expect("the ring is small")
}
