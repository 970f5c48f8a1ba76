//! A run as a page that needs nothing beside it: no script, no font, no picture from elsewhere.

use std::fmt::Write as _;

use quick_xml::escape::escape;

use super::record::Record;
use super::table::{Table, clean, clean_lines};
use super::verdict::Answer;

const STYLE: &str = include_str!("page.css");

/// The page of a run. Readable by day and by night, and on a phone.
///
/// # Errors
/// When a plot cannot be drawn.
pub fn page(record: &Record) -> anyhow::Result<String> {
    let mut body = format!("<h1>{}</h1>\n", text(&record.title()));
    for sentence in record.circumstances() {
        let _ = writeln!(body, "<p class=\"faint\">{}</p>", text(&sentence));
    }
    for shortfall in &record.target.shortfalls {
        let _ = writeln!(body, "<p>Not the same: {}</p>", text(shortfall));
    }
    body.push_str(&verdict(record));
    section(&mut body, "", &[record.losses()]);
    section(&mut body, "Latencies", &[record.latency_table()]);
    section(
        &mut body,
        "Figures",
        &[
            record.throughput(),
            record.costs(),
            record.slope_table(),
            record.check_table(),
            record.milestone_table(),
        ],
    );
    section(&mut body, "Rates that were tried", &[record.trial_table()]);
    body.push_str("<h2>Plots</h2>\n<div class=\"plots\">\n");
    for plot in record.plots() {
        body.push_str(&plot.to_html()?);
    }
    let longest = record.timeline.iter().map(|second| second.span_s).fold(0.0, f64::max);
    body.push_str("</div>\n");
    if longest >= 2.0 {
        let _ = writeln!(
            body,
            "<p class=\"faint\">A point is of up to {longest:.0} s: counts are averages of it, latencies and what was scraped \
             the worst of its seconds.</p>"
        );
    }
    let toml = clean_lines(&record.scenario.toml);
    let _ = writeln!(
        body,
        "<details><summary>The scenario as it was run</summary>\n<pre>{}</pre></details>",
        escape(toml.as_str())
    );
    Ok(document(&record.title(), &body))
}

/// A whole document around what is in its body.
pub(super) fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        text(title)
    )
}

/// A text from outside.
pub(super) fn text(text: &str) -> String {
    escape(clean(text).as_str()).into_owned()
}

/// Tables below a heading; nothing where there is nothing in them.
pub(super) fn section(body: &mut String, heading: &str, tables: &[Table]) {
    if tables.iter().all(Table::is_empty) {
        return;
    }
    if !heading.is_empty() {
        let _ = writeln!(body, "<h2>{heading}</h2>");
    }
    body.push_str("<div class=\"tables\">\n");
    for table in tables.iter().filter(|table| !table.is_empty()) {
        body.push_str(&table.to_html());
    }
    body.push_str("</div>\n");
}

fn verdict(record: &Record) -> String {
    let verdict = record.verdict();
    let class = match verdict.answer {
        Answer::Wrong | Answer::Incomplete => "bad",
        Answer::Right if verdict.is_of_target() => "good",
        Answer::Right | Answer::Unchecked => "",
    };
    let mut html = format!("<div class=\"verdict {class}\"><strong>{}</strong>\n<ul>", verdict.headline());
    let examples = record.check.iter().flat_map(|check| &check.examples);
    let examples = examples.map(|example| format!("for example: {example}"));
    for sentence in verdict.faults.into_iter().chain(verdict.doubts).chain(examples) {
        let _ = writeln!(html, "<li>{}</li>", text(&sentence));
    }
    html.push_str("</ul></div>\n");
    html
}

