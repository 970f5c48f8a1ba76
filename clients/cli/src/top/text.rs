//! A view as text, for output that is no screen.

use std::fmt::Write as _;

use super::view::{CLIENT_COLUMNS, OWN_COLUMNS, Own, View, client_row, level, own_row, rate, seconds, title};
use crate::print::{count, plain};

/// All of it, with an empty line at its end.
pub(super) fn table(view: &View) -> String {
    let mut text = format!("{}\n{}\n", view.headline(), view.state());
    if let Some(note) = &view.note {
        _ = writeln!(text, "{}", plain(note));
    }
    let rates = view.rates.iter().map(|row| vec![title(row.name), rate(row.per_second), count(row.total)]);
    section(&mut text, &["", "per second", "total"], rates.collect());
    let latencies = view.latencies.iter().filter_map(|(name, spread)| {
        let spread = (*spread)?;
        Some(vec![title(name), seconds(spread.p50), seconds(spread.p99), count(spread.count)])
    });
    section(&mut text, &["", "p50", "p99", "of"], latencies.collect());
    let levels = view.levels.iter().map(|(name, value)| vec![title(name), level(name, *value)]);
    section(&mut text, &["", "now"], levels.collect());
    if let Some(clients) = &view.clients {
        section(&mut text, &CLIENT_COLUMNS, clients.iter().map(|client| client_row(client).into()).collect());
    }
    if let Some(Own { client, subscriptions }) = &view.own {
        if let Some(client) = client {
            _ = write!(text, "\n{}:", plain(client));
        }
        section(&mut text, &OWN_COLUMNS, subscriptions.iter().map(|row| own_row(row).into()).collect());
    }
    text.push('\n');
    text
}

/// Rows below a head, columns aligned: the first to the left, numbers to the right.
pub(crate) fn section(text: &mut String, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let head = head.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let width = |column: usize| {
        let all = rows.iter().chain([&head]);
        all.map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    text.push('\n');
    for row in [&head].into_iter().chain(&rows) {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            _ = write!(line, "  {cell:>width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut text = String::new();
        let row = |name: &str, number: &str| vec![name.to_owned(), number.to_owned()];
        section(&mut text, &["", "now"], vec![row("clients", "1,000"), row("é", "7")]);
        assert_eq!(text, "\n           now\nclients  1,000\né            7\n");
        section(&mut text, &["a"], Vec::new());
        assert_eq!(text.lines().count(), 4);
    }
}
