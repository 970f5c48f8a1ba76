//! A run, for a terminal.

use super::record::Record;
use super::table::{Table, clean};
use super::text::count;

/// What a run came to, on some thirty lines of a hundred columns: what was lost or wrong first, the verdict last.
#[must_use]
pub fn summary(record: &Record) -> String {
    let mut text = format!("{}\n", clean(&record.title()));
    for sentence in record.circumstances() {
        text.push_str(&format!("{}\n", clean(&sentence)));
    }
    for shortfall in &record.target.shortfalls {
        text.push_str(&format!("not the same: {}\n", clean(shortfall)));
    }
    let mut section = |table: Table| {
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table.to_text());
        }
    };
    section(record.losses());
    section(record.latency_table());
    section(record.throughput());
    section(record.costs());
    section(record.slope_table());
    section(record.milestone_table());
    section(record.trial_table());
    let verdict = record.verdict();
    text.push_str(&format!("\n{}\n", verdict.headline()));
    for sentence in verdict.faults.iter().chain(&verdict.doubts) {
        text.push_str(&format!("  {sentence}\n"));
    }
    if let Some(check) = &record.check {
        text.push_str(&format!(
            "  {} of {} clients checked: {} of {} required deliveries came; {} could be either way\n",
            count(check.clients_checked),
            count(check.clients_count),
            count(check.came),
            count(check.required),
            count(check.ambiguous),
        ));
        if let Some(truth) = check.truth {
            text.push_str(&format!(
                "  by true positions {} were wanted: {} of these were due, and {} others\n",
                count(truth.wanted),
                count(truth.told),
                count(truth.beside),
            ));
        }
        for example in check.examples.iter().take(3) {
            text.push_str(&format!("  for example: {}\n", clean(example)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_summary_is_what_it_was() {
        for (record, name, golden) in [
            (sample::record(), "summary.txt", include_str!("golden/summary.txt")),
            (sample::bad(), "summary_bad.txt", include_str!("golden/summary_bad.txt")),
        ] {
            let text = summary(&record);
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/golden");
                std::fs::write(std::path::Path::new(folder).join(name), &text).unwrap();
                continue;
            }
            assert_eq!(text, golden, "UPDATE_GOLDEN=1 rewrites {name}");
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= 100, "{name} is {widest} columns wide");
        }
    }
}
