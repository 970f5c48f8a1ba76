//! For how long what was fetched is fresh.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{AGE, CACHE_CONTROL};

/// The least time, whatever the issuer says, so that nobody asks all the time.
const LEAST: Duration = Duration::from_secs(60);
/// The most, so that a key that was taken back does not count for days.
const MOST: Duration = Duration::from_secs(3_600);
/// The time where the issuer does not say.
const UNSAID: Duration = Duration::from_secs(600);

/// The rest of the time that `Cache-Control` gives an answer (RFC 9111, 4.2), within bounds.
pub(super) fn lifetime(headers: &HeaderMap) -> Duration {
    let texts = |name| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let directives = || texts(CACHE_CONTROL).flat_map(|value| value.split(',')).map(str::trim);
    let must_ask =
        |directive: &str| ["no-store", "no-cache"].iter().any(|no| directive.eq_ignore_ascii_case(no));
    if directives().any(must_ask) {
        return LEAST;
    }
    let max_age = directives().find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        name.eq_ignore_ascii_case("max-age").then(|| value.trim_matches('"').parse::<u64>().ok())?
    });
    let age_s = texts(AGE).find_map(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let rest = max_age.map_or(UNSAID, |max_age_s| Duration::from_secs(max_age_s.saturating_sub(age_s)));
    rest.clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_says_within_bounds() {
        for (control, age, seconds) in [
            ("", "", 600),
            ("max-age=300", "", 300),
            ("public, max-age=19652, must-revalidate, no-transform", "", 3_600),
            ("Max-Age=\"1800\"", "", 1_800),
            ("max-age=1800", "600", 1_200),
            ("max-age=1800", "9999", 60),
            ("max-age=0", "", 60),
            ("no-cache", "", 60),
            ("max-age=1800, no-store", "", 60),
            ("max-age=18446744073709551615", "", 3_600),
            ("max-age=18446744073709551616", "", 600),
            ("max-age=-1", "", 600),
            ("s-maxage=5, private", "x", 600),
        ] {
            let mut headers = HeaderMap::new();
            let pairs = [(CACHE_CONTROL, control), (AGE, age)];
            headers.extend(pairs.map(|(name, value)| (name, value.parse().unwrap())));
            assert_eq!(lifetime(&headers), Duration::from_secs(seconds), "{control:?} {age:?}");
        }
    }
}
