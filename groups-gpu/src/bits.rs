//! Arc consistency on bits, in rounds.

use std::sync::atomic::Ordering;

use device::{Graph, Priority, Staged, Stream, room};
use groups::network::{Domains, Network, Outcome};
use kernels::groups::{TOLD_FLAG, TOLD_HEAD, TOLD_WORDS, Task};

use crate::Kernels;
use crate::error::{Error, number};
use crate::launchers::{FIRST, Tables};
use crate::letter::words_at;

/// Most rounds that are started at once after that.
const ROUNDS_MAX: u32 = 64;

/// Bytes of a batch of starts on the device; more starts are several batches.
const BATCH_BYTES: usize = 1 << 28;

/// A network on a device as rows of bits.
///
/// Memory is kept from one network to the next.
#[derive(Debug)]
pub struct Bits {
    kernels: Kernels,
    stream: Stream,
    graph: Graph,
    tables: Tables,
}

impl Bits {
    /// Without a network.
    ///
    /// # Errors
    /// [`Error::Device`]
    pub fn new(kernels: &Kernels) -> Result<Self, Error> {
        let device = kernels.device();
        let tables = Tables {
            variables: 0,
            words_count: 0,
            tasks_count: 0,
            tasks: Staged::new(device)?,
            tasks_at: Staged::new(device)?,
            rows: Staged::new(device)?,
            base: Staged::new(device)?,
            words_at: Staged::new(device)?,
            full: Staged::new(device)?,
            given: device.shared(0)?,
            start: Staged::new(device)?,
            told: device.shared(0)?,
            starts: Staged::new(device)?,
            sizes: device.buffer(0)?,
            stamps: device.buffer(0)?,
            work: device.buffer(0)?,
        };
        let stream = device.stream(Priority::High)?;
        Ok(Self { kernels: kernels.clone(), stream, graph: Graph::default(), tables })
    }

    /// Sends a network to the device: what the rows of its relations take, and 36 bytes for each 64 values of a constraint's variables.
    ///
    /// # Errors
    /// [`Error::TooLarge`] before anything is allocated, and [`Error::Device`], also where the memory is not there; no network is loaded
    /// then.
    pub fn load(&mut self, network: &Network) -> Result<(), Error> {
        let Self { stream, tables, .. } = self;
        (tables.variables, tables.words_count, tables.tasks_count) = (0, 0, 0);
        let variables = number(network.variables_count() as u64, "variables")?;
        let words_count = number(network.unbarred().len() as u64, "words of values")?;
        number(network.rows().len() as u64, "words of relations")?;
        let words_at = words_at(network)?;
        let words = |x: u32| u64::from(words_at[x as usize + 1] - words_at[x as usize]);
        let scopes = network.constraints().iter().map(|constraint| constraint.scope);
        let tasks_count = number(scopes.map(|[x, y]| words(x) + words(y)).sum(), "words of constraints")?;
        let mut tasks_at = Vec::with_capacity(variables as usize + 1);
        tables.tasks.send_by(stream, tasks_count as usize, |tasks| {
            let mut end = 0;
            for y in 0..variables {
                tasks_at.push(end);
                for task in tasks_of(network, &words_at, y) {
                    tasks[end as usize] = task;
                    end += 1;
                }
            }
            tasks_at.push(end);
        })?;
        tables.tasks_at.send(stream, &tasks_at)?;
        tables.rows.send(stream, network.rows())?;
        tables.base.send(stream, &base(network))?;
        tables.words_at.send(stream, &words_at)?;
        let full: Vec<_> = (0..variables).map(|x| network.size(x)).collect();
        tables.full.send(stream, &full)?;
        let words = words_count as usize;
        tables.start.room(1 + words)?;
        tables.start.send(stream, &[0])?;
        for (shared, len) in [(&mut tables.given, words), (&mut tables.told, TOLD_WORDS + words)] {
            if shared.words().len() < len {
                *shared = stream.device().shared(len.next_power_of_two())?;
            }
        }
        room(&mut tables.sizes, variables as usize)?;
        room(&mut tables.stamps, variables as usize)?;
        (tables.variables, tables.words_count, tables.tasks_count) = (variables, words_count, tasks_count);
        Ok(())
    }

