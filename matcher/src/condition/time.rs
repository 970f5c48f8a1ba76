//! Dates and timestamps: the literals of a condition, and the texts of events that are written as such.

use std::fmt::{Display, Formatter, Result};

use compact_str::CompactString;

const DAYS_BEFORE_MONTH: [u16; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAY_SECONDS: i64 = 86_400;

/// A day of the Gregorian calendar, from the year 0 to 9999. Dates are ordered as days follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// A timestamp as it stands in a condition, in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    text: CompactString,
    /// Seconds since the year 0.
    seconds: i64,
}

/// A moment. The digits of a fraction have no zeros at their end, so that they are ordered as texts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Instant<'a> {
    seconds: i64,
    fraction: &'a str,
}

impl Date {
    /// Reads `YYYY-MM-DD`; `None` for everything else, and for days that the calendar does not have.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let [a, b, c, d, b'-', e, f, b'-', g, h] = text.as_bytes() else { return None };
        let (century, rest) = (two_digits(*a, *b)?, two_digits(*c, *d)?);
        let date = Self {
            year: u16::from(century) * 100 + u16::from(rest),
            month: two_digits(*e, *f)?,
            day: two_digits(*g, *h)?,
        };
        (1..=date.month_days()?).contains(&date.day).then_some(date)
    }

    fn is_leap_year(self) -> bool {
        self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400))
    }

    fn month_days(self) -> Option<u8> {
        match self.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
            4 | 6 | 9 | 11 => Some(30),
            2 => Some(28 + u8::from(self.is_leap_year())),
            _ => None,
        }
    }

    /// Days since the first of the year 0.
    fn days(self) -> i64 {
        let year = i64::from(self.year);
        let leap_days_before = (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
        let leap_day = i64::from(self.is_leap_year() && self.month > 2);
        let before_month = i64::from(DAYS_BEFORE_MONTH[usize::from(self.month) - 1]);
        year * 365 + leap_days_before + before_month + leap_day + i64::from(self.day) - 1
    }
}

impl Display for Date {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Timestamp {
    /// Reads `YYYY-MM-DDThh:mm:ssZ`, with or without a fraction of the second: what CQL2 has for a timestamp.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let instant = Instant::parse(text)?;
        let is_of_cql2 = text.ends_with('Z') && text.as_bytes()[10] == b'T';
        is_of_cql2.then(|| Self { text: CompactString::new(text), seconds: instant.seconds })
    }

    /// The text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn instant(&self) -> Instant<'_> {
        let (fraction, _) = split_fraction(&self.text[SECOND_END..]);
        Instant { seconds: self.seconds, fraction: fraction.unwrap_or_default() }
    }
}

/// Bytes of the longest text that is read as an instant, most of them digits of a fraction: a longer one would cost each condition
/// that asks for it as much as reading all of it.
const LONGEST: usize = 128;

/// Where the fraction of a second begins, or the offset.
const SECOND_END: usize = "YYYY-MM-DDThh:mm:ss".len();

impl<'a> Instant<'a> {
    /// Reads a `date-time` of RFC 3339. A second 60 is the first of the next minute.
    ///
    /// Cost: linear in the text, of which no more is looked at than [`LONGEST`].
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let (whole, rest) = text.split_at_checked(SECOND_END)?;
        let (date, time) = whole.split_at_checked(10)?;
        let [b'T' | b't', a, b, b':', c, d, b':', e, f] = time.as_bytes() else { return None };
        let (hour, minute, second) = (two_digits(*a, *b)?, two_digits(*c, *d)?, two_digits(*e, *f)?);
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (fraction, offset) = split_fraction(rest);
        let seconds = Date::parse(date)?.days() * DAY_SECONDS
            + i64::from(hour) * 3_600
            + i64::from(minute) * 60
            + i64::from(second)
            - offset_seconds(offset)?;
        Some(Self { seconds, fraction: fraction? })
    }
}

