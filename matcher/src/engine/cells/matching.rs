//! How events find the subscriptions that they satisfy: sixteen at a time, step by step.
//!
//! Each step first reads, without a branch in between, what it will look at: the waits for memory, which are most of the
//! time, then overlap.

use std::hint::black_box;

use super::buckets::Place;
use super::clusters::ClusterProbe;
use super::coded::Coded;
use super::codes::ValueCode;
use super::grid::CellKey;
use super::records::{Header, Records};
use super::rolls::{NearBundle, Roll};
use super::runs::{self, Candidate, Hit, Local, Run};
use super::store::{Pile, Store};
use super::{Index, is_circle};
use crate::compiled::shapes::following;
use crate::compiled::view::{Kind, View, Viewed, ViewedAttribute, append_attributes};
use crate::engine::MatchRows;
use crate::event::Event;
use crate::geo::Position;
use crate::subscription::SubscriptionId;

/// Events that go through the steps together, so that the memory waits of one are hidden behind another.
pub(super) const GROUP_EVENTS: usize = 16;

/// Lists that the steps hand to each other; kept for their memory.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    view: View,
    attributes: Vec<ViewedAttribute>,
    /// Codes of the attributes, in their order.
    codes: Vec<ValueCode>,
    probes: Vec<ClusterProbe>,
    cells: Vec<(CellKey, Local)>,
    /// For each cell of an event, for each of its clusters.
    places: Vec<Place>,
    /// For each cell of an event, where its bundles are looked for.
    roll_places: Vec<Place>,
    rolls: Vec<ProbedRoll>,
    near_bundles: Vec<NearBundle>,
    /// Filters of bundles in reach of which an event may be, whose clusters and names fit.
    bundled: Vec<Candidate>,
    piles: Vec<ProbedPile>,
    /// The next piles, while crowds make way for their parts.
    parts: Vec<ProbedPile>,
    /// Runs whose filters are all in reach and required names are all there.
    inner: Vec<InnerRun>,
    candidates: Vec<Candidate>,
    /// Filters that the tests of one event leave in doubt.
    doubtful: Vec<Hit>,
    /// One per event of the group.
    ends: Vec<Ends>,
}

/// Filters and what they are to be compared with.
#[derive(Clone, Copy, Debug)]
struct ProbedPile {
    pile: Pile,
    cell: u32,
    probe: u32,
    /// Whether the event is in reach of all of them for certain.
    inner: bool,
}

/// The bundles of a cell, and the event that may be near to them.
#[derive(Clone, Copy, Debug)]
struct ProbedRoll {
    roll: Roll,
    cell: u32,
    event: u32,
}

/// A run of which only the fences are left to be tested.
#[derive(Clone, Copy, Debug)]
struct InnerRun {
    run: Run,
    probe: u32,
}

/// The filters that an event is near to, those of whole runs apart.
struct Near<'a> {
    inner: &'a [InnerRun],
    candidates: &'a [Candidate],
    bundled: &'a [Candidate],
}

/// Where an event's parts of the lists end, and the mask of its names.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    mask: u32,
    attributes: usize,
    probes: usize,
    cells: usize,
}

impl Index {
    /// Appends the rows of a group of events.
    pub(super) fn match_group(&self, events: &[&Event], scratch: &mut Scratch, rows: &mut MatchRows) {
        self.gather(events, scratch);
        let Scratch { view, attributes, probes, inner, candidates, bundled, doubtful, ends, .. } = scratch;
        let mut left = Near { inner, candidates, bundled };
        let mut start = Ends::default();
        for (event, ends) in events.iter().zip(ends) {
            let attributes = &attributes[start.attributes..ends.attributes];
            view.show(attributes, self.names.end());
            view.make_room(self.constraints.written_end(), event.attributes.len());
            let viewed = Viewed { event, attributes, view };
            doubtful.clear();
            let near = left.split_off(ends.probes);
            rows.push_with(|ids| {
                self.test(&viewed, ends.mask, &near, probes, doubtful, ids);
                self.decide(&viewed, doubtful, ids);
            });
            start = *ends;
        }
    }

    /// Finds the filters that each event of a group may satisfy.
    fn gather(&self, events: &[&Event], scratch: &mut Scratch) {
        scratch.clear();
        for event in events {
            let start = scratch.ends.last().copied().unwrap_or_default();
            let (list, codes) = (&mut scratch.attributes, &mut scratch.codes);
            let mask = append_attributes(event, &self.names, &self.texts, list);
            let attributes = &list[start.attributes..];
            codes.extend(attributes.iter().map(|attribute| ValueCode::of(attribute.kind, attribute.bits)));
            let codes = &codes[start.attributes..];
            scratch.view.show(attributes, self.names.end());
            let viewed = Viewed { event, attributes, view: &scratch.view };
            let coded = Coded { viewed, codes };
            self.clusters.append_probes(&coded, &self.names, &self.texts, &mut scratch.probes);
            self.grid.find(event.position.point(), &mut scratch.cells);
            scratch.ends.push(Ends {
                mask,
                attributes: scratch.attributes.len(),
                probes: scratch.probes.len(),
                cells: scratch.cells.len(),
            });
        }
        self.append_places(scratch);
        self.append_found(scratch);
        self.append_near(scratch);
        self.append_bundled(scratch);
    }

