//! Two members, each with a link of its own to each of the servers.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::{Watched, folder, publish};
use crate::harness::{Http, Link, Program, Serve, State, eventually, feature};
use crate::nats::{SYSTEM, Servers, USER, addresses, held};

/// A member, its directory, and its links to the servers.
pub(super) struct Site {
    pub(super) data: TempDir,
    pub(super) links: Vec<Link>,
    pub(super) program: Program,
    port: u16,
}

/// Two members, of which one is active, and what comes to a durable subscriber.
pub(super) struct Sites {
    pub(super) sites: [Site; 2],
    pub(super) watched: Watched,
}

/// How long a request may take that may go to a broker that has been stopped.
const PATIENCE: Duration = Duration::from_secs(3);

impl Site {
    async fn start(servers: &Servers) -> Self {
        let links: Vec<_> = servers.ports().into_iter().map(Link::to).collect();
        let (data, port) = (folder(), held().local_addr().expect("a port").port());
        let program = serve(&links, data.path(), port).listening().await;
        Self { data, links, program, port }
    }

    /// Starts it again, after it has ended, with a directory.
    pub(super) async fn start_again(&mut self, data: TempDir) {
        self.program = serve(&self.links, data.path(), self.port).listening().await;
        self.data = data;
    }

    /// Kills it, and waits for its end.
    pub(super) async fn kill(&mut self) {
        self.program.assert_healthy();
        self.program.signal("KILL");
        self.program.exit_status().await;
    }

    /// What becomes of its links to all servers.
    pub(super) fn set(&self, state: State) {
        self.links.iter().for_each(|link| link.set(state));
    }

    /// Whether it is ready, or follows; neither where it begins.
    async fn role(&self) -> Option<Role> {
        let http = self.program.http();
        let asked = http.attempt("GET", "/readyz", None, String::new());
        let answer = tokio::time::timeout(PATIENCE, asked).await.ok()??;
        if answer.status == 200 {
            return Some(Role::Active);
        }
        let problem = answer.problem(503);
        (problem["phase"] == "standby" && problem["done"].as_u64() > Some(0)).then_some(Role::Standby)
    }

    /// The rows that it has read as a standby.
    pub(super) async fn rows(&self) -> Option<u64> {
        self.program.http().get("/readyz").await.problem(503)["done"].as_u64()
    }

    pub(super) async fn is_active(&self) -> bool {
        self.role().await == Some(Role::Active)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Active,
    Standby,
}

/// A member over links, that begins anew where it was.
fn serve(links: &[Link], data: &Path, port: u16) -> Serve {
    let ports: Vec<_> = links.iter().map(Link::port).collect();
    Serve::new()
        .args(&["--cluster", &addresses(&ports, USER), "--data", data.to_str().expect("UTF-8")])
        .env("BROKER__CLUSTER__SYSTEM_NATS", &addresses(&ports, SYSTEM))
        .listen(&format!("127.0.0.1:{port}"))
}

/// Publishes an event that nobody keeps, so that it is acknowledged without being stored.
pub(super) async fn publish_unkept(http: &Http) -> bool {
    publish(http, &feature("passing", [9.0, 45.0], json!({"kind": "passing"}))).await
}

impl Sites {
    /// The first is active.
    pub(super) async fn start(servers: &Servers) -> Self {
        let first = Site::start(servers).await;
        eventually("the first is active", async || first.is_active().await.then_some(())).await;
        let watched = Watched::begin(&first.program).await;
        let second = Site::start(servers).await;
        Self { sites: [first, second], watched }
    }

    /// Waits until one is active and the other follows; says which is active.
    pub(super) async fn settle(&mut self) -> usize {
        let [one, other] = &mut self.sites;
        let active = eventually("one is active, and the other follows", async || {
            one.program.assert_healthy();
            other.program.assert_healthy();
            match (one.role().await?, other.role().await?) {
                (Role::Active, Role::Standby) => Some(0),
                (Role::Standby, Role::Active) => Some(1),
                _ => None,
            }
        });
        active.await
    }

    /// Publishes to all until this number more are acknowledged.
    pub(super) async fn publish_more(&mut self, count: usize) {
        let enough = self.watched.acknowledged.len() + count;
        let doors = [0, 1].map(|at| self.sites[at].program.http());
        let watched = &mut self.watched;
        eventually("events are acknowledged", async || {
            for http in &doors {
                let _ = tokio::time::timeout(PATIENCE, watched.publish(http)).await;
            }
            (watched.acknowledged.len() >= enough).then_some(())
        })
        .await;
    }

    /// Reads on at the one that is active, once the other one follows.
    pub(super) async fn read(&mut self) -> usize {
        let active = self.settle().await;
        self.watched.read(self.sites[active].program.address()).await;
        active
    }

    /// Waits until a member takes over from another one, to which is published meanwhile.
    pub(super) async fn take_over_from(&mut self, old: usize) {
        let http = self.sites[old].program.http();
        let (watched, new) = (&mut self.watched, &self.sites[1 - old]);
        eventually("the other one takes over", async || {
            watched.publish(&http).await;
            publish_unkept(&http).await;
            new.is_active().await.then_some(())
        })
        .await;
        for _ in 0..3 {
            assert!(!watched.publish(&http).await, "it acknowledged an event after the seal");
            assert!(
                !publish_unkept(&http).await,
                "it acknowledged an event that is not stored after the seal"
            );
        }
    }

    pub(super) async fn finish(self) {
        // The one that is active last, so that nobody begins to take over while it ends.
        let [one, other] = self.sites;
        let is_first_active = one.is_active().await;
        let (first, last) = if is_first_active { (other, one) } else { (one, other) };
        first.program.finish().await;
        last.program.finish().await;
    }
}
