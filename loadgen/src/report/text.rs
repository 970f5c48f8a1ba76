//! Numbers as people read them.

/// Three significant digits, thousands apart; not more than four decimals.
pub(super) fn digits(number: f64) -> String {
    let decimals = match number.abs() {
        size if !(0.000_05..99.95).contains(&size) => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.099_95 => 3,
        _ => 4,
    };
    let text = format!("{number:.decimals$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |text| ("-", text));
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text, String::new()), |(whole, fraction)| (whole, format!(".{fraction}")));
    let groups: Vec<&str> = whole
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    format!("{sign}{}{fraction}", groups.join(","))
}

/// A count, thousands apart.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// "1 thread", "2 threads".
pub(crate) fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

/// Microseconds in the unit that suits them.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn microseconds(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", digits(us as f64 / 1e3)),
        _ => format!("{} s", digits(us as f64 / 1e6)),
    }
}

/// Bytes in the unit that suits them, by thousands.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", digits(bytes as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", digits(bytes as f64 / 1e6)),
        _ => format!("{} GB", digits(bytes as f64 / 1e9)),
    }
}

/// Seconds as a clock shows them.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a run is shorter than an age")]
pub(super) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3_600, whole / 60 % 60, whole % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A count as a floating-point number, for figures of a few digits.
#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, 0.012_34, 0.612_4, 8.94, 12.65, 739.4, -1_234_567.8].map(digits);
        assert_eq!(numbers, ["0", "0.0123", "0.612", "8.94", "12.7", "739", "-1,234,568"]);
        assert_eq!([0, 999, 1_000, 2_500_000].map(count), ["0", "999", "1,000", "2,500,000"]);
        assert_eq!(
            [0, 999, 1_234, 56_700, 9_999_999].map(microseconds),
            ["0 µs", "999 µs", "1.23 ms", "56.7 ms", "10.0 s"]
        );
        assert_eq!(
            [5, 1_500, 45_000_000, 2_000_000_000].map(bytes),
            ["5 B", "1.50 kB", "45.0 MB", "2.00 GB"]
        );
        assert_eq!([0.0, 61.2, 3_725.0].map(clock), ["0:00", "1:01", "1:02:05"]);
    }
}