#[cfg(test)]
pub(super) mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::super::{Timeline, sample};
    use super::*;

    /// Reads a page strictly, as XML; returns its texts and the names of its elements.
    pub(in super::super) fn read(page: &str) -> (String, Vec<String>) {
        let mut reader = Reader::from_str(page);
        reader.config_mut().check_comments = true;
        let (mut texts, mut names) = (String::new(), Vec::new());
        loop {
            match reader.read_event().unwrap_or_else(|error| panic!("{error} at {}", reader.error_position()))
            {
                Event::Start(start) | Event::Empty(start) => {
                    start.attributes().for_each(|attribute| drop(attribute.unwrap()));
                    names.push(start.name().as_ref().to_owned());
                }
                Event::Text(text) => texts.push_str(&text),
                Event::GeneralRef(name) => {
                    texts.push('&');
                    texts.push_str(&name);
                    texts.push(';');
                }
                Event::Eof => return (texts, names),
                Event::End(_)
                | Event::CData(_)
                | Event::Comment(_)
                | Event::Decl(_)
                | Event::PI(_)
                | Event::DocType(_) => {}
            }
        }
    }

    #[test]
    fn a_page_is_well_formed_and_stands_alone() {
        let page = page(&sample::record()).unwrap();
        let (texts, names) = read(&page);
        for part in
            ["rush hour on nearcast 0.1.0", "right; the load kept up", "p99.9", "queue depth", "MB an hour"]
        {
            assert!(texts.contains(part), "{part}");
        }
        let plots = names.iter().filter(|name| *name == "figure").count();
        assert!(plots >= 8, "{plots} plots");
        assert!(!names.iter().any(|name| matches!(name.as_str(), "script" | "img" | "link" | "iframe")));
        let outside = page.replace("http://www.w3.org/2000/svg", "");
        for part in ["http:", "https:", "url(", "@import", "src="] {
            assert!(!outside.contains(part), "{part}");
        }
    }

    #[test]
    fn names_from_files_stay_texts() {
        let page = page(&sample::bad()).unwrap();
        let (texts, names) = read(&page);
        for forbidden in ["script", "b", "i", "u", "g", "p99"] {
            // An SVG has groups, which plots here do without.
            assert!(!names.iter().any(|name| name == forbidden), "{forbidden}");
        }
        assert!(texts.contains("&lt;script&gt;alert") && texts.contains("&lt;g&gt;odd"), "{texts}");
        assert!(page.contains("WRONG") && !page.contains(['\u{7}', '\u{1b}']));
        assert_eq!(page.matches("</body>").count(), 1);
    }

    #[test]
    fn a_run_of_which_nothing_is_known_has_a_page() {
        let mut record = sample::record();
        (record.timeline, record.latencies, record.check) = (Vec::new(), Vec::new(), None);
        (record.measured_s, record.slopes) = (0.0, Default::default());
        let (texts, _) = read(&page(&record).unwrap());
        assert!(texts.contains("not checked"), "{texts}");
    }

    #[test]
    fn absurd_numbers_are_shown_like_others() {
        let mut text = sample::bad().to_json().unwrap();
        for (number, absurd) in [
            ("\"at_s\": 30.0", "\"at_s\": 1.7e308"),
            ("\"span_s\": 1.0", "\"span_s\": -1.7e308"),
            ("\"deliveries\": 720000", "\"deliveries\": 18446744073709551615"),
            ("\"reset\": 3", "\"reset\": 18446744073709551615"),
            ("\"busiest_thread_cores\": 0.4,", "\"busiest_thread_cores\": 1.7e308,"),
            ("\"rate\": 4000.0", "\"rate\": -1.7e308"),
            ("\"measured_s\": 60.0", "\"measured_s\": 1e-300"),
            ("\"cores\": 4", "\"cores\": 0"),
        ] {
            assert!(text.contains(number), "{number}");
            text = text.replace(number, absurd);
        }
        let record = Record::from_json(&text).unwrap();
        read(&page(&record).unwrap());
        read(&super::super::compare(&[record.clone(), sample::record()]).unwrap().html);
        assert!(super::super::summary(&record).contains("WRONG"));
    }

    #[test]
    fn a_day_has_a_page_that_is_not_too_large() {
        let mut record = sample::record();
        let mut timeline = Timeline::default();
        for at_s in 1..=86_400_u32 {
            let second = record.timeline[at_s as usize % record.timeline.len()].clone();
            timeline.push(super::super::record::Second { at_s: f64::from(at_s), ..second });
        }
        record.timeline = timeline.into_rows();
        let page = page(&record).unwrap();
        assert!(read(&page).0.contains("hours since the start"));
        assert!(page.len() < 1 << 20, "{} bytes", page.len());
    }
}
