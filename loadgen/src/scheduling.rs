//! When the load's threads have their turns. It shares cores with the broker that it measures, and is to disturb it little.

use std::marker::PhantomData;

/// While it is there, its thread waits, when it is woken, until a core is idle or the running thread has had its turn.
#[derive(Debug)]
pub(crate) struct GivesWay {
    /// Whether it did not before.
    is_new: bool,
    /// Made and dropped by the same thread.
    _here: PhantomData<*const ()>,
}

/// Has this thread, and those that it starts, have no turn before others, as `SCHED_BATCH` does.
///
/// A broker writes to many sockets one after the other. If each of them woke a reader that runs at once on the same core, each delivery would
/// interrupt those behind it, for clients that in truth are on other machines. To read late is the load's own loss: it is in its latencies.
/// Where somebody has given the load another policy, or the system does not know of this one, nothing changes.
#[must_use]
pub(crate) fn give_way() -> GivesWay {
    GivesWay { is_new: change(Policy::Other, Policy::Batch), _here: PhantomData }
}

impl Drop for GivesWay {
    fn drop(&mut self) {
        // A broker that this thread starts is as all others are.
        if self.is_new {
            change(Policy::Batch, Policy::Other);
        }
    }
}

/// Which turns a thread has: as everybody, or none before others.
#[derive(Clone, Copy)]
enum Policy {
    Other,
    Batch,
}

/// Whether this thread's policy was the first and is the second now.
#[cfg(target_os = "linux")]
fn change(from: Policy, to: Policy) -> bool {
    use uapi::{c, pod_zeroed, sched_getscheduler, sched_setscheduler};
    let [from, to] = [from, to].map(|policy| match policy {
        Policy::Other => c::SCHED_OTHER,
        Policy::Batch => c::SCHED_BATCH,
    });
    sched_getscheduler(0).is_ok_and(|policy| policy == from)
        && sched_setscheduler(0, to, &pod_zeroed()).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn change(_from: Policy, _to: Policy) -> bool {
    false
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
    use uapi::{c, pod_zeroed, sched_getscheduler, sched_setscheduler};

    fn policy() -> i32 {
        sched_getscheduler(0).unwrap()
    }

    #[test]
    fn who_gives_way_does_so_for_a_while() {
        let policies = std::thread::spawn(|| {
            let gives_way = super::give_way();
            let (own, child) = (policy(), std::thread::spawn(policy).join().unwrap());
            drop(gives_way);
            [own, child, policy()]
        });
        assert_eq!(policies.join().unwrap(), [c::SCHED_BATCH, c::SCHED_BATCH, c::SCHED_OTHER]);
    }

    #[test]
    fn a_policy_that_somebody_chose_stays() {
        let policies = std::thread::spawn(|| {
            sched_setscheduler(0, c::SCHED_IDLE, &pod_zeroed()).unwrap();
            let gives_way = super::give_way();
            let own = policy();
            drop(gives_way);
            [own, policy()]
        });
        assert_eq!(policies.join().unwrap(), [c::SCHED_IDLE; 2]);
    }
}
