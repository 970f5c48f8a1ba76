//! Searches on a device: begun, run, stopped and gone on with, or from beginning to end.

use device::{DriverError, Priority, Stream};
use kernels::routes::State;
use routes::{Batch, Cost, Costed, LEVELS, Route, UNREACHABLE};

use crate::Kernels;
use crate::error::Error;
use crate::evaluator::{Evaluator, Kernel};
use crate::graphs::{Graphs, Tuning};
use crate::launchers::BLOCK_BYTES;
use crate::pack::Pack;

/// Bytes of the queries that are looked for together; more queries are several packs.
const PACK_BYTES: usize = 1 << 30;

/// Rounds between two looks of the host: launches that wait, and rounds of a composed kernel, which must not hold the device for long.
const ROUNDS_OF_LAUNCHES: u32 = 16;
const ROUNDS_COMPOSED: u32 = 4_096;

/// Slices of a batch that can be stopped. Each costs a launch, and 24 bytes a query that are brought back.
const SLICES: u32 = 4;

/// The form in which rounds run. What they leave is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Four kernels a round, each over all queries, as in the paper. For a few searches through large graphs.
    Launches,
    /// One kernel, in which a block of threads has a query and goes from round to round by itself. For many searches.
    Composed,
    /// As [`Form::Composed`], with this number of warps for a query, each of which takes a block of 128 nodes at a time: 1 to 8, and no more than the largest
    /// query has blocks, as many as [`Form::Composed`] takes. With fewer a search takes longer, and more of them run at once.
    Warps(u32),
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Whether it has nothing left to look at.
    pub is_over: bool,
    /// What its best route so far costs, which is the cheapest once it is over.
    pub cost: Option<Cost>,
}

/// Graphs on a device, and searches through them.
///
/// [`Searcher::routes`] and [`Searcher::costs`] do all that there is to do. The other methods are their steps: [`Searcher::begin`] sends queries,
/// [`Searcher::run`] runs rounds, and [`Searcher::route`] brings a route back. Memory is kept from one pack of queries to the next.
#[derive(Debug)]
pub struct Searcher {
    kernels: Kernels,
    stream: Stream,
    pub(crate) graphs: Graphs,
    pack: Pack,
    evaluator: Evaluator,
    /// How long it took to bring back a route of the last batch.
    bringing_ns: u64,
    /// The parts of the time after each slice of the last batch of each level that was searched for to its end: in the last rounds few searches are
    /// left.
    parts: [[f64; SLICES as usize]; LEVELS],
}

impl Searcher {
    /// Without a graph.
    ///
    /// # Errors
    /// [`Error::Device`]
    pub fn new(kernels: &Kernels) -> Result<Self, Error> {
        let device = kernels.device();
        Ok(Self {
            kernels: kernels.clone(),
            stream: device.stream(Priority::High)?,
            graphs: Graphs::new(device)?,
            pack: Pack::new(device)?,
            evaluator: Evaluator::default(),
            bringing_ns: 0,
            parts: [[0.25, 0.5, 0.75, 1.0]; LEVELS],
        })
    }