/// The digits after the decimal point without zeros at their end, none where there is no point, and what follows; no digits after
/// a point are `None`.
fn split_fraction(rest: &str) -> (Option<&str>, &str) {
    let Some(rest) = rest.strip_prefix('.') else { return (Some(""), rest) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, offset) = rest.split_at(digits);
    ((digits > 0).then(|| fraction.trim_end_matches('0')), offset)
}

/// Seconds that a time with this offset is ahead of UTC.
fn offset_seconds(offset: &str) -> Option<i64> {
    match offset.as_bytes() {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), a, b, b':', c, d] => {
            let (hours, minutes) = (two_digits(*a, *b)?, two_digits(*c, *d)?);
            let seconds = i64::from(hours) * 3_600 + i64::from(minutes) * 60;
            (hours <= 23 && minutes <= 59).then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn two_digits(tens: u8, ones: u8) -> Option<u8> {
    (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| (tens - b'0') * 10 + (ones - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let mut expected = 0;
        for year in 0..=2401 {
            for month in 1..=12 {
                let days = Date { year, month, day: 1 }.month_days().unwrap();
                for day in 1..=days {
                    let text = format!("{year:04}-{month:02}-{day:02}");
                    let date = Date::parse(&text).unwrap();
                    assert_eq!((date.days(), date.to_string()), (expected, text));
                    expected += 1;
                }
                assert_eq!(Date::parse(&format!("{year:04}-{month:02}-{:02}", days + 1)), None);
            }
        }
        // A whole cycle of the calendar has 146,097 days.
        assert_eq!(expected, 6 * 146_097 + 366 + 365);
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "2026-1-01",
            "2026-01-1",
            "20260101",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-02-29",
            "1900-02-29",
            "2026-01-01 ",
            " 2026-01-01",
            "2026-01-01Z",
            "+2026-01-01",
            "2026/01/01",
            "２026-01-01",
            "2026-01-0a",
            "2026-01-01T00:00:00Z",
        ] {
            assert_eq!(Date::parse(text), None, "{text:?}");
        }
        assert!(Date::parse("2000-02-29").is_some());
    }

    #[test]
    fn one_instant_is_written_in_many_ways() {
        let same = [
            "2026-01-01T00:00:00Z",
            "2026-01-01t00:00:00z",
            "2026-01-01T00:00:00.000Z",
            "2026-01-01T01:00:00+01:00",
            "2025-12-31T23:59:00-00:01",
            "2026-01-01T00:00:00-00:00",
            "2025-12-31T23:59:60Z",
            "2026-01-01T23:59:00.0+23:59",
        ];
        for text in same {
            assert_eq!(Instant::parse(text), Instant::parse(same[0]), "{text}");
        }
        let rising = [
            "0000-01-01T00:00:00+23:59",
            "1969-12-31T23:59:59.9Z",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.0000000000000000000000001Z",
            "2026-01-01T00:00:00.05Z",
            "2026-01-01T00:00:00.49999Z",
            "2026-01-01T01:00:00.5+01:00",
            "2026-01-01T00:00:00.51Z",
            "2026-01-01T00:00:01Z",
            "9999-12-31T23:59:59-23:59",
        ];
        for pair in rising.windows(2) {
            assert!(Instant::parse(pair[0]).unwrap() < Instant::parse(pair[1]).unwrap(), "{pair:?}");
        }
    }

    #[test]
    fn other_texts_are_no_timestamps() {
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00,5Z",
            "2026-01-01T00:00:00+0100",
            "2026-01-01T00:00:00+01",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+01:60",
            "2026-01-01T00:00:00Z ",
            "2026-02-30T00:00:00Z",
            "2026-01-01T00:00:00.5",
            "2026-01-01T00:00:0üZ",
            "ü026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z[UTC]",
            "20260101T000000Z",
        ] {
            assert_eq!(Instant::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn literals_are_in_utc() {
        for text in ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.250Z"] {
            let timestamp = Timestamp::parse(text).unwrap();
            assert_eq!((timestamp.as_str(), Some(timestamp.instant())), (text, Instant::parse(text)));
        }
        for text in
            ["2026-01-01T00:00:00+00:00", "2026-01-01t00:00:00Z", "2026-01-01T00:00:00z", "2026-01-01"]
        {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
