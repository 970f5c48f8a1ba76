//! The whole server: accept, serve, drain.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use matcher::geo::World;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::engines::Engines;
use crate::http::{self, App, Pace, Stream};
use crate::ingest::feature::FeatureReader;
use crate::metrics::Metrics;
use crate::sessions::{Restored, Shared};
use crate::shard::Shards;
use crate::store::{Progress, Recovered, Store};
use crate::tls::{Acceptor, Tls};

/// How long the accept loop rests when the system is out of sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often it is told how far opening what is on disk has come.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// How often histograms are folded.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Runs the broker on a listener until `shutdown` is cancelled: then it accepts no more, lets what is queued take
/// effect, tells its readers, and returns when all is quiet or `server.shutdown_grace_ms` have passed.
///
/// `config.server.listen` is not looked at but for whether it is a loopback address.
///
/// # Errors
/// Settings with faults, an engine that cannot be had, and a system without threads.
pub async fn run(listener: TcpListener, config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    // Opening devices takes some tenths of a second, and reading what is on disk as long as there is of it.
    let found = tokio::task::spawn_blocking(move || {
        let engines = Engines::find(&config)?;
        let data = Data::open(&config)?;
        let tls = Tls::read(&config.tls)?;
        anyhow::Ok((config, engines, data, tls))
    });
    let (config, engines, data, tls) = found.await??;
    run_with(listener, config, engines, data, tls, shutdown).await
}

/// What outlives the broker, as it was found at the start.
pub struct Data {
    store: Option<Store>,
    recovered: Recovered,
}

impl Data {
    /// Opens what `store.data` names and reads it back, which is told in the log; nothing where that is empty. Blocks.
    ///
    /// # Errors
    /// When it is in use by another broker, of another world or version, damaged, or cannot be read or written.
    pub fn open(config: &Config) -> anyhow::Result<Self> {
        let settings = &config.store;
        if settings.data.is_empty() {
            tracing::info!(
                "nothing outlives the broker, durable sessions only their connections: store.data is empty"
            );
            return Ok(Self { store: None, recovered: Recovered::default() });
        }
        let started = Instant::now();
        let told = Cell::new(started);
        let (store, recovered) = Store::open(settings, config.server.world, |progress| {
            if told.get().elapsed() >= PROGRESS_INTERVAL {
                told.set(Instant::now());
                let Progress { phase, done, of } = progress;
                tracing::info!(done, of, "opening {}: {}", settings.data, phase.name());
            }
        })?;
        tracing::info!(
            clients = recovered.clients.len(),
            subscriptions = recovered.clients.iter().map(|client| client.subscriptions.len()).sum::<usize>(),
            kept_matches = recovered.clients.iter().map(|client| client.kept.len()).sum::<usize>(),
            live_events = recovered.live.len(),
            took_ms = started.elapsed().as_millis(),
            "opened {}",
            settings.data
        );
        Ok(Self { store: Some(store), recovered })
    }
}

