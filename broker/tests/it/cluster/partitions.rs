//! Members that are cut off from servers, and servers from each other: by links that are cut, and by links that fall silent.

use std::path::Path;
use std::time::{Duration, Instant};

use super::sites::Sites;
use super::{AWAY, NOT_TOLD, folder, kills, run, told};
use crate::harness::{Link, State, eventually, soak};
use crate::nats::Servers;

#[test]
fn a_standby_takes_over_from_a_broker_that_is_cut_off() {
    run(async {
        let nats = folder();
        let servers = Servers::start_linked(nats.path(), 3, "always", NOT_TOLD, |_, _, port| port);
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for _ in 0..kills(20) {
            for away in AWAY {
                let old = sites.settle().await;
                sites.publish_more(20).await;
                sites.read().await;
                sites.publish_more(5).await;
                let begun = Instant::now();
                sites.sites[old].set(away);
                sites.take_over_from(old).await;
                times.push(begun.elapsed());
                sites.publish_more(5).await;
                sites.watched.read(sites.sites[1 - old].program.address()).await;
                sites.sites[old].set(State::Whole);
                assert_eq!(sites.settle().await, 1 - old, "the one that was cut off follows");
                sites.publish_more(5).await;
                sites.read().await;
            }
        }
        told("times that the active broker was cut off", &mut times, &sites.watched);
        sites.finish().await;
    });
}

#[test]
fn a_broker_that_is_cut_off_from_one_server_goes_on() {
    run(async {
        let nats = folder();
        let servers = Servers::start_linked(nats.path(), 3, "always", NOT_TOLD, |_, _, port| port);
        let mut sites = Sites::start(&servers).await;
        let (mut times, mut takeovers) = (Vec::new(), 0);
        for _ in 0..kills(10) {
            // It is connected to one of them, and goes to another one: each kind meets it at least once.
            for (away, at) in AWAY.into_iter().flat_map(|away| [0, 1, 2].map(|at| (away, at))) {
                let active = sites.settle().await;
                sites.publish_more(5).await;
                let begun = Instant::now();
                sites.sites[active].links[at].set(away);
                sites.publish_more(20).await;
                times.push(begun.elapsed());
                takeovers += usize::from(sites.read().await != active);
                sites.sites[active].links[at].set(State::Whole);
            }
        }
        told("times that the active broker was cut off from one of three", &mut times, &sites.watched);
        println!("{takeovers} of them with another active broker");
        sites.finish().await;
    });
}

/// It has all that was acknowledged meanwhile when it takes over.
#[test]
fn a_standby_that_was_cut_off_has_all_when_it_takes_over() {
    run(async {
        let nats = folder();
        let servers = Servers::start_linked(nats.path(), 3, "always", NOT_TOLD, |_, _, port| port);
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for _ in 0..kills(20) {
            for away in AWAY {
                let active = sites.settle().await;
                let standby = 1 - active;
                sites.sites[standby].set(away);
                sites.publish_more(20).await;
                sites.watched.read(sites.sites[active].program.address()).await;
                sites.publish_more(20).await;
                sites.sites[standby].set(State::Whole);
                sites.publish_more(1).await;
                let begun = Instant::now();
                sites.sites[active].kill().await;
                sites.publish_more(5).await;
                times.push(begun.elapsed());
                sites.watched.read(sites.sites[standby].program.address()).await;
                sites.sites[active].start_again(folder()).await;
            }
        }
        told("kills of the active broker after its standby was cut off", &mut times, &sites.watched);
        sites.finish().await;
    });
}

/// Servers tell each other of no way past the links, either.
const ONLY_LINKED: &str = "no_advertise: true\nadvertise: \"127.0.0.1:1\"";

/// Links between servers, by the one that connects and the one that is connected to.
struct Routes(Vec<(usize, usize, Link)>);

