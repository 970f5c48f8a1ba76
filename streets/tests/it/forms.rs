//! Streets from every form, against each other and against reference distances.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use matcher::geo::World;
use routes::{Tree, length_mm};
use streets::{Class, Network, load_connected};

/// The data that lies beside the project, or beside a folder around it; none in a bare clone, where the copy inside has to do.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    around.map(|folder| folder.join("shared/data").join(name)).find(|folder| folder.exists())
}

/// The small country that every clone has.
pub(crate) fn liechtenstein() -> Network {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../loadgen/data/liechtenstein/highways.osm.pbf");
    load_connected(&path).expect("the copy in the project is sound")
}

/// Source number to node.
fn nodes(network: &Network) -> HashMap<i64, u32> {
    (0..u32::try_from(network.nodes_count()).expect("few"))
        .map(|node| (network.node_id(node), node))
        .collect()
}

fn arcs(network: &Network) -> std::ops::Range<u32> {
    0..u32::try_from(network.arcs_count()).expect("few")
}

#[test]
fn packed_streets_are_those_of_the_table() {
    let Some(folder) = shared("streets-liechtenstein") else {
        eprintln!("streets-liechtenstein is not beside the project: nothing compared");
        return;
    };
    let (packed, table) = (liechtenstein(), load_connected(&folder).expect("the data is sound"));
    assert!(
        (packed.streets_m() / table.streets_m() - 1.0).abs() < 1e-4,
        "{} {}",
        packed.streets_m(),
        table.streets_m()
    );
    assert_eq!((packed.nodes_count(), packed.arcs_count()), (table.nodes_count(), table.arcs_count()));
    let lengths = |network: &Network| {
        let mut all = arcs(network).map(|arc| length_mm(network, arc)).collect::<Vec<_>>();
        all.sort_unstable();
        all
    };
    for (packed_mm, table_mm) in lengths(&packed).into_iter().zip(lengths(&table)) {
        assert!(packed_mm.abs_diff(table_mm) <= 2, "{packed_mm} mm and {table_mm} mm");
    }
}

#[test]
fn a_network_is_one_piece_and_its_arrays_agree() {
    let network = liechtenstein();
    let census = network.census();
    assert_eq!(census.nodes, network.nodes_count() + census.nodes_cut);
    assert_eq!(census.arcs, network.arcs_count() + census.arcs_cut);
    assert!(census.nodes_cut > 0 && census.length_cut_m > 0.0);
    let tree = Tree::to(&network, 0, |arc| length_mm(&network, arc));
    for node in 0..u32::try_from(network.nodes_count()).expect("few") {
        assert!(tree.cost(node).is_some(), "node {node} cannot reach node 0");
        assert!(network.arcs_from(node).all(|arc| network.from(arc) == node));
        assert!(network.arcs_to(node).iter().all(|arc| network.to(*arc) == node));
        assert!(!network.arcs_from(node).is_empty());
    }
    for arc in arcs(&network) {
        let shape = network.shape(arc);
        assert_eq!(shape[0], network.node_at(network.from(arc)));
        assert_eq!(shape[shape.len() - 1], network.node_at(network.to(arc)));
        assert!(network.length_m(arc) > 0.0 && network.limit_ms(arc) > 0.0 && network.lanes(arc) > 0);
        if let Some(back) = network.reverse(arc) {
            assert_eq!(network.reverse(back), Some(arc));
            assert_eq!((network.from(back), network.to(back)), (network.to(arc), network.from(arc)));
            assert!(shape.iter().eq(network.shape(back).iter().rev()));
        }
    }
    assert!(arcs(&network).any(|arc| network.name(arc) == Some("Landstrasse")));
}

#[test]
fn places_along_an_arc_are_as_far_as_they_say() {
    let network = liechtenstein();
    let world = network.world();
    let place = |at: [f64; 2]| world.position(&at).expect("on the Earth");
    for arc in arcs(&network).step_by(7) {
        let length_m = network.length_m(arc);
        assert_eq!(network.point(arc, -5.0), network.shape(arc)[0]);
        let end = place(network.point(arc, length_m + 5.0));
        assert!(world.distance_m(&end, &place(network.node_at(network.to(arc)))) < 1e-3);
        let steps = 200;
        let points =
            (0..=steps).map(|step| place(network.point(arc, length_m * f64::from(step) / f64::from(steps))));
        let points = points.collect::<Vec<_>>();
        let each_m = length_m / f64::from(steps);
        for pair in points.windows(2) {
            // Cutting a corner is shorter, never longer.
            assert!(world.distance_m(&pair[0], &pair[1]) <= each_m * 1.0001 + 1e-6);
        }
        let drawn_m = points.windows(2).map(|pair| world.distance_m(&pair[0], &pair[1])).sum::<f64>();
        assert!(drawn_m > 0.9 * length_m, "arc {arc}: {drawn_m} of {length_m}");
    }
}

