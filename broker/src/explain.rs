//! Explanations as they are told.

use matcher::condition::expression::Truth;
use matcher::event::{Scalar, Value};
use matcher::explain::{AreaPart, ConstraintPart, Explanation, FilterPart, Form, ReachPart};

/// The most characters of a text that are shown.
const CHARACTERS_MAX: usize = 200;
/// The most elements of an array that are shown.
const ELEMENTS_MAX: usize = 20;

/// What the broker knows beside what matching looks at.
pub(crate) struct Circumstances {
    pub(crate) client: String,
    /// The subscription's id, where it has one.
    pub(crate) subscription: Option<String>,
    /// The position that was used.
    pub(crate) position: Option<wire::ExplainedPosition>,
    pub(crate) event: wire::ExplainedEvent,
    /// Whether the subscription is told of transitions.
    pub(crate) transitions: bool,
    /// Of each filter that has one, the place of the event among its nearest.
    pub(crate) nearest: Vec<Option<wire::ExplainedNearest>>,
    /// Whether the event's object is a member now.
    pub(crate) inside: bool,
}

/// The answer. An event comes to a subscription when it matches, is among the nearest where only those count, and is
/// live where only live events are told of.
pub(crate) fn answer(explanation: &Explanation, circumstances: Circumstances) -> wire::Explanation {
    let Circumstances { client, subscription, position, event, transitions, nearest, inside } = circumstances;
    let nearest = nearest.into_iter().chain(std::iter::repeat(None));
    let filters: Vec<_> =
        explanation.filters.iter().zip(nearest).map(|(part, nearest)| filter(part, nearest)).collect();
    let reached = explanation.reach.is_none_or(|reach| reach.holds);
    let taken = filters.iter().any(|filter| filter.matched) && reached;
    let over_at_once = transitions && !event.live;
    let why = if taken && over_at_once {
        "the filters take the event, but it is not live, so that it neither enters nor leaves".to_owned()
    } else if explanation.matched && !taken {
        not_nearest(&filters, event.live)
    } else {
        explanation.why()
    };
    wire::Explanation {
        matched: taken && !over_at_once,
        client,
        subscription,
        position,
        event,
        reach: explanation.reach.as_ref().map(reach),
        filters,
        inside,
        why,
    }
}

/// Why an event that is in the areas and satisfies the conditions comes to nobody.
fn not_nearest(filters: &[wire::ExplainedFilter], live: bool) -> String {
    let seen = filters.iter().filter_map(|filter| filter.area.nearest).find(|nearest| !nearest.holds);
    match seen {
        Some(wire::ExplainedNearest { k, rank: Some(rank), .. }) => {
            format!(
                "the event is number {rank} of the live events that the filter takes, of which only the nearest {k} count"
            )
        }
        Some(_) if live => {
            "only the nearest live events count, and there is nothing to measure from".to_owned()
        }
        _ => "only the nearest live events count, and the event is not live".to_owned(),
    }
}

fn reach(part: &ReachPart) -> wire::ExplainedReach {
    wire::ExplainedReach {
        holds: part.holds,
        reach_m: part.reach_m,
        distance_m: part.distance_m,
        metres_outside: part.outside_m,
    }
}

fn filter(part: &FilterPart, nearest: Option<wire::ExplainedNearest>) -> wire::ExplainedFilter {
    wire::ExplainedFilter {
        matched: part.matched && nearest.is_none_or(|nearest| nearest.holds),
        area: area(&part.area, nearest),
        condition: wire::ExplainedCondition {
            truth: truth(part.condition.truth),
            constraints: part.condition.constraints.iter().map(constraint).collect(),
        },
    }
}

fn area(part: &AreaPart, nearest: Option<wire::ExplainedNearest>) -> wire::ExplainedArea {
    wire::ExplainedArea {
        form: match part.form {
            Form::Everywhere => wire::AreaForm::Everywhere,
            Form::Following => wire::AreaForm::Following,
            Form::Circle => wire::AreaForm::Circle,
            Form::Polygon => wire::AreaForm::Polygon,
            Form::Corridor => wire::AreaForm::Corridor,
        },
        holds: part.holds,
        distance_m: part.distance_m,
        radius_m: part.radius_m,
        metres_outside: part.outside_m,
        nearest,
    }
}

fn constraint(part: &ConstraintPart) -> wire::ExplainedConstraint {
    wire::ExplainedConstraint {
        constraint: part.constraint.clone(),
        attribute: part.attribute.clone(),
        value: part.value.as_ref().map_or(serde_json::Value::Null, value),
        truth: truth(part.truth),
        reason: part.reason.clone(),
    }
}

fn truth(truth: Truth) -> wire::Truth {
    match truth {
        Truth::True => wire::Truth::True,
        Truth::False => wire::Truth::False,
        Truth::Unknown => wire::Truth::Unknown,
    }
}

fn value(value: &Value) -> serde_json::Value {
    match value {
        Value::Scalar(one) => scalar(one),
        Value::Array(elements) => {
            let mut shown: Vec<_> = elements.iter().take(ELEMENTS_MAX).map(scalar).collect();
            if elements.len() > ELEMENTS_MAX {
                shown.push("…".into());
            }
            shown.into()
        }
    }
}