    /// Reads where the search for what each event has to look at begins.
    fn append_places(&self, scratch: &mut Scratch) {
        let buckets = self.grid.buckets();
        let mut start = Ends::default();
        let mut touched = 0;
        for ends in &scratch.ends {
            for (cell, _) in &scratch.cells[start.cells..ends.cells] {
                let (filters, bundles) = self.grid.holds(*cell);
                if bundles {
                    let (place, word) = buckets.locate_bundles(*cell);
                    touched ^= word;
                    scratch.roll_places.push(place);
                }
                for probe in scratch.probes[start.probes..ends.probes].iter().filter(|_| filters) {
                    let (place, word) = buckets.locate(*cell, probe.cluster);
                    touched ^= word;
                    scratch.places.push(place);
                }
            }
            start = *ends;
        }
        black_box(touched);
    }

    /// Finds the bundles of the cells that each event is near to, and the filters of its clusters there.
    fn append_found(&self, scratch: &mut Scratch) {
        let buckets = self.grid.buckets();
        let (mut places, mut roll_places) = (scratch.places.iter(), scratch.roll_places.iter());
        let mut start = Ends::default();
        for (event, ends) in (0..).zip(&scratch.ends) {
            for (cell, (key, _)) in (0..).zip(&scratch.cells).take(ends.cells).skip(start.cells) {
                let (filters, bundles) = self.grid.holds(*key);
                let roll = if bundles { roll_places.next() } else { None };
                if let Some(roll) = roll.and_then(|place| buckets.find_roll(*place, *key)) {
                    scratch.rolls.push(ProbedRoll { roll: *roll, cell, event });
                }
                for probe in (start.probes..ends.probes).filter(|_| filters) {
                    let Some(place) = places.next() else { break };
                    if let Some(pile) = buckets.find(*place, *key, scratch.probes[probe].cluster) {
                        #[expect(clippy::cast_possible_truncation, reason = "a group of events has few")]
                        let probe = probe as u32;
                        scratch.piles.push(ProbedPile { pile: *pile, cell, probe, inner: false });
                    }
                }
            }
            start = *ends;
        }
    }

    /// Finds those among the filters of the piles, and those bundles, that each event may be in reach of.
    fn append_near(&self, scratch: &mut Scratch) {
        let buckets = self.grid.buckets();
        let (store, runs, rolls) = (buckets.store(), buckets.runs(), buckets.rolls());
        black_box(scratch.rolls.iter().fold(0, |touched, probed| touched ^ rolls.touch(&probed.roll)));
        black_box(scratch.piles.iter().fold(0, |touched, probed| touched ^ store.touch(&probed.pile)));
        scratch.expand_crowds(store);
        for ProbedPile { pile, cell, probe, inner } in &scratch.piles {
            let ClusterProbe { absent, masked, .. } = scratch.probes[*probe as usize];
            store.visit_runs(pile, |run| {
                if !inner {
                    let local = &scratch.cells[*cell as usize].1;
                    runs.append_candidates(&run, local, absent, *probe, &mut scratch.candidates);
                } else if absent == 0 && !masked {
                    scratch.inner.push(InnerRun { run, probe: *probe });
                } else {
                    runs.append_named(&run, absent, *probe, &mut scratch.candidates);
                }
            });
        }
        for ProbedRoll { roll, cell, event } in &scratch.rolls {
            let local = &scratch.cells[*cell as usize].1;
            rolls.append_near(roll, local, *event, &mut scratch.near_bundles);
        }
        let touch = |touched, near: &NearBundle| touched ^ self.records.touch(near.number);
        black_box(scratch.near_bundles.iter().fold(0, touch));
        let touch = |touched, candidate| touched ^ runs.touch_fence(candidate);
        black_box(scratch.candidates.iter().fold(0, touch));
    }

    /// Finds the filters of near bundles whose clusters and names fit.
    fn append_bundled(&self, scratch: &mut Scratch) {
        for NearBundle { number, event, in_reach } in &scratch.near_bundles {
            let event = *event as usize;
            let bundle = self.records.bundle(*number);
            let start = event.checked_sub(1).map_or(0, |before| scratch.ends[before].probes);
            let probes = &scratch.probes[start..scratch.ends[event].probes];
            #[expect(clippy::cast_possible_truncation, reason = "a group of events has few")]
            for (probe, held) in (start as u32..).zip(probes) {
                let mut fitting = bundle.fitting(held.cluster, held.absent);
                while fitting != 0 {
                    let fence = Records::fence_of(*number, fitting.trailing_zeros());
                    fitting &= fitting - 1;
                    scratch.bundled.push(Candidate { fence, probe, in_reach: *in_reach });
                }
            }
        }
        let touch = |touched, candidate: &Candidate| touched ^ self.records.block(candidate.fence)[0];
        black_box(scratch.bundled.iter().fold(0, touch));
    }

