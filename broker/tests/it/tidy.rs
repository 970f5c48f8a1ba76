//! What ARCHITECTURE.md claims of the code's shape, read out of the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Format as _, Toml};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the broker is a folder of it").to_owned()
}

/// A source file: its path from a folder, and its text.
struct Source {
    path: PathBuf,
    text: String,
}

/// The Rust files below a folder, by path.
fn sources(folder: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for entry in std::fs::read_dir(&inside).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push(Source { path: path.strip_prefix(folder).unwrap().to_owned(), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The crates that are delivered.
const PRODUCT: [&str; 20] = [
    "matcher/src",
    "kernels/src",
    "device/src",
    "matcher-gpu/src",
    "checks/src",
    "checks-gpu/src",
    "rules/src",
    "rules-gpu/src",
    "groups/src",
    "groups-gpu/src",
    "routes-gpu/src",
    "traffic-gpu/src",
    "cluster/src",
    "clients/wire/src",
    "clients/rust/src",
    "clients/cli/src",
    "broker/src",
    "broker/wakeup/src",
    "loadgen/src",
    "benches/src",
];

/// The files of a crate that are compiled for those who use it: not the modules that are there for tests and fuzzing alone.
fn product(folder: &str) -> Vec<Source> {
    let all = sources(&root().join(folder));
    let mut for_tests = BTreeSet::new();
    for source in &all {
        let mut is_for_tests = false;
        for line in source.text.lines() {
            let line = line.trim();
            if ["#[cfg(test)]", "#[cfg(any(test", "#[cfg(all(test"].iter().any(|head| line.starts_with(head))
            {
                is_for_tests = true;
            } else if let Some(name) = module(line) {
                if is_for_tests {
                    for_tests.insert(children_of(&source.path).join(name));
                }
                is_for_tests = false;
            } else if !line.starts_with("#[") {
                is_for_tests = false;
            }
        }
    }
    let is_product = |source: &Source| {
        let path = source.path.with_extension("");
        !path.ancestors().any(|part| for_tests.contains(part))
    };
    all.into_iter().filter(is_product).collect()
}

/// The module that a line declares to be in another file.
fn module(line: &str) -> Option<&str> {
    let declared = line.strip_suffix(';')?;
    let (visibility, name) = declared.rsplit_once("mod ")?;
    (visibility.is_empty() || visibility.starts_with("pub")).then_some(name)
}

/// Where the modules are that a file declares.
fn children_of(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(Path::new(""));
    match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") | None => parent.to_owned(),
        Some(stem) => parent.join(stem),
    }
}

/// The text without the tests at its end.
fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| &text[..end])
}

/// The rooms that a text imports: what stands behind `crate::`, alone or in braces.
fn imports(text: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let first =
        |text: &str| text.trim_start().split(|letter| !is_name(letter)).next().unwrap_or("").to_owned();
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        if text[..at].ends_with("$") {
            continue;
        }
        let rest = &text[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => drop(found.insert(first(rest))),
            Some(list) => {
                let mut depth = 0;
                let ends = |letter: char| {
                    depth += i32::from(letter == '{') - i32::from(letter == '}');
                    depth < 0
                };
                let list = &list[..list.find(ends).unwrap_or(list.len())];
                let mut depth = 0;
                let parts = list.split(|letter: char| {
                    depth += i32::from(letter == '{') - i32::from(letter == '}');
                    depth == 0 && letter == ','
                });
                found.extend(parts.map(first).filter(|name| !name.is_empty()));
            }
        }
    }
    found
}

/// The rooms of the broker in the order of the table, which begins behind its heading, and what each may import.
fn table() -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, rest) = text.split_once("| room of the broker |").expect("the table of the broker's rooms");
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').collect();
        let [room, .., may_import] = cells.as_slice() else { panic!("a row is short: {line}") };
        (names(room)[0].clone(), names(may_import).into_iter().collect())
    };
    rows.map(row).collect()
}