    /// Makes the network that is loaded arc consistent, beginning with the values that are left. `loops` are the rounds, the first and the last
    /// included, and may be others the next time.
    ///
    /// # Errors
    /// [`Error::Device`]; the network has to be loaded again then.
    ///
    /// # Panics
    /// If the network is another one.
    pub fn enforce(&mut self, network: &Network, domains: &Domains) -> Result<Outcome, Error> {
        let Self { kernels, stream, graph, tables } = self;
        assert_eq!(
            domains.words().len(),
            tables.words_count as usize,
            "values of the network that is loaded"
        );
        tables.given.write(0, domains.words());
        tables.told.write(TOLD_FLAG, &[0]);
        kernels.rounds(stream, graph, tables)?;
        let (mut last, mut count) = (FIRST[FIRST.len() - 1], 8);
        loop {
            tables.told.wait(stream, TOLD_FLAG, |flag| flag != 0)?;
            let told = tables.told.words();
            let (round, is_empty) = head(told[TOLD_HEAD].load(Ordering::Relaxed));
            if is_empty {
                return Ok(Outcome { domains: None, loops: u64::from(round.max(1)) });
            }
            if round < last {
                let words = &told[TOLD_WORDS..TOLD_WORDS + tables.words_count as usize];
                let words = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
                let domains = Domains::of_words(network, words);
                return Ok(Outcome { domains: Some(domains), loops: u64::from(round) + 1 });
            }
            tables.told.write(TOLD_FLAG, &[0]);
            for round in last + 1..=last + count {
                kernels.round(stream, tables, round)?;
            }
            last += count;
            kernels.tell(stream, tables, last)?;
            count = (2 * count).min(ROUNDS_MAX);
        }
    }

    /// Makes the network that is loaded arc consistent from each of many starts. A start is the work of a warp, so that this gains where there are
    /// hundreds. `loops` are as in [`Bits::enforce`].
    ///
    /// # Errors
    /// [`Error::Device`]
    ///
    /// # Panics
    /// If the network is another one.
    pub fn enforce_all(&mut self, network: &Network, starts: &[Domains]) -> Result<Vec<Outcome>, Error> {
        let Self { kernels, stream, tables, .. } = self;
        let record = 1 + tables.words_count as usize;
        let work = 1 + 3 * tables.variables as usize;
        let most = (BATCH_BYTES / (8 * record + 4 * work)).max(1);
        let mut outcomes = Vec::with_capacity(starts.len());
        for starts in starts.chunks(most) {
            let count = number(starts.len() as u64, "starts")?;
            room(&mut tables.work, starts.len() * work)?;
            tables.starts.send_by(stream, starts.len() * record, |records| {
                for (start, domains) in records.chunks_mut(record).zip(starts) {
                    write(start, domains);
                }
            })?;
            kernels.starts(stream, tables, count)?;
            let records = tables.starts.receive(stream, starts.len() * record)?;
            outcomes.extend(records.chunks(record).map(|start| {
                let (loops, is_empty) = head(start[0]);
                let domains = (!is_empty).then(|| Domains::of_words(network, start[1..].to_vec()));
                Outcome { domains, loops: loops.into() }
            }));
        }
        Ok(outcomes)
    }

    /// Waits until all that was given to the device is done.
    ///
    /// # Errors
    /// [`Error::Device`]
    pub fn synchronize(&self) -> Result<(), Error> {
        Ok(self.stream.synchronize()?)
    }
}

fn write(start: &mut [u64], domains: &Domains) {
    start[0] = 0;
    start[1..].copy_from_slice(domains.words());
}

/// Which round was the last that removed something, or how many loops there were, and whether a variable has no value left.
fn head(word: u64) -> (u32, bool) {
    let [round, is_empty]: [u32; 2] = bytemuck::cast(word);
    (round, is_empty != 0)
}

/// What has to be looked at when a variable has lost values.
fn tasks_of<'a>(network: &'a Network, words_at: &'a [u32], y: u32) -> impl Iterator<Item = Task> + 'a {
    network.arcs(y).iter().flat_map(move |arc| {
        let first = words_at[arc.other as usize];
        (first..words_at[arc.other as usize + 1]).map(move |word| Task {
            x: arc.other,
            word,
            y,
            at: words_at[y as usize],
            unions: arc.own_half.rows_at + word - first,
            union_stride: arc.own_half.row_words,
            tests: arc.half.rows_at + 64 * (word - first) * arc.half.row_words,
            row_words: arc.half.row_words,
            least: arc.half.least,
        })
    })
}

/// The values with a support in each constraint while all values are left.
fn base(network: &Network) -> Vec<u64> {
    let mut base = network.unbarred().to_vec();
    for constraint in network.constraints() {
        for (half, x) in network.matrix(constraint).halves.into_iter().zip(constraint.scope) {
            let words = &mut base[network.words(x)];
            let filled = &network.rows()[half.filled_at as usize..][..words.len()];
            words.iter_mut().zip(filled).for_each(|(word, filled)| *word &= filled);
        }
    }
    base
}
