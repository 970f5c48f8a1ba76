//! What the cluster's stream of events brings, for the engines of this broker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::log::Attachable;
use tokio_util::sync::CancellationToken;

use crate::event_stream::{Accepted, Coming, Found, Reader, Sink};
use crate::http::App;
use crate::ingest::Confinement;
use crate::ingest::feature::FeatureReader;
use crate::ledger::Ownership;
use crate::model::clock;
use crate::model::error::ApiError;
use crate::model::event::{Origin, Placed, Published};

/// The engines of a broker.
struct Engines {
    app: Arc<App>,
    /// Reads events that were accepted before.
    lenient: FeatureReader,
    /// Cancelled when the stream has been read to its end once.
    has_caught_up: CancellationToken,
}

/// Reads until the broker has ended; `has_caught_up` is cancelled when all has been read that was there. Where it cannot read on, it ends, and its sessions begin new epochs with the next start.
pub(super) fn read<L: Attachable + Send + Sync + 'static>(
    reader: Reader<L>,
    app: &Arc<App>,
    ownership: &Arc<Ownership>,
    has_caught_up: CancellationToken,
    ended: CancellationToken,
) -> impl Future<Output = ()> + Send + use<L> {
    let (app, ownership) = (Arc::clone(app), Arc::clone(ownership));
    let lenient = app.features.of_accepted();
    async move {
        if let Err(fault) = reader.run(Engines { app, lenient, has_caught_up }, ended).await {
            ownership.lose_with_all_epochs(fault.to_string());
        }
    }
}

impl Sink for Engines {
    fn read(&self, accepted: &Accepted<'_>, found: Option<&Found<'_>>) -> Result<Published, ApiError> {
        let Accepted { received_ms, tenant, text, life } = *accepted;
        let life = life.map(|(object, id, ttl_ms)| (object, id, Duration::from_millis(ttl_ms)));
        let mut event =
            self.app.features.accepted_elsewhere(&self.lenient, tenant, text, received_ms, life)?;
        let Some(Found { client, version, number, veiled }) = found else { return Ok(event) };
        if let Some(confinement) = veiled {
            event.veil(*confinement);
        }
        Ok(event.derived(Origin { client: (*client).into(), version: (*version).into(), number: *number }))
    }

    async fn take(&self, events: &mut Vec<Coming>) -> Result<(), ApiError> {
        let last = events.last().map(|coming| coming.event.body.arrived_ms());
        let before = events.len();
        let taken = self.app.shards.take(events).await;
        self.app.metrics.stream_events.add((before - events.len()) as u64);
        if let Some(arrived_ms) = last {
            let lag_ms = clock::unix_ms().saturating_sub(arrived_ms);
            self.app.metrics.show_stream_lag(Duration::from_millis(lag_ms));
        }
        taken
    }

    fn has_caught_up(&self) {
        self.has_caught_up.cancel();
    }

    async fn at_end(&self, at: Instant) {
        self.app.metrics.show_stream_lag(Duration::ZERO);
        self.app.shards.tell_read_until(at).await;
    }

    async fn revoke(&self, id: &str, confinement: Option<&str>, place: Placed) -> Result<bool, ApiError> {
        let read = |text| Confinement::read_again(text, self.app.features.zones());
        let confinement = match confinement.map(read).transpose() {
            Ok(confinement) => confinement.map(Arc::new),
            Err(why) => {
                tracing::error!(
                    why,
                    "a confinement of another broker cannot be read: nothing is revoked by it"
                );
                return Ok(false);
            }
        };
        self.app.shards.revoke_at(&id.into(), confinement.as_ref(), Some(place)).await
    }
}
