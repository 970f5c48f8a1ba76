//! Processes that are stopped (`SIGSTOP`) and go on: brokers and NATS servers.

use std::process::Command;
use std::time::{Duration, Instant};

use super::sites::{Sites, publish_unkept};
use super::{folder, kills, run, told};
use crate::harness::{eventually, soak};
use crate::nats::Servers;

/// How long something is stopped.
fn pause() -> Duration {
    Duration::from_secs(if soak() { 20 } else { 3 })
}

/// Waits for a time in which the others go on.
async fn publish_meanwhile(sites: &mut Sites, pause: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < pause {
        sites.publish_more(1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn an_active_broker_that_was_stopped_for_long_becomes_a_standby() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for _ in 0..kills(10) {
            let old = sites.settle().await;
            sites.publish_more(20).await;
            sites.read().await;
            sites.publish_more(5).await;
            sites.sites[old].program.signal("STOP");
            let begun = Instant::now();
            let new = &sites.sites[1 - old];
            eventually("the standby takes over", async || new.is_active().await.then_some(())).await;
            times.push(begun.elapsed());
            let left = pause().saturating_sub(begun.elapsed());
            publish_meanwhile(&mut sites, left).await;
            sites.sites[old].program.signal("CONT");
            let http = sites.sites[old].program.http();
            for _ in 0..3 {
                assert!(!sites.watched.publish(&http).await, "it acknowledged an event");
                assert!(!publish_unkept(&http).await, "it acknowledged an event that is not stored");
            }
            assert_eq!(sites.settle().await, 1 - old, "the one that was stopped follows");
            sites.publish_more(5).await;
            sites.read().await;
        }
        told("stops of the active broker", &mut times, &sites.watched);
        sites.finish().await;
    });
}

#[test]
fn a_standby_that_was_stopped_has_all_when_it_takes_over() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for _ in 0..kills(10) {
            let active = sites.settle().await;
            let standby = 1 - active;
            sites.sites[standby].program.signal("STOP");
            publish_meanwhile(&mut sites, pause()).await;
            sites.sites[standby].program.signal("CONT");
            assert_eq!(sites.read().await, active, "a stop of the standby changes nothing");
            sites.publish_more(5).await;
            let begun = Instant::now();
            sites.sites[active].kill().await;
            sites.publish_more(5).await;
            times.push(begun.elapsed());
            sites.watched.read(sites.sites[standby].program.address()).await;
            sites.sites[active].start_again(folder()).await;
        }
        told("kills of the active broker after its standby was stopped", &mut times, &sites.watched);
        sites.finish().await;
    });
}

#[test]
fn publishes_resume_when_a_nats_server_is_stopped() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let mut sites = Sites::start(&servers).await;
        let (mut times, mut takeovers) = (Vec::new(), 0);
        for round in 0..kills(4) {
            for server in 0..3 {
                let active = sites.settle().await;
                sites.publish_more(5).await;
                println!("round {round}, n{server}");
                servers.signal(server, "STOP");
                let begun = Instant::now();
                sites.publish_more(20).await;
                times.push(begun.elapsed());
                publish_meanwhile(&mut sites, pause().saturating_sub(begun.elapsed())).await;
                servers.signal(server, "CONT");
                takeovers += usize::from(sites.read().await != active);
            }
        }
        told("stops of a NATS server", &mut times, &sites.watched);
        println!("{takeovers} of them with another active broker");
        sites.finish().await;
    });
}

impl Servers {
    fn signal(&self, at: usize, name: &str) {
        let id = self.servers[at].child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name} failed");
    }
}
