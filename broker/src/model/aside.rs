//! Work that takes long, on a thread beside those that serve everybody.

use super::error::ApiError;

/// Does some work on such a thread. `what` says what could not be done, should it panic.
///
/// # Errors
/// [`ApiError::Stopping`] where the runtime ends before the work has begun, which is nobody's fault.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    what: &'static str,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|failed| if failed.is_cancelled() { ApiError::Stopping } else { ApiError::Internal(what) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_a_stop_leaves_undone_is_no_fault_of_the_brokers() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        assert_eq!(handle.block_on(aside(|| 7, "undone")), Ok(7));
        let broken = handle.block_on(aside(|| panic!("a fault in the work"), "undone"));
        assert_eq!(broken, Err::<(), _>(ApiError::Internal("undone")));
        runtime.shutdown_background();
        assert_eq!(handle.block_on(aside(|| 7, "undone")), Err(ApiError::Stopping));
    }
}
