//! Positions of the client, present and past, which are sent again on each connection.

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

fn write_position(position: &Fix, reference: Option<u64>) -> Utf8Bytes {
    frame::write(&ClientFrame::Move {
        reference: reference.map(Into::into),
        coordinates: position.coordinates.to_vec(),
        track: Vec::new(),
        accuracy_m: position.accuracy_m,
        time: position.time.clone(),
    })
}

/// The way that a client went.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    pub(crate) points: Vec<Point>,
    pub(crate) accuracy_m: Option<f64>,
}

pub(crate) struct Positions {
    /// The one that was told last, the end of a track included.
    position: Option<Fix>,
    /// Whether it is the end of the last of the tracks that were not answered.
    tracked: bool,
    /// Answers to callers that wait until the position is in force, on the next connection.
    waiting: Vec<Answer>,
    /// Tracks that go out on the next connection.
    tracks: Vec<(Track, Vec<Answer>)>,
    /// Where a follower goes without a connection, from the position on that it told before.
    recorded: Recorder,
    followed: Option<Point>,
}

impl Positions {
    pub(crate) fn new(track_points: usize) -> Self {
        Self {
            position: None,
            tracked: false,
            waiting: Vec::new(),
            tracks: Vec::new(),
            recorded: Recorder { limit: track_points.max(3), points: Vec::new() },
            followed: None,
        }
    }
}

impl State {
    /// The client is here: told now or on the next connection, where the newest position wins.
    pub(crate) fn move_to(&mut self, position: Fix) {
        self.positions.position = Some(position);
        self.positions.tracked = false;
        self.tell();
    }

    /// The client is here: answered when this position, or a newer one, is in force.
    pub(crate) fn move_confirmed(&mut self, position: Fix, answer: Answer) -> Result<(), Error> {
        self.check_others()?;
        if self.positions.waiting.len() >= self.limit {
            return Err(Error::QueueFull { limit: self.limit });
        }
        self.positions.position = Some(position);
        self.positions.tracked = false;
        self.positions.waiting.push(answer);
        if self.out.ready {
            self.confirm();
        }
        Ok(())
    }

    /// The client went along this track; answered when that is in force.
    pub(crate) fn track(&mut self, track: Track, answer: Answer) -> Result<(), Error> {
        self.check_others()?;
        if self.positions.tracks.len() >= self.limit {
            return Err(Error::QueueFull { limit: self.limit });
        }
        if let Some(&[lon, lat, _]) = track.points.last() {
            self.positions.position = Some(Fix { accuracy_m: track.accuracy_m, ..Fix::at([lon, lat]) });
            self.positions.tracked = true;
        }
        if self.out.ready {
            self.ask_track(track, vec![answer]);
        } else {
            self.positions.tracks.push((track, vec![answer]));
        }
        Ok(())
    }

    /// A follower is here. Without a connection that is recorded, and told as a track on the next one.
    pub(crate) fn followed(&mut self, position: Fix, unix_s: f64) {
        let point = [position.coordinates.lon, position.coordinates.lat, unix_s];
        let before = self.positions.followed.replace(point);
        if self.out.ready {
            return self.move_to(position);
        }
        if self.positions.recorded.points.is_empty() {
            before.into_iter().for_each(|before| self.positions.recorded.add(before));
        }
        self.positions.recorded.add(point);
        self.positions.position = Some(position);
        self.positions.tracked = true;
    }

    /// A connection is there. Tracks go first, in their order, and then the position, unless a track ends there.
    pub(super) fn tell_positions(&mut self) {
        let tracks = std::mem::take(&mut self.positions.tracks);
        let recorded = std::mem::take(&mut self.positions.recorded.points);
        self.positions.tracked &= !tracks.is_empty() || !recorded.is_empty();
        for (track, answers) in tracks {
            self.ask_track(track, answers);
        }
        if !recorded.is_empty() {
            let track = recorded.clone();
            self.requests.ask(&mut self.out, Purpose::Recorded(recorded), Vec::new(), |reference| {
                write_track(track, None, reference)
            });
        }
        if !self.positions.waiting.is_empty() {
            self.confirm();
        } else if !self.positions.tracked {
            self.tell();
        }
    }

    /// Keeps a request that was not answered, so that it is sent again on the next connection.
    pub(super) fn position_lost(&mut self, request: Request) {
        let Request { purpose, answers, .. } = request;
        match purpose {
            Purpose::Position => self.positions.waiting.extend(answers),
            Purpose::Track(track) => self.positions.tracks.push((track, answers)),
            Purpose::Recorded(points) => {
                let since = std::mem::replace(&mut self.positions.recorded.points, points);
                since.into_iter().for_each(|point| self.positions.recorded.add(point));
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
    pub(super) fn take_position_answers(&mut self) -> Vec<Answer> {
        let tracks = std::mem::take(&mut self.positions.tracks);
        std::mem::take(&mut self.positions.waiting)
            .into_iter()
            .chain(tracks.into_iter().flat_map(|track| track.1))
            .collect()
    }

    fn tell(&mut self) {
        if let Some(position) = &self.positions.position
            && self.out.ready
        {
            self.out.push(Sort::Position, write_position(position, None));
        }
    }

    /// Tells the position so that it is answered, to all callers that wait for that.
    fn confirm(&mut self) {
        let answers = std::mem::take(&mut self.positions.waiting);
        let Some(position) = &self.positions.position else { return };
        self.requests.ask(&mut self.out, Purpose::Position, answers, |reference| {
            write_position(position, Some(reference))
        });
    }

    fn ask_track(&mut self, track: Track, answers: Vec<Answer>) {
        let Track { points, accuracy_m } = track.clone();
        self.requests.ask(&mut self.out, Purpose::Track(track), answers, |reference| {
            write_track(points, accuracy_m, reference)
        });
    }
}

fn write_track(track: Vec<Point>, accuracy_m: Option<f64>, reference: u64) -> Utf8Bytes {
    let reference = Some(reference.into());
    frame::write(&ClientFrame::Move { reference, coordinates: Vec::new(), track, accuracy_m, time: None })
}

/// A recording of where a client went. At its bound every other point between the ends is left out, and it goes on.
struct Recorder {
    limit: usize,
    points: Vec<Point>,
}

impl Recorder {
    fn add(&mut self, [x, y, unix_s]: Point) {
        // Times of a track do not descend, whatever clocks do.
        let unix_s = self.points.last().map_or(unix_s, |last| unix_s.max(last[2]));
        self.points.push([x, y, unix_s]);
        if self.points.len() > self.limit {
            let last = self.points.len() - 1;
            let mut index = 0..;
            self.points.retain(|_| index.next().is_some_and(|index| index % 2 == 0 || index == last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_way_is_thinned_and_keeps_its_ends() {
        let mut recorder = Recorder { limit: 100, points: Vec::new() };
        for n in 0..10_000 {
            recorder.add([f64::from(n), 0.0, f64::from(n)]);
            assert!(recorder.points.len() <= 100, "{n}");
            assert_eq!(recorder.points[0][0], 0.0);
            assert_eq!(recorder.points.last().unwrap()[0], f64::from(n));
        }
        assert!(recorder.points.is_sorted_by(|a, b| a[2] < b[2]));
        recorder.add([1.0, 1.0, 0.0]);
        assert_eq!(*recorder.points.last().unwrap(), [1.0, 1.0, 9_999.0], "a clock that goes back does not");
    }
}
