//! What the world can do to a device is an error; nothing else is lost by it.

use device::{Device, DriverError, Fault};
use rand::SeedableRng;
use rand::rngs::StdRng;
use routes::{Cost, Costed, Graph, lengths_mm};
use routes_gpu::{Error, Kernels, Searcher, Tuning};
use streets::Network;

use crate::random::queries;
use crate::{FORMS, check, expected};

fn mesh() -> (Graph, Vec<Cost>) {
    let network = Network::grid(32, 32, 100.0);
    (Graph::of(&network), lengths_mm(&network))
}

fn on(device: &Device) -> Searcher {
    let kernels = Kernels::load(device).expect("the host takes them");
    Searcher::new(&kernels).expect("nothing yet")
}

fn is_out_of_memory<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Device(DriverError::OutOfMemory { .. })))
}

#[test]
fn queries_that_do_not_fit_together_are_found_in_packs() {
    let (graph, costs) = mesh();
    let graphs = [Costed { graph: &graph, costs: &costs }];
    let queries = queries(&mut StdRng::seed_from_u64(3), &graphs, 300);
    let expected = expected(&graphs, &queries);
    assert!(queries.len() > 100);
    // The mesh takes 220 kB with its landmarks, and a query 27.
    let mut searcher = on(&Device::host(600_000));
    searcher.load(&graphs, Tuning::default()).expect("memory");
    assert!(is_out_of_memory(&searcher.begin(&queries)), "all at once are too many");
    FORMS.iter().for_each(|form| check(&mut searcher, &graphs, &queries, &expected, *form));
}

#[test]
fn a_device_with_too_little_memory_says_so() {
    let (graph, costs) = mesh();
    let graphs = [Costed { graph: &graph, costs: &costs }];
    let mut searcher = on(&Device::host(1 << 14));
    let told = searcher.load(&graphs, Tuning::default());
    assert!(is_out_of_memory(&told), "{told:?}");
    let told = told.expect_err("as asserted").to_string();
    assert!(told.contains("bytes of device memory"), "{told}");
    // A graph without a query.
    let mut searcher = on(&Device::host(80_000));
    searcher.load(&graphs, Tuning { landmarks: 0, ..Tuning::default() }).expect("memory");
    for form in FORMS {
        assert!(is_out_of_memory(&searcher.routes(&[(0, [0, 1_023])], form)));
    }
}

#[test]
fn a_later_attempt_succeeds() {
    let (graph, costs) = mesh();
    let graphs = [Costed { graph: &graph, costs: &costs }];
    let queries = queries(&mut StdRng::seed_from_u64(4), &graphs, 20);
    let expected = expected(&graphs, &queries);
    // Twice, for a smaller amount is asked for after the first.
    let refuse = |device: &Device, after| {
        (0..2).for_each(|_| device.inject(Fault::OutOfMemory, after));
    };
    for after in 1..=4 {
        let device = Device::host(1 << 24);
        let mut searcher = on(&device);
        refuse(&device, after);
        assert!(is_out_of_memory(&searcher.load(&graphs, Tuning::default())), "{after}");
        searcher.load(&graphs, Tuning::default()).expect("no fault any longer");
        for form in FORMS {
            check(&mut searcher, &graphs, &queries, &expected, form);
        }
    }
    for after in 1..=10 {
        let device = Device::host(1 << 24);
        let mut searcher = on(&device);
        searcher.load(&graphs, Tuning::default()).expect("memory");
        refuse(&device, after);
        assert!(is_out_of_memory(&searcher.begin(&queries)), "{after}");
        assert!(matches!(searcher.is_over(), Err(Error::OutOfOrder(_))), "there is no search");
        check(&mut searcher, &graphs, &queries, &expected, FORMS[0]);
        // Smaller packs.
        let mut searcher = on(&device);
        searcher.load(&graphs, Tuning::default()).expect("memory");
        refuse(&device, after);
        check(&mut searcher, &graphs, &queries, &expected, FORMS[1]);
    }
}

#[test]
fn a_lost_device_is_told() {
    let (graph, costs) = mesh();
    let graphs = [Costed { graph: &graph, costs: &costs }];
    for form in FORMS {
        for after in [1, 2] {
            let device = Device::host(1 << 24);
            let mut searcher = on(&device);
            searcher.load(&graphs, Tuning::default()).expect("memory");
            device.inject(Fault::LaunchFailed, after);
            let told = searcher.routes(&[(0, [0, 1_023])], form);
            assert!(matches!(told, Err(Error::Device(DriverError::LaunchFailed { .. }))), "{told:?}");
            assert!(matches!(searcher.is_over(), Err(Error::OutOfOrder(_))), "there is no search");
            let told = searcher.routes(&[(0, [0, 1_023])], form);
            assert!(matches!(told, Err(Error::Device(DriverError::DeviceLost { .. }))), "{told:?}");
        }
    }
}
