//! Every attack, tiny, on brokers within this process: the ordinary clients' deliveries are right beside it, and it is let in.

use std::net::SocketAddr;
use std::sync::Arc;

use benches::fanout::scenario::Scenario;
use benches::hostile::attack::Attack;
use benches::hostile::measure::{self, Aim, Memory, Plan, Running};
use benches::hostile::report::Report;
use benches::hostile::tokens::Tokens;
use broker::{Config, run};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PLAN: Plan = Plan { rounds: 1, events: 20, rate: 100.0, quick: true };

/// A broker within this process.
struct Inside {
    address: SocketAddr,
    shutdown: CancellationToken,
    broker: JoinHandle<anyhow::Result<()>>,
}

impl Inside {
    fn start(tokens: &Tokens) -> anyhow::Result<Box<dyn Running>> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut config = Config::default();
        config.server.shards = 1;
        config.auth.mode = broker::config::AuthMode::Jwt;
        config.auth.jwks = tokens.jwks().display().to_string();
        let shutdown = CancellationToken::new();
        let broker = tokio::spawn(run(listener, config, shutdown.clone()));
        Ok(Box::new(Self { address, shutdown, broker }))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Running for Inside {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn memory(&self) -> Option<Memory> {
        None
    }

    fn ended(&mut self) -> Option<String> {
        self.broker.is_finished().then(|| "the broker ended".to_owned())
    }
}

/// Lets a part of the attacks loose, one after the other.
async fn play(part: usize) {
    let tokens = Arc::new(Tokens::new().unwrap());
    let scenario = Arc::new(Scenario::new(20, 4.0, 1));
    let start = || Inside::start(&tokens);
    for attack in Attack::all().skip(part).step_by(PARTS) {
        let seen = measure::phase(&start, Some(&tokens), &scenario, attack, PLAN, Aim::Broker).await.unwrap();
        assert_eq!((seen.failed, seen.died.as_deref()), (0, None), "{attack:?}");
        let phase = seen.phase.as_ref().unwrap();
        assert_eq!((phase.lost, phase.wrong), (0, 0), "{attack:?}");
        let report = Report::new(attack, PLAN, vec![seen]);
        assert_eq!(report.told().matches('|').count(), Report::COLUMNS + 1);
        assert_eq!(report.document()["slug"], attack.slug);
    }
}

const PARTS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_third_of_the_attacks() {
    play(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_third_of_the_attacks() {
    play(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_third_of_the_attacks() {
    play(2).await;
}

#[test]
fn attacks_are_found_by_their_names() {
    for attack in Attack::all() {
        assert_eq!(Attack::named(attack.slug).unwrap().name, attack.name);
    }
    assert!(Attack::named("none").unwrap_err().contains("slow-heads"));
}
