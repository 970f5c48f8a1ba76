//! Explanations as documents.

use matcher::condition::expression::Truth;
use matcher::event::{Scalar, Value};
use matcher::explain::{AreaPart, ConstraintPart, FilterPart, Form, ReachPart};
use matcher::live::{Account, FilterAccount, Membership};

use crate::model::tenant;

/// The most characters of a value's texts that are shown.
const CHARACTERS_MAX: usize = 200;
/// The most elements of an array that are shown.
const ELEMENTS_MAX: usize = 20;
/// The most characters that an answer shows of all values, but for [`CHARACTERS_MIN`] of each. Every constraint shows the value that it saw,
/// so that an answer would otherwise be many times as long as the question.
const CHARACTERS_IN_ALL: usize = 10_000;
/// The characters of a value that are shown in any case.
const CHARACTERS_MIN: usize = 20;

/// The broker's knowledge besides what matching looks at.
pub(crate) struct Circumstances {
    pub(crate) client: String,
    /// The subscription's id, where it has one.
    pub(crate) subscription: Option<String>,
    /// The position that was used.
    pub(crate) position: Option<wire::ExplainedPosition>,
    /// Whether there is one that is not shown.
    pub(crate) position_withheld: bool,
    pub(crate) event: wire::ExplainedEvent,
    /// Whether the subscription receives transitions.
    pub(crate) transitions: bool,
    /// The filters whose areas lie along routes.
    pub(crate) routes: Vec<usize>,
    /// Whether the broker knows streets.
    pub(crate) has_streets: bool,
    /// How many constraints stand behind the subscription's own because its client is confined.
    pub(crate) hidden_count: usize,
    /// Whether the event is outside of what the client is confined to.
    pub(crate) is_outside: bool,
}

/// Why an event does not come to a client that is confined.
const OUTSIDE: &str = "the event is outside of what the client's token is confined to (claim nearcast)";

