//! Bits of a small data directory are flipped, one at a time. Each is told, by `nearcast verify` or by the start, or changes
//! nothing; nothing panics, and nothing is wrong in silence.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Http, Program, Received, Serve, Ws, feature, run_to_end, soak};

/// Clients of the small directory.
const CLIENTS: u64 = 3;

/// Events of the small directory that are kept for somebody.
const KEPT: u64 = 8;

/// Flips of the small run: of the first bytes, where headers are, and anywhere else.
const FIRST_BITS: usize = 16;
const OTHER_BITS: usize = 24;

/// Where a flip was told by the check, the start is looked at for one in so many: it makes the same check.
const STARTS: usize = 8;
const STARTS_SOAK: usize = 64;

/// A bit of a file.
#[derive(Clone, Debug)]
struct Flip {
    file: PathBuf,
    bit: usize,
}

/// The one bit of the store's file that no checksum covers. It says which of the library's two slots has the last commit, which may be
/// taken back in silence if the bit flips.
const LAST_SLOT_BIT: usize = 9 * 8;

/// What became of a flip.
#[derive(Debug, PartialEq)]
enum Verdict {
    Told,
    Harmless,
    Wrong(String),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_told_or_harmless_after_a_clean_end() {
    flip_bits(End::Clean, 20_071_128).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_told_or_harmless_after_a_kill() {
    flip_bits(End::Kill, 20_071_129).await;
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Clean,
    Kill,
}

async fn flip_bits(end: End, seed: u64) {
    let seed = std::env::var("NEARCAST_SEED").map_or(seed, |text| text.parse().expect("a seed is a number"));
    let whole = TempDir::new().expect("a folder for the data");
    furnish(whole.path(), end).await;
    // Also a start leaves traces, so the directory as it was is copied for each.
    let before = copy(whole.path());
    let program = serve(before.path()).start().await;
    let state = state(&program.http(), &program).await;
    program.finish().await;
    let frames_count = state["frames"].as_object().expect("by client").values();
    let frames_count = frames_count.map(|frames| frames.as_array().map_or(0, Vec::len)).sum::<usize>();
    assert_eq!(frames_count as u64, CLIENTS * KEPT, "what is to be damaged is whole: {state}");

    let flips = flips(whole.path(), &mut StdRng::seed_from_u64(seed));
    let flips_count = flips.len();
    let workers_count = std::thread::available_parallelism().map_or(2, usize::from);
    let verdicts = stream::iter(flips.into_iter().enumerate()).map(async |(idx, flip)| {
        let verdict = verdict(whole.path(), &flip, &state, idx).await;
        (flip, verdict)
    });
    let verdicts = verdicts.buffer_unordered(workers_count).collect::<Vec<_>>().await;
    let count = |wanted: &Verdict| verdicts.iter().filter(|(_, verdict)| verdict == wanted).count();
    let (told, harmless) = (count(&Verdict::Told), count(&Verdict::Harmless));
    println!("{end:?}, seed {seed}: {flips_count} bits flipped, {told} told, {harmless} harmless");
    let wrong =
        verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Wrong(_))).collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "NEARCAST_SEED={seed}: {} of {flips_count} flips: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
    assert!(told > 0, "nothing that was flipped mattered");
}

fn serve(data: &Path) -> Serve {
    Serve::new().args(&["--shards", "1", "--data", data.to_str().expect("a path that is a text")])
}

/// A directory with something of everything that survives.
async fn furnish(data: &Path, end: End) {
    let program = serve(data).start().await;
    let http = program.http();
    for idx in 0..CLIENTS {
        let client = format!("/v1/clients/car-{idx}");
        let near = json!({"filters": [{"area": {"radius_m": 500.0}}], "durable": true});
        http.put(&format!("{client}/subscriptions/near"), &near).await.expect(201);
        let transitions = json!({"filters": [{"where": "kind = 'bus'"}], "on": ["enter", "exit"]});
        http.put(&format!("{client}/subscriptions/buses"), &transitions).await.expect(201);
        http.put(&format!("{client}/position"), &json!({"coordinates": [9.0, 45.0]})).await.expect(204);
    }
    for number in 0..KEPT {
        let mut event = feature(&format!("e{number}"), [9.0, 45.0], json!({"number": number}));
        if number % 2 == 0 {
            event["key"] = json!(format!("object-{number}"));
        }
        http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
    }
    match end {
        End::Clean => program.finish().await,
        End::Kill => program.kill(),
    }
}

/// All that is there.
async fn state(http: &Http, program: &Program) -> Value {
    let mut state = json!({"subscriptions": {}, "positions": {}, "live": {}, "frames": {}});
    for idx in 0..CLIENTS {
        let name = format!("car-{idx}");
        let mut forms = http.get(&format!("/v1/clients/{name}/subscriptions")).await.expect(200).json();
        for form in forms.as_array_mut().expect("a list") {
            form.as_object_mut().expect("an object").remove("activity");
        }
        state["subscriptions"][&name] = forms;
        let question = json!({
            "client": name,
            "subscription": {"filters": [{"area": {"radius_m": 1}}]},
            "event": feature("x", [0.0, 0.0], json!({})),
        });
        let told =
            http.post("/v1/explain", "application/json", question.to_string()).await.expect(200).json();
        state["positions"][&name] = told["position"]["coordinates"].clone();
        state["frames"][&name] = json!(frames(program, &name).await);
    }
    for number in 0..KEPT {
        let question =
            json!({"client": "nobody", "subscription": {"filters": [{}]}, "event": format!("e{number}")});
        let answer = http.post("/v1/explain", "application/json", question.to_string()).await;
        state["live"][format!("e{number}")] = json!(answer.status);
    }
    state
}

