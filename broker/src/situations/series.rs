//! Figures of situations for Prometheus, by kind and name.
//!
//! Tenants choose names, and any number of situations may come and go: a bounded number of names has series. What has gone from
//! a series that is still there stays in its sums, since a sum that shrinks would be taken for a restart.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::AddAssign;
use std::sync::Arc;

use super::Kind;

/// Names that have series of their own. Further situations are added up, without a name.
const NAMES_MAX: usize = 100;

/// The series of a situation.
pub(super) type Label = (Kind, Arc<str>);

/// Sums of one or more situations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) inputs: u64,
    pub(super) evaluations: u64,
    pub(super) published: u64,
    pub(super) dropped: u64,
    pub(super) marked: u64,
    pub(super) passed: u64,
    pub(super) ahead: u64,
    pub(super) restarts: u64,
    pub(super) took_s: f64,
    pub(super) queued: u64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.evaluations += other.evaluations;
        self.published += other.published;
        self.dropped += other.dropped;
        self.marked += other.marked;
        self.passed += other.passed;
        self.ahead += other.ahead;
        self.restarts += other.restarts;
        self.took_s += other.took_s;
        self.queued += other.queued;
    }
}

/// Name, type and meaning of each figure, and where it is among the sums.
type Figure = (&'static str, &'static str, &'static str, fn(&Sums) -> String);

const FIGURES: [Figure; 10] = [
    ("inputs_total", "counter", "Events that came to situations.", |sums| sums.inputs.to_string()),
    ("evaluations_total", "counter", "Evaluations of situations.", |sums| sums.evaluations.to_string()),
    ("published_total", "counter", "Findings that situations published.", |sums| sums.published.to_string()),
    ("dropped_total", "counter", "Findings beyond a bound, and events that situations refused.", |sums| {
        sums.dropped.to_string()
    }),
    ("marked_total", "counter", "Events that situations marked.", |sums| sums.marked.to_string()),
    ("passed_total", "counter", "Events that situations were to hold and that went on before.", |sums| {
        sums.passed.to_string()
    }),
    (
        "ahead_total",
        "counter",
        "Events that situations left out, for they were dated more than a minute ahead.",
        |sums| sums.ahead.to_string(),
    ),
    ("restarts_total", "counter", "Times that situations began anew with nothing in them.", |sums| {
        sums.restarts.to_string()
    }),
    ("evaluation_seconds_total", "counter", "Time of threads that situations took.", |sums| {
        sums.took_s.to_string()
    }),
    ("queued", "gauge", "Events that wait for situations.", |sums| sums.queued.to_string()),
];

/// A series that has situations now, or has had.
#[derive(Debug, Default)]
struct Row {
    count: usize,
    gone: Sums,
}

/// The series that are shown.
#[derive(Debug, Default)]
pub(super) struct Series(BTreeMap<Label, Row>);

impl Series {
    /// The series of a situation that begins.
    pub(super) fn open(&mut self, kind: Kind, name: &Arc<str>) -> Label {
        let mut label = (kind, Arc::clone(name));
        let names_count = self.0.keys().filter(|(_, name)| !name.is_empty()).count();
        if names_count >= NAMES_MAX && !self.0.contains_key(&label) {
            label.1 = "".into();
        }
        self.0.entry(label.clone()).or_default().count += 1;
        label
    }

    /// Takes over what a situation did that ends.
    pub(super) fn close(&mut self, label: &Label, sums: Sums) {
        let Some(row) = self.0.get_mut(label) else { return };
        row.count -= 1;
        row.gone += Sums { queued: 0, ..sums };
        if row.count == 0 && !label.1.is_empty() {
            self.0.remove(label);
        }
    }

    /// Appends all series as Prometheus text: what has gone from them, and what is there.
    pub(super) fn render(&self, there: impl Iterator<Item = (Label, Sums)>, out: &mut String) {
        let mut rows: BTreeMap<_, _> = self.0.iter().map(|(label, row)| (label.clone(), row.gone)).collect();
        for (label, sums) in there {
            *rows.entry(label).or_default() += sums;
        }
        for (name, kind_of_figure, text, of) in FIGURES {
            let name = format!("nearcast_situation_{name}");
            write!(out, "# HELP {name} {text}\n# TYPE {name} {kind_of_figure}\n").expect("a text grows");
            for ((kind, situation), sums) in &rows {
                let (kind, situation, value) = (kind.name(), escaped(situation), of(sums));
                writeln!(out, r#"{name}{{kind="{kind}",name="{situation}"}} {value}"#).expect("a text grows");
            }
            out.push('\n');
        }
    }
}

/// A label's value as Prometheus reads it. Names have no control characters.
fn escaped(name: &str) -> String {
    name.replace('\\', r"\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(series: &Series, there: &[(Label, Sums)]) -> Vec<String> {
        let mut text = String::new();
        series.render(there.iter().cloned(), &mut text);
        let inputs = text.lines().filter(|line| line.starts_with("nearcast_situation_inputs_total{"));
        inputs.map(str::to_owned).collect()
    }

    #[test]
    fn names_beyond_a_bound_are_added_up_and_no_sum_shrinks() {
        let mut series = Series::default();
        let sums = |inputs| Sums { inputs, ..Sums::default() };
        let mut there: Vec<_> = (0..NAMES_MAX)
            .map(|index| (series.open(Kind::Checks, &format!("c{index}").into()), sums(1)))
            .collect();
        let last = series.open(Kind::Checks, &r#"a"\b"#.into());
        let again = series.open(Kind::Checks, &"c7".into());
        assert_eq!((&*last.1, &*again.1), ("", "c7"));
        there.extend([(last.clone(), sums(5)), (again.clone(), sums(2))]);
        let before = shown(&series, &there);
        assert_eq!(before.len(), NAMES_MAX + 1);
        assert_eq!(before[0], r#"nearcast_situation_inputs_total{kind="checks",name=""} 5"#);
        let seventh = r#"nearcast_situation_inputs_total{kind="checks",name="c7"} 3"#.to_owned();
        assert!(before.contains(&seventh), "{before:?}");

        series.close(&last, sums(5));
        series.close(&again, sums(2));
        there.truncate(NAMES_MAX);
        assert_eq!(shown(&series, &there), before);
        // The last of its name takes its series along, and makes room.
        series.close(&there[7].0, sums(1));
        there.remove(7);
        assert!(!shown(&series, &there).contains(&seventh));
        let odd = (series.open(Kind::Checks, &r#"a"\b"#.into()), sums(4));
        let odd = shown(&series, &[odd]).into_iter().find(|line| line.ends_with(" 4"));
        assert_eq!(odd.as_deref(), Some(r#"nearcast_situation_inputs_total{kind="checks",name="a\"\\b"} 4"#));
    }
}
