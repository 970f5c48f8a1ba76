//! Pieces of Markdown.

use std::fmt::Write as _;

use crate::paper::figures::number;

pub(super) fn section(title: &str, stem: &str, plots: &[&str], text: &str, tables: &str) -> String {
    let mut out = format!("## {title}\n\n{text}\n\n");
    if plots.contains(&stem) {
        // Writing to a string never fails.
        let _ = write!(out, "![{title}]({stem}.png)\n\n([SVG]({stem}.svg))\n\n");
    }
    out.push_str(tables);
    out
}

pub(super) fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n| --- |{}", heading.join(" | "), " ---: |".repeat(heading.len() - 1));
    for row in rows {
        // Writing to a string never fails.
        let _ = write!(text, "\n| {} |", row.join(" | "));
    }
    text
}

/// A figure of the paper with all its digits.
pub(super) fn as_given(figure: f64) -> String {
    if figure < 1_000.0 { figure.to_string() } else { number(figure) }
}

pub(super) fn times(ratio: f64) -> String {
    format!("{}x", number(ratio))
}

/// A ratio, bold where it says that we lose, with our own time beside it.
pub(super) fn lead(ratio: f64, ours_us: Option<f64>) -> String {
    let ratio = if ratio < 1.0 { format!("**{}**", times(ratio)) } else { times(ratio) };
    match ours_us {
        Some(ours) => format!("{ratio} ({})", number(ours)),
        None => ratio,
    }
}
