//! The whole server: accept, take up what is on disk, serve, drain.

mod accept;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod heads;
mod reading;
mod recovery;
mod resources;
mod stage;
mod stepped_down;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::auth::Authenticator;
use crate::config::Config;
use crate::http::{self, App};
use crate::metrics::Metrics;
use crate::sessions::{Sessions, Shared};
use crate::shutdown::Ending;
use crate::telemetry::Telemetry;
use crate::tls::Tls;
use accept::Front;
use recovery::Recovery;
use recovery::TakenUp;
pub use resources::Resources;
pub use stage::Stage;
use stage::Tell;
pub use stepped_down::SteppedDown;

/// How often histograms are folded.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How long a stop waits for what is still being taken up.
const TAKING_UP_ENDS: Duration = Duration::from_secs(1);

/// Divisor of the time that a stop may take that gives the part in which requests are waited for.
const REQUESTS_PART: u32 = 2;

/// Runs the broker on a listener until `shutdown` is cancelled: then it accepts no more, lets what is queued take
/// effect, tells its readers, and returns when all is quiet or `server.shutdown_grace_ms` have passed.
///
/// Until what is on disk is taken up, requests are answered 503 and how far it is; without `store.data` there is nothing
/// to wait for. Cancelled before that, it returns at once, and leaves reading to end by itself on a thread of the runtime.
///
/// `config.server.listen` is not looked at but for whether it is a loopback address.
///
/// # Errors
/// Settings with faults, something that they name and that cannot be had, data that cannot be read back, a system without
/// threads, and an engine's thread that panics: the broker then stops by itself.
pub async fn run(listener: TcpListener, config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let found = tokio::task::spawn_blocking(move || {
        let found = Resources::of(&config)?;
        anyhow::Ok((config, found))
    });
    let (config, found) = found.await??;
    run_with(listener, config, found, shutdown, |_| {}).await
}