fn scalar(scalar: &Scalar) -> serde_json::Value {
    match scalar {
        // Whole numbers as people write them.
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 is the same in both")]
        Scalar::Number(number) if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 => {
            (*number as i64).into()
        }
        Scalar::Number(number) => (*number).into(),
        Scalar::Text(text) => {
            let text = text.as_str();
            match text.char_indices().nth(CHARACTERS_MAX) {
                Some((end, _)) => format!("{}…", &text[..end]).into(),
                None => text.into(),
            }
        }
        Scalar::Bool(truth) => (*truth).into(),
    }
}

#[cfg(test)]
mod tests {
    use matcher::area::Area;
    use matcher::condition::Condition;
    use matcher::event::Event;
    use matcher::explain::explain;
    use matcher::geo::{Radius, World};
    use matcher::subscription::Filter;
    use serde_json::json;

    use super::*;

    const WORLD: World = World::Planar;

    fn explanation(radius_m: f64, condition: &str) -> Explanation {
        let at = |x: f64| WORLD.position(&[x, 0.0]).unwrap();
        let radius = Radius::new(WORLD, radius_m).unwrap();
        let filter =
            Filter { area: Area::Following(radius), condition: Condition::parse(condition).unwrap() };
        let mut event =
            Event::at(at(50.0)).with("severity", 2.0).with("lanes", Value::Array(vec![Scalar::Number(0.5)]));
        event.reach = Some(radius);
        explain(WORLD, &[filter], Some(&at(0.0)), &event)
    }

    fn circumstances(live: bool) -> Circumstances {
        Circumstances {
            client: "car".to_owned(),
            subscription: Some("s1".to_owned()),
            position: Some(wire::ExplainedPosition {
                coordinates: vec![0.0, 0.0],
                accuracy_m: None,
                age_s: Some(2.5),
            }),
            event: wire::ExplainedEvent { id: Some("e".into()), live, expires_in_s: live.then_some(60.0) },
            transitions: false,
            nearest: Vec::new(),
            inside: false,
        }
    }

    #[test]
    fn the_answer_has_every_part() {
        let answer = answer(&explanation(20.0, "severity >= 3 AND lanes > 1 AND a = 1"), circumstances(true));
        let expected = json!({
            "matched": false, "client": "car", "subscription": "s1",
            "position": {"coordinates": [0.0, 0.0], "accuracy_m": null, "age_s": 2.5},
            "event": {"id": "e", "live": true, "expires_in_s": 60.0},
            "reach": {"holds": false, "reach_m": 20.0, "distance_m": 50.0, "metres_outside": 30.0},
            "filters": [{
                "matched": false,
                "area": {"form": "following", "holds": false, "distance_m": 50.0, "radius_m": 20.0, "metres_outside": 30.0},
                "condition": {"truth": "false", "constraints": [
                    {"constraint": "severity >= 3", "attribute": "severity", "value": 2, "truth": "false",
                     "reason": "severity is 2, which is not >= 3"},
                    {"constraint": "lanes > 1", "attribute": "lanes", "value": [0.5], "truth": "false",
                     "reason": "lanes has 1 element, which is not > 1"},
                    {"constraint": "a = 1", "attribute": "a", "value": null, "truth": "unknown",
                     "reason": "there is no attribute a"},
                ]},
            }],
            "inside": false,
            "why": "the event is 30 m outside of the circle around the client, and severity is 2, which is not >= 3, and lanes has 1 element, which is not > 1, and there is no attribute a",
        });
        assert_eq!(serde_json::to_value(&answer).unwrap(), expected);
        assert_eq!(serde_json::from_value::<wire::Explanation>(expected).unwrap(), answer);
    }

    #[track_caller]
    fn check(circumstances: Circumstances, matched: bool, why: &str) {
        let answer = answer(&explanation(50.0, "severity = 2"), circumstances);
        assert_eq!((answer.matched, answer.why.as_str()), (matched, why));
        assert!(answer.filters[0].area.holds, "the area itself holds it");
    }

    #[test]
    fn only_the_nearest_count() {
        let nearest = |rank, live| Circumstances {
            nearest: vec![Some(wire::ExplainedNearest {
                k: 3,
                rank,
                holds: rank.is_some_and(|rank| rank <= 3),
            })],
            ..circumstances(live)
        };
        check(nearest(Some(3), true), true, "the filter takes the event");
        check(
            nearest(Some(4), true),
            false,
            "the event is number 4 of the live events that the filter takes, of which only the nearest 3 count",
        );
        check(
            nearest(None, true),
            false,
            "only the nearest live events count, and there is nothing to measure from",
        );
        check(nearest(None, false), false, "only the nearest live events count, and the event is not live");
    }

    #[test]
    fn only_live_events_enter_and_leave() {
        check(Circumstances { transitions: true, ..circumstances(true) }, true, "the filter takes the event");
        check(
            Circumstances { transitions: true, ..circumstances(false) },
            false,
            "the filters take the event, but it is not live, so that it neither enters nor leaves",
        );
    }

    #[test]
    fn long_values_are_cut() {
        let long = Value::Scalar(Scalar::Text("ä".repeat(300).as_str().into()));
        assert_eq!(value(&long), json!(format!("{}…", "ä".repeat(200))));
        let many = Value::Array(vec![Scalar::Bool(true); 30]);
        assert_eq!(value(&many).as_array().map(Vec::len), Some(21));
        assert_eq!(value(&Value::Scalar(Scalar::Number(1e300))), json!(1e300));
    }
}
