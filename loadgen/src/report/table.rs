//! A table, for a terminal, for Markdown and for a page.

use std::fmt::Write as _;

use quick_xml::escape::escape;

/// Texts in rows below a heading; the first column names the rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) heading: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Whether the last column is words, which begin at the left and may be many.
    has_words: bool,
}

impl Table {
    pub(super) fn new(heading: &[&str]) -> Self {
        Self {
            heading: heading.iter().map(|&text| clean(text)).collect(),
            rows: Vec::new(),
            has_words: false,
        }
    }

    pub(super) fn with_words(heading: &[&str]) -> Self {
        Self { has_words: true, ..Self::new(heading) }
    }

    pub(super) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| clean(&cell.into())).collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns of one width each, the first to the left and the others to the right.
    pub(super) fn to_text(&self) -> String {
        let lines = self.padded(str::to_owned);
        lines.iter().map(|line| line.join("  ").trim_end().to_owned() + "\n").collect()
    }

    /// Markdown that can also be read as it is: columns of one width each, between bars.
    pub(super) fn to_markdown(&self) -> String {
        let escaped = |cell: &str| cell.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
        let mut lines: Vec<String> = self.padded(escaped).iter().map(|line| line.join(" | ")).collect();
        let rules = vec!["---:"; self.heading.len().saturating_sub(1)];
        lines.insert(1, format!("--- | {}", rules.join(" | ")));
        lines.iter().map(|line| format!("| {line} |\n")).collect()
    }

    /// Heading and rows, each column as wide as the longest of its cells.
    fn padded(&self, shown: impl Fn(&str) -> String) -> Vec<Vec<String>> {
        let lines = std::iter::once(&self.heading).chain(&self.rows);
        let mut lines: Vec<Vec<String>> =
            lines.map(|line| line.iter().map(|cell| shown(cell)).collect()).collect();
        let columns = self.heading.len();
        for column in 0..columns {
            let cells = lines.iter().filter_map(|line| line.get(column));
            let width = cells.map(|cell: &String| cell.chars().count()).max().unwrap_or_default();
            let is_left = column == 0 || self.has_words && column + 1 == columns;
            for cell in lines.iter_mut().filter_map(|line| line.get_mut(column)) {
                *cell = if is_left { format!("{cell:width$}") } else { format!("{cell:>width$}") };
            }
        }
        lines
    }

    /// In a box that scrolls by itself where it is too wide.
    pub(super) fn to_html(&self) -> String {
        let class = if self.has_words { " class=\"words\"" } else { "" };
        let mut html = format!("<div class=\"table\"><table{class}>\n<thead><tr>");
        for cell in &self.heading {
            let _ = write!(html, "<th scope=\"col\">{}</th>", escape(cell.as_str()));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let cell = escape(cell.as_str());
                let _ = match column {
                    0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                    _ => write!(html, "<td>{cell}</td>"),
                };
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

/// Without what moves a cursor, ends a row or is no character of XML.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|letter| if is_shown(letter) { letter } else { '\u{fffd}' }).collect()
}

fn is_shown(letter: char) -> bool {
    !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}')
}

/// Makes a text of several lines safe to show, as [`clean`] does one line.
pub(super) fn clean_lines(text: &str) -> String {
    text.lines().map(|line| clean(&line.replace('\t', "    "))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_keeps_to_itself() {
        let mut table = Table::new(&["what", "µs"]);
        table.row(["a|<b>", "1"]);
        table.row(["\u{1b}[31mlong one\n", "1,000"]);
        let lines = ["what               µs", "a|<b>               1", "\u{fffd}[31mlong one\u{fffd}  1,000"];
        assert_eq!(table.to_text().lines().collect::<Vec<_>>(), lines);
        let lines = [
            "| what           |    µs |",
            "| --- | ---: |",
            "| a\\|&lt;b>      |     1 |",
            "| \u{fffd}[31mlong one\u{fffd} | 1,000 |",
        ];
        assert_eq!(table.to_markdown().lines().collect::<Vec<_>>(), lines);
        assert!(table.to_html().contains("<th scope=\"row\">a|&lt;b&gt;</th><td>1</td>"));
    }
}