/// The same with engines that were made before and data that was opened before, of the same settings.
///
/// # Errors
/// Settings with faults, data that cannot be read back, and a system without threads.
pub async fn run_with(
    listener: TcpListener,
    config: Config,
    engines: Engines,
    data: Data,
    tls: Option<Tls>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let faults = config.faults();
    if !faults.is_empty() {
        return Err(crate::ConfigError { faults }.into());
    }
    let shared = Shared::new(&config, engines.count());
    let features = FeatureReader::new(World::from(config.server.world), &config.limits, rand::random());
    let Data { store, recovered } = data;
    if let Some(store) = &store {
        store.count_in(shared.metrics.store.clone());
    }
    let restored = Restored::read(recovered, &config, &features, shared.metrics.started)?;
    let (shards, threads) = Shards::start(&config, engines, &shared, store.as_ref(), restored)?;
    let app = App::new(config, features, shards, shared);
    let report = app.shards.report();
    tracing::info!(engine = report.engine(), why = %report, shards = app.shards.count(), "took an engine");
    tracing::info!(address = %listener.local_addr()?, shards = app.shards.count(), "listening");

    let upkeep = tokio::spawn(upkeep(Arc::clone(&app.metrics), app.ended.clone()));
    let acceptor = tls.as_ref().map(Tls::acceptor);
    let following = tls.map(|tls| tokio::spawn(tls.follow(Arc::clone(&app.metrics), app.ended.clone())));
    accept(&listener, &app, acceptor, &shutdown).await;
    drop(listener);
    drain(&app).await;
    app.ended.cancel();
    // A task that panicked has said so itself.
    let _ = upkeep.await;
    if let Some(following) = following {
        let _ = following.await;
    }
    if app.shards.ended() {
        let joined =
            // What they give back is let go of when nobody writes any more.
            tokio::task::spawn_blocking(move || {
                let ended: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
                ended.iter().all(Result::is_ok)
            });
        anyhow::ensure!(joined.await?, "an engine's thread panicked");
    }
    tracing::info!("stopped");
    Ok(())
}

async fn upkeep(metrics: Arc<Metrics>, ended: CancellationToken) {
    while ended.run_until_cancelled(tokio::time::sleep(UPKEEP_INTERVAL)).await.is_some() {
        metrics.upkeep();
    }
}

async fn accept(listener: &TcpListener, app: &Arc<App>, tls: Option<Acceptor>, shutdown: &CancellationToken) {
    let room = Arc::new(Semaphore::new(app.config.limits.connections));
    let router = http::router(app);
    let refusals = Arc::new(Semaphore::new(64));
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let tls = tls.as_ref().map(Acceptor::current);
        match Arc::clone(&room).try_acquire_owned() {
            Ok(permit) => {
                tracing::trace!(%peer, "connected");
                let stream = Stream::new(stream, &app.config.connection, permit, &app.metrics);
                app.tasks.spawn(secure_and_serve(stream, tls, router.clone(), Arc::clone(app)));
            }
            Err(_) => {
                app.metrics.connections_refused.add(1);
                let limit = app.config.limits.connections;
                if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
                    app.tasks.spawn(async move {
                        http::refuse_connection(stream, tls, limit).await;
                        drop(permit);
                    });
                }
            }
        }
    }
}

/// Serves a connection, which may take as long for its handshake as for the head of a request.
async fn secure_and_serve(
    stream: Stream<TcpStream>,
    tls: Option<TlsAcceptor>,
    router: axum::Router,
    app: Arc<App>,
) {
    let Some(tls) = tls else { return serve(stream, router, app).await };
    let limit = Duration::from_millis(app.config.connection.head_timeout_ms);
    let handshake = tokio::time::timeout(limit, stream.secured(tls));
    let secured = match app.stopping.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => return serve(stream, router, app).await,
        Some(Ok(Err(error))) => error.to_string(),
        Some(Err(_)) => "it took too long".to_owned(),
        None => return,
    };
    app.metrics.handshakes_failed.add(1);
    tracing::debug!(error = secured, "a connection did not come to speak TLS");
}

/// Serves the requests of one connection.
async fn serve<S>(stream: S, router: axum::Router, app: Arc<App>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pace = Pace::new(app.config.limits.events_per_second);
    let service = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(pace.clone());
        hyper::service::Service::call(&service, request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(app.config.connection.head_timeout_ms))
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = app.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                served = connection.as_mut() => served,
                () = app.ended.cancelled() => Ok(()),
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Lets requests end, queues drain and readers be told, within the time that a stop may take.
async fn drain(app: &Arc<App>) {
    tracing::info!("stopping");
    let grace = app.config.shutdown_grace();
    app.stopping.cancel();
    let orderly = tokio::time::timeout(grace, async {
        app.requests.close();
        app.requests.wait().await;
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
