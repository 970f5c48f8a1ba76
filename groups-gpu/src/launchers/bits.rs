//! The launchers of `kernel_groups.cu`.

use device::{Buffer, DriverError, Graph, Launch, Parameter, SharedWords, Staged, Stream};
use kernels::groups::{TOLD_WORDS, Task};

use super::Kernels;

/// Threads of a block: of a round, and of many starts.
const BLOCK_OF_ROUND: u32 = 128;
const BLOCK_OF_STARTS: u32 = 64;

/// The rounds after the first that are started with it, before the host looks. One that has nothing to do takes a microsecond or two.
pub(crate) const FIRST: [u32; 5] = [2, 3, 4, 5, 6];

/// A network for the rounds, and starts of it.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) variables: u32,
    /// Words of a start, without the one that tells how it went.
    pub(crate) words_count: u32,
    pub(crate) tasks_count: u32,
    pub(crate) tasks: Staged<Task>,
    /// Where the tasks of each y begin, and an end.
    pub(crate) tasks_at: Staged<u32>,
    pub(crate) rows: Staged<u64>,
    /// The words of a start that has all values that the network keeps at all.
    pub(crate) base: Staged<u64>,
    pub(crate) words_at: Staged<u32>,
    pub(crate) full: Staged<u32>,
    /// One start, whose first word is zero between two runs, and what is told the host of it.
    pub(crate) given: SharedWords,
    pub(crate) start: Staged<u64>,
    pub(crate) told: SharedWords,
    /// Many starts.
    pub(crate) starts: Staged<u64>,
    pub(crate) sizes: Buffer<u32>,
    pub(crate) stamps: Buffer<u32>,
    pub(crate) work: Buffer<u32>,
}

impl Kernels {
    /// Round 1 and some after it, and what is told then, as one piece of work.
    pub(crate) fn rounds(
        &self,
        stream: &Stream,
        graph: &mut Graph,
        tables: &mut Tables,
    ) -> Result<(), DriverError> {
        check_one(tables);
        let variables = 32 * u64::from(tables.variables);
        let mut lists: Vec<_> = FIRST
            .iter()
            .map(|round| {
                [
                    Parameter::buffer(&tables.tasks.buffer),
                    Parameter::value(&tables.tasks_count),
                    Parameter::buffer(&tables.rows.buffer),
                    Parameter::buffer(&tables.full.buffer),
                    Parameter::buffer(&tables.start.buffer),
                    Parameter::buffer(&tables.sizes),
                    Parameter::buffer(&tables.stamps),
                    Parameter::value(round),
                ]
            })
            .collect();
        let mut prepare = [
            Parameter::shared(&mut tables.given),
            Parameter::buffer(&tables.base.buffer),
            Parameter::buffer(&tables.words_at.buffer),
            Parameter::buffer(&tables.full.buffer),
            Parameter::value(&tables.variables),
            Parameter::buffer(&tables.start.buffer),
            Parameter::buffer(&tables.sizes),
            Parameter::buffer(&tables.stamps),
        ];
        let mut tell = [
            Parameter::buffer(&tables.start.buffer),
            Parameter::value(&tables.words_count),
            Parameter::value(&FIRST[FIRST.len() - 1]),
            Parameter::shared(&mut tables.told),
        ];
        let (grid, block) = (self.grid(variables, BLOCK_OF_ROUND), BLOCK_OF_ROUND);
        let mut launches = vec![Launch { kernel: &self.prepare, grid, block, parameters: &mut prepare }];
        let grid = self.grid(tables.tasks_count.into(), BLOCK_OF_ROUND);
        launches.extend(lists.iter_mut().map(|list| Launch {
            kernel: &self.round,
            grid,
            block,
            parameters: list,
        }));
        launches.push(Launch { kernel: &self.tell, grid: 1, block: 32, parameters: &mut tell });
        // SAFETY: the parameters are those of `groups_prepare`, `groups_round` and `groups_tell`. `check_one` holds the tables against the
        // counts; tasks name variables, words and rows of the network, which `Bits::load` made them from.
        unsafe { stream.launch_all(graph, &mut launches) }
    }

