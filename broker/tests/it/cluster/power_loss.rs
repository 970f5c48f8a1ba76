//! Directories that are copied while their programs run, as they are after a loss of power that takes away what came later.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use tempfile::TempDir;

use super::sites::{Site, Sites};
use super::{Watched, folder, kills, run, told};
use crate::harness::{Ws, eventually, soak};
use crate::nats::Servers;

/// Copies a directory. Files may come and go meanwhile.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        let copied = match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &to),
            kind if kind.is_file() => fs::copy(entry.path(), to).map(drop),
            _ => Ok(()),
        };
        if let Err(error) = copied
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    Ok(())
}

fn copied(from: &Path) -> TempDir {
    let copied = folder();
    copy(from, copied.path()).expect("it can be copied");
    copied
}

/// First a standby's directory goes back, and then that of the broker that is active since.
#[test]
fn a_broker_with_an_older_directory_loses_nothing() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for _ in 0..kills(20) {
            let active = sites.settle().await;
            let standby = 1 - active;
            sites.publish_more(10).await;
            let old = copied(sites.sites[standby].data.path());
            sites.publish_more(20).await;
            sites.read().await;
            sites.sites[standby].kill().await;
            sites.sites[standby].start_again(old).await;
            sites.publish_more(5).await;
            assert_eq!(sites.settle().await, active);
            // Both go back, and only one of them comes back at first.
            let old = [0, 1].map(|at| copied(sites.sites[at].data.path()));
            sites.publish_more(20).await;
            let begun = Instant::now();
            for site in &mut sites.sites {
                site.kill().await;
            }
            let [first, second] = old;
            sites.sites[1].start_again(second).await;
            let one = &sites.sites[1];
            eventually("it is active again", async || one.is_active().await.then_some(())).await;
            sites.watched.read(one.program.address()).await;
            sites.publish_more(5).await;
            times.push(begun.elapsed());
            sites.sites[0].start_again(first).await;
            sites.read().await;
        }
        told("brokers with older directories", &mut times, &sites.watched);
        sites.finish().await;
    });
}

#[test]
fn a_nats_server_with_an_older_directory_loses_nothing() {
    run(async {
        let nats = folder();
        let mut servers = Servers::start(nats.path(), 3, "always");
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for _ in 0..kills(10) {
            for at in 0..3 {
                sites.settle().await;
                sites.publish_more(10).await;
                let old = copied(&servers.store(at));
                sites.publish_more(20).await;
                let killed = servers.kill(&format!("n{at}"));
                let begun = Instant::now();
                sites.publish_more(5).await;
                servers.put_back(killed, old.path());
                servers.restart(&[killed]);
                sites.publish_more(5).await;
                times.push(begun.elapsed());
                sites.read().await;
            }
        }
        told("NATS servers with older directories", &mut times, &sites.watched);
        sites.finish().await;
    });
}

/// What was acknowledged since is gone. Subscribers see another epoch of their session.
#[test]
fn a_log_that_went_back_is_told() {
    run(async {
        let nats = folder();
        let mut servers = Servers::start(nats.path(), 3, "always");
        let mut sites = Sites::start(&servers).await;
        // For longer than the active broker waits, so that it has begun anew; with the brokers killed as well; and for less.
        for (pause_s, is_all, next) in [(20, false, "van"), (0, true, "bus"), (0, false, "cab")] {
            if next == "cab" && !soak() {
                break;
            }
            let active = sites.settle().await;
            sites.publish_more(10).await;
            sites.read().await;
            let old = [0, 1, 2].map(|at| copied(&servers.store(at)));
            let before = sites.sites.each_ref().map(known);
            sites.publish_more(20).await;
            eventually("both have noted what they know", async || {
                let after = sites.sites.each_ref().map(known);
                before.iter().zip(after).all(|(before, after)| after >= before + 20).then_some(())
            })
            .await;
            sites.watched.read(sites.sites[active].program.address()).await;
            if is_all {
                for site in &mut sites.sites {
                    site.kill().await;
                }
            }
            let killed = [0, 1, 2].map(|at| servers.kill(&format!("n{at}")));
            for (at, old) in old.iter().enumerate() {
                servers.put_back(at, old.path());
            }
            let begun = Instant::now();
            while begun.elapsed().as_secs() < pause_s {
                assert!(
                    !sites.watched.publish(&sites.sites[active].program.http()).await,
                    "there is no server"
                );
            }
            servers.restart(&killed);
            if is_all {
                for site in &mut sites.sites {
                    let data = std::mem::replace(&mut site.data, folder());
                    site.start_again(data).await;
                }
            }
            let Sites { sites: [one, other], watched } = &mut sites;
            eventually("a broker is active, and the session has another epoch", async || {
                for site in [&*one, &*other] {
                    // An active broker notices when it has something to store.
                    watched.publish(&site.program.http()).await;
                    if site.is_active().await {
                        let after = format!("{}:{}", watched.epoch, watched.offset);
                        let reader = Ws::attempt(site.program.address(), watched.client, &after).await?;
                        return (reader.ready["epoch"] != *watched.epoch).then_some(());
                    }
                }
                None
            })
            .await;
            let logs = one.program.log() + &other.program.log();
            assert!(logs.contains("the log went back"), "{logs}");
            let active = sites.settle().await;
            sites.watched = Watched::begin_as(next, &sites.sites[active].program).await;
            sites.publish_more(5).await;
            sites.read().await;
        }
        sites.finish().await;
    });
}

/// The sequence of the last record that a member has noted, 0 for none.
fn known(site: &Site) -> u64 {
    let Ok(text) = fs::read_to_string(site.data.path().join("known")) else { return 0 };
    text.split(' ').next().and_then(|sequence| sequence.parse().ok()).expect("a number")
}

impl Servers {
    fn store(&self, at: usize) -> std::path::PathBuf {
        self.folder.join(format!("n{at}"))
    }

    /// Gives a server that was killed another directory.
    fn put_back(&self, at: usize, old: &Path) {
        fs::remove_dir_all(self.store(at)).expect("it was there");
        copy(old, &self.store(at)).expect("it can be copied");
    }
}
