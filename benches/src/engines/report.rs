//! Markdown tables.

use std::fmt::Write as _;

/// A report that grows section by section, shown as it grows.
#[derive(Debug, Default)]
pub struct Report {
    text: String,
}

impl Report {
    /// Appends a paragraph and prints it.
    pub fn paragraph(&mut self, text: &str) {
        println!("{text}\n");
        self.text.push_str(text);
        self.text.push_str("\n\n");
    }

    /// Appends a table and prints it.
    pub fn table(&mut self, heading: &[&str], rows: &[Vec<String>]) {
        let mut table = format!("| {} |\n|", heading.join(" | "));
        for column in 0..heading.len() {
            table.push_str(if column == 0 { " --- |" } else { " ---: |" });
        }
        for row in rows {
            // Writing to a string never fails.
            let _ = write!(table, "\n| {} |", row.join(" | "));
        }
        self.paragraph(&table);
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Three significant digits.
#[must_use]
pub fn digits(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

/// A count with its thousands apart.
#[must_use]
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.612_4, 8.94, 12.65, 739.4].map(digits), ["0.612", "8.94", "12.7", "739"]);
        assert_eq!([0, 999, 1_000, 2_500_000].map(thousands), ["0", "999", "1,000", "2,500,000"]);
    }
}
