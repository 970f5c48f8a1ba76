//! The interest of a subscription, in the events or transitions that it is told of: `on`, and for transitions `initial`,
//! `dwell_s` and `hysteresis_m`.

use std::time::Duration;

use matcher::geo::{EARTH_RADIUS_M, PLANAR_LIMIT_M, World};
use matcher::live::{Interest, Transitions};
use wire::Fault;

use super::json::{self, Members};

/// How far the numbers of an interest may go.
#[derive(Clone, Copy)]
pub(crate) struct InterestBounds {
    pub(crate) world: World,
    /// Nothing lives longer (`limits.ttl_s`), so nothing can stay for longer.
    pub(crate) dwell_s: u64,
}

/// Takes the members that say what is told, and gives them back in their normalised form; with faults, anything.
pub(crate) fn take(
    members: &mut Members<'_>,
    bounds: InterestBounds,
    faults: &mut Vec<Fault>,
) -> (Interest, String) {
    let on = members.take("on").map_or(Ok(On::Event), on);
    let initial = initial(members);
    let dwell = metric(members, &bounds.dwell());
    let hysteresis = metric(members, &bounds.hysteresis());
    match (on, initial, dwell, hysteresis) {
        (Ok(On::Transitions { enter, exit }), Ok(initial), Ok(dwell), Ok(hysteresis)) => {
            let transitions = Transitions {
                enter,
                exit,
                initial,
                dwell: Duration::from_secs_f64(dwell.value),
                hysteresis_m: hysteresis.value,
            };
            let on = [enter.then_some(r#""enter""#), exit.then_some(r#""exit""#)];
            let on = on.into_iter().flatten().collect::<Vec<_>>().join(",");
            let (dwell_s, hysteresis_m) = (dwell.text, hysteresis.text);
            let document = format!(
                r#""on":[{on}],"initial":{initial},"dwell_s":{dwell_s},"hysteresis_m":{hysteresis_m}"#
            );
            (Interest::Transitions(transitions), document)
        }
        (on, initial, dwell, hysteresis) => {
            if let Ok(On::Event) = &on {
                let told = |name, value: &Result<Metric<'_>, Fault>| {
                    value.as_ref().is_ok_and(|metric| metric.value != 0.0).then_some(name)
                };
                let initial = initial.as_ref().is_ok_and(|initial| *initial).then_some("initial");
                let idle = [initial, told("dwell_s", &dwell), told("hysteresis_m", &hysteresis)];
                faults.extend(idle.into_iter().flatten().map(|name| Fault {
                    pointer: json::pointer("", name),
                    detail: "is for transitions, which `on` does not ask for".to_owned(),
                }));
            }
            let wrong = [on.err(), initial.err(), dwell.err(), hysteresis.err()];
            faults.extend(wrong.into_iter().flatten());
            (Interest::Events, r#""on":["event"]"#.to_owned())
        }
    }
}

/// The value of `on`.
enum On {
    Event,
    Transitions { enter: bool, exit: bool },
}

fn on(text: &str) -> Result<On, Fault> {
    let expected = r#"["event"], ["enter"], ["exit"] or ["enter", "exit"]"#;
    let told: Vec<String> = json::read(text, "/on", expected)?;
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    match told.as_slice() {
        ["event"] => Ok(On::Event),
        ["enter"] => Ok(On::Transitions { enter: true, exit: false }),
        ["exit"] => Ok(On::Transitions { enter: false, exit: true }),
        ["enter", "exit"] | ["exit", "enter"] => Ok(On::Transitions { enter: true, exit: true }),
        _ => Err(Fault { pointer: "/on".to_owned(), detail: format!("must be {expected}") }),
    }
}

fn initial(members: &mut Members<'_>) -> Result<bool, Fault> {
    match members.take("initial") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Fault { pointer: "/initial".to_owned(), detail: "must be true or false".to_owned() }),
    }
}

/// The numbers that a member may be.
struct Range {
    name: &'static str,
    most: f64,
    /// The range in words.
    expected: String,
}

impl InterestBounds {
    fn dwell(self) -> Range {
        let most = Duration::from_secs(self.dwell_s).as_secs_f64();
        Range { name: "dwell_s", most, expected: format!("0 to {most} seconds (limits.ttl_s)") }
    }

    /// Nothing is further away from anything than the other end of the world.
    fn hysteresis(self) -> Range {
        let most = match self.world {
            World::Geodetic => (std::f64::consts::PI * EARTH_RADIUS_M).ceil(),
            World::Planar => (PLANAR_LIMIT_M * 2.0 * std::f64::consts::SQRT_2).ceil(),
        };
        Range { name: "hysteresis_m", most, expected: format!("0 to {most} metres") }
    }
}

