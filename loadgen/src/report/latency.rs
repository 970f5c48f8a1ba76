//! How long something took: figures to be read, and the whole histogram, so that runs can be put together.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::record::{Percentiles, RecordError};

/// From when an event was due to each of its deliveries.
pub const DELIVERY: &str = "publish to delivery";
/// From when an event was due to the answer that it was taken.
pub const ACCEPTED: &str = "publish to accepted";
/// From when a move was due to the answer that it is in force.
pub const MOVE_IN_FORCE: &str = "move to in force";
/// From when a move was due to the delivery of what it came into reach of.
pub const MOVE_DELIVERY: &str = "move to delivery";
/// From when a connection broke to when its client hears everything again.
pub const RECONNECT: &str = "reconnect to ready";
/// From when something was due to when the load sent it: how late the load itself was. It is in all the others.
pub const LATENESS: &str = "due to sent";

/// So much of a histogram is read. One of three digits, of whatever range, takes half a megabyte.
const HISTOGRAM_BYTES_MAX: usize = 1 << 24;

/// How long something took, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// What.
    pub name: String,
    /// How often.
    pub count: u64,
    /// The shortest; 0 where there was none, and so are the others.
    pub min_us: u64,
    /// On average.
    pub mean_us: f64,
    /// Half of them took no longer.
    pub p50_us: u64,
    /// Nine of ten took no longer.
    pub p90_us: u64,
    /// 99 of a hundred took no longer.
    pub p99_us: u64,
    /// 999 of a thousand took no longer.
    pub p999_us: u64,
    /// 9,999 of ten thousand took no longer.
    pub p9999_us: u64,
    /// The longest.
    pub max_us: u64,
    /// All of it: an HDR histogram of microseconds, format V2, deflated, in base64.
    pub histogram: String,
}

impl Latency {
    /// Sums up a histogram of microseconds.
    #[must_use]
    pub fn new(name: impl Into<String>, histogram: &Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .expect("memory takes all bytes, and no count is above 2^63");
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            name: name.into(),
            count: histogram.len(),
            min_us: histogram.min(),
            mean_us: histogram.mean(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: histogram.max(),
            histogram: STANDARD.encode(bytes),
        }
    }

    /// The histogram again.
    ///
    /// # Errors
    /// When its text is damaged or absurdly large.
    pub fn histogram(&self) -> Result<Histogram<u64>, RecordError> {
        self.decode().map_err(|why| RecordError::Histogram { name: self.name.clone(), why })
    }

    /// Several runs of the same thing as one. None of none.
    ///
    /// # Errors
    /// When a histogram is damaged.
    pub fn merged<'a>(latencies: impl IntoIterator<Item = &'a Self>) -> Result<Option<Self>, RecordError> {
        let mut all: Option<(&Self, Histogram<u64>)> = None;
        for latency in latencies {
            let histogram = latency.histogram()?;
            match &mut all {
                None => all = Some((latency, histogram)),
                Some((_, sum)) => {
                    sum.auto(true);
                    sum.add(histogram).map_err(|error| RecordError::Histogram {
                        name: latency.name.clone(),
                        why: error.to_string(),
                    })?;
                }
            }
        }
        Ok(all.map(|(first, sum)| Self::new(&first.name, &sum)))
    }

    fn decode(&self) -> Result<Histogram<u64>, String> {
        let bytes = STANDARD.decode(&self.histogram).map_err(|error| format!("no base64: {error}"))?;
        // The library makes room for as much as the text says that it holds, so what it says is looked at first.
        let deflated = bytes.get(8..).ok_or("it is cut off")?;
        let mut plain = Vec::new();
        let limit = HISTOGRAM_BYTES_MAX as u64;
        ZlibDecoder::new(deflated).take(limit).read_to_end(&mut plain).map_err(|error| error.to_string())?;
        let length =
            plain.get(4..8).and_then(|length| <[u8; 4]>::try_from(length).ok()).ok_or("it is cut off")?;
        if u32::from_be_bytes(length) as usize > plain.len() {
            return Err("it is cut off".to_owned());
        }
        Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|error| error.to_string())
    }
}

impl Percentiles {
    /// Percentiles of a histogram of microseconds; `None` for an empty one.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let at = |quantile| histogram.value_at_quantile(quantile);
        (!histogram.is_empty()).then(|| Self {
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: histogram.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000, 3).unwrap();
        values.into_iter().for_each(|value| histogram.record(value).unwrap());
        Latency::new(DELIVERY, &histogram)
    }

    #[test]
    fn runs_are_put_together_and_not_averaged() {
        let (quick, slow) = (of((0..990).map(|_| 100)), of((0..1_000).map(|_| 50_000)));
        let both = Latency::merged([&quick, &slow]).unwrap().unwrap();
        assert_eq!((both.count, both.min_us), (1_990, 100));
        assert!(both.p50_us.abs_diff(50_000) < 50 && both.p99_us.abs_diff(50_000) < 50, "{both:?}");
        assert_eq!(both, of((0..1_990).map(|number| if number < 990 { 100 } else { 50_000 })));
        assert_eq!(Latency::merged([]).unwrap(), None);
    }

    #[test]
    fn a_longer_histogram_can_be_added_to_a_shorter() {
        let mut short = Histogram::<u64>::new_with_max(1_000, 3).unwrap();
        short.record(5).unwrap();
        let both = Latency::merged([&Latency::new(DELIVERY, &short), &of([30_000_000])]).unwrap().unwrap();
        assert!(both.count == 2 && both.max_us >= 30_000_000, "{both:?}");
    }

    #[test]
    fn damaged_histograms_are_told_and_take_no_room() {
        let whole = of([1, 2, 3]);
        let bytes = STANDARD.decode(&whole.histogram).unwrap();
        // Says that four gigabytes follow.
        let mut plain = Vec::new();
        ZlibDecoder::new(&bytes[8..]).read_to_end(&mut plain).unwrap();
        plain[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut greedy = flate2::write::ZlibEncoder::new(bytes[..8].to_vec(), flate2::Compression::default());
        std::io::Write::write_all(&mut greedy, &plain).unwrap();
        let greedy = greedy.finish().unwrap();
        for text in ["", "?", "AAAA", &whole.histogram[..20], &STANDARD.encode(greedy)] {
            let damaged = Latency { histogram: text.to_owned(), ..whole.clone() };
            let error = damaged.histogram().unwrap_err().to_string();
            assert!(error.contains("\"publish to delivery\""), "{error}");
        }
    }
}
