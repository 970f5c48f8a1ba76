//! Clients of the NATS servers of the tests.

use std::time::{Duration, Instant};

use async_nats::Client;
use cluster::jetstream::Access;

use crate::nats::{SYSTEM, Servers, USER};

impl Servers {
    /// A client that may be connected to any of them, and connects again.
    pub(crate) async fn client(&self) -> Client {
        self.connect(USER).await
    }

    /// A user of the system account.
    pub(crate) async fn system(&self) -> Client {
        self.connect(SYSTEM).await
    }

    async fn connect(&self, user: (&str, &str)) -> Client {
        let access = Access { servers: self.addresses(user), ..Access::default() };
        let begun = Instant::now();
        loop {
            match access.connect("test").await {
                Ok(client) => return client,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
