//! A device's engine.

use std::sync::Arc as Shared;

use bytemuck::Pod;
use device::{Buffer, Device, DriverError, Pinned, Priority, Stream};
use kernels::traffic::{AHEAD, KNOWN, ROUTE, Run, TABLE, WAITS};

use crate::Engine;
use crate::error::Error;
use crate::fleet::{Fleet, Settings, State};
use crate::launchers::{Arrays, Kernels, Part, searchers};
use crate::model::{STEPS_ADAPTED, STEPS_SNAPSHOT};
use crate::roads::Roads;
use crate::trips;

/// Values that are brought at a time.
const BROUGHT: usize = 1 << 22;

/// Traffic on a device, a thread for each vehicle.
///
/// It comes to the states of a [`Processor`](crate::Processor) with the same roads and settings, bit by bit.
#[derive(Debug)]
pub struct Gpu {
    kernels: Kernels,
    stream: Stream,
    roads: Shared<Roads>,
    arrays: Arrays,
    /// Weights by which whole routes are planned; none where nobody has a destination.
    snapshot: Vec<u32>,
}

impl Gpu {
    /// Puts vehicles onto roads, as a [`Processor`](crate::Processor) does, and sends all to the device.
    ///
    /// # Errors
    /// [`Error`]
    pub fn new(kernels: &Kernels, roads: &Shared<Roads>, settings: Settings) -> Result<Self, Error> {
        let Fleet { state, tails } = Fleet::place(roads, settings.check()?)?;
        let device = kernels.device();
        let stream = device.stream(Priority::High)?;
        let (nodes, arcs) = (roads.junctions.len(), roads.arcs.len());
        let trips = settings.routed as usize;
        let searchers = searchers(device, settings.routed) * usize::from(trips > 0);
        let lanes = tails.len();
        let arrays = Arrays {
            first: sent(&stream, &roads.first)?,
            arcs: sent(&stream, &roads.arcs)?,
            lanes: sent(&stream, &roads.lanes)?,
            junctions: sent(&stream, &roads.junctions)?,
            asks: device.buffer(nodes)?,
            claims: device.buffer(lanes)?,
            tails: sent(&stream, &tails)?,
            cars: sent(&stream, &state.cars)?,
            ways: sent(&stream, &state.ways)?,
            plans: device.buffer(state.cars.len())?,
            counts: device.buffer(arcs)?,
            weights: device.buffer(arcs)?,
            trips: sent(&stream, &state.trips)?,
            routes: device.buffer(trips * ROUTE as usize)?,
            ahead: device.buffer(trips * AHEAD as usize)?,
            keys: device.buffer(searchers * KNOWN as usize)?,
            known: device.buffer(searchers * (3 * KNOWN + TABLE) as usize)?,
            run: Run {
                seed: settings.seed,
                step: 0,
                nodes: roads.nodes_count(),
                arcs: roads.arcs_count(),
                vehicles: settings.vehicles,
                trips: settings.routed,
                stride: settings.stride(),
            },
        };
        let snapshot = vec![0; if trips > 0 { arcs } else { 0 }];
        Ok(Self { kernels: kernels.clone(), stream, roads: Shared::clone(roads), arrays, snapshot })
    }

    /// Weighs arcs by the vehicles on them, and finds the ways of trips again.
    fn adapt(&mut self) -> Result<(), Error> {
        self.start(Part::Count)?;
        self.start(Part::Weigh)?;
        if self.arrays.run.trips == 0 {
            return Ok(());
        }
        if self.arrays.run.step.is_multiple_of(STEPS_SNAPSHOT) {
            bring(&self.stream, &self.arrays.weights, &mut self.snapshot)?;
        }
        self.start(Part::Trips)?;
        let mut all = vec![Default::default(); self.arrays.trips.len()];
        bring(&self.stream, &self.arrays.trips, &mut all)?;
        if all.iter().any(|trip| trip.state == WAITS) {
            for (trip, route) in trips::plan(&self.roads, &self.snapshot, self.arrays.run.seed, &mut all) {
                send(&self.stream, &route, &self.arrays.routes, trip * ROUTE as usize)?;
            }
            send(&self.stream, &all, &self.arrays.trips, 0)?;
        }
        self.start(Part::Ways)
    }

    fn start(&self, part: Part) -> Result<(), Error> {
        Ok(self.kernels.start(&self.stream, part, &self.arrays)?)
    }
}

impl Engine for Gpu {
    fn advance(&mut self, steps: u32) -> Result<(), Error> {
        for _ in 0..steps {
            if self.arrays.run.step.is_multiple_of(STEPS_ADAPTED) {
                self.adapt()?;
            }
            self.start(Part::Junctions)?;
            self.start(Part::Plan)?;
            self.start(Part::Move)?;
            self.arrays.run.step += 1;
        }
        Ok(self.stream.synchronize()?)
    }

    fn state(&mut self) -> Result<State, Error> {
        let arrays = &self.arrays;
        let mut state = State {
            cars: vec![Default::default(); arrays.cars.len()],
            ways: vec![Default::default(); arrays.ways.len()],
            trips: vec![Default::default(); arrays.trips.len()],
        };
        bring(&self.stream, &arrays.cars, &mut state.cars)?;
        bring(&self.stream, &arrays.ways, &mut state.ways)?;
        bring(&self.stream, &arrays.trips, &mut state.trips)?;
        Ok(state)
    }

    fn bytes(&self) -> u64 {
        self.arrays.bytes()
    }
}

/// Values on a device.
fn sent<T: Pod>(stream: &Stream, values: &[T]) -> Result<Buffer<T>, DriverError> {
    let buffer = stream.device().buffer(values.len())?;
    send(stream, values, &buffer, 0)?;
    Ok(buffer)
}

/// Sends values to the `at`-th of a buffer and on, some at a time.
fn send<T: Pod>(stream: &Stream, values: &[T], to: &Buffer<T>, at: usize) -> Result<(), DriverError> {
    let mut pinned = pinned(stream.device(), values.len())?;
    for (some, nth) in values.chunks(BROUGHT).zip(0..) {
        pinned.slice_mut()?[..some.len()].copy_from_slice(some);
        stream.upload(&mut pinned, 0..some.len(), to, at + nth * BROUGHT)?;
    }
    Ok(())
}

/// Brings the values of a buffer, some at a time.
fn bring<T: Pod>(stream: &Stream, from: &Buffer<T>, values: &mut [T]) -> Result<(), DriverError> {
    let mut pinned = pinned(stream.device(), values.len())?;
    for (some, nth) in values.chunks_mut(BROUGHT).zip(0..) {
        let begin = nth * BROUGHT;
        stream.download(from, begin..begin + some.len(), &mut pinned, 0)?;
        some.copy_from_slice(&pinned.slice()?[..some.len()]);
    }
    Ok(())
}

fn pinned<T: Pod>(device: &Device, len: usize) -> Result<Pinned<T>, DriverError> {
    device.pinned(len.min(BROUGHT))
}
