//! How a broker ends.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How a broker ends, in stages. A clone is another handle to the same.
#[derive(Clone, Default)]
pub(crate) struct Ending {
    /// Connections.
    pub(crate) tasks: TaskTracker,
    /// No more requests.
    pub(crate) stopping: CancellationToken,
    /// Nothing goes on.
    pub(crate) ended: CancellationToken,
}

impl Ending {
    /// Ends connections that have nothing to wait for.
    pub(crate) async fn at_once(&self) {
        self.stopping.cancel();
        self.ended.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
