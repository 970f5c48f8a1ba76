//! Street files that are not what they should be: an error that says where and why, and never a panic.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use streets::{Network, StreetsError, load_connected};

use super::forms::file;

const NODES: &str = "node,lat,lon\n0,47.0,9.0\n1,47.001,9.0\n2,47.002,9.0\n";
const EDGES: &str = "from,to,length_mm,oneway,highway,maxspeed,name,shape\n0,1,111195,0,primary,50,Main,\n";

fn tables(nodes: &str, edges: &str) -> Result<Network, StreetsError> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("nodes.csv"), nodes).expect("a file");
    std::fs::write(folder.path().join("edges.csv"), edges).expect("a file");
    load_connected(folder.path())
}

/// The error has all of these words.
#[track_caller]
fn check_refused(outcome: Result<Network, StreetsError>, words: &[&str]) {
    let message = outcome.expect_err("a fault").to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message}: not all of {words:?}");
}

#[test]
fn a_row_that_makes_no_sense_is_left_out_and_counted() {
    for (row, words) in [
        ("1,2,NaN,0,primary,,,", "length_mm"),
        ("1,2,-5,0,primary,,,", "length_mm"),
        ("1,2,inf,0,primary,,,", "length_mm"),
        ("1,2,1e300,0,primary,,,", "length_mm"),
        ("1,77,1000,0,primary,,,", "no node 77"),
        ("1,x,1000,0,primary,,,", "\"x\" is not a number"),
        ("1,2,1000,5,primary,,,", "oneway"),
        ("1,2,1000,0,primary,,,47.0;9.0", "lat,lon"),
        ("1,2,1000,0,primary,,,\"47.0,9.0 NaN,9.0\"", "shape"),
        ("1,2,1000,0,primary,,,\"47.0,9.0\"", "two points"),
    ] {
        let network = tables(NODES, &format!("{EDGES}{row}\n")).expect("the other row is sound");
        assert_eq!((network.arcs_count(), network.census().skipped), (2, 1), "{row}");
        let problem = network.census().first_problem.clone().expect("one was left out");
        assert!(problem.contains("edges.csv, line 3") && problem.contains(words), "{row}: {problem}");
    }
    for row in ["3,NaN,9.0", "3,91,9.0", "3,47.0,181", "0,47.0,9.0", "x,47.0,9.0", "3,47.0,"] {
        let network = tables(&format!("{NODES}{row}\n"), EDGES).expect("the others are sound");
        let problem = network.census().first_problem.clone().expect("one was left out");
        assert!(problem.contains("nodes.csv, line 5"), "{row}: {problem}");
    }
}

#[test]
fn what_is_no_table_is_refused() {
    check_refused(tables("node,lat\n0,47.0\n", EDGES), &["nodes.csv", "line 1", "no column lon"]);
    check_refused(tables(NODES, "from,to\n0,1\n"), &["edges.csv", "line 1", "length_mm"]);
    check_refused(tables(NODES, &format!("{EDGES}1,2\n")), &["edges.csv", "line 3"]);
    check_refused(tables("", ""), &["nodes.csv", "line 1"]);
    check_refused(tables(NODES, "from,to,length_mm,highway\n"), &["no streets"]);
    check_refused(tables(NODES, "from,to,length_mm,highway\n0,9,5,primary\n"), &["no streets", "no node 9"]);
    // One way out and none back: nobody could stay.
    check_refused(tables(NODES, "from,to,length_mm,highway,oneway\n0,1,5,primary,1\n"), &["no streets"]);
    let folder = tempfile::tempdir().expect("a folder");
    check_refused(load_connected(folder.path()), &["nodes.csv"]);
    check_refused(load_connected(&folder.path().join("nothing.osm.pbf")), &["nothing.osm.pbf"]);
    check_refused(load_connected(&folder.path().join("nothing")), &["nothing"]);
    let (_folder, path) = file("streets.geojson", b"{}");
    check_refused(load_connected(&path), &["streets.geojson", ".osm.pbf"]);
}

#[test]
fn a_line_without_end_is_refused() {
    let endless = vec![b'1'; 9 << 20];
    check_refused(
        tables(&format!("{NODES}{}", String::from_utf8_lossy(&endless)), EDGES),
        &["nodes.csv", "4194304 bytes"],
    );
    let mut text = b"<osm><node id=\"".to_vec();
    text.extend(&endless);
    let (_folder, path) = file("endless.osm", &text);
    check_refused(load_connected(&path), &["endless.osm", "4194304 bytes"]);
    // A small file that unpacks to a large one is no better.
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&text).expect("memory");
    let (_folder, path) = file("endless.osm.gz", &packed.finish().expect("memory"));
    check_refused(load_connected(&path), &["endless.osm.gz", "4194304 bytes"]);
}

#[test]
fn broken_documents_are_refused() {
    for (text, words) in [
        ("", "ends before"),
        ("<gpx></gpx>", "<gpx>"),
        ("<osm><way id=\"1\"><nd ref=\"1\"/>", "ends before"),
        ("<osm></way>", "byte"),
        ("<osm><node id=\"1\" lat=\"47\" lon=\"9\"/></osm>", "no streets"),
        ("not XML", "ends before"),
    ] {
        let (_folder, path) = file("broken.osm", text.as_bytes());
        check_refused(load_connected(&path), &["broken.osm", words]);
    }
    let (_folder, path) = file("broken.osm.gz", b"not gzip");
    check_refused(load_connected(&path), &["broken.osm.gz"]);
    let (_folder, path) = file("broken.osm", b"<osm><node id=\"\xff\xfe\"/></osm>");
    check_refused(load_connected(&path), &["broken.osm"]);
    let odd = r#"<osm><node id="x" lat="1" lon="2"/><node id="1" lat="NaN" lon="9"/><node id="2" lat="47" lon="9"/>
        <way id="w"><nd ref="1"/></way><way id="5"><nd ref="2"/><nd/><tag k="highway" v="primary"/></way>
        <way id="6"><nd ref="2"/><tag k="highway" v="primary"/></way>
        <way id="7"><nd ref="1"/><nd ref="2"/><tag k="highway" v="primary"/><tag k="maxspeed" v="99999"/></way></osm>"#;
    let (_folder, path) = file("odd.osm", odd.as_bytes());
    check_refused(load_connected(&path), &["odd.osm", "no streets", "first problem", "byte"]);
}

/// Cut anywhere, and with bytes that are others, a packed file is refused or read, and nothing else.
#[test]
fn a_packed_file_with_faults_does_no_harm() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../loadgen/data/liechtenstein/highways.osm.pbf");
    let sound = std::fs::read(path).expect("the copy in the project");
    for nth in 0..12 {
        let (_folder, path) = file("cut.osm.pbf", &sound[..sound.len() * nth / 12]);
        check_refused(load_connected(&path), &["cut.osm.pbf"]);
    }
    let mut faults = 0;
    for nth in 0..40_usize {
        let mut bytes = sound.clone();
        let at = nth * 7919 * 613 % bytes.len();
        bytes[at] ^= 1 << (nth % 8);
        let (_folder, path) = file("flipped.osm.pbf", &bytes);
        faults += usize::from(load_connected(&path).is_err());
    }
    assert!(faults > 0, "no fault was found");
}
