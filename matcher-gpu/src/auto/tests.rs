//! Engines side by side, with batches dealt over them by the test.

use std::cell::RefCell;

use matcher::fixtures::random;

use super::*;
use device::Fault;

const HOST_BYTES: u64 = 1 << 30;

/// Sends every other batch to the device, whatever takes longer.
struct Alternating {
    auto: Auto,
    batches: usize,
}

impl Engine for Alternating {
    fn name(&self) -> &'static str {
        self.auto.name()
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        self.auto.install(id, subscription)
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        self.auto.remove(id)
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        self.auto.move_client(client, position);
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        self.batches += 1;
        // One that knows nothing begins with `cells`.
        self.auto.crossover = self.batches.is_multiple_of(2).then(Crossover::new);
        self.auto.match_batch(events, rows)
    }

    fn footprint(&self) -> Footprint {
        self.auto.footprint()
    }
}

fn alternating(world: World, devices: &[Device]) -> Alternating {
    Alternating { auto: Auto::new(world, Ok(devices)), batches: 0 }
}

#[test]
fn both_sides_see_every_change() {
    let device = Device::host(HOST_BYTES);
    let make = |world| -> Box<dyn Engine> { Box::new(alternating(world, std::slice::from_ref(&device))) };
    random::run_pairs(&make, 10_000, 300_000).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_device_that_fails_between_batches_of_both_sides_loses_nothing() {
    let reports: RefCell<Vec<Report>> = RefCell::default();
    let make = |world| -> Box<dyn Engine> {
        let device = Device::host(HOST_BYTES);
        let engine = alternating(world, std::slice::from_ref(&device));
        let mut reports = reports.borrow_mut();
        reports.push(engine.auto.report());
        device.inject(Fault::DeviceLost, 10 * u32::try_from(reports.len()).unwrap());
        Box::new(engine)
    };
    for seed in 20_000..20_010 {
        random::run(&make, World::Geodetic, seed).unwrap_or_else(|failure| panic!("{failure}"));
    }
    let reports = reports.into_inner();
    let halfway = |report: &&Report| report.failure().is_some() && report.device_events() > 0;
    assert!(reports.iter().filter(halfway).count() >= 5, "{reports:?}");
}

#[test]
fn batches_are_counted_where_they_were_matched() {
    let device = Device::host(HOST_BYTES);
    let mut engine = alternating(World::Planar, std::slice::from_ref(&device));
    let report = engine.auto.report();
    let event = Event::at(matcher::fixtures::at(World::Planar, [1.0, 1.0]));
    let mut rows = MatchRows::new();
    for events in [3, 5, 2, 1] {
        engine.match_batch(&vec![&event; events], &mut rows).unwrap();
    }
    assert_eq!((report.device_events(), report.cells_events()), (5, 6));
    device.inject(Fault::DeviceLost, 1);
    engine.match_batch(&[&event; 7], &mut rows).unwrap();
    assert_eq!((report.device_events(), report.cells_events()), (5, 13));
    assert_eq!(rows.len(), 18);
}

#[test]
fn a_measured_crossover_is_told() {
    let mut auto = Auto::new(World::Planar, Ok(&[Device::host(HOST_BYTES)]));
    let report = auto.report();
    assert!(report.to_string().contains("once it is measured to be quicker"), "{report}");
    let event = Event::at(matcher::fixtures::at(World::Planar, [1.0, 1.0]));
    if let Some(crossover) = &mut auto.crossover {
        for class in 0..17 {
            crossover.record(Side::Cells, 1 << class, std::time::Duration::from_secs(1 << class));
            crossover.record(Side::Device, 1 << class, std::time::Duration::from_secs(50));
        }
    }
    auto.match_batch(&[&event; 64], &mut MatchRows::new()).unwrap();
    assert_eq!(report.device_from(), Some(64));
    assert_eq!(report.device_events(), 64);
    assert!(report.to_string().contains("for batches of 64 events or more"), "{report}");
}

#[test]
fn devices_of_one_kind_are_named_once() {
    let hosts = [Device::host(0), Device::host(0), Device::host(0)];
    assert_eq!(names(&hosts[..1]), "host");
    assert_eq!(names(&hosts), "3 x host");
}
