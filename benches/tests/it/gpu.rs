//! The bench of the GPU engines, tiny, with their kernels on the processor.

use benches::gpu::field::Field;
use benches::gpu::figures::Figures;
use benches::gpu::sections;
use device::Device;
use matcher::event::Event;
use matcher::fixtures::workload::Config;

#[test]
fn every_section_has_its_figures_and_answers_are_right() {
    let config = Config { subscriptions: 400, coverage: 0.02, selectivity: 0.015, ..Config::default() };
    let mut field = Field::new("tiny", config, &[Device::host(1 << 30)]).unwrap();
    let mut figures = Figures::default();
    for subscriptions in [100, 400] {
        field.grow(subscriptions).unwrap();
        let workload = field.workload().unwrap();
        let events: Vec<Event> = (0..64).map(|index| workload.event(index)).collect();
        let checked = field.check(&events, 20).unwrap();
        assert!(!checked.contains("(0 pairs)"), "{checked}");
        sections::lone(&mut field, &events, 1, &mut figures).unwrap();
        sections::batches(&mut field, &events, &[1, 16], 1, &mut figures).unwrap();
        sections::moves(&mut field, 1, &mut figures).unwrap();
        sections::memory(&mut field, &mut figures);
        sections::steps(&mut field, &events, &mut figures).unwrap();
        field.check(&events, 20).unwrap();
    }
    for section in ["lone", "batches", "moves", "memory", "steps"] {
        assert!(figures.of(section).all(|figure| figure.median() > 0.0), "{section}");
        assert!(figures.of(section).count() >= 8, "{section}");
    }
    assert!(figures.csv().lines().count() > 50);
}

#[test]
fn a_wrong_answer_is_seen() {
    let config = Config { subscriptions: 400, coverage: 0.02, selectivity: 0.015, ..Config::default() };
    let mut field = Field::new("tiny", config, &[Device::host(1 << 30)]).unwrap();
    field.grow(400).unwrap();
    let workload = field.workload().unwrap();
    let events: Vec<Event> = (0..64).map(|index| workload.event(index)).collect();
    // Everybody goes away, and only one engine hears of it.
    for (client, position) in (0..400).map(|client| (client, workload.event(9_999).position)) {
        use matcher::engine::Engine as _;
        field.gpu.move_client(matcher::subscription::ClientId(client), Some(position));
    }
    assert!(field.check(&events, 20).is_err());
}
