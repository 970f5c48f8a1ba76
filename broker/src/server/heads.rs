//! The heads of requests: how long one may take, how long a connection may rest before the next, and how many connections of one
//! address may be without any.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

use crate::config;
use crate::http::Came;

/// Measures the time of heads for the HTTP library, which knows one limit for a head and for the rest before it.
#[derive(Clone)]
pub(super) struct HeadTimer {
    head: Duration,
    idle: Duration,
    came: Came,
    is_first: Arc<AtomicBool>,
}

/// The time that is left for a head. Before a later one it is that for which the connection may rest, until something comes.
struct HeadSleep {
    sleep: Pin<Box<tokio::time::Sleep>>,
    /// How much had come when the rest began, and how long the head may take from then on when more has.
    rest: Option<(Came, u64, Duration)>,
}

impl HeadTimer {
    pub(super) fn new(settings: &config::Connection, came: Came) -> Self {
        Self {
            head: Duration::from_millis(settings.head_timeout_ms),
            idle: Duration::from_millis(settings.idle_timeout_ms),
            came,
            is_first: Arc::new(AtomicBool::new(true)),
        }
    }

    /// The time-out that the library is told; the timer shortens it.
    pub(super) fn limit(&self) -> Duration {
        self.head.max(self.idle)
    }

    /// Makes the sleep for the head that comes next.
    fn next_head(&self) -> HeadSleep {
        let is_first = self.is_first.swap(false, Ordering::Relaxed);
        let (limit, rest) = if is_first {
            (self.head, None)
        } else {
            (self.idle, Some((self.came.clone(), self.came.bytes(), self.head)))
        };
        HeadSleep { sleep: Box::pin(tokio::time::sleep(limit)), rest }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(self.next_head())
    }
}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<()> {
        if let Some((came, before, head)) = &self.rest
            && came.bytes() != *before
        {
            let limit = tokio::time::Instant::now() + *head;
            self.rest = None;
            self.sleep.as_mut().reset(limit);
        }
        self.sleep.as_mut().poll(ctx)
    }
}

impl Sleep for HeadSleep {}

/// Connections on which no request has come yet, by address. A std mutex: held to count one.
pub(super) struct Unheard {
    /// 0: any number.
    per_address: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// One of them, until its first request or its end.
pub(super) struct Hearing(Option<(Arc<Unheard>, IpAddr)>);

impl Unheard {
    pub(super) fn new(per_address: usize) -> Arc<Self> {
        Arc::new(Self { per_address, counts: Mutex::default() })
    }

    /// Counts a connection from an address; `None` where there are as many as there may be. Loopback is not counted.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Hearing> {
        let address = address.to_canonical();
        if self.per_address == 0 || address.is_loopback() {
            return Some(Hearing(None));
        }
        let network = network(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(network).or_default();
        if *count >= self.per_address {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Hearing(Some((Arc::clone(self), network))))
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        let Some((unheard, address)) = self.0.take() else { return };
        let mut counts = unheard.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

/// The address, or of IPv6 the first 64 bits: who has one address there has all of them.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// The step to which the clock is rounded up.
    const TICK: Duration = Duration::from_millis(2);

    #[test]
    fn connections_without_a_request_are_counted_by_address() {
        let unheard = Unheard::new(2);
        let enter = |address: &str| unheard.enter(address.parse().unwrap());
        let (first, second) = (enter("192.0.2.1").unwrap(), enter("::ffff:192.0.2.1").unwrap());
        assert!(enter("192.0.2.1").is_none());
        let other = enter("192.0.2.2").unwrap();
        drop(first);
        assert!(enter("192.0.2.1").is_some(), "and gone again");
        let (_one, _two) = (enter("2001:db8::1").unwrap(), enter("2001:db8::ffff:0:1").unwrap());
        assert!(enter("2001:db8::3").is_none() && enter("2001:db8:0:1::3").is_some());
        let loopback: Vec<_> = (0..10).map(|_| enter("127.0.0.1").unwrap()).collect();
        drop((second, other, loopback, _one, _two));
        assert!(unheard.counts.lock().unwrap().is_empty());
        let any = Unheard::new(0);
        let many: Vec<_> = (0..10).map(|_| any.enter("192.0.2.1".parse().unwrap()).unwrap()).collect();
        assert!(any.counts.lock().unwrap().is_empty() && many.len() == 10);
    }

    #[tokio::test]
    async fn a_later_head_has_its_own_time_from_when_it_begins() {
        let settings = config::Connection {
            head_timeout_ms: 10_000_000,
            idle_timeout_ms: 75_000_000,
            ..config::Config::default().connection
        };
        let (head, idle) = (Duration::from_secs(10_000), Duration::from_secs(75_000));
        let came = Came::default();
        let timer = HeadTimer::new(&settings, came.clone());
        // When it is over, were it polled now. The clock goes on by itself, so that this is known to lie between two times.
        let check = |sleep: &mut HeadSleep, after: Duration, from: tokio::time::Instant| {
            assert!((&mut *sleep).now_or_never().is_none());
            let end = sleep.sleep.deadline();
            assert!((from + after..=tokio::time::Instant::now() + after + TICK).contains(&end), "{end:?}");
        };
        let start = tokio::time::Instant::now();
        let mut first = timer.next_head();
        came.add(1);
        check(&mut first, head, start);
        let end = first.sleep.deadline();
        came.add(1);
        assert!(
            (&mut first).now_or_never().is_none() && first.sleep.deadline() == end,
            "bytes do not prolong it"
        );
        let start = tokio::time::Instant::now();
        let mut later = timer.next_head();
        check(&mut later, idle, start);
        let start = tokio::time::Instant::now();
        came.add(1);
        check(&mut later, head, start);
        let end = later.sleep.deadline();
        came.add(1);
        assert!((&mut later).now_or_never().is_none() && later.sleep.deadline() == end, "nor this one");
    }
}
