//! How many files, sockets among them, the program may have open.

use std::io;

/// Files besides those of clients: the store, the engines, the listener, and whoever is told that there is no room.
const OWN_FILES: u64 = 128;

/// Lets the program have as many files open as the system allows its user, and says how many. Shells and service managers
/// start programs with fewer, mostly 1,024, for the sake of those that count on so few.
///
/// # Errors
/// When the system does not say how many those are, or refuses them.
pub fn raise() -> io::Result<u64> {
    rlimit::increase_nofile_limit(u64::MAX)
}

/// Raises the limit as [`raise`] does, and logs the outcome. That `connections` connections have no room in it is ordinary, and
/// nothing to worry about before so many are open.
pub fn raise_for(connections: usize) {
    match raise() {
        Ok(files) => {
            tracing::info!(files, "raised the limit of open files");
            if room(files) < connections {
                tracing::debug!(
                    room = room(files),
                    "limits.connections exceeds what the limit of open files allows"
                );
            }
        }
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

/// The number of connections from which on it is time to say that files run out before there are `connections`; `None` where there
/// is room for all of these.
pub(crate) fn near(connections: usize) -> Option<usize> {
    let room = room(limit()?);
    (room < connections).then_some(room / 10 * 9)
}

/// How many connections there is room for with a number of open files.
fn room(files: u64) -> usize {
    usize::try_from(files.saturating_sub(OWN_FILES)).unwrap_or(usize::MAX)
}

/// How many files may be open now, where the system says so.
fn limit() -> Option<u64> {
    #[cfg(unix)]
    {
        rlimit::getrlimit(rlimit::Resource::NOFILE).ok().map(|(soft, _)| soft)
    }
    #[cfg(not(unix))]
    {
        None
    }
}