/// Runs the broker as [`run`] does, with what [`Resources`] holds of the same settings. `tell` is told how far the start is, on any
/// thread; it should not block.
///
/// # Errors
/// Settings with faults, data that cannot be read back, a system without threads, an engine's thread that panics, and [`SteppedDown`] where another
/// broker of the cluster has become the active one.
pub async fn run_with(
    listener: TcpListener,
    config: Config,
    mut found: Resources,
    shutdown: CancellationToken,
    tell: impl Fn(Stage<'_>) + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let faults = config.faults();
    if !faults.is_empty() {
        return Err(crate::ConfigError { faults }.into());
    }
    matcher::invariant::report_to(|place| tracing::error!(%place, "an invariant is violated"));
    let config = Arc::new(config);
    let shards_count = found.engines.count();
    let mut shared = Shared::new(&config, shards_count);
    let telemetry = Telemetry::start(&config.telemetry, shards_count, &shared.metrics)?;
    let (telemetry, export) = telemetry.unzip();
    shared.telemetry = telemetry;
    let grace = config.shutdown_grace();
    let tell: Tell = Arc::new(tell);
    let (ending, recovery) = (Ending::default(), Recovery::new(Arc::clone(&tell)));
    let tls = found.tls.take();
    let acceptor = tls.as_ref().map(Tls::acceptor);
    let front = Front::new(
        &config,
        &shared.metrics,
        &ending,
        acceptor,
        http::meanwhile({
            let recovery = Arc::clone(&recovery);
            move || recovery.refusal()
        }),
    );
    let upkeep = tokio::spawn(upkeep(
        Arc::clone(&shared.metrics),
        Arc::clone(&found.authenticator),
        ending.ended.clone(),
    ));
    let following =
        tls.map(|tls| tokio::spawn(tls.follow(Arc::clone(&shared.metrics), ending.ended.clone())));
    let has_data = !config.store.data.is_empty();
    let mut taking_up = tokio::task::spawn_blocking({
        let (ending, shutdown) = (ending.clone(), shutdown.clone());
        move || recovery.take_up(&config, found, shared, &ending, &shutdown)
    });
    let served = serve(&listener, &front, &mut taking_up, has_data, &shutdown, &tell).await;
    drop(listener);
    let deadline = Instant::now() + grace;
    let mut beside = Vec::new();
    let ended = match served {
        Ok(Some(TakenUp { app, threads, courier, finding, owning, ownership, streaming })) => {
            beside.extend(courier.into_iter().chain(finding).chain(owning).chain(streaming));
            drain(&app).await;
            let joined = join(&app, threads).await;
            let lost = ownership.filter(|ownership| ownership.lost.is_cancelled());
            joined.and_then(|()| match lost {
                Some(ownership) => Err(SteppedDown { why: ownership.why().to_owned() }.into()),
                None => Ok(()),
            })
        }
        nothing => {
            ending.at_once().await;
            if !taking_up.is_finished() {
                // A standby stops at once, and its timers need the runtime until then. Data that is being read is not waited for.
                let _ = tokio::time::timeout(TAKING_UP_ENDS, taking_up).await;
            }
            nothing.map(drop)
        }
    };
    ending.ended.cancel();
    // A task that panicked has said so itself.
    let _ = upkeep.await;
    if let Some(following) = following {
        let _ = following.await;
    }
    for task in beside {
        let _ = task.await;
    }
    if let Some(export) = export {
        export.finish(deadline).await;
    }
    ended?;
    tracing::info!("stopped");
    Ok(())
}

/// Accepts and serves until the shutdown, or until an engine's thread ends before that; gives back what has to be drained then.
async fn serve(
    listener: &TcpListener,
    front: &Arc<Front>,
    taking_up: &mut JoinHandle<anyhow::Result<Option<TakenUp>>>,
    has_data: bool,
    shutdown: &CancellationToken,
    tell: &Tell,
) -> anyhow::Result<Option<TakenUp>> {
    let mut accepting = std::pin::pin!(front.accept(listener));
    let taken_up = tokio::select! {
        biased;
        () = shutdown.cancelled() => return Ok(None),
        taken_up = taking_up => taken_up??,
        // Where there is nothing to be read, who connects at once is not sent away.
        never = &mut accepting, if has_data => match never {},
    };
    if let Some(TakenUp { app, ownership, .. }) = &taken_up {
        let lost = async {
            match ownership {
                Some(ownership) => ownership.lost.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let report = app.shards.report();
        tracing::info!(engine = report.engine(), why = %report, shards = app.shards.count(), "took an engine");
        front.open(http::router(app));
        tracing::info!(address = %listener.local_addr()?, "ready");
        tell(Stage::Ready);
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = lost => {}
            () = app.shards.one_ended() => {
                tracing::error!("an engine's thread has ended before its time: the broker stops");
            }
            never = &mut accepting => match never {},
            never = app.admission.watch_lag() => match never {},
            never = app.admission.steer() => match never {},
            never = app.remember_figures() => match never {},
        }
    }
    Ok(taken_up)
}

async fn upkeep(metrics: Arc<Metrics>, authenticator: Arc<Authenticator>, ended: CancellationToken) {
    let fold = async {
        while ended.run_until_cancelled(tokio::time::sleep(UPKEEP_INTERVAL)).await.is_some() {
            metrics.upkeep();
        }
    };
    tokio::join!(fold, authenticator.watch(&ended));
}

/// Lets requests end, queues drain and readers be told, within the time that a stop may take.
async fn drain(app: &Arc<App>) {
    tracing::info!("stopping");
    let grace = app.config.shutdown_grace();
    app.stopping.cancel();
    let orderly = tokio::time::timeout(grace, async {
        app.requests.close();
        // The rest of the time is the readers', whatever requests wait for.
        if tokio::time::timeout(grace / REQUESTS_PART, app.requests.wait()).await.is_err() {
            tracing::warn!(
                "not all requests ended in half of server.shutdown_grace_ms; the rest are refused"
            );
        }
        // What was accepted is matched, and then the shards tell the readers that nothing more comes.
        app.shards.stop().await;
        app.tasks.close();
        app.tasks.wait().await;
    });
    if orderly.await.is_err() {
        tracing::warn!(grace_ms = grace.as_millis(), "not everything ended in time; the rest is cut off");
        app.ended.cancel();
        app.sockets.abort_all();
        // Whoever still filled the queues is gone now.
        let _ = tokio::time::timeout(Duration::from_secs(1), async {
            app.shards.stop().await;
            app.tasks.close();
            app.tasks.wait().await;
        })
        .await;
    }
}

/// Waits for the engines' threads, if they have come to their end.
async fn join(app: &App, threads: Vec<std::thread::JoinHandle<Sessions>>) -> anyhow::Result<()> {
    if app.shards.ended() {
        // What they give back is let go of when nobody writes any more.
        let joined = tokio::task::spawn_blocking(move || {
            let ended: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
            ended.iter().all(Result::is_ok)
        });
        anyhow::ensure!(joined.await?, "an engine's thread panicked");
    }
    anyhow::ensure!(!app.shards.have_failed(), "an engine's thread panicked, and others did not end in time");
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::engines::Engines;

    /// A connection that has asked for something, and had the head of its answer.
    async fn ask(address: std::net::SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert!(head.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&head));
        stream
    }

    /// The end of an engine's thread is the broker's: it says so by an error, after its readers were told.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_engines_thread_that_panics_ends_the_broker() {
        const EVENT: &str =
            r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]},"properties":{}}"#;
        let config = Config::default();
        let found = Resources { engines: Engines::faulty(2), ..Resources::of(&config).unwrap() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let broker = tokio::spawn(run_with(listener, config, found, CancellationToken::new(), |_| {}));
        // So many that each shard has some.
        let mut readers = Vec::new();
        for client in 0..16 {
            let request = format!("GET /v1/clients/c{client}/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
            readers.push(ask(address, &request).await);
        }
        let length = EVENT.len();
        let request =
            format!("POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{EVENT}");
        ask(address, &request).await;
        let ended = tokio::time::timeout(Duration::from_secs(60), async {
            for reader in &mut readers {
                reader.read_to_end(&mut Vec::new()).await.unwrap();
            }
            broker.await.unwrap()
        });
        let error = ended.await.expect("it ends by itself").expect_err("it is not well");
        assert!(error.to_string().contains("an engine's thread panicked"), "{error}");
    }
}
