//! What an engine tells of itself.

use matcher::engine::{Engine, MatchRows};
use matcher::fixtures::workload::{Config, Workload};
use matcher_gpu::{Clcb, Form, Step};

use super::{cuda_devices, host_device};

#[test]
fn every_step_of_clcb_has_its_time_and_both_forms_answer_the_same() {
    let config = Config { subscriptions: 2_000, coverage: 0.01, selectivity: 0.015, ..Config::default() };
    let workload = Workload::new(config).expect("the workload can be had");
    for device in cuda_devices().into_iter().chain([host_device()]) {
        let mut engine = Clcb::new(workload.world(), &device).expect("there is room");
        for (id, subscription) in workload.subscriptions() {
            engine.move_client(
                subscription.client,
                Some(workload.position(workload.home(subscription.client))),
            );
            engine.install(id, &subscription).expect("there is room");
        }
        let answers = [Form::Plain, Form::Fast].map(|form| {
            engine.set_form(form);
            let mut rows = MatchRows::new();
            for index in 0..50 {
                let times = engine.match_timed(&workload.event(index), &mut rows).expect("the device works");
                let all: std::time::Duration = Step::ALL.iter().map(|step| times.of(*step)).sum();
                assert!(all > std::time::Duration::ZERO);
            }
            rows
        });
        assert_eq!(answers[0], answers[1]);
        assert!(answers[0].pairs_count() > 50);
    }
}
