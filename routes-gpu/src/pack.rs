//! Queries that are looked for together, with their stretches of the arrays.

use std::ops::Range;

use device::{Device, Pinned, Staged, Stream, room};
use kernels::routes::{BLOCK, State};
use routes::{Route, trace};

use crate::error::{Error, number};
use crate::graphs::Graphs;
use crate::launchers::Arrays;

/// Costs that are brought from the device at a time: 16 MiB, or those of one query.
const BROUGHT: usize = 1 << 21;

/// Queries on a device. Memory is kept from one pack to the next.
#[derive(Debug)]
pub(crate) struct Pack {
    asked: Vec<Asked>,
    brought: Pinned<u64>,
    pub(crate) arrays: Arrays,
}

/// A query, and its stretch of the arrays.
#[derive(Clone, Debug)]
struct Asked {
    graph: usize,
    ends: [u32; 2],
    elements: Range<usize>,
}

impl Pack {
    pub(crate) fn new(device: &Device) -> Result<Self, Error> {
        let arrays = Arrays {
            count: 0,
            blocks: 0,
            blocks_max: 0,
            queries: Staged::new(device)?,
            block_queries: Staged::new(device)?,
            states: Staged::new(device)?,
            costs: device.buffer(0)?,
            updating: device.buffer(0)?,
            keys: device.buffer(0)?,
            frontier: device.buffer(0)?,
            settled: device.buffer(0)?,
            minima: device.buffer(0)?,
            touched: device.buffer(0)?,
        };
        Ok(Self { asked: Vec::new(), brought: device.pinned(0)?, arrays })
    }

    /// How many queries it has.
    pub(crate) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Sends queries, and makes room for their stretches.
    pub(crate) fn fill(
        &mut self,
        stream: &Stream,
        graphs: &Graphs,
        asked: &[(usize, [u32; 2])],
    ) -> Result<(), Error> {
        self.asked.clear();
        let arrays = &mut self.arrays;
        (arrays.count, arrays.blocks, arrays.blocks_max) = (0, 0, 0);
        let (mut queries, mut block_queries) = (Vec::with_capacity(asked.len()), Vec::new());
        let mut blocks_max = 0;
        let block = BLOCK as usize;
        for (number_of_query, (graph, ends)) in (0..).zip(asked) {
            let first_block = block_queries.len();
            let query = graphs.query((*graph, *ends), number(first_block, "blocks of nodes")?)?;
            block_queries.resize(first_block + query.blocks as usize, number_of_query);
            blocks_max = blocks_max.max(query.blocks);
            let elements = first_block * block..first_block * block + query.nodes as usize;
            self.asked.push(Asked { graph: *graph, ends: *ends, elements });
            queries.push(query);
        }
        let blocks = block_queries.len();
        let elements = blocks * block;
        room(&mut arrays.costs, elements)?;
        room(&mut arrays.updating, elements)?;
        room(&mut arrays.keys, elements)?;
        room(&mut arrays.frontier, elements)?;
        room(&mut arrays.settled, elements)?;
        room(&mut arrays.minima, blocks)?;
        room(&mut arrays.touched, blocks)?;
        arrays.states.room(asked.len())?;
        arrays.queries.send(stream, &queries)?;
        arrays.block_queries.send(stream, &block_queries)?;
        arrays.count = number(asked.len(), "queries")?;
        arrays.blocks = number(blocks, "blocks of nodes")?;
        arrays.blocks_max = blocks_max;
        Ok(())
    }

    /// How far each query is.
    pub(crate) fn states(&mut self, stream: &Stream) -> Result<&[State], Error> {
        Ok(self.arrays.states.receive(stream, self.asked.len())?)
    }

    /// The best known routes of some queries.
    pub(crate) fn routes(
        &mut self,
        stream: &Stream,
        graphs: &Graphs,
        mut queries: Range<usize>,
    ) -> Result<Vec<Option<Route>>, Error> {
        let mut routes = Vec::with_capacity(queries.len());
        while !queries.is_empty() {
            let asked = &self.asked[queries.clone()];
            let first = asked[0].elements.start;
            let is_more = |asked: &Asked| asked.elements.end - first <= BROUGHT;
            let some = &asked[..asked.iter().take_while(|asked| is_more(asked)).count().max(1)];
            let elements = first..some[some.len() - 1].elements.end;
            if self.brought.len() < elements.len() {
                self.brought = stream.device().pinned(elements.len())?;
            }
            stream.download(&self.arrays.costs, elements, &mut self.brought, 0)?;
            let known = self.brought.slice()?;
            routes.extend(some.iter().map(|asked| {
                let known = &known[asked.elements.start - first..asked.elements.end - first];
                trace(graphs.costed(asked.graph), known, asked.ends)
            }));
            queries.start += some.len();
        }
        Ok(routes)
    }
}
