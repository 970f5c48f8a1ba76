//! The paper's algorithms over its N-E model.

use device::{Event, Graph, Priority, Staged, Stream, room};
use groups::network::ne::{Nodes, Run};
use groups::network::{Domains, Network, Outcome};
use kernels::groups::{CHUNK, NE_DELETED, NE_EMPTY, NE_HEAD, NE_LOOPS};

use crate::Kernels;
use crate::error::{Error, number};
use crate::launchers::{Arrays, Batch, Counts};

/// An algorithm of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Algorithm 3: counts anew in each loop.
    Ac4Gpu,
    /// Algorithm 4: counts once, and then keeps the counters.
    Ac4GpuPlus,
}

/// Who finds that nothing changes any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The host, after each loop; AC4GPU has two streams. As in the paper.
    Host,
    /// The device: many loops are started at once, each of as few kernels as there can be, and those that have nothing to do end at once.
    Device,
}

/// Loops that are started together at first, and later.
const LOOPS_FIRST: usize = 6;

/// How an algorithm went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loops {
    /// Whether each variable has a value left.
    pub is_consistent: bool,
    /// The nodes that each loop deleted; the last loop is idle, or emptied a variable, and then the count is of those that it came to.
    pub deleted: Vec<u32>,
}

/// A network on a device, and its N-E model.
///
/// Memory is kept from one network to the next. [`Letter::enforce`] does all that there is to do; the other methods are its steps:
/// [`Letter::load`] sends a network, [`Letter::build`] makes the model of a start, [`Letter::run`] deletes from it, and
/// [`Letter::nodes`] brings the nodes back.
#[derive(Debug)]
pub struct Letter {
    kernels: Kernels,
    /// The paper's two.
    streams: [Stream; 2],
    deleted: Event,
    /// First and later loops of each method.
    graphs: [[Graph; 2]; 2],
    counts: Counts,
    /// As bits of `Domains`: the values that no constraint bars by itself.
    unbarred: Vec<u64>,
    arrays: Arrays,
}

impl Letter {
    /// Without a network.
    ///
    /// # Errors
    /// [`Error::Device`]
    pub fn new(kernels: &Kernels) -> Result<Self, Error> {
        let device = kernels.device();
        let arrays = Arrays {
            sizes: Staged::new(device)?,
            words_at: Staged::new(device)?,
            scopes: Staged::new(device)?,
            rows_at: Staged::new(device)?,
            rows: Staged::new(device)?,
            left: Staged::new(device)?,
            edges_length: device.buffer(0)?,
            slots_length: device.buffer(0)?,
            sums: device.buffer(0)?,
            nodes_at: device.buffer(0)?,
            edges_at: device.buffer(0)?,
            slots_at: device.buffer(0)?,
            x: Staged::new(device)?,
            v: Staged::new(device)?,
            e: Staged::new(device)?,
            node0: device.buffer(0)?,
            node1: device.buffer(0)?,
            s: device.buffer(0)?,
            m0: device.buffer(0)?,
            m1: device.buffer(0)?,
            slot_node: device.buffer(0)?,
            slot_edge: device.buffer(0)?,
            slot_stride: device.buffer(0)?,
            slot_count: device.buffer(0)?,
            counter: device.buffer(0)?,
            domain: device.buffer(0)?,
            head: Staged::new(device)?,
        };
        Ok(Self {
            kernels: kernels.clone(),
            streams: [device.stream(Priority::High)?, device.stream(Priority::High)?],
            deleted: device.event()?,
            graphs: Default::default(),
            counts: Counts::default(),
            unbarred: Vec::new(),
            arrays,
        })
    }

    /// Makes a network arc consistent, beginning with the values that are left.
    ///
    /// # Errors
    /// As [`Letter::load`] and [`Letter::run`].
    pub fn enforce(
        &mut self,
        network: &Network,
        domains: &Domains,
        method: Method,
    ) -> Result<Outcome, Error> {
        self.load(network)?;
        self.build(domains)?;
        let loops = self.run(method, Pace::Device)?;
        Ok(self.nodes(&loops)?.of(network))
    }

