//! Following a source of positions: a phone does not send each fix.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use tokio::time::{Instant, sleep_until};

use crate::Coordinates;

/// A place as a positioning system tells it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Fix {
    /// The position.
    pub coordinates: Coordinates,
    /// How many metres it may be off.
    pub accuracy_m: Option<f64>,
    /// When it was measured, in seconds since 1970; when it came where there is none.
    pub unix_s: Option<f64>,
    /// Time of the measurement as an RFC 3339 text. The broker checks it and does not use it.
    pub time: Option<String>,
}

impl<C: Into<Coordinates>> From<C> for Fix {
    fn from(coordinates: C) -> Self {
        Self::at(coordinates)
    }
}

impl Fix {
    /// A fix at a position, of the time at which it comes.
    pub fn at(coordinates: impl Into<Coordinates>) -> Self {
        Self { coordinates: coordinates.into(), accuracy_m: None, unix_s: None, time: None }
    }

    /// Sets how many metres the position may be off.
    pub fn accuracy_m(mut self, accuracy_m: f64) -> Self {
        self.accuracy_m = Some(accuracy_m);
        self
    }

    /// Sets the time of the measurement, in seconds since 1970.
    pub fn unix_s(mut self, unix_s: f64) -> Self {
        self.unix_s = Some(unix_s);
        self
    }

    /// Sets the time of the measurement as an RFC 3339 text.
    pub fn time(mut self, time: impl Into<String>) -> Self {
        self.time = Some(time.into());
        self
    }
}

/// When a fix is worth sending.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Follow {
    min_distance_m: f64,
    max_interval: Duration,
    min_interval: Duration,
    planar: bool,
}

impl Default for Follow {
    fn default() -> Self {
        Self {
            min_distance_m: 25.0,
            max_interval: Duration::from_secs(60),
            min_interval: Duration::from_secs(1),
            planar: false,
        }
    }
}

impl Follow {
    /// Sends a fix that is this many metres away from the last one that was sent (25).
    pub fn min_distance_m(mut self, min_distance_m: f64) -> Self {
        self.min_distance_m = min_distance_m;
        self
    }

    /// Sends a fix when this time has passed since the last one that was sent (a minute).
    pub fn max_interval(mut self, max_interval: Duration) -> Self {
        self.max_interval = max_interval;
        self
    }

    /// Sends no fix before this time has passed since the last one that was sent (a second).
    pub fn min_interval(mut self, min_interval: Duration) -> Self {
        self.min_interval = min_interval;
        self
    }

    /// Takes coordinates for metres, as in a planar world.
    pub fn planar(mut self) -> Self {
        self.planar = true;
        self
    }

    fn distance_m(&self, from: Coordinates, to: Coordinates) -> f64 {
        if self.planar {
            return (to.lon - from.lon).hypot(to.lat - from.lat);
        }
        from.distance_m(to)
    }

    /// When a fix is to be sent where no newer one comes.
    fn due(&self, sent: Option<(Coordinates, Instant)>, fix: &Fix) -> Instant {
        let Some((coordinates, at)) = sent else { return Instant::now() };
        let far = self.distance_m(coordinates, fix.coordinates) >= self.min_distance_m;
        at + if far { self.min_interval } else { self.max_interval }
    }

    /// Gives those fixes of a source to `send` that are worth it. The newest one that was held back goes when its time comes, and the last
    /// one when the source ends.
    pub(crate) async fn run(self, source: impl Stream<Item = Fix>, mut send: impl FnMut(Fix)) {
        let mut source = std::pin::pin!(source);
        let mut sent: Option<(Coordinates, Instant)> = None;
        let mut held: Option<(Fix, Instant)> = None;
        loop {
            let now = Instant::now();
            if let Some((fix, _)) = held.take_if(|(_, due)| *due <= now) {
                sent = Some((fix.coordinates, now));
                send(fix);
            }
            let due = held.as_ref().map(|(_, due)| *due);
            tokio::select! {
                fix = source.next() => match fix {
                    Some(fix) => {
                        let due = self.due(sent, &fix);
                        held = Some((fix, due));
                    }
                    None => return held.into_iter().for_each(|(fix, _)| send(fix)),
                },
                () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// Longitudes that are sent, each with the second at which it is sent. The fixes come one by one at an interval of
    /// `every`.
    async fn sent(options: Follow, every: Duration, lons: &[f64]) -> Vec<(f64, f64)> {
        let start = Instant::now();
        let fixes = stream::iter(lons.to_owned()).then(|lon| async move {
            tokio::time::sleep(every).await;
            Fix::at([lon, 0.0])
        });
        let mut sent = Vec::new();
        options
            .planar()
            .run(fixes, |fix| sent.push((fix.coordinates.lon, start.elapsed().as_secs_f64().round())))
            .await;
        sent
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_fix_goes_when_it_is_far_enough_away() {
        let sent = sent(Follow::default(), SECOND, &[0.0, 10.0, 24.0, 25.0, 30.0, 49.0, 51.0]).await;
        assert_eq!(sent, [(0.0, 1.0), (25.0, 4.0), (51.0, 7.0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_goes_when_nothing_went_for_long_and_the_last_one_at_the_end() {
        let still = [0.0; 140];
        let sent = sent(Follow::default(), SECOND, &still).await;
        assert_eq!(sent, [(0.0, 1.0), (0.0, 61.0), (0.0, 121.0), (0.0, 140.0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn none_goes_too_soon_and_the_newest_goes_when_it_may() {
        let away: Vec<f64> = (0..30).map(|n| f64::from(n) * 100.0).collect();
        let sent = sent(Follow::default(), Duration::from_millis(130), &away).await;
        let lons: Vec<f64> = sent.iter().map(|(lon, _)| *lon).collect();
        assert_eq!(lons, [0.0, 700.0, 1500.0, 2300.0, 2900.0]);
    }
}
