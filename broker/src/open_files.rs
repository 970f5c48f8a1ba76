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

/// Raises the limit as [`raise`] does, and logs the outcome. Warns if `connections` connections find no room in it: some then
/// wait to be accepted until others end.
pub fn raise_for(connections: usize) {
    match raise() {
        Ok(files) if files < (connections as u64).saturating_add(OWN_FILES) => tracing::warn!(
            files,
            connections,
            "so many files may be open, too few for limits.connections: raise the hard limit (ulimit -H -n) or lower the setting"
        ),
        Ok(files) => tracing::info!(files, "so many files may be open"),
        Err(error) => tracing::warn!(%error, "no more files may be open than at the start"),
    }
}