/// The answer.
pub(crate) fn answer(mut account: Account, circumstances: Circumstances) -> wire::Explanation {
    let Circumstances {
        client,
        subscription,
        position,
        position_withheld,
        event,
        transitions,
        routes,
        has_streets,
        hidden_count,
        is_outside,
    } = circumstances;
    for part in &mut account.parts.filters {
        // What the broker has added stands behind what was asked for, the tenant last.
        let constraints = &mut part.condition.constraints;
        constraints.retain(|part| part.attribute != tenant::ATTRIBUTE);
        constraints.truncate(constraints.len().saturating_sub(hidden_count));
    }
    let mut why = if is_outside { OUTSIDE.to_owned() } else { account.why() };
    if !routes.is_empty() && !has_streets {
        why.push_str("; areas along routes hold nothing, for this broker knows no streets (routes.streets)");
    }
    let filters = account.parts.filters.iter().zip(&account.filters);
    let mut values = Values { left: CHARACTERS_IN_ALL };
    wire::Explanation {
        matched: account.matched,
        client,
        subscription,
        position,
        position_withheld,
        event,
        reach: account.parts.reach.as_ref().map(reach),
        filters: filters
            .enumerate()
            .map(|(index, (part, beside))| filter(part, beside, routes.contains(&index), &mut values))
            .collect(),
        inside: transitions && account.membership == Membership::Inside,
        checks: Vec::new(),
        derived: None,
        why,
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

fn filter(
    part: &FilterPart,
    beside: &FilterAccount,
    is_routed: bool,
    values: &mut Values,
) -> wire::ExplainedFilter {
    let constraints = part.condition.constraints.iter().map(|part| constraint(part, values));
    wire::ExplainedFilter {
        matched: beside.matched,
        area: area(&part.area, beside, is_routed),
        condition: wire::ExplainedCondition {
            truth: truth(part.condition.truth),
            constraints: constraints.collect(),
        },
    }
}

fn area(part: &AreaPart, beside: &FilterAccount, is_routed: bool) -> wire::ExplainedArea {
    wire::ExplainedArea {
        form: match part.form {
            Form::Everywhere => wire::AreaForm::Everywhere,
            Form::Following => wire::AreaForm::Following,
            Form::Circle => wire::AreaForm::Circle,
            Form::Polygon => wire::AreaForm::Polygon,
            Form::Corridor if is_routed => wire::AreaForm::Route,
            Form::Corridor => wire::AreaForm::Corridor,
        },
        holds: part.holds,
        distance_m: part.distance_m,
        radius_m: part.radius_m,
        metres_outside: part.outside_m,
        swapped_distance_m: part.swapped_distance_m,
        waits_for_a_better_fix: beside.is_held,
        nearest: beside.nearest.map(|rank| wire::ExplainedNearest {
            k: rank.k.get(),
            rank: rank.rank,
            holds: rank.holds,
        }),
    }
}

fn constraint(part: &ConstraintPart, values: &mut Values) -> wire::ExplainedConstraint {
    wire::ExplainedConstraint {
        constraint: part.constraint.clone(),
        attribute: part.attribute.clone(),
        value: part.value.as_ref().map_or(serde_json::Value::Null, |value| values.show(value)),
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

/// Shows values, and counts how many characters may still be.
struct Values {
    left: usize,
}

impl Values {
    fn show(&mut self, value: &Value) -> serde_json::Value {
        let most = CHARACTERS_MAX.min(self.left.max(CHARACTERS_MIN));
        let mut left = most;
        let shown = match value {
            Value::Scalar(one) => scalar(one, &mut left),
            Value::Array(elements) => {
                let mut shown = Vec::new();
                for element in elements.iter().take(ELEMENTS_MAX) {
                    if left == 0 {
                        break;
                    }
                    shown.push(scalar(element, &mut left));
                }
                if elements.len() > shown.len() {
                    shown.push("…".into());
                }
                shown.into()
            }
        };
        self.left = self.left.saturating_sub(most - left);
        shown
    }
}

/// Shows a scalar, of a text as many characters as are left.
fn scalar(scalar: &Scalar, left: &mut usize) -> serde_json::Value {
    match scalar {
        // Whole numbers as people write them.
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 is the same in both")]
        Scalar::Number(number) if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 => {
            (*number as i64).into()
        }
        Scalar::Number(number) => (*number).into(),
        Scalar::Text(text) => {
            let text = text.as_str();
            match text.char_indices().nth(*left) {
                Some((end, _)) => {
                    *left = 0;
                    format!("{}…", &text[..end]).into()
                }
                None => {
                    *left -= text.chars().count();
                    text.into()
                }
            }
        }
        Scalar::Bool(truth) => (*truth).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use matcher::area::Area;
    use matcher::condition::Condition;
    use matcher::event::Event;
    use matcher::geo::{Radius, World};
    use matcher::live::{Fix, Interest, Prospect, Settings, Tracker, Watch};
    use matcher::subscription::{ClientId, Filter, Subscription};
    use serde_json::json;

    use super::*;

    const WORLD: World = World::Planar;

    /// The explanation for an event that is 50 metres away from the client.
    fn answered(radius_m: f64, condition: &str, k: u32) -> wire::Explanation {
        let at = |x: f64| WORLD.position(&[x, 0.0]).unwrap();
        let radius = Radius::new(WORLD, radius_m).unwrap();
        let condition = Condition::parse(condition).unwrap();
        let filters = vec![Filter { area: Area::Following(radius), condition }];
        let subscription = Subscription { client: ClientId(0), filters };
        let lanes = Value::Array(vec![Scalar::Number(0.5)]);
        let mut event = Event::at(at(50.0)).with("severity", 2.0).with("lanes", lanes);
        event.reach = Some(radius);
        let watch = Watch::new(subscription, vec![NonZeroU32::new(k)], Interest::Events);
        let tracker = Tracker::<()>::new(
            WORLD,
            Settings { members_max: 10, members_per_client: 10, holds_inaccurate: true },
        );
        let fix = Fix { position: at(0.0), accuracy_m: 0.0 };
        let account = tracker.account_of(&watch, Some(&fix), &event, Prospect::Live { object: None });
        let circumstances = Circumstances {
            client: "car".to_owned(),
            subscription: Some("s1".to_owned()),
            position: Some(wire::ExplainedPosition {
                coordinates: vec![0.0, 0.0],
                accuracy_m: None,
                age_s: Some(2.5),
            }),
            position_withheld: false,
            event: wire::ExplainedEvent { id: Some("e".into()), live: true, expires_in_s: Some(60.0) },
            transitions: false,
            routes: Vec::new(),
            has_streets: true,
            hidden_count: 0,
            is_outside: false,
        };
        answer(account, circumstances)
    }

    #[test]
    fn the_answer_has_every_part() {
        let answer = answered(20.0, "severity >= 3 AND lanes > 1 AND a = 1", 0);
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

    #[test]
    fn the_place_among_the_nearest_is_told() {
        let answer = answered(50.0, "severity = 2", 3);
        let nearest = serde_json::to_value(answer.filters[0].area.nearest).unwrap();
        assert!(answer.matched && answer.filters[0].matched);
        assert_eq!(nearest, json!({"k": 3, "rank": 1, "holds": true}));
    }

    #[test]
    fn long_values_are_cut() {
        let text = |count: usize| Scalar::Text("ä".repeat(count).as_str().into());
        let show = |value: Value| Values { left: CHARACTERS_IN_ALL }.show(&value);
        assert_eq!(show(Value::Scalar(text(300))), json!(format!("{}…", "ä".repeat(200))));
        assert_eq!(show(Value::Array(vec![Scalar::Bool(true); 30])).as_array().map(Vec::len), Some(21));
        let texts = show(Value::Array(vec![text(150), text(150), text(150)]));
        assert_eq!(texts, json!(["ä".repeat(150), format!("{}…", "ä".repeat(50)), "…"]));
        assert_eq!(show(Value::Scalar(Scalar::Number(1e300))), json!(1e300));
    }

    #[test]
    fn an_answer_with_many_constraints_does_not_repeat_a_long_value_in_each() {
        let mut values = Values { left: CHARACTERS_IN_ALL };
        let long = Value::Scalar(Scalar::Text("x".repeat(16_000).as_str().into()));
        let shown: usize = (0..2_000).map(|_| values.show(&long).as_str().map_or(0, str::len)).sum();
        assert!(shown <= CHARACTERS_IN_ALL + 2_000 * (CHARACTERS_MIN + "…".len()), "{shown}");
    }
}