const SMALL: &str = r#"<?xml version="1.0"?>
<osm version="0.6">
  <node id="1" lat="47.0" lon="9.0"/><node id="2" lat="47.001" lon="9.0"><tag k="highway" v="traffic_signals"/></node>
  <node id="3" lat="47.002" lon="9.0"/><node id="4" lat="47.001" lon="9.001"/><node id="5" lat="47.001" lon="9.002"/>
  <node id="6" lat="47.003" lon="9.0"/><node id="7" lat="47.1" lon="9.1"/>
  <way id="10"><nd ref="1"/><nd ref="2"/><nd ref="3"/><tag k="highway" v="primary"/><tag k="maxspeed" v="30 mph"/>
    <tag k="name" v="A &amp; B"/><tag k="lanes" v="4"/></way>
  <way id="11"><nd ref="2"/><nd ref="4"/><nd ref="5"/><tag k="highway" v="residential"/></way>
  <way id="12"><nd ref="5"/><nd ref="3"/><tag k="highway" v="tertiary_link"/><tag k="oneway" v="-1"/></way>
  <way id="13"><nd ref="3"/><nd ref="6"/><tag k="highway" v="service"/><tag k="oneway" v="yes"/></way>
  <way id="14"><nd ref="1"/><nd ref="7"/><tag k="highway" v="footway"/></way>
  <way id="15"><nd ref="1"/><nd ref="99"/><tag k="highway" v="residential"/></way>
</osm>"#;

/// A file of a name with some bytes, in a folder that lives as long as the first value.
pub(crate) fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    (folder, path)
}

fn check_small(path: &Path) {
    let network = load_connected(path).expect("a sound file");
    // 1 - 2 - 3, 2 - 5 (over 4, which is no junction), 3 -> 5; 6 is a dead end of a one-way street, and cut off.
    let nodes = nodes(&network);
    let mut ids = nodes.keys().copied().collect::<Vec<_>>();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 5]);
    assert_eq!((network.arcs_count(), network.census().arcs_cut, network.census().nodes_cut), (7, 1, 1));
    assert_eq!(network.census().skipped, 1, "{:?}", network.census());
    assert!(network.census().first_problem.as_ref().is_some_and(|text| text.contains("node 99")));
    let arc = |from: i64, to: i64| {
        arcs(&network).find(|arc| (network.from(*arc), network.to(*arc)) == (nodes[&from], nodes[&to]))
    };
    let main = arc(1, 2).expect("the main street");
    assert_eq!(
        (network.class(main), network.name(main), network.lanes(main)),
        (Class::Primary, Some("A & B"), 2)
    );
    assert!((network.limit_ms(main) - 13.4112).abs() < 1e-3);
    assert!((network.length_m(main) - 111.195).abs() < 0.01);
    assert_eq!(network.heading_deg(main, 50.0), 0.0);
    assert_eq!(network.shape(arc(2, 5).expect("a side street")).len(), 3);
    let link = arc(3, 5).expect("the link, the other way round");
    assert!(arc(5, 3).is_none() && network.reverse(link).is_none());
    assert_eq!(network.class(link), Class::Tertiary);
    assert!(network.has_signals(nodes[&2]) && !network.has_signals(nodes[&1]));
}

#[test]
fn written_streets_mean_what_their_tags_say() {
    let (_folder, path) = file("small.osm", SMALL.as_bytes());
    check_small(&path);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(SMALL.as_bytes()).expect("memory");
    let (_folder, path) = file("small.osm.gz", &packed.finish().expect("memory"));
    check_small(&path);
}

#[test]
fn a_grid_is_a_chessboard() {
    let grid = Network::grid(4, 5, 100.0);
    assert_eq!(
        (grid.nodes_count(), grid.arcs_count(), grid.world()),
        (20, 2 * (4 * 4 + 3 * 5), World::Planar)
    );
    assert!((grid.streets_m() - 3100.0).abs() < 1e-9 && (grid.arcs_m() - 6200.0).abs() < 1e-9);
    let tree = Tree::to(&grid, 19, |arc| length_mm(&grid, arc));
    assert_eq!(tree.cost(0), Some(700_000));
    assert_eq!(grid.node_at(19), [400.0, 300.0]);
    assert!(arcs(&grid).any(|arc| grid.name(arc) == Some("Column 4")));
}
