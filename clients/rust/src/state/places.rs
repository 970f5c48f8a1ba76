//! Positions of the client, present and past, which are told again on each connection.

use tokio_tungstenite::tungstenite::Utf8Bytes;
use wire::ClientFrame;

use super::{
    State,
    outgoing::Sort,
    requests::{Answer, Purpose, Request},
};
use crate::{Error, Fix, frame};

/// A position of a client and its time: `[longitude, latitude, unix_s]`.
pub(crate) type Point = [f64; 3];

fn write_place(place: &Fix, reference: Option<u64>) -> Utf8Bytes {
    frame::write(&ClientFrame::Move {
        reference: reference.map(Into::into),
        coordinates: place.coordinates.to_vec(),
        track: Vec::new(),
        accuracy_m: place.accuracy_m,
        time: place.time.clone(),
    })
}

/// The way that a client went.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) points: Vec<Point>,
    pub(crate) accuracy_m: Option<f64>,
}

pub(crate) struct Places {
    /// The one that was told last, the end of a track included.
    place: Option<Fix>,
    /// Whether it is the end of the last of the tracks that were not answered.
    tracked: bool,
    /// Answers to callers that wait until the place is in force, on the next connection.
    waiting: Vec<Answer>,
    /// Tracks that go out on the next connection.
    ways: Vec<(Way, Vec<Answer>)>,
    /// Where a follower goes without a connection, from the place on that it told before.
    recorded: Track,
    followed: Option<Point>,
}

impl Places {
    pub(crate) fn new(track_points: usize) -> Self {
        Self {
            place: None,
            tracked: false,
            waiting: Vec::new(),
            ways: Vec::new(),
            recorded: Track { limit: track_points.max(3), points: Vec::new() },
            followed: None,
        }
    }
}

impl State {
    /// The client is here: told now or on the next connection, where the newest place wins.
    pub(crate) fn place(&mut self, place: Fix) {
        self.places.place = Some(place);
        self.places.tracked = false;
        self.tell();
    }

    /// The same, answered when this place, or a newer one, is in force.
    pub(crate) fn place_confirmed(&mut self, place: Fix, answer: Answer) -> Result<(), Error> {
        self.check_others()?;
        if self.places.waiting.len() >= self.limit {
            return Err(Error::QueueFull { limit: self.limit });
        }
        self.places.place = Some(place);
        self.places.tracked = false;
        self.places.waiting.push(answer);
        if self.out.ready {
            self.confirm();
        }
        Ok(())
    }

    /// The client went this way; answered when that is in force.
    pub(crate) fn track(&mut self, way: Way, answer: Answer) -> Result<(), Error> {
        self.check_others()?;
        if self.places.ways.len() >= self.limit {
            return Err(Error::QueueFull { limit: self.limit });
        }
        if let Some(&[lon, lat, _]) = way.points.last() {
            self.places.place = Some(Fix { accuracy_m: way.accuracy_m, ..Fix::at([lon, lat]) });
            self.places.tracked = true;
        }
        if self.out.ready {
            self.ask_track(way, vec![answer]);
        } else {
            self.places.ways.push((way, vec![answer]));
        }
        Ok(())
    }

    /// A follower is here. Without a connection that is recorded, and told as a track on the next one.
    pub(crate) fn followed(&mut self, place: Fix, unix_s: f64) {
        let point = [place.coordinates.lon, place.coordinates.lat, unix_s];
        let before = self.places.followed.replace(point);
        if self.out.ready {
            return self.place(place);
        }
        if self.places.recorded.points.is_empty() {
            before.into_iter().for_each(|before| self.places.recorded.add(before));
        }
        self.places.recorded.add(point);
        self.places.place = Some(place);
        self.places.tracked = true;
    }