    /// Sends a network to the device, and makes room for its model: 17 bytes for each pair of values of all constraints, 20 bytes for each value
    /// of a constraint's variables, and what the rows of its relations take.
    ///
    /// # Errors
    /// [`Error::TooLarge`] before anything is allocated, and [`Error::Device`], also where the memory is not there; no network is loaded
    /// then.
    pub fn load(&mut self, network: &Network) -> Result<(), Error> {
        self.counts = Counts::default();
        let counts = counts(network)?;
        let a = &mut self.arrays;
        let [variables, constraints, nodes, edges, slots] =
            [counts.variables, counts.constraints, counts.nodes, counts.edges, counts.slots]
                .map(|count| count as usize);
        a.left.room(counts.words as usize)?;
        a.head.room(NE_HEAD)?;
        for buffer in [&mut a.edges_length, &mut a.slots_length] {
            room(buffer, constraints)?;
        }
        for buffer in [&mut a.edges_at, &mut a.slots_at] {
            room(buffer, constraints + 1)?;
        }
        room(&mut a.nodes_at, variables + 1)?;
        room(&mut a.sums, variables.max(constraints) / CHUNK as usize + 1)?;
        room(&mut a.domain, variables)?;
        for staged in [&mut a.x, &mut a.v, &mut a.e] {
            staged.room(nodes)?;
        }
        for buffer in [&mut a.node0, &mut a.node1, &mut a.m0, &mut a.m1] {
            room(buffer, edges)?;
        }
        room(&mut a.s, edges)?;
        let slot = [&mut a.slot_node, &mut a.slot_edge, &mut a.slot_stride, &mut a.slot_count];
        for buffer in slot.into_iter().chain([&mut a.counter]) {
            room(buffer, slots)?;
        }
        let [stream, _] = &self.streams;
        let of_variables = 0..counts.variables;
        a.sizes.send_by(stream, variables, |sizes| {
            sizes.iter_mut().zip(of_variables.clone()).for_each(|(size, x)| *size = network.size(x));
        })?;
        a.words_at.send(stream, &words_at(network)?)?;
        let scopes: Vec<_> = network.constraints().iter().flat_map(|constraint| constraint.scope).collect();
        a.scopes.send(stream, &scopes)?;
        let halves = network.constraints().iter().map(|constraint| network.matrix(constraint).halves[0]);
        a.rows_at.send(stream, &halves.map(|half| half.rows_at).collect::<Vec<_>>())?;
        a.rows.send(stream, network.rows())?;
        network.unbarred().clone_into(&mut self.unbarred);
        self.counts = counts;
        Ok(())
    }

    /// Algorithm 2, `BuildNE`, for a start of the network that is loaded.
    ///
    /// # Errors
    /// [`Error::Device`]
    ///
    /// # Panics
    /// If the values are those of another network.
    pub fn build(&mut self, domains: &Domains) -> Result<(), Error> {
        let Self { kernels, streams: [stream, _], counts, unbarred, arrays, .. } = self;
        assert_eq!(domains.words().len(), counts.words as usize, "values of the network that is loaded");
        arrays.left.send_by(stream, counts.words as usize, |left| {
            let words = domains.words().iter().zip(unbarred.iter());
            left.iter_mut().zip(words).for_each(|(left, (word, ok))| *left = word & ok);
        })?;
        Ok(kernels.build(stream, counts, arrays)?)
    }

    /// Makes the model arc consistent, once. Loops and what they delete are the same by either pace.
    ///
    /// # Errors
    /// [`Error::Device`]
    pub fn run(&mut self, method: Method, pace: Pace) -> Result<Loops, Error> {
        match (method, pace) {
            (Method::Ac4Gpu, Pace::Host) => self.ac4gpu(),
            (Method::Ac4GpuPlus, Pace::Host) => self.ac4gpu_plus(),
            (_, Pace::Device) => self.at_once(method),
        }
    }

    /// Waits until all that was given to the device is done.
    ///
    /// # Errors
    /// [`Error::Device`]
    pub fn synchronize(&self) -> Result<(), Error> {
        self.streams.iter().try_for_each(Stream::synchronize).map_err(Error::from)
    }

    fn ac4gpu(&mut self) -> Result<Loops, Error> {
        let Self { kernels, streams: [stream0, stream1], deleted: event, counts, arrays, .. } = self;
        kernels.domains(stream0, counts, arrays, true)?;
        let mut deleted = Vec::new();
        loop {
            stream0.fill(&arrays.head.buffer, 0..NE_HEAD, 0)?;
            kernels.count(stream0, counts, arrays)?;
            kernels.delete(stream0, counts, arrays)?;
            stream0.record(event)?;
            stream1.wait(event)?;
            kernels.clear(stream0, counts, arrays)?;
            kernels.domains(stream1, counts, arrays, false)?;
            let head = arrays.head.receive(stream1, NE_HEAD)?;
            if let Some(loops) = ended(head, 1, &mut deleted) {
                return Ok(loops);
            }
        }
    }