    /// One more round.
    pub(crate) fn round(&self, stream: &Stream, tables: &Tables, round: u32) -> Result<(), DriverError> {
        check_one(tables);
        let grid = self.grid(tables.tasks_count.into(), BLOCK_OF_ROUND);
        let mut list = [
            Parameter::buffer(&tables.tasks.buffer),
            Parameter::value(&tables.tasks_count),
            Parameter::buffer(&tables.rows.buffer),
            Parameter::buffer(&tables.full.buffer),
            Parameter::buffer(&tables.start.buffer),
            Parameter::buffer(&tables.sizes),
            Parameter::buffer(&tables.stamps),
            Parameter::value(&round),
        ];
        // SAFETY: as in `rounds`.
        unsafe { stream.launch(&self.round, grid, BLOCK_OF_ROUND, &mut list) }
    }

    /// Tells the host how it went up to a round.
    pub(crate) fn tell(&self, stream: &Stream, tables: &mut Tables, last: u32) -> Result<(), DriverError> {
        check_one(tables);
        let mut list = [
            Parameter::buffer(&tables.start.buffer),
            Parameter::value(&tables.words_count),
            Parameter::value(&last),
            Parameter::shared(&mut tables.told),
        ];
        // SAFETY: as in `rounds`.
        unsafe { stream.launch(&self.tell, 1, 32, &mut list) }
    }

    /// All rounds of many starts.
    pub(crate) fn starts(&self, stream: &Stream, tables: &Tables, count: u32) -> Result<(), DriverError> {
        check(tables);
        let work = 1 + 3 * tables.variables as usize;
        let record = 1 + tables.words_count as usize;
        assert!(tables.starts.buffer.len() >= count as usize * record, "room for starts");
        assert!(tables.work.len() >= count as usize * work, "room for queues");
        assert!(tables.tasks_at.buffer.len() > tables.variables as usize, "an end of the tasks");
        // SAFETY: the parameters are those of `groups_starts`. As in `rounds`; a queue holds a variable once at a time, so that it has room.
        unsafe {
            stream.launch(
                &self.starts,
                self.grid(32 * u64::from(count), BLOCK_OF_STARTS),
                BLOCK_OF_STARTS,
                &mut [
                    Parameter::buffer(&tables.tasks.buffer),
                    Parameter::buffer(&tables.tasks_at.buffer),
                    Parameter::buffer(&tables.rows.buffer),
                    Parameter::buffer(&tables.base.buffer),
                    Parameter::buffer(&tables.words_at.buffer),
                    Parameter::buffer(&tables.full.buffer),
                    Parameter::value(&tables.variables),
                    Parameter::value(&tables.words_count),
                    Parameter::value(&count),
                    Parameter::buffer(&tables.starts.buffer),
                    Parameter::buffer(&tables.work),
                ],
            )
        }
    }
}

/// Holds the tables against their counts.
fn check(tables: &Tables) {
    let [variables, words] = [tables.variables, tables.words_count].map(|count| count as usize);
    assert!(tables.tasks.buffer.len() >= tables.tasks_count as usize, "tasks");
    assert!(tables.words_at.buffer.len() > variables && tables.full.buffer.len() >= variables, "variables");
    assert!(tables.base.buffer.len() >= words, "the words of the network");
}

/// Holds what a start takes against them, too.
fn check_one(tables: &Tables) {
    check(tables);
    let [variables, words] = [tables.variables, tables.words_count].map(|count| count as usize);
    assert!(tables.sizes.len() >= variables && tables.stamps.len() >= variables, "room for variables");
    assert!(tables.given.words().len() >= words && tables.start.buffer.len() > words, "room for a start");
    assert!(tables.told.words().len() >= TOLD_WORDS + words, "room for what is told");
}