    /// Sends graphs to the device, in place of those that are there.
    ///
    /// Cost: 4 bytes of device memory a node, 12 an arc, and 16 a node and landmark; on the processor a copy, and two searches a landmark.
    ///
    /// # Errors
    /// [`Error::TooLarge`], and [`Error::Device`], also where the memory is not there; no graph is loaded then.
    ///
    /// # Panics
    /// If a graph has more or fewer arcs than costs.
    pub fn load(&mut self, graphs: &[Costed<'_>], tuning: Tuning) -> Result<(), Error> {
        self.evaluator = Evaluator::default();
        self.graphs.load(&self.stream, graphs, tuning)
    }

    /// Has the arcs of a graph cost something else. Searches on their way are over without a result.
    ///
    /// Cost: a copy to the device of 8 bytes an arc. The bounds of A* are used as long as no arc costs less than when the graph was loaded.
    ///
    /// # Errors
    /// [`Error::Device`]; the arcs cost what they did.
    ///
    /// # Panics
    /// If there is no such graph, or it has more or fewer arcs.
    pub fn set_costs(&mut self, graph: usize, costs: &[Cost]) -> Result<(), Error> {
        self.evaluator = Evaluator::default();
        self.graphs.set_costs(&self.stream, graph, costs)
    }

    /// The cheapest routes, in the order of the queries, each of which is the number of a graph and two ends; `None` where there is none. What does
    /// not fit on the device together is looked for in several packs.
    ///
    /// # Errors
    /// [`Error::Device`], also where there is no memory for one query.
    ///
    /// # Panics
    /// If there is no such graph or node.
    pub fn routes(&mut self, queries: &[(usize, [u32; 2])], form: Form) -> Result<Vec<Option<Route>>, Error> {
        self.answer(queries, form, |searcher| {
            let all = 0..searcher.pack.len();
            searcher.pack.routes(&searcher.stream, &searcher.graphs, all)
        })
    }

    /// What the cheapest routes cost, as [`Searcher::routes`]; 24 bytes a query are brought back.
    ///
    /// # Errors
    /// As [`Searcher::routes`].
    ///
    /// # Panics
    /// If there is no such graph or node.
    pub fn costs(&mut self, queries: &[(usize, [u32; 2])], form: Form) -> Result<Vec<Option<Cost>>, Error> {
        self.answer(queries, form, |searcher| Ok(searcher.known()?.iter().map(|known| known.cost).collect()))
    }

    fn answer<T>(
        &mut self,
        queries: &[(usize, [u32; 2])],
        form: Form,
        mut bring: impl FnMut(&mut Self) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut answers = Vec::with_capacity(queries.len());
        let mut bytes = PACK_BYTES;
        while answers.len() < queries.len() {
            let left = &queries[answers.len()..];
            let fitting = left.iter().scan(0, |taken, (graph, _)| {
                *taken += self.graphs.blocks(*graph) * BLOCK_BYTES;
                (*taken <= bytes).then_some(*taken)
            });
            let (count, taken) = fitting.fold((0, 0), |(count, _), taken| (count + 1, taken));
            let count = count.max(1);
            match self.begin(&left[..count]) {
                Err(Error::Device(DriverError::OutOfMemory { .. })) if count > 1 => {
                    bytes = taken / 2;
                    // Some of its buffers may have grown.
                    self.pack = Pack::new(self.kernels.device())?;
                    continue;
                }
                begun => begun?,
            }
            while !self.run(form, u32::MAX)? {}
            answers.extend(bring(self)?);
        }
        Ok(answers)
    }

    /// Begins searches for all queries together; those before are forgotten.
    ///
    /// # Errors
    /// [`Error::TooLarge`], and [`Error::Device`], also where they do not fit on the device together.
    ///
    /// # Panics
    /// If there is no such graph or node.
    pub fn begin(&mut self, queries: &[(usize, [u32; 2])]) -> Result<(), Error> {
        self.evaluator = Evaluator::default();
        self.pack.fill(&self.stream, &self.graphs, queries)?;
        self.launch(Kernel::Initialise)
    }

    /// Runs at most `rounds_max` rounds of each search, and answers whether all are over. Another call goes on from there.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] within a round, and before [`Searcher::begin`]; [`Error::Device`], after which the searches have to be begun again.
    pub fn run(&mut self, form: Form, rounds_max: u32) -> Result<bool, Error> {
        let mut left = rounds_max;
        while !self.is_over()? && left > 0 {
            left -= self.rounds_of(form, left)?;
        }
        self.is_over()
    }

    /// Has some rounds run, `rounds_max` at most, and says how many.
    fn rounds_of(&mut self, form: Form, rounds_max: u32) -> Result<u32, Error> {
        let warps = match form {
            Form::Launches => {
                let rounds = rounds_max.min(ROUNDS_OF_LAUNCHES);
                for _ in 0..rounds {
                    for kernel in [Kernel::Relax, Kernel::Update, Kernel::BlockMinimum, Kernel::Minimum] {
                        self.launch(kernel)?;
                    }
                }
                return Ok(rounds);
            }
            Form::Composed => None,
            Form::Warps(warps) => Some(warps),
        };
        let rounds = rounds_max.min(ROUNDS_COMPOSED);
        self.take(Kernel::Rounds, (rounds, warps))?;
        Ok(rounds)
    }

    /// Searches for a batch of a contract, composed and in slices of rounds: about four in all, and after the first one no more rounds than fit into the
    /// time that is left by how long the last ones took. It stops between slices where the batch says so, where no more fit, and when all are over; what is over then has been
    /// found. `now_ns` is the clock of the scheduler.
    ///
    /// # Errors
    /// As [`Searcher::begin`] and [`Searcher::run`].
    ///
    /// # Panics
    /// If there is no such graph or node.
    pub fn batch(
        &mut self,
        queries: &[(usize, [u32; 2])],
        batch: &mut Batch<'_>,
        now_ns: impl Fn() -> u64,
    ) -> Result<Vec<Known>, Error> {
        let first_ns = now_ns();
        self.begin(queries)?;
        let form = Form::Warps(batch.blocks);
        // Where nobody can stop it, or its rounds are not known, there is one slice.
        let is_cut = batch.until_ns.is_some() && batch.rounds > 0;
        let slice = if is_cut { batch.rounds.div_ceil(SLICES) } else { u32::MAX };
        let (mut rounds, mut fitting) = (0, u64::from(slice));
        let mut ends_ns = Vec::new();
        loop {
            let began_ns = now_ns();
            let ran = self.rounds_of(form, u32::try_from(fitting).unwrap_or(slice).min(slice))?;
            rounds += ran;
            let known = self.known()?;
            let found = known.iter().filter(|known| known.is_over).count();
            let now_ns = now_ns();
            ends_ns.push(now_ns - first_ns);
            if found == known.len() {
                if u64::from(rounds) == u64::from(slice) * ends_ns.len() as u64 {
                    self.learn_parts(batch.level, &ends_ns);
                }
                return Ok(known);
            }
            let part = self.part(batch.level, f64::from(rounds) / f64::from(slice));
            if !batch.goes_on(part, found) {
                return Ok(known);
            }
            let left_ns = batch.until_ns.map_or(u64::MAX, |until_ns| until_ns.saturating_sub(now_ns));
            fitting = left_ns.saturating_mul(u64::from(ran)) / (now_ns - began_ns).max(1);
            if fitting == 0 {
                return Ok(known);
            }
        }
    }

    /// The part of its time that a batch of a level has taken after a number of slices.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few slices")]
    fn part(&self, level: usize, slices: f64) -> f64 {
        let parts = &self.parts[level];
        let after =
            |slices: usize| slices.checked_sub(1).map_or(0.0, |last| parts[last.min(parts.len() - 1)]);
        let (before, between) = (after(slices as usize), slices.fract());
        // Not all is over, whatever the last batch says.
        (before + between * (after(slices as usize + 1) - before)).min(0.95)
    }

    /// Notes the parts of a batch whose slices were whole.
    #[expect(clippy::cast_precision_loss, reason = "seconds at most")]
    fn learn_parts(&mut self, level: usize, ends_ns: &[u64]) {
        let Some(last_ns) = ends_ns.last().filter(|_| (2..=SLICES as usize).contains(&ends_ns.len())) else {
            return;
        };
        for (at, part) in self.parts[level].iter_mut().enumerate() {
            let end_ns = ends_ns.get(at).unwrap_or(last_ns);
            *part = *end_ns as f64 / (*last_ns).max(1) as f64;
        }
    }

    /// As [`Searcher::batch`], with the routes of those that have been found: `None` for the others. As much time is kept free to bring them back
    /// as that took with the batch before. What is too large to be looked for together is looked for to its end.
    ///
    /// # Errors
    /// As [`Searcher::routes`].
    ///
    /// # Panics
    /// If there is no such graph or node.
    pub fn batch_routes(
        &mut self,
        queries: &[(usize, [u32; 2])],
        batch: &mut Batch<'_>,
        now_ns: impl Fn() -> u64,
    ) -> Result<Vec<Option<Option<Route>>>, Error> {
        if queries.iter().map(|(graph, _)| self.graphs.blocks(*graph) * BLOCK_BYTES).sum::<usize>()
            > PACK_BYTES
        {
            return Ok(self.routes(queries, Form::Warps(batch.blocks))?.into_iter().map(Some).collect());
        }
        let count = queries.len().max(1) as u64;
        let until_ns = batch.until_ns;
        batch.until_ns = until_ns.map(|until_ns| until_ns.saturating_sub(self.bringing_ns * count));
        let known = self.batch(queries, batch, &now_ns)?;
        batch.until_ns = until_ns;
        let began_ns = now_ns();
        let routes = self.pack.routes(&self.stream, &self.graphs, 0..queries.len())?;
        self.bringing_ns = (now_ns() - began_ns) / count;
        let found = known.iter().zip(routes).map(|(known, route)| known.is_over.then_some(route));
        Ok(found.collect())
    }

    /// Runs a kernel over all queries, where it is its turn; [`Kernel::Rounds`] is one round.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`], for the result of another sequence means nothing; [`Error::Device`], after which the searches have to be begun
    /// again.
    pub fn launch(&mut self, kernel: Kernel) -> Result<(), Error> {
        self.take(kernel, (1, None))
    }

    fn take(&mut self, kernel: Kernel, rounds: (u32, Option<u32>)) -> Result<(), Error> {
        self.evaluator.accept(kernel)?;
        let started =
            self.kernels.start(&self.stream, kernel, &self.graphs.tables, &self.pack.arrays, rounds);
        if started.is_err() {
            self.evaluator = Evaluator::default();
        }
        Ok(started?)
    }

    /// Whether all searches are over.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] within a round, and before [`Searcher::begin`]; [`Error::Device`]
    pub fn is_over(&mut self) -> Result<bool, Error> {
        self.evaluator.result()?;
        Ok(self.pack.states(&self.stream)?.iter().all(|state| state.is_over != 0))
    }

    /// Rounds of the search that had most.
    ///
    /// # Errors
    /// As [`Searcher::is_over`].
    pub fn rounds(&mut self) -> Result<u32, Error> {
        self.evaluator.result()?;
        Ok(self.pack.states(&self.stream)?.iter().map(|state| state.rounds).max().unwrap_or(0))
    }

    /// How far each search is; 24 bytes a query are brought back.
    ///
    /// # Errors
    /// As [`Searcher::is_over`].
    pub fn known(&mut self) -> Result<Vec<Known>, Error> {
        self.evaluator.result()?;
        let known = |state: &State| Known {
            is_over: state.is_over != 0,
            cost: (state.best != UNREACHABLE).then_some(state.best),
        };
        Ok(self.pack.states(&self.stream)?.iter().map(known).collect())
    }

    /// What is known of a query: its cheapest route once its search is over, `None` where there is none; before that the best one so far, which
    /// may cost more than it has to.
    ///
    /// # Errors
    /// As [`Searcher::is_over`].
    ///
    /// # Panics
    /// If there is no such query.
    pub fn route(&mut self, query: usize) -> Result<Option<Route>, Error> {
        self.evaluator.result()?;
        let mut routes = self.pack.routes(&self.stream, &self.graphs, query..query + 1)?;
        Ok(routes.pop().flatten())
    }
}
