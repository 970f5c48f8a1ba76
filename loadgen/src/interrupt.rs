//! Whether somebody wants the run to end now.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use anyhow::ensure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

static IS_ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on a first signal to end lets what was measured be told, and what was started be ended; a second one does not.
///
/// # Errors
/// When the system does not allow it.
pub fn listen() -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&IS_ASKED))?;
        flag::register(signal, Arc::clone(&IS_ASKED))?;
    }
    Ok(())
}

/// Whether it is asked for.
pub fn is_asked() -> bool {
    IS_ASKED.load(Relaxed)
}

/// # Errors
/// When it is asked for.
pub(crate) fn check() -> anyhow::Result<()> {
    ensure!(!is_asked(), "interrupted");
    Ok(())
}