impl Routes {
    /// What becomes of what a server sends to the others, and of what they send to it.
    fn set(&self, server: usize, kind: Kind) {
        for (from, to, link) in &self.0 {
            let (is_from, is_to) = (*from == server, *to == server);
            if is_from || is_to {
                link.set(match kind {
                    Kind::Whole => State::Whole,
                    Kind::Cut => State::Cut,
                    Kind::Silent => State::SILENT,
                    Kind::Deaf => State::Silent { there: is_to, back: is_from },
                    Kind::Mute => State::Silent { there: is_from, back: is_to },
                });
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Whole,
    Cut,
    Silent,
    /// It hears nothing of the others.
    Deaf,
    /// They hear nothing of it.
    Mute,
}

fn with_links(nats: &Path) -> (Servers, Routes) {
    let mut routes = Vec::new();
    let servers = Servers::start_linked(nats, 3, "always", ONLY_LINKED, |from, to, target| {
        let link = Link::to(target);
        let port = link.port();
        routes.push((from, to, link));
        port
    });
    (servers, Routes(routes))
}

/// The servers part into one and two. The active broker reaches the one, and the standby the two.
#[test]
fn a_standby_takes_over_where_the_majority_of_the_servers_is() {
    run(async {
        let nats = folder();
        let (servers, routes) = with_links(nats.path());
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for round in 0..kills(5) {
            for (at, kind) in KINDS.into_iter().enumerate() {
                let old = sites.settle().await;
                let lone = (round + at) % 3;
                for server in 0..3 {
                    let cut = usize::from(server == lone) ^ old;
                    sites.sites[1 - cut].links[server].set(State::Whole);
                    sites.sites[cut].links[server].set(State::Cut);
                }
                sites.publish_more(20).await;
                let old = sites.read().await;
                println!("{kind:?}, n{lone}");
                let begun = Instant::now();
                routes.set(lone, kind);
                sites.take_over_from(old).await;
                times.push(begun.elapsed());
                sites.publish_more(5).await;
                sites.watched.read(sites.sites[1 - old].program.address()).await;
                routes.set(lone, Kind::Whole);
                sites.sites.iter().for_each(|site| site.set(State::Whole));
                assert_eq!(sites.settle().await, 1 - old, "the one that was cut off follows");
                sites.publish_more(5).await;
                sites.read().await;
            }
        }
        told("times that the active broker was with one of three servers", &mut times, &sites.watched);
        sites.finish().await;
    });
}

/// The servers part into one and two. The standby is at the one, and reaches the two as well.
#[test]
fn a_standby_leaves_a_server_that_is_cut_off_from_the_others() {
    run(async {
        let nats = folder();
        let (servers, routes) = with_links(nats.path());
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for lone in 0..3 {
            let active = sites.settle().await;
            let standby = 1 - active;
            let before = sites.sites[standby].rows().await.expect("it follows");
            for server in 0..3 {
                let cut = if server == lone { active } else { standby };
                sites.sites[cut].links[server].set(State::Cut);
            }
            sites.publish_more(20).await;
            eventually("the standby reads from that server", async || {
                (sites.sites[standby].rows().await? >= before + 20).then_some(())
            })
            .await;
            routes.set(lone, Kind::Cut);
            sites.sites[standby].set(State::Whole);
            sites.publish_more(20).await;
            let begun = Instant::now();
            sites.sites[active].kill().await;
            sites.publish_more(5).await;
            times.push(begun.elapsed());
            sites.watched.read(sites.sites[standby].program.address()).await;
            routes.set(lone, Kind::Whole);
            sites.sites[active].set(State::Whole);
            sites.sites[active].start_again(folder()).await;
            if !soak() {
                break;
            }
        }
        told("kills of the active broker, the standby's server cut off", &mut times, &sites.watched);
        sites.finish().await;
    });
}

/// The servers part into one and two, and brokers reach all of them.
#[test]
fn publishes_resume_when_servers_are_cut_off_from_each_other() {
    run(async {
        let nats = folder();
        let (servers, routes) = with_links(nats.path());
        let mut sites = Sites::start(&servers).await;
        let mut times = Vec::new();
        for _ in 0..kills(5) {
            for (lone, kind) in KINDS.into_iter().chain([Kind::Deaf]).enumerate() {
                sites.settle().await;
                sites.publish_more(5).await;
                println!("{kind:?}, n{}", lone % 3);
                let begun = Instant::now();
                routes.set(lone % 3, kind);
                if matches!(kind, Kind::Deaf) {
                    let http = [0, 1].map(|at| sites.sites[at].program.http());
                    while begun.elapsed() < DEAF_FOR {
                        for http in &http {
                            let _ = tokio::time::timeout(DEAF_FOR, sites.watched.publish(http)).await;
                        }
                    }
                    routes.set(lone % 3, Kind::Whole);
                }
                sites.publish_more(20).await;
                times.push(begun.elapsed());
                routes.set(lone % 3, Kind::Whole);
                sites.read().await;
            }
        }
        told("times that a NATS server was cut off from the others", &mut times, &sites.watched);
        sites.finish().await;
    });
}

/// For how long a server is deaf.
const DEAF_FOR: Duration = Duration::from_secs(10);
/// Those in which the two others go on. A server that is deaf may stand for election for ever, and end each leader that they elect.
const KINDS: [Kind; 3] = [Kind::Cut, Kind::Silent, Kind::Mute];