    /// A connection is there. Tracks go first, in their order, and then the place, unless a track ends there.
    pub(super) fn tell_places(&mut self) {
        let ways = std::mem::take(&mut self.places.ways);
        let recorded = std::mem::take(&mut self.places.recorded.points);
        self.places.tracked &= !ways.is_empty() || !recorded.is_empty();
        for (way, answers) in ways {
            self.ask_track(way, answers);
        }
        if !recorded.is_empty() {
            let track = recorded.clone();
            self.requests.ask(&mut self.out, Purpose::Recorded(recorded), Vec::new(), |reference| {
                write_track(track, None, reference)
            });
        }
        if !self.places.waiting.is_empty() {
            self.confirm();
        } else if !self.places.tracked {
            self.tell();
        }
    }

    /// Keeps a request that was not answered, so that it is told again on the next connection.
    pub(super) fn place_lost(&mut self, request: Request) {
        let Request { purpose, answers, .. } = request;
        match purpose {
            Purpose::Place => self.places.waiting.extend(answers),
            Purpose::Track(way) => self.places.ways.push((way, answers)),
            Purpose::Recorded(points) => {
                let since = std::mem::replace(&mut self.places.recorded.points, points);
                since.into_iter().for_each(|point| self.places.recorded.add(point));
            }
            Purpose::Publish
            | Purpose::Subscribe(_)
            | Purpose::Remake(_)
            | Purpose::Unsubscribe { .. }
            | Purpose::Token => {}
        }
    }

    pub(super) fn recorded(&mut self, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            // Where the client went is not known then, but where it is.
            self.tell();
            self.refused(error);
        }
    }

    /// Takes the answers of all callers that wait for a connection, to tell them that there will be none.
    pub(super) fn take_place_answers(&mut self) -> Vec<Answer> {
        let ways = std::mem::take(&mut self.places.ways);
        std::mem::take(&mut self.places.waiting)
            .into_iter()
            .chain(ways.into_iter().flat_map(|way| way.1))
            .collect()
    }

    fn tell(&mut self) {
        if let Some(place) = &self.places.place
            && self.out.ready
        {
            self.out.push(Sort::Place, write_place(place, None));
        }
    }

    /// Tells the place so that it is answered, to all who wait for that.
    fn confirm(&mut self) {
        let answers = std::mem::take(&mut self.places.waiting);
        let Some(place) = &self.places.place else { return };
        self.requests
            .ask(&mut self.out, Purpose::Place, answers, |reference| write_place(place, Some(reference)));
    }

    fn ask_track(&mut self, way: Way, answers: Vec<Answer>) {
        let Way { points, accuracy_m } = way.clone();
        self.requests.ask(&mut self.out, Purpose::Track(way), answers, |reference| {
            write_track(points, accuracy_m, reference)
        });
    }
}

fn write_track(track: Vec<Point>, accuracy_m: Option<f64>, reference: u64) -> Utf8Bytes {
    let reference = Some(reference.into());
    frame::write(&ClientFrame::Move { reference, coordinates: Vec::new(), track, accuracy_m, time: None })
}

/// A recording of where a client went. At its bound every other point between the ends is left out, and it goes on.
struct Track {
    limit: usize,
    points: Vec<Point>,
}

impl Track {
    fn add(&mut self, [x, y, unix_s]: Point) {
        // Times of a track do not descend, whatever clocks do.
        let unix_s = self.points.last().map_or(unix_s, |last| unix_s.max(last[2]));
        self.points.push([x, y, unix_s]);
        if self.points.len() > self.limit {
            let last = self.points.len() - 1;
            let mut place = 0..;
            self.points.retain(|_| place.next().is_some_and(|place| place % 2 == 0 || place == last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_way_is_thinned_and_keeps_its_ends() {
        let mut track = Track { limit: 100, points: Vec::new() };
        for n in 0..10_000 {
            track.add([f64::from(n), 0.0, f64::from(n)]);
            assert!(track.points.len() <= 100, "{n}");
            assert_eq!(track.points[0][0], 0.0);
            assert_eq!(track.points.last().unwrap()[0], f64::from(n));
        }
        assert!(track.points.is_sorted_by(|a, b| a[2] < b[2]));
        track.add([1.0, 1.0, 0.0]);
        assert_eq!(*track.points.last().unwrap(), [1.0, 1.0, 9_999.0], "a clock that goes back does not");
    }
}