#[test]
fn a_room_imports_what_the_table_says_and_nothing_above_it() {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in product("broker/src") {
        let path = source.path.with_extension("");
        let room = path.iter().next().unwrap().to_str().unwrap().to_owned();
        // The two heads of the crate know all rooms, and `edges` shows some to the micro-benchmarks.
        if !["lib", "main", "edges"].contains(&&*room) {
            found.entry(room).or_default().extend(imports(without_tests(&source.text)));
        }
    }
    let rooms: BTreeSet<_> = found.keys().cloned().collect();
    for (room, imported) in &mut found {
        imported.retain(|other| other != room && rooms.contains(other));
    }
    let table = table();
    let mut below = BTreeSet::new();
    for (room, may_import) in &table {
        let above: Vec<_> = may_import.difference(&below).collect();
        assert!(above.is_empty(), "{room} stands below {above:?} in the table");
        below.insert(room.clone());
    }
    assert_eq!(below, rooms, "the rooms of the table, and those that there are");
    for (room, may_import) in table {
        assert_eq!(found[&room], may_import, "what {room} imports, and what the table says");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for folder in PRODUCT {
        for source in product(folder) {
            let has_head = source.text.starts_with("//!") || source.text.starts_with("#![doc");
            assert!(has_head, "{folder}/{}", source.path.display());
        }
    }
}

/// A doc comment is read alone, in a list or beside a cursor: it names its item.
#[test]
fn doc_comments_can_be_read_alone() {
    for folder in PRODUCT {
        for source in product(folder) {
            for line in source.text.lines().map(str::trim_start) {
                let Some(text) = line.strip_prefix("/// ") else { continue };
                let refers = ["Of ", "The same ", "Those "].iter().any(|begin| text.starts_with(begin));
                assert!(!refers, "{folder}/{}: {line}", source.path.display());
            }
        }
    }
}

/// A statement that starts a task or a thread and drops its handle: nothing would wait for it at a stop. A tracker waits.
#[test]
fn no_task_is_detached() {
    for source in product("broker/src").into_iter().filter(|source| source.path != Path::new("main.rs")) {
        let mut is_begin = true;
        for line in without_tests(&source.text).lines().map(str::trim) {
            let was_begin = std::mem::replace(&mut is_begin, line.ends_with([';', '{', '}']));
            let Some((before, _)) = line.split_once("spawn(") else { continue };
            let is_path =
                before.chars().all(|letter| letter.is_ascii_alphanumeric() || "_:.".contains(letter));
            let is_kept = ["tasks.", "requests.", "scope."].iter().any(|keeper| before.ends_with(keeper));
            assert!(!(was_begin && is_path) || is_kept, "{}: {line}", source.path.display());
        }
    }
}

/// Code that the compiler does not check is in few places, each with its proofs.
#[test]
fn unsafe_code_is_where_it_is_said_to_be() {
    let allowed = [
        "device/src",
        "matcher-gpu/src/launchers",
        "checks-gpu/src/launchers.rs",
        "rules-gpu/src/launchers.rs",
        "groups-gpu/src/launchers",
        "routes-gpu/src/launchers.rs",
        "traffic-gpu/src/launchers.rs",
    ]
    .map(PathBuf::from);
    for folder in PRODUCT {
        for source in product(folder) {
            let path = Path::new(folder).join(&source.path);
            let is_allowed = allowed.iter().any(|allowed| path.starts_with(allowed));
            let uses = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
            let found = uses.iter().any(|word| source.text.contains(word));
            assert!(is_allowed || !found, "{}", path.display());
        }
    }
}

/// A target of which the manifest says that it has no tests is not built for them: a test there would never run.
#[test]
fn no_test_is_left_out() {
    for folder in PRODUCT {
        let manifest = Toml::file(root().join(folder).with_file_name("Cargo.toml"));
        let manifest: serde_json::Value = Figment::from(manifest).extract().unwrap();
        let is_tested = |target: &serde_json::Value| target["test"] != false;
        let programs = manifest["bin"].as_array().is_none_or(|programs| programs.iter().any(is_tested));
        for Source { path, text } in sources(&root().join(folder)) {
            let is_program = path == Path::new("main.rs") || path.starts_with("bin");
            let is_tested = if is_program { programs } else { is_tested(&manifest["lib"]) };
            let has_tests = ["#[cfg(test)]", "#[test]"].iter().any(|word| text.contains(word));
            assert!(is_tested || !has_tests, "{folder}/{}", path.display());
        }
    }
}

#[test]
fn a_kernel_has_one_launcher() {
    let launchers: Vec<_> = [
        "device/src",
        "matcher-gpu/src",
        "checks-gpu/src",
        "rules-gpu/src",
        "groups-gpu/src",
        "routes-gpu/src",
        "traffic-gpu/src",
    ]
    .into_iter()
    .flat_map(product)
    .collect();
    let mut kernels = 0;
    for entry in std::fs::read_dir(root().join("kernels/ptx")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines().filter(|line| line.contains(".entry ")) {
            let (_, name) = line.split_once(".entry ").unwrap();
            let name = format!("\"{}\"", name.trim_end_matches('('));
            let found: Vec<_> = launchers
                .iter()
                .filter(|source| source.text.contains(&name))
                .map(|source| &source.path)
                .collect();
            assert_eq!(found.len(), 1, "{name} is started from {found:?}");
            kernels += 1;
        }
    }
    assert!(kernels > 10, "{kernels}");
}