/// A number, and as it was written.
struct Metric<'a> {
    value: f64,
    text: &'a str,
}

fn metric<'a>(members: &mut Members<'a>, range: &Range) -> Result<Metric<'a>, Fault> {
    let Some(text) = members.take(range.name) else { return Ok(Metric { value: 0.0, text: "0" }) };
    let pointer = json::pointer("", range.name);
    let value: f64 = json::read(text, &pointer, &range.expected)?;
    if (0.0..=range.most).contains(&value) {
        Ok(Metric { value, text })
    } else {
        Err(Fault { pointer, detail: format!("must be {}", range.expected) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Interest, String), Vec<Fault>> {
        let bounds = InterestBounds { world: World::Geodetic, dwell_s: 100 };
        let mut members = Members::parse(text).unwrap();
        let mut faults = Vec::new();
        let interest = take(&mut members, bounds, &mut faults);
        assert_eq!(members.rest().count(), 0);
        if faults.is_empty() { Ok(interest) } else { Err(faults) }
    }

    #[test]
    fn transitions_are_told_with_all_that_they_are_about() {
        let plain =
            Transitions { enter: true, exit: true, initial: false, dwell: Duration::ZERO, hysteresis_m: 0.0 };
        let long = Transitions { dwell: Duration::from_secs(100), hysteresis_m: 20_015_114.0, ..plain };
        for (text, expected) in [
            (r#"{"on":["exit","enter"]}"#, plain),
            (r#"{"on":["enter"],"initial":true}"#, Transitions { exit: false, initial: true, ..plain }),
            (r#"{"on":["exit"],"initial":null}"#, Transitions { enter: false, ..plain }),
            (
                r#"{"on":["exit","enter"],"dwell_s":1.5,"hysteresis_m":1e1}"#,
                Transitions { dwell: Duration::from_millis(1_500), hysteresis_m: 10.0, ..plain },
            ),
            (r#"{"on":["exit","enter"],"dwell_s":100,"hysteresis_m":20015114}"#, long),
        ] {
            let (interest, document) = read(text).unwrap();
            assert_eq!(interest, Interest::Transitions(expected), "{text}");
            let again = read(&format!("{{{document}}}"));
            assert_eq!(again, Ok((interest, document)), "{text}");
        }
        let (_, document) = read(r#"{"on":["exit","enter"],"dwell_s":5}"#).unwrap();
        assert_eq!(document, r#""on":["enter","exit"],"initial":false,"dwell_s":5,"hysteresis_m":0"#);
    }

    #[test]
    fn events_are_what_is_told_unless_asked_otherwise() {
        for text in [
            "{}",
            r#"{"on":null,"dwell_s":null}"#,
            r#"{"on":["event"],"initial":false,"dwell_s":0,"hysteresis_m":0.0}"#,
        ] {
            assert_eq!(read(text), Ok((Interest::Events, r#""on":["event"]"#.to_owned())), "{text}");
        }
    }

    #[test]
    fn every_fault_is_told_with_its_pointer() {
        for (text, expected) in [
            (r#"{"on":[]}"#, &["/on"][..]),
            (r#"{"on":"event"}"#, &["/on"]),
            (r#"{"on":["evnt"]}"#, &["/on"]),
            (r#"{"on":["event","event"]}"#, &["/on"]),
            (r#"{"on":["enter","enter"]}"#, &["/on"]),
            (r#"{"on":["event","enter"]}"#, &["/on"]),
            (r#"{"on":["enter","exit","event"]}"#, &["/on"]),
            (r#"{"initial":true}"#, &["/initial"]),
            (r#"{"on":["event"],"dwell_s":1,"hysteresis_m":1}"#, &["/dwell_s", "/hysteresis_m"]),
            (r#"{"on":["enter"],"initial":1}"#, &["/initial"]),
            (r#"{"on":["enter"],"dwell_s":-1,"hysteresis_m":-0.1}"#, &["/dwell_s", "/hysteresis_m"]),
            (r#"{"on":["enter"],"dwell_s":100.1,"hysteresis_m":2.1e7}"#, &["/dwell_s", "/hysteresis_m"]),
            (r#"{"on":["enter"],"dwell_s":1e999,"hysteresis_m":1e999}"#, &["/dwell_s", "/hysteresis_m"]),
            (r#"{"on":["enter"],"dwell_s":"5","hysteresis_m":[]}"#, &["/dwell_s", "/hysteresis_m"]),
            (r#"{"on":7,"initial":7,"dwell_s":-7}"#, &["/on", "/initial", "/dwell_s"]),
        ] {
            let faults = read(text).unwrap_err();
            let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
            assert_eq!(pointers, expected, "{text}: {faults:?}");
        }
    }
}
