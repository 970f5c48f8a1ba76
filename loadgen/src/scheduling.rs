//! When the load's threads have their turns. It shares cores with the broker that it measures, and is to disturb it little.

use std::marker::PhantomData;

/// While it is there, its thread waits, when it is woken, until a core is idle or whoever is at work has had its turn.
#[derive(Debug)]
pub(crate) struct GivesWay {
    /// Made and dropped by the same thread.
    _here: PhantomData<*const ()>,
}

/// Has this thread, and those that it starts, have no turn before others, as `SCHED_BATCH` does.
///
/// A broker writes to many sockets one after the other. If each of them woke a reader that runs at once on the same core, each delivery would
/// interrupt those behind it, for clients that in truth are on other machines. To read late is the load's own loss: it is in its latencies.
/// Where the system does not know of this nothing changes.
#[must_use]
pub(crate) fn give_way() -> GivesWay {
    #[cfg(target_os = "linux")]
    set(uapi::c::SCHED_BATCH);
    GivesWay { _here: PhantomData }
}

impl Drop for GivesWay {
    fn drop(&mut self) {
        // A broker that this thread starts is as all others are.
        #[cfg(target_os = "linux")]
        set(uapi::c::SCHED_OTHER);
    }
}

/// Everybody may ask for these.
#[cfg(target_os = "linux")]
fn set(policy: i32) {
    let _ = uapi::sched_setscheduler(0, policy, &uapi::pod_zeroed());
}

/// Has this thread woken when it asked to be, and not up to 50 us later so that the system can wake several at once. Where
/// that cannot be said it is later, which is measured as being late.
pub(crate) fn wake_precisely() {
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
    if let Some(number) = thread.file_name().and_then(std::ffi::OsStr::to_str) {
        let _ = std::fs::write(format!("/proc/{number}/timerslack_ns"), "1");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use uapi::{c, sched_getscheduler};

    #[test]
    fn who_gives_way_does_so_for_a_while() {
        let policy = || sched_getscheduler(0).unwrap();
        let policies = std::thread::spawn(move || {
            let gives_way = super::give_way();
            let (own, child) = (policy(), std::thread::spawn(policy).join().unwrap());
            drop(gives_way);
            [own, child, policy()]
        });
        assert_eq!(policies.join().unwrap(), [c::SCHED_BATCH, c::SCHED_BATCH, c::SCHED_OTHER]);
    }
}
