//! Routes on a device against Dijkstra's algorithm: on the processor as a device, and with `NEARCAST_GPU_TESTS=1` on a real one.

mod evaluator;
mod failures;
#[path = "../../../routes/tests/it/generator.rs"]
mod generator;
mod interrupts;
mod levels;
mod mesh;
mod random;
mod streets;

use device::Device;
use routes::{Cost, Costed, Route, dijkstra};
use routes_gpu::{Form, Kernels, Searcher, Tuning};

/// Memory of the processor as a device.
const HOST_BYTES: u64 = 1 << 30;

const FORMS: [Form; 4] = [Form::Launches, Form::Composed, Form::Warps(1), Form::Warps(2)];

/// All nodes of the frontier at once, only the least ones, and what lies between.
const TUNINGS: [Tuning; 5] = [
    Tuning { landmarks: 0, slack_arcs: u32::MAX },
    Tuning { landmarks: 0, slack_arcs: 0 },
    Tuning { landmarks: 3, slack_arcs: 0 },
    Tuning { landmarks: 1, slack_arcs: 2 },
    Tuning { landmarks: 8, slack_arcs: 4 },
];

/// The number of a graph, and the ends of a route.
type Query = (usize, [u32; 2]);

/// Whether a real device is to be there.
fn is_on_device() -> bool {
    std::env::var_os("NEARCAST_GPU_TESTS").is_some_and(|value| value == "1")
}

/// Whether the long form of tests is asked for.
fn is_soak() -> bool {
    std::env::var_os("NEARCAST_SOAK").is_some_and(|value| value == "1")
}

/// A searcher on the tests' device.
fn searcher() -> Searcher {
    let device = if is_on_device() {
        Device::all().expect("NEARCAST_GPU_TESTS=1 demands a device").swap_remove(0)
    } else {
        Device::host(HOST_BYTES)
    };
    Searcher::new(&Kernels::load(&device).expect("the device takes them")).expect("nothing yet")
}

/// What the cheapest routes cost.
fn expected(graphs: &[Costed<'_>], queries: &[Query]) -> Vec<Option<Cost>> {
    let cost = |(on, [from, to]): &Query| dijkstra(graphs[*on].graph, graphs[*on].costs, *from, *to);
    queries.iter().map(|query| cost(query).map(|route| route.cost)).collect()
}

/// A route is a way from its beginning to its end that costs what it says.
#[track_caller]
fn check_route(Costed { graph, costs }: Costed<'_>, [from, to]: [u32; 2], route: &Route) {
    let end = route.arcs.iter().fold(from, |at, arc| {
        assert_eq!(graph.tail(*arc), at, "{from} to {to}: {route:?}");
        graph.head(*arc)
    });
    assert_eq!(end, to);
    assert_eq!(route.arcs.iter().map(|arc| costs[*arc as usize]).sum::<Cost>(), route.cost);
}

/// Holds what a searcher finds against what the cheapest routes cost.
#[track_caller]
fn check(
    searcher: &mut Searcher,
    graphs: &[Costed<'_>],
    queries: &[Query],
    expected: &[Option<Cost>],
    form: Form,
) {
    let routes = searcher.routes(queries, form).expect("a device that works");
    let costs: Vec<_> = routes.iter().map(|route| route.as_ref().map(|route| route.cost)).collect();
    assert_eq!(costs, expected, "{form:?}");
    for ((on, ends), route) in queries.iter().zip(&routes) {
        if let Some(route) = route {
            check_route(graphs[*on], *ends, route);
        }
    }
    assert_eq!(searcher.costs(queries, form).expect("a device that works"), expected, "{form:?}");
}
