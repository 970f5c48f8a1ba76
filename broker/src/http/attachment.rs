//! Readers, from the moment they ask until nothing of them is left in their shard.

use std::sync::Arc;

use super::App;
use crate::ingest::Confinement;
use crate::model::error::ApiError;
use crate::outbox::Outbox;
use crate::sessions::{Attached, Resume};
use crate::shard::Command;

/// A connection that reads for a client, or is about to. When it is dropped, at whatever moment, the connection is detached: the
/// queue puts that behind the request to attach it.
pub(super) struct Attachment {
    app: Arc<App>,
    client: Arc<str>,
    connection: u64,
    /// Whether the shard has been asked, and has something to take back.
    is_asked: bool,
}

impl Attachment {
    pub(super) fn new(app: &Arc<App>, client: &Arc<str>, connection: u64) -> Self {
        Self { app: Arc::clone(app), client: Arc::clone(client), connection, is_asked: false }
    }

    /// Lets an outbox of this connection read for the client.
    pub(super) async fn attach(
        &mut self,
        outbox: &Arc<Outbox>,
        resume: Resume,
        confinement: Option<Arc<Confinement>>,
    ) -> Result<Attached, ApiError> {
        let outbox = Arc::clone(outbox);
        let is_asked = &mut self.is_asked;
        // Made when there is room for it. One that finds none leaves nothing to be taken back.
        let attach = |client, reply| {
            *is_asked = true;
            Command::Attach { client, outbox, resume, confinement, reply }
        };
        self.app.shards.ask(&self.client, attach).await?
    }

    /// Detaches the connection, and waits until the shard has been told.
    pub(super) async fn end(mut self) {
        if self.is_asked {
            self.app.shards.detach(&self.client, self.connection).await;
            self.is_asked = false;
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Handle::try_current();
        if self.is_asked
            && let Ok(runtime) = runtime
        {
            let (app, client, connection) =
                (Arc::clone(&self.app), Arc::clone(&self.client), self.connection);
            let tasks = self.app.tasks.clone();
            tasks.spawn_on(async move { app.shards.detach(&client, connection).await }, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::http::fuzzing::start;
    use crate::shutdown::Ending;

    async fn readers_count(app: &App) -> u64 {
        let listed = app.shards.list_clients(None, 10, &"".into()).await.unwrap();
        listed.clients.iter().map(|client| client.connections).sum()
    }

    /// A reader that is let in, and gone before it knows, whatever it had heard by then.
    #[tokio::test]
    async fn a_reader_that_goes_while_it_is_attached_leaves_nothing() {
        let ending = Ending::default();
        let (app, threads) = start(&ending);
        let client: Arc<str> = "car".into();
        for is_answered in [false, true] {
            let outbox = app.outbox("car");
            let mut attachment = Attachment::new(&app, &client, outbox.connection);
            {
                let mut attaching = std::pin::pin!(attachment.attach(&outbox, Resume::Fresh, None));
                let polled = attaching.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(matches!(polled, Poll::Pending | Poll::Ready(Ok(_))));
                if is_answered {
                    // What is asked behind it is answered behind it.
                    assert_eq!(readers_count(&app).await, 1);
                }
            }
            drop(attachment);
            while !ending.tasks.is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(readers_count(&app).await, 0);
        }
        app.shards.stop().await;
        threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    }

    #[tokio::test]
    async fn a_client_that_is_disconnected_has_no_readers() {
        let (app, threads) = start(&Ending::default());
        let client: Arc<str> = "car".into();
        let mut attachments = Vec::new();
        for _ in 0..app.config.limits.readers_per_client {
            let outbox = app.outbox("car");
            let mut attachment = Attachment::new(&app, &client, outbox.connection);
            attachment.attach(&outbox, Resume::Fresh, None).await.unwrap();
            attachments.push((attachment, outbox));
        }
        let disconnect = |client, reply| Command::Disconnect { client, confinement: None, reply };
        app.shards.ask(&client, disconnect).await.unwrap().unwrap();
        assert_eq!(readers_count(&app).await, 0);
        assert!(attachments.iter().all(|(_, outbox)| outbox.is_closing()));
        for (attachment, _) in attachments {
            attachment.end().await;
        }
        app.shards.stop().await;
        threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    }
}