    fn ac4gpu_plus(&mut self) -> Result<Loops, Error> {
        let Self { kernels, streams: [stream, _], counts, arrays, .. } = self;
        let mut deleted = Vec::new();
        stream.fill(&arrays.head.buffer, 0..NE_HEAD, 0)?;
        kernels.count(stream, counts, arrays)?;
        kernels.domains(stream, counts, arrays, true)?;
        loop {
            kernels.delete_once(stream, counts, arrays)?;
            let head = arrays.head.receive(stream, NE_HEAD)?;
            if let Some(loops) = ended(head, 1, &mut deleted) {
                return Ok(loops);
            }
            kernels.decrement(stream, counts, arrays)?;
            stream.fill(&arrays.head.buffer, 0..NE_HEAD, 0)?;
        }
    }

    fn at_once(&mut self, method: Method) -> Result<Loops, Error> {
        let Self { kernels, streams: [stream, _], graphs, counts, arrays, .. } = self;
        let [first, later] = &mut graphs[usize::from(method == Method::Ac4GpuPlus)];
        let mut deleted = Vec::new();
        loop {
            let is_first = deleted.is_empty();
            let (graph, loops) = if is_first { (&mut *first, LOOPS_FIRST) } else { (&mut *later, NE_LOOPS) };
            stream.fill(&arrays.head.buffer, 0..NE_HEAD, 0)?;
            kernels.loops(stream, graph, (counts, arrays), method, Batch { is_first, loops })?;
            let head = arrays.head.receive(stream, NE_HEAD)?;
            if let Some(loops) = ended(head, loops, &mut deleted) {
                return Ok(loops);
            }
        }
    }

    /// The nodes after a run, as the run over the model on the processor has them.
    ///
    /// # Errors
    /// [`Error::Device`]
    pub fn nodes(&mut self, loops: &Loops) -> Result<Run, Error> {
        let Self { streams: [stream, _], counts, arrays, .. } = self;
        let nodes = counts.nodes as usize;
        let x = arrays.x.receive(stream, nodes)?.to_vec();
        let v = arrays.v.receive(stream, nodes)?.to_vec();
        let e = arrays.e.receive(stream, nodes)?.iter().map(|e| u8::from(*e != 0)).collect();
        let nodes = Nodes { x, v, e };
        let Loops { is_consistent, deleted } = loops;
        Ok(Run { nodes, is_consistent: *is_consistent, loops: deleted.len() as u64 })
    }
}

/// Takes in what loops that were started together deleted; how it all went, if one was the last.
fn ended(head: &[u32], loops: usize, deleted: &mut Vec<u32>) -> Option<Loops> {
    let is_consistent = head[NE_EMPTY] == 0;
    let counts = &head[NE_DELETED..NE_DELETED + loops];
    let busy = counts.iter().rposition(|count| *count > 0).map_or(0, |at| at + 1);
    deleted.extend(&counts[..busy]);
    if is_consistent && busy == loops {
        return None;
    }
    // The idle loop at the end; that in which a variable is left without nodes is none, but where it had none from the beginning.
    if is_consistent || deleted.is_empty() {
        deleted.push(0);
    }
    Some(Loops { is_consistent, deleted: std::mem::take(deleted) })
}

/// Where the words of each variable begin, and an end.
pub(crate) fn words_at(network: &Network) -> Result<Vec<u32>, Error> {
    let variables = number(network.variables_count() as u64, "variables")?;
    let ends = (0..variables).map(|x| number(network.words(x).end as u64, "words of values"));
    std::iter::once(Ok(0)).chain(ends).collect()
}

/// Numbers of parts, all below 2^32.
fn counts(network: &Network) -> Result<Counts, Error> {
    let pairs = |constraint: &groups::network::Constraint| {
        let [size0, size1] = constraint.scope.map(|x| u64::from(network.size(x)));
        [size0 * size1, size0 + size1]
    };
    let mut sums = [0; 2];
    for constraint in network.constraints() {
        sums.iter_mut().zip(pairs(constraint)).for_each(|(sum, more)| *sum += more);
    }
    number(network.rows().len() as u64, "words of relations")?;
    Ok(Counts {
        variables: number(network.variables_count() as u64, "variables")?,
        constraints: number(network.constraints_count() as u64, "constraints")?,
        words: number(network.unbarred().len() as u64, "words of values")?,
        nodes: number(network.nodes_count() as u64, "nodes")?,
        edges: number(sums[0], "edges")?,
        slots: number(sums[1], "slots")?,
    })
}