    /// Tests an event against the filters that it is near to; appends the subscriptions that it satisfies for certain, and to `doubtful`
    /// the filters that have to be decided.
    fn test(
        &self,
        viewed: &Viewed<'_>,
        mask: u32,
        near: &Near<'_>,
        probes: &[ClusterProbe],
        doubtful: &mut Vec<Hit>,
        ids: &mut Vec<SubscriptionId>,
    ) {
        // The code of an array says nothing for certain.
        let certain = viewed.event.reach.is_none()
            && viewed.attributes.iter().all(|attribute| attribute.kind != Kind::Array);
        let runs = self.grid.buckets().runs();
        let mut sort = |hit: Hit| {
            if hit.in_reach && hit.in_fence && hit.owner.complete && certain {
                ids.push(SubscriptionId(hit.owner.subscription));
            } else {
                doubtful.push(hit);
            }
        };
        for InnerRun { run, probe } in near.inner {
            runs.test_all(run, &probes[*probe as usize], &mut sort);
        }
        for candidate in near.candidates {
            runs.test(candidate, &probes[candidate.probe as usize], mask).into_iter().for_each(&mut sort);
        }
        for Candidate { fence, probe, in_reach } in near.bundled {
            let fence = self.records.block(*fence);
            let hit = runs::test(fence, *in_reach, &probes[*probe as usize], mask);
            hit.into_iter().for_each(&mut sort);
        }
    }

    /// Appends the subscriptions of those filters that the event satisfies.
    fn decide(&self, viewed: &Viewed<'_>, doubtful: &[Hit], ids: &mut Vec<SubscriptionId>) {
        black_box(doubtful.iter().fold(0, |touched, hit| {
            let client = self.roster.client(hit.owner.subscription);
            // Where the client is matters when the event is near the border of its area.
            let position = if hit.in_reach { None } else { self.roster.position(client) };
            touched
                ^ u64::from(self.records.touch(hit.owner.record) ^ client)
                ^ position.map_or(0, |position| position.x().to_bits())
        }));
        for hit in doubtful {
            let header = self.records.header(hit.owner.record);
            let words = self.records.constraints(hit.owner.record, &header);
            if self.constraints.satisfied(words, viewed, &self.texts, || self.client_position(&header))
                && (hit.in_reach && is_circle(&self.shapes, header.shape)
                    || self.area_holds(&header, viewed.event))
                && self.reaches(&header, viewed.event)
            {
                ids.push(SubscriptionId(header.subscription));
            }
        }
    }

    fn client_position(&self, header: &Header) -> Option<&Position> {
        self.roster.position(self.roster.client(header.subscription))
    }

    fn area_holds(&self, header: &Header, event: &Event) -> bool {
        let area = self.shapes.area(header.shape);
        let client = if following(area) { self.client_position(header) } else { None };
        area.holds(self.world, client, &event.position)
    }

    fn reaches(&self, header: &Header, event: &Event) -> bool {
        match (&event.reach, event.reach.and_then(|_| self.client_position(header))) {
            (Some(reach), Some(client)) => reach.holds(self.world, &event.position, client),
            _ => true,
        }
    }
}

impl<'a> Near<'a> {
    /// Takes those of the next event off, whose probes end here.
    fn split_off(&mut self, probes_end: usize) -> Self {
        let of_event = |probe: u32| (probe as usize) < probes_end;
        let (inner, inner_left) = self.inner.split_at(self.inner.partition_point(|run| of_event(run.probe)));
        let split = |held: &'a [Candidate]| held.split_at(held.partition_point(|held| of_event(held.probe)));
        let (candidates, candidates_left) = split(self.candidates);
        let (bundled, bundled_left) = split(self.bundled);
        *self = Self { inner: inner_left, candidates: candidates_left, bundled: bundled_left };
        Self { inner, candidates, bundled }
    }
}

impl Scratch {
    /// Puts those parts into the place of each crowd that the event is near to, down to runs.
    fn expand_crowds(&mut self, store: &Store) {
        while self.piles.iter().any(|probed| probed.pile.crowd().is_some()) {
            self.parts.clear();
            let mut touched = 0;
            for probed in &self.piles {
                let Some(crowd) = probed.pile.crowd() else {
                    self.parts.push(*probed);
                    continue;
                };
                let local = &self.cells[probed.cell as usize].1;
                touched ^= store.visit_near(crowd, local, |part, inner| {
                    self.parts.push(ProbedPile { pile: *part, inner, ..*probed });
                });
            }
            black_box(touched);
            std::mem::swap(&mut self.piles, &mut self.parts);
        }
    }

    fn clear(&mut self) {
        self.attributes.clear();
        self.codes.clear();
        self.probes.clear();
        self.cells.clear();
        self.places.clear();
        self.roll_places.clear();
        self.rolls.clear();
        self.near_bundles.clear();
        self.bundled.clear();
        self.piles.clear();
        self.inner.clear();
        self.candidates.clear();
        self.ends.clear();
    }
}
