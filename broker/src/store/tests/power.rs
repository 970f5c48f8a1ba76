//! Power is lost in the middle of things.

use rand::Rng as _;

use super::disk::Disk;
use super::{Memory, Model, open, runs};

/// Loses power four times, and says what was lost or torn.
fn lives(seed: u64, lies: Option<u64>) -> Result<(), String> {
    let mut memory = Memory::new(seed);
    let disk = Disk::default();
    drop(open(&disk).map_err(|error| error.to_string())?);
    let mut image = disk.bytes();
    // What is acknowledged; and what may be there, too.
    let (mut safe, mut tried) = (Model::default(), Model::default());
    for life in 0..=4 {
        let disk = Disk::of(image);
        if life < 4 {
            disk.lose_power_after(memory.random.random_range(0..1_500));
        }
        lies.into_iter().for_each(|lies| disk.lie_once_in(lies));
        match open(&disk) {
            Ok((store, recovered)) => {
                let found = Model::of(&recovered);
                if found != safe && found != tried {
                    return Err(format!("life {life}: lost or torn"));
                }
                memory.take_up(recovered);
                safe = found;
                if life == 4 {
                    return Ok(());
                }
                loop {
                    let batch = memory.batch(&store);
                    tried = memory.model.clone();
                    if store.commit(&batch).is_err() {
                        break;
                    }
                    safe = tried.clone();
                    memory.committed();
                }
            }
            Err(error) if error.to_string().contains("power is off") => {}
            Err(error) => return Err(format!("life {life}: {error}")),
        }
        image = disk.torn(&mut memory.random);
    }
    Ok(())
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    for seed in 0..runs(10, 400) {
        if let Err(what) = lives(seed, None) {
            panic!("seed {seed}: {what}");
        }
    }
}

/// A disk that says that it has synced and has not: nobody can keep anything on it, and the test above sees that.
#[test]
fn a_disk_that_lies_is_found_out() {
    // One run in some fifteen is hurt.
    assert!((0..400).any(|seed| lives(seed, Some(5)).is_err()), "the test sees nothing");
}
