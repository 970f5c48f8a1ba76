//! A process that is killed while it commits, in both ways of syncing.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tempfile::TempDir;

use super::directory::open_in;
use super::runs;
use crate::config::{Fsync, WorldName};
use crate::store::{Batch, Recovered, Store, StoredPosition, lock};

const DIR: &str = "NEARCAST_TEST_KILLED_DIR";
const FSYNC: &str = "NEARCAST_TEST_KILLED_FSYNC";
const CLIENTS: u64 = 7;

fn numbered(number: u64) -> Batch {
    let mut batch = Batch::default();
    // All of them say the same, so that half a batch is seen.
    for client in 0..CLIENTS {
        let position = StoredPosition { coordinates: [0.0; 3], accuracy_m: 1.0, received_ms: number };
        batch.put_position(&client.to_string(), &position);
    }
    // Some are killed in the middle of a wipe.
    batch.wipe_soon();
    batch
}

/// The number of the last batch, which has to be there whole.
fn last(recovered: &Recovered) -> u64 {
    let mut numbers =
        recovered.clients.iter().map(|client| client.position.as_ref().map_or(0, |one| one.received_ms));
    let Some(first) = numbers.next() else { return 0 };
    assert!(numbers.all(|number| number == first), "half a batch");
    first
}

/// Not a test: what the test below starts and kills.
#[test]
fn worker() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let lazily = std::env::var(FSYNC).is_ok().then_some(Duration::from_millis(20));
    lock::make_dir(dir.as_ref()).expect("a folder");
    let opened = Store::open_dir(dir.as_ref(), Some(WorldName::Geodetic), lazily, super::THIN, &|_| {});
    let (store, recovered) = opened.expect("it opens");
    let mut stdout = std::io::stdout();
    let mut say = |letter: &[u8]| stdout.write_all(letter).and_then(|()| stdout.flush());
    for number in last(&recovered) + 1.. {
        say(b"\x01").expect("the parent listens");
        store.commit(&numbered(number)).expect("it is committed");
        say(b"\x02").expect("the parent listens");
    }
}

#[test]
fn nothing_acknowledged_is_lost_with_the_process() {
    for fsync in [Fsync::Always, Fsync::Interval] {
        let folder = TempDir::new().expect("a folder");
        let mut random = StdRng::seed_from_u64(1);
        let mut have = 0;
        for kill in 0..runs(3, 200) {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["--exact", "store::tests::killed::worker", "--nocapture"]);
            command.env(DIR, folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
            if fsync == Fsync::Interval {
                command.env(FSYNC, "1");
            }
            let mut child = command.spawn().expect("it starts");
            let mut stdout = child.stdout.take().expect("a pipe");
            let said = thread::spawn(move || {
                let mut said = Vec::new();
                let _ = stdout.read_to_end(&mut said);
                said
            });
            thread::sleep(Duration::from_millis(random.random_range(100..700)));
            child.kill().expect("it is killed");
            child.wait().expect("it has ended");
            let said = said.join().expect("it was read");
            let count = |letter| said.iter().filter(|byte| **byte == letter).count() as u64;
            let (tried, acknowledged) = (have + count(1), have + count(2));
            let (_store, recovered) = open_in(folder.path(), fsync).expect("it opens again");
            have = last(&recovered);
            let right = acknowledged..=tried;
            assert!(right.contains(&have), "{fsync:?}, kill {kill}: {have} is not in {right:?}");
        }
        assert!(have > 0, "{fsync:?}: nothing was ever committed");
    }
}