/// What a durable client gets that has acknowledged nothing.
async fn frames(program: &Program, name: &str) -> Vec<Value> {
    let Some(mut socket) = Ws::attempt(program.address(), name, "").await else { return Vec::new() };
    let mut frames = vec![];
    // What is kept comes before the answer to a ping that is sent when some of it has come.
    socket.send(&json!({"op": "ping"})).await;
    let patience = std::time::Duration::from_millis(500);
    while (frames.len() as u64) < KEPT
        && let Ok(Received::Frame(frame)) = tokio::time::timeout(patience, socket.read()).await
    {
        if frame["op"] != "pong" {
            frames.push(frame);
        }
    }
    frames
}

/// Which bits are flipped.
fn flips(data: &Path, rng: &mut StdRng) -> Vec<Flip> {
    let mut flips = Vec::new();
    for (file, content) in files(data) {
        let bits_count = content.len() * 8;
        if soak() {
            flips.extend((0..bits_count).map(|bit| Flip { file: file.clone(), bit }));
            continue;
        }
        // Most of a small store is room that was never used. Of what was used some of each part.
        let mut first = (0..bits_count.min(512 * 8)).collect::<Vec<_>>();
        first.shuffle(rng);
        flips.extend(first.into_iter().take(FIRST_BITS).map(|bit| Flip { file: file.clone(), bit }));
        let used = content.chunks(64).enumerate().filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0));
        let mut used =
            used.map(|(idx, chunk)| idx * 512 + rng.random_range(0..chunk.len() * 8)).collect::<Vec<_>>();
        used.shuffle(rng);
        flips.extend(used.into_iter().take(OTHER_BITS).map(|bit| Flip { file: file.clone(), bit }));
    }
    flips.retain(|flip| !flip.file.ends_with("store.redb") || flip.bit != LAST_SLOT_BIT);
    flips
}

async fn verdict(whole: &Path, flip: &Flip, state_before: &Value, idx: usize) -> Verdict {
    let damaged = copy(whole);
    let path = damaged.path().join(&flip.file);
    let mut content = fs::read(&path).expect("a file");
    content[flip.bit / 8] ^= 1 << (flip.bit % 8);
    fs::write(&path, content).expect("room");
    let folder = damaged.path().to_owned();
    let checked = tokio::task::spawn_blocking(move || {
        run_to_end(&["verify", folder.to_str().expect("a path that is a text")], &[], &folder)
    });
    let checked = checked.await.expect("no panic");
    let said =
        format!("{}{}", String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    if said.contains("panicked") || checked.status.code().is_none_or(|code| code > 2) {
        return Verdict::Wrong(format!("check ended with {}: {said}", checked.status));
    }
    let told_by_check = !checked.status.success();
    if told_by_check && said.trim().is_empty() {
        return Verdict::Wrong("check failed without a word".to_owned());
    }
    if told_by_check && !idx.is_multiple_of(if soak() { STARTS_SOAK } else { STARTS }) {
        return Verdict::Told;
    }
    match serve(damaged.path()).try_start().await {
        Err((status, log)) if log.contains("panicked") || status.code().is_none() => {
            Verdict::Wrong(format!("the start ended with {status}: {log}"))
        }
        Err((_, log)) if !told_by_check => {
            Verdict::Wrong(format!("check told nothing, the start did: {log}"))
        }
        Err((_, log)) if log.trim().is_empty() => {
            Verdict::Wrong("the start failed without a word".to_owned())
        }
        Err(_) => Verdict::Told,
        Ok(program) => {
            let state = state(&program.http(), &program).await;
            let log = program.log();
            program.kill();
            let is_same = state == *state_before;
            let told_by_start = log.contains("WARN") || log.contains("ERROR");
            match (is_same, told_by_check, told_by_start) {
                (true, false, _) => Verdict::Harmless,
                (true, true, _) | (false, true, true) => Verdict::Told,
                _ => Verdict::Wrong(format!(
                    "check {}, and the start went on in silence with {state}\n{said}\n{log}",
                    if told_by_check { "told" } else { "told nothing" }
                )),
            }
        }
    }
}

fn copy(data: &Path) -> TempDir {
    let copied = TempDir::new().expect("a folder");
    for (file, content) in files(data) {
        let path = copied.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("room");
    }
    copied
}

/// All files with their content, by path inside of the folder.
fn files(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), vec![data.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder that can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                let inner = path.strip_prefix(data).expect("a path inside").to_owned();
                files.push((inner, fs::read(&path).expect("a file that can be read")));
            }
        }
    }
    files.sort();
    files
}
