//! What a receiver says: GGA and RMC sentences of NMEA 0183. Others are passed over.

use std::io::BufRead;

use nmea::sentences::rmc::RmcStatusOfFix;
use nmea::{Error, ParseResult};

use super::records::{Record, Sink};
use super::{Line, Over, read_line, skip_line, text_of};

/// A fix, from one sentence.
struct Fix {
    /// The time of day, so that texts are in the order of times.
    time: Option<String>,
    /// The date; GGA has none.
    date: Option<String>,
    record: Record,
}

/// What is known from sentences so far.
#[derive(Default)]
struct Known {
    /// The last date, and the time of day at which it was said.
    date: Option<(String, String)>,
    /// The time of day of the last fix: a second sentence of the same fix is none of its own.
    last: Option<String>,
    /// A first fix without a date, which the next sentence may know.
    waiting: Option<(u64, usize, Fix)>,
    /// Whether fixes come without dates.
    is_dateless: bool,
}

/// Reads sentences, a line each. A fix is handed over with the first sentence that has it.
pub(super) fn read<T>(reader: &mut impl BufRead, sink: &Sink<'_, T>) {
    let (mut line, mut number, mut known) = (Vec::new(), 0, Known::default());
    loop {
        number += 1;
        let parsed = match read_line(reader, &mut line) {
            Ok(Line::End) => {
                let _ = known.waiting.take().map(|(line, bytes, fix)| sink.give(line, bytes, Ok(fix.record)));
                return;
            }
            Ok(Line::Whole) => text_of(&line).and_then(parse),
            Ok(Line::Begun) => match skip_line(reader) {
                Ok(()) => Err("it is longer than 1 MiB".to_owned()),
                Err(fault) => return sink.give_up(number, fault.to_string()),
            },
            Err(fault) => return sink.give_up(number, fault.to_string()),
        };
        let given = match parsed {
            Ok(None) => Ok(()),
            Ok(Some(fix)) => known.take(number, line.len(), fix, sink),
            Err(why) => sink.give(number, line.len(), Err(why)),
        };
        if given.is_err() {
            return;
        }
    }
}

impl Known {
    fn take<T>(&mut self, line: u64, bytes: usize, mut fix: Fix, sink: &Sink<'_, T>) -> Result<(), Over> {
        if let Some((date, time)) = fix.date.clone().zip(fix.time.clone()) {
            self.date = Some((date, time));
        }
        if let Some((line, bytes, mut first)) = self.waiting.take() {
            self.is_dateless = self.date.is_none();
            first.record.time = self.time_of(&first);
            sink.give(line, bytes, Ok(first.record))?;
        }
        if fix.time.is_some() && fix.time == self.last {
            return Ok(());
        }
        self.last.clone_from(&fix.time);
        fix.record.time = self.time_of(&fix);
        if self.date.is_none() && !self.is_dateless {
            self.waiting = Some((line, bytes, fix));
            return Ok(());
        }
        sink.give(line, bytes, Ok(fix.record))
    }

    /// The time of a fix. Where its time of day is before that of the last date, another day has begun, and the next RMC says which.
    fn time_of(&self, fix: &Fix) -> Option<String> {
        let (date, since) = self.date.as_ref()?;
        let time = fix.time.as_ref().filter(|time| *time >= since || fix.date.is_some())?;
        Some(format!("{date}T{time}Z"))
    }
}

/// A sentence's fix; `None` where it has none.
fn parse(text: &str) -> Result<Option<Fix>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.starts_with(['$', '!']) {
        return Err("it is no NMEA sentence, which begins with $".to_owned());
    }
    // The library knows many sentences and refuses those that it does not.
    let kind = text.get(3..6).unwrap_or_default();
    if !["GGA", "RMC"].contains(&kind) {
        return Ok(None);
    }
    match nmea::parse_str(text) {
        Ok(ParseResult::GGA(data)) => {
            let place = data
                .longitude
                .zip(data.latitude)
                .filter(|_| data.fix_type.is_none_or(nmea::sentences::FixType::is_valid));
            let numbers =
                [("satellites", data.fix_satellites.map(f64::from)), ("hdop", data.hdop.map(shortest))];
            let altitude_m = data.altitude.map(shortest);
            Ok(place.map(|place| {
                fix(place, altitude_m, &numbers, data.fix_time.map(|time| time.to_string()), None)
            }))
        }
        Ok(ParseResult::RMC(data)) => {
            let place =
                data.lon.zip(data.lat).filter(|_| !matches!(data.status_of_fix, RmcStatusOfFix::Invalid));
            let numbers = [
                ("speed_kn", data.speed_over_ground.map(shortest)),
                ("course_deg", data.true_course.map(shortest)),
            ];
            let (time, date) =
                (data.fix_time.map(|time| time.to_string()), data.fix_date.map(|date| date.to_string()));
            Ok(place.map(|place| fix(place, None, &numbers, time, date)))
        }
        Ok(_) => Ok(None),
        Err(Error::ChecksumMismatch { calculated, found }) => {
            Err(format!("its checksum is {found:02X}, and its characters make {calculated:02X}"))
        }
        Err(_) => Err(format!("it is no whole {kind} sentence with a checksum")),
    }
}

fn fix(
    (lon, lat): (f64, f64),
    altitude_m: Option<f64>,
    numbers: &[(&str, Option<f64>)],
    time: Option<String>,
    date: Option<String>,
) -> Fix {
    let known = numbers.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.into())));
    let record = Record { lon, lat, altitude_m, properties: known.collect(), ..Record::default() };
    Fix { time, date, record }
}

/// The shortest number that a sentence may have meant: 46.9, and not 46.900001525878906.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}
