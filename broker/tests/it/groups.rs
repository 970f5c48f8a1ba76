//! Groups on the command line.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::dry_run;

/// A chain in which each is less than the next, and four values.
const CHAIN: &str = r#"<instance format="XCSP3" type="CSP">
  <variables> <array id="x" size="[3]"> 1..4 </array> <var id="free"> 7 -7 </var> </variables>
  <constraints>
    <group>
      <extension>
        <list> %0 %1 </list>
        <supports> (1,2)(1,3)(1,4)(2,3)(2,4)(3,4) </supports>
      </extension>
      <args> x[0..1] </args>
      <args> x[1] x[2] </args>
    </group>
  </constraints>
</instance>
"#;

fn solve_in(folder: &Path, name: &str, arguments: &[&str]) -> Result<Value, String> {
    let arguments = [&["groups", "solve", name], arguments].concat();
    dry_run(&arguments, folder)
}

fn solve(instance: &str, arguments: &[&str]) -> Result<Value, String> {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("i.xml"), instance).expect("written");
    solve_in(folder.path(), "i.xml", arguments)
}

fn packed(name: &str, text: &[u8]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let mut file =
        GzEncoder::new(std::fs::File::create(folder.path().join(name)).expect("a file"), Compression::fast());
    file.write_all(text).expect("written");
    file.finish().expect("written");
    folder
}

#[test]
fn an_instance_is_made_arc_consistent_and_solved() {
    // Printed by `printf 'x[0]=1,2;x[1]=2,3;x[2]=3,4;free=7,-7' | sha256sum`.
    let closure = "2a3c928a94fed23a";
    for algorithm in ["ac4", "ac3bit", "ac4gpu", "ac4gpu+"] {
        let left = solve(CHAIN, &["--algorithm", algorithm]).expect(algorithm);
        let loops = left["loops"].as_u64().expect("a count");
        assert!(algorithm == "ac3bit" || loops == 3, "{algorithm}: {loops}");
        let expected =
            json!({"consistent": true, "removed": 6, "closure": closure, "seconds": null, "loops": loops});
        assert_eq!(left, expected, "{algorithm}");
        let left = solve(
            CHAIN,
            &["--algorithm", algorithm, "--assign", "x[0]=2", "--assign", "free=-7", "--search"],
        );
        let left = left.expect(algorithm);
        assert_eq!((&left["removed"], &left["consistent"]), (&json!(10), &json!(true)));
        assert_eq!(left["solution"], json!({"x[0]": 2, "x[1]": 3, "x[2]": 4, "free": -7}));
        let nothing =
            solve(CHAIN, &["--algorithm", algorithm, "--assign", "x[2]=2", "--search"]).expect(algorithm);
        let none = json!({"consistent": false, "removed": null, "closure": null, "seconds": null, "loops": nothing["loops"], "solution": null});
        assert_eq!(nothing, none, "{algorithm}");
    }
    // Arc consistent, and without a solution.
    let triangle = CHAIN
        .replace("size=\"[3]\"> 1..4", "size=\"[3]\"> 1 2")
        .replace("(1,2)(1,3)(1,4)(2,3)(2,4)(3,4)", "(1,2)(2,1)")
        .replace("</group>", "<args> x[2] x[0] </args></group>");
    let left = solve(&triangle, &["--search"]).expect("consistent");
    assert_eq!((&left["removed"], &left["solution"]), (&json!(0), &Value::Null));
    let left = solve_in(packed("i.XML.GZ", CHAIN.as_bytes()).path(), "i.XML.GZ", &[]).expect("unpacked");
    assert_eq!(left["closure"], json!(closure));
}

#[test]
fn what_is_not_there_is_told() {
    for (instance, arguments, expected) in [
        (CHAIN, ["--assign", "x[0]=5"], "--assign x[0]=5: 5 is not in the domain of x[0]"),
        (CHAIN, ["--assign", "y=5"], "--assign y=5: there is no variable y"),
        (CHAIN, ["--assign", "free"], "--assign free: an assignment is VAR=VALUE"),
        (CHAIN, ["--assign", "free=seven"], "--assign free=seven: \"seven\" is no whole number"),
        (
            "<instance>\n<objectives/></instance>",
            ["--algorithm", "ac4"],
            "i.xml: line 2: <objectives> in <instance> is not taken",
        ),
        ("\u{0}", ["--algorithm", "ac4"], "i.xml: line 1: "),
    ] {
        let told = solve(instance, &arguments).expect_err(expected);
        assert!(told.contains(expected), "{told}");
    }
    let folder = TempDir::new().expect("a folder");
    assert!(solve_in(folder.path(), "i.xml", &[]).expect_err("no file").contains("i.xml cannot be read"));
}

/// A hundred kilobytes that unpack to a hundred megabytes.
#[test]
fn a_file_that_unpacks_to_too_much_is_refused() {
    let folder = packed("i.xml.gz", &vec![b' '; 100 << 20]);
    let told = solve_in(folder.path(), "i.xml.gz", &[]).expect_err("too much");
    assert!(told.contains("i.xml.gz has more than 67108864 bytes"), "{told}");
}
