//! Choices that the phone page offers, as the settings have them: lines of a label, a colon and a condition.

use matcher::condition::Condition;
use matcher::condition::text::TEXT_BYTES_MAX;
use serde::Serialize;

/// More than a person reads on a phone.
const INTERESTS_MAX: usize = 50;
/// The longest label, in bytes.
const LABEL_BYTES_MAX: usize = 60;

/// A condition with a name for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Interest {
    label: String,
    #[serde(rename = "where")]
    condition: String,
}

/// Reads the lines of `console.interests`; empty ones are none. All faults are given back.
pub(crate) fn read(text: &str) -> Result<Vec<Interest>, Vec<String>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (mut interests, mut faults) = (Vec::new(), Vec::new());
    for (number, line) in lines {
        match interest(line) {
            Ok(interest) => interests.push(interest),
            Err(fault) => faults.push(format!("console.interests, line {number}: {fault}")),
        }
    }
    if interests.len() > INTERESTS_MAX {
        faults.push(format!("console.interests has more than {INTERESTS_MAX} lines"));
    }
    if faults.is_empty() { Ok(interests) } else { Err(faults) }
}

fn interest(line: &str) -> Result<Interest, String> {
    let (label, condition) =
        line.split_once(':').ok_or("a line is a label, a colon and a condition: Fires: type = 'fire'")?;
    let (label, condition) = (label.trim(), condition.trim());
    if label.is_empty() || label.len() > LABEL_BYTES_MAX || label.contains(char::is_control) {
        return Err(format!("a label has 1 to {LABEL_BYTES_MAX} bytes without control characters"));
    }
    if condition.len() > TEXT_BYTES_MAX {
        return Err(format!("a condition has at most {TEXT_BYTES_MAX} bytes"));
    }
    Condition::parse(condition).map_err(|error| error.to_string())?;
    Ok(Interest { label: label.to_owned(), condition: condition.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_label_and_a_condition() {
        let interests = read("\n Slow traffic : speed < 10\nTexts: name = 'a: b'\n\n").unwrap();
        let read = interests.iter().map(|one| (one.label.as_str(), one.condition.as_str()));
        assert_eq!(read.collect::<Vec<_>>(), [("Slow traffic", "speed < 10"), ("Texts", "name = 'a: b'")]);
        assert_eq!(super::read(""), Ok(Vec::new()));
    }

    #[test]
    fn all_faults_are_told_with_their_lines() {
        let faults = read("Fires: type =\nno condition\n\n: a = 1\nGood: a = 1").unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].starts_with("console.interests, line 1: "), "{faults:?}");
        assert!(faults[1].starts_with("console.interests, line 2: a line is "), "{faults:?}");
        assert!(faults[2].starts_with("console.interests, line 4: a label "), "{faults:?}");
        assert_eq!(read(&"a: b = 1\n".repeat(INTERESTS_MAX + 1)).unwrap_err().len(), 1);
    }
}
