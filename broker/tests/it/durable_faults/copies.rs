//! Copies that are made of a data directory while its broker is under load: each holds all that was acknowledged before it
//! was asked for, and nothing that never was.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::judge::{self, Places, history, is_of_transitions};
use super::ledger::{Client, Event, Ledger, is_durable};
use super::power_loss::Power;
use super::world::LAST_KIND;
use crate::harness::{Serve, Ws, feature, run_to_end};

/// The event that ends what is read from a copy.
const END: &str = "copy-end";

/// What a client's kept deliveries come to.
struct Kept {
    acknowledged: u64,
    last: u64,
    /// Names of subscriptions and numbers of events.
    told: HashSet<(String, u64)>,
}

/// Makes a copy of a broker's data and compares it with what is known of the time when it was made.
pub(super) async fn check_one(data: &Path, ledger: &Mutex<Ledger>) {
    let lock = || ledger.lock().expect("nobody panicked");
    let folder = TempDir::new().expect("a folder");
    let copy = folder.path().join("copy");
    let seen = lock().clients.iter().map(|client| client.seen).collect::<Vec<_>>();
    let began = Instant::now();
    run("backup", &["--data", text(data), "--to", text(&copy)], folder.path()).await;
    let stretch = (began, Some(Instant::now()));
    run("verify", &[text(&copy)], folder.path()).await;

    let program = Serve::new().args(&["--shards", "2", "--data", text(&copy)]).start().await;
    judge::check_state(ledger, &program.http(), stretch).await;
    let end = feature(END, [-60.0, -30.0], json!({"kind": LAST_KIND, "number": 0}));
    program.http().post("/v1/events", "application/geo+json", end.to_string()).await.expect(202);
    for (idx, seen) in seen.into_iter().enumerate().filter(|(_, seen)| *seen > 0) {
        let (name, epoch) = {
            let client = &lock().clients[idx];
            (client.name.clone(), client.epoch.clone())
        };
        let mut socket = program.ws(&name).await;
        let mut frames = Vec::new();
        while frames.last().is_none_or(|frame: &Value| frame["event"]["id"] != END) {
            frames.push(socket.next().await);
        }
        frames.pop();
        let mut ledger = lock();
        let client = &ledger.clients[idx];
        let faults = match kept(client, &socket, &frames) {
            _ if Some(socket.ready["epoch"].as_str().unwrap_or_default()) == epoch.as_deref() => {
                vec![format!("it goes on in the original's session: {}", socket.ready)]
            }
            Ok(kept) if kept.last < seen => {
                vec![format!("it ends at {}, and {seen} had been delivered before", kept.last)]
            }
            Ok(kept) => missing(&ledger, client, began, &kept),
            Err(fault) => vec![fault],
        };
        let faults = faults.into_iter().map(|fault| format!("a copy, {name}: {fault}")).collect::<Vec<_>>();
        ledger.faults.extend(faults);
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_finds_no_room_says_so_and_leaves_nothing() {
    let folder = TempDir::new().expect("a folder");
    let (data, backups) = (folder.path().join("data"), folder.path().join("backups"));
    fs::create_dir(&backups).expect("a folder");
    Serve::new().args(&["--data", text(&data)]).start().await.finish().await;
    let power = Power::on(&backups);
    let copy = backups.join("copy");
    let back_up = || {
        let env = power.env();
        let env = env.each_ref().map(|(name, value)| (*name, &**value));
        run_to_end(&["backup", "--data", text(&data), "--to", text(&copy)], &env, folder.path())
    };
    power.fill();
    let output = back_up();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("there is no room for"), "{told}");
    assert!(!told.contains("by itself"), "{told}");
    assert_eq!(fs::read_dir(&backups).expect("a folder").count(), 0, "something is left");
    power.empty();
    let output = back_up();
    assert!(output.status.success(), "{output:?}");
}

/// Asks a broker to wipe its data. It may be killed meanwhile, or have no room for a second file; where it is gone already, the
/// program that asks writes itself.
pub(super) fn wipe_on(data: &Path, power: Option<&Power>) -> JoinHandle<Output> {
    let (data, env) = (text(data).to_owned(), power.map(Power::env));
    tokio::task::spawn_blocking(move || {
        let env = env.iter().flatten().map(|(name, value)| (*name, &**value)).collect::<Vec<_>>();
        run_to_end(&["wipe", &data], &env, Path::new("."))
    })
}

/// A copy that is being made when its broker is killed.
pub(super) struct Cut {
    folder: TempDir,
    ended: JoinHandle<Output>,
}

impl Cut {
    /// Begins with it.
    pub(super) fn begin(data: &Path) -> Self {
        let folder = TempDir::new().expect("a folder");
        let ended = spawn(
            "backup",
            &["--data", text(data), "--to", text(&folder.path().join("copy"))],
            folder.path(),
        );
        Self { folder, ended }
    }

    /// Under its name there is a whole one or none, and who made it knows which.
    pub(super) async fn check(self) {
        let Self { folder, ended } = self;
        let output = ended.await.expect("no panic");
        let copy = folder.path().join("copy");
        let is_there = copy.join("store.redb").exists();
        assert!(is_there || !output.status.success(), "backup said {output:?}");
        if is_there {
            run("verify", &[text(&copy)], folder.path()).await;
        }
    }
}

/// Follows what a copy kept for a client. It may end later than what the client has read, and behind it is what has happened since
/// the copy was opened.
fn kept(client: &Client, socket: &Ws, frames: &[Value]) -> Result<Kept, String> {
    let acknowledged = socket.ready["offset"].as_u64().unwrap_or_default();
    if acknowledged > client.acked {
        return Err(format!("{acknowledged} is acknowledged, and it acknowledged {}", client.acked));
    }
    let mut kept = Kept { acknowledged, last: acknowledged, told: HashSet::new() };
    let mut frames = frames.iter();
    for frame in frames.by_ref() {
        if frame["op"] == "gap" {
            kept.last = client.may_miss(kept.last + 1, frame)?;
            continue;
        }
        if frame["offset"] != kept.last + 1 {
            return Err(format!("{} should have come: {frame}", kept.last + 1));
        }
        if client.compare(kept.last + 1, frame).is_err() {
            happens_by_itself(frame)?;
            break;
        }
        kept.last += 1;
        let number = frame["event"]["properties"]["number"].as_u64().ok_or("no number")?;
        for name in frame["subscriptions"].as_array().ok_or("no names")? {
            kept.told.insert((name.as_str().unwrap_or_default().to_owned(), number));
        }
    }
    frames.try_for_each(happens_by_itself)?;
    Ok(kept)
}

/// Time passes for a copy, too: what expires or has dwelt is told to who hears of transitions. And live events of which not
/// all was on disk when it was made come as the start takes up subscriptions again.
fn happens_by_itself(frame: &Value) -> Result<(), String> {
    let is_right = frame["transition"].is_string() || frame["cause"] == "changed";
    if is_right { Ok(()) } else { Err(format!("nobody was told this before: {frame}")) }
}

/// The events that were acknowledged before a copy was asked for, had to come, and are not in it.
fn missing(ledger: &Ledger, client: &Client, began: Instant, kept: &Kept) -> Vec<String> {
    let mut faults = Vec::new();
    let before = |event: &&Event| event.object.is_none() && event.acked.is_some_and(|acked| acked < began);
    for event in ledger.events.values().filter(before) {
        let places = Places::of(client, event);
        let there = match client.offsets.get(&event.number) {
            Some(offset) => *offset <= kept.last,
            None => false,
        };
        let wishes = client.wishes.iter().filter(|(id, wish)| is_durable(id) && !is_of_transitions(wish));
        for (id, wish) in wishes.filter(|_| !there) {
            if places.expected(event, wish).0 && !kept.told.contains(&(id.clone(), event.number)) {
                faults.push(format!(
                    "{id}: event {} is not there, after {} and up to {}: {}",
                    event.number,
                    kept.acknowledged,
                    kept.last,
                    history(event)
                ));
            }
        }
    }
    faults
}

/// Runs the program, which has to succeed.
async fn run(command: &str, args: &[&str], folder: &Path) {
    let output = spawn(command, args, folder).await.expect("no panic");
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{command}: {}: {}{}", output.status, said[0], said[1]);
}

fn spawn(command: &str, args: &[&str], folder: &Path) -> JoinHandle<Output> {
    let args = [&[command], args].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let folder = folder.to_owned();
    tokio::task::spawn_blocking(move || {
        let args = args.iter().map(String::as_str).collect::<Vec<_>>();
        run_to_end(&args, &[], &folder)
    })
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is a text")
}
