//! The whole of an explanation in a sentence.

use super::{AreaPart, ConditionPart, Explanation, FilterPart, Form, ReachPart};
use crate::condition::expression::Truth;

/// The most filters, and of each the most constraints, that a sentence goes into.
const REASONS_MAX: usize = 3;

impl Explanation {
    /// Why it matched or not, in a sentence.
    #[must_use]
    pub fn why(&self) -> String {
        let taken = self.filters.iter().position(|filter| filter.matched);
        match (taken, &self.reach) {
            (Some(_), Some(reach)) if !reach.holds => why_out_of_reach(reach),
            (Some(index), _) => match self.filters.as_slice() {
                [_] => "the filter takes the event".to_owned(),
                [_, ..] | [] => format!("filter {index} takes the event"),
            },
            (None, _) => self.why_not(),
        }
    }

    fn why_not(&self) -> String {
        match self.filters.as_slice() {
            [] => "the subscription has no filters".to_owned(),
            [filter] => filter.why_not(),
            filters => {
                let reasons = filters
                    .iter()
                    .enumerate()
                    .map(|(index, filter)| format!("filter {index}: {}", filter.why_not()));
                format!("none of the {} filters takes the event: {}", filters.len(), listed(reasons, "; "))
            }
        }
    }
}

impl FilterPart {
    /// Why it does not take the event.
    fn why_not(&self) -> String {
        let area = (!self.area.holds).then(|| self.area.why_not());
        let condition = (self.condition.truth != Truth::True).then(|| self.condition.why_not());
        area.into_iter().chain(condition).collect::<Vec<_>>().join(", and ")
    }
}

impl AreaPart {
    fn why_not(&self) -> String {
        let Some(outside_m) = self.outside_m else {
            return match self.form {
                Form::Corridor => "no way is known for the corridor to lie along",
                Form::Everywhere | Form::Following | Form::Circle | Form::Polygon => {
                    "the client has told no position, so that the area that follows it is nowhere"
                }
            }
            .to_owned();
        };
        let area = match self.form {
            Form::Everywhere => "the world",
            Form::Following => "the circle around the client",
            Form::Circle => "the circle",
            Form::Polygon => "the polygon",
            Form::Corridor => "the corridor",
        };
        let swapped = self.swapped_distance_m.map(|distance_m| self.swapped(distance_m)).unwrap_or_default();
        format!("the event is {} outside of {area}{swapped}", metres(outside_m))
    }

    fn swapped(&self, distance_m: f64) -> String {
        let then = match self.form {
            Form::Polygon => "inside".to_owned(),
            Form::Everywhere | Form::Following | Form::Circle | Form::Corridor => {
                format!("{} away", metres(distance_m))
            }
        };
        format!(" (with longitude and latitude swapped it would be {then})")
    }
}

impl ConditionPart {
    fn why_not(&self) -> String {
        let failed = self.constraints.iter().filter(|constraint| constraint.truth != Truth::True);
        let reasons = listed(failed.map(|constraint| constraint.reason.clone()), ", and ");
        if reasons.is_empty() { "the condition holds for no event".to_owned() } else { reasons }
    }
}

fn why_out_of_reach(reach: &ReachPart) -> String {
    let outside = metres(reach.outside_m.unwrap_or(0.0));
    format!("the client is {outside} outside of the event's reach of {}", metres(reach.reach_m))
}

/// The first few of some sentences, and how many more there are.
fn listed(items: impl Iterator<Item = String>, separator: &str) -> String {
    let mut items: Vec<String> = items.collect();
    if items.len() > REASONS_MAX {
        let more = items.len() - REASONS_MAX;
        items.truncate(REASONS_MAX);
        items.push(format!("{more} more"));
    }
    items.join(separator)
}

/// A length as people say it.
fn metres(metres: f64) -> String {
    match metres {
        0.0 => "0 m".to_owned(),
        ..0.001 => "less than a millimetre".to_owned(),
        0.001..10.0 => format!("{} m", (metres * 1_000.0).round() / 1_000.0),
        10.0..10_000.0 => format!("{metres:.0} m"),
        10_000.0..100_000.0 => format!("{} km", (metres / 100.0).round() / 10.0),
        _ => format!("{:.0} km", metres / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use crate::area::{Area, Polygon};
    use crate::condition::Condition;
    use crate::event::Event;
    use crate::explain::{Explanation, explain};
    use crate::geo::{Position, Radius, World};
    use crate::subscription::Filter;

    const WORLD: World = World::Planar;

    fn at(x: f64, y: f64) -> Position {
        WORLD.position(&[x, y]).unwrap()
    }

    fn filter(area: Area, condition: &str) -> Filter {
        Filter { area, condition: Condition::parse(condition).unwrap() }
    }

    fn following(metres: f64) -> Area {
        Area::Following(Radius::new(WORLD, metres).unwrap())
    }

    fn explained(filters: &[Filter], client: Option<Position>, reach_m: Option<f64>) -> Explanation {
        let mut event = Event::at(at(30.0, 40.0)).with("severity", 2.0);
        event.reach = reach_m.map(|metres| Radius::new(WORLD, metres).unwrap());
        explain(WORLD, filters, client.as_ref(), &event)
    }

    #[test]
    fn a_circle_gives_distance_radius_and_metres_outside() {
        let explanation =
            explained(&[filter(following(20.0), "severity >= 2")], Some(at(0.0, 0.0)), Some(45.5));
        let [part] = explanation.filters.as_slice() else { panic!("one filter, one part") };
        assert_eq!(
            (part.area.distance_m, part.area.radius_m, part.area.outside_m),
            (Some(50.0), Some(20.0), Some(30.0))
        );
        let reach = explanation.reach.unwrap();
        assert_eq!(
            (reach.holds, reach.reach_m, reach.distance_m, reach.outside_m),
            (false, 45.5, Some(50.0), Some(4.5))
        );
        assert!(!explanation.matched);
    }

    #[track_caller]
    fn check(filters: &[Filter], client: Option<Position>, reach_m: Option<f64>, matched: bool, why: &str) {
        let explanation = explained(filters, client, reach_m);
        assert_eq!((explanation.matched, explanation.why().as_str()), (matched, why));
    }

    #[test]
    fn a_sentence_says_it_all() {
        let here = Some(at(0.0, 0.0));
        let ring = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 0.0]].map(|[x, y]| at(x, y)).to_vec();
        let polygon = Area::Polygon(Box::new(Polygon::new(WORLD, &[vec![ring]]).unwrap()));
        check(&[], here, None, false, "the subscription has no filters");
        check(
            &[filter(following(50.0), "severity = 2")],
            here,
            Some(50.0),
            true,
            "the filter takes the event",
        );
        check(
            &[filter(following(49.75), "severity = 2")],
            here,
            None,
            false,
            "the event is 0.25 m outside of the circle around the client",
        );
        check(
            &[filter(following(50.0), "severity = 2")],
            None,
            None,
            false,
            "the client has told no position, so that the area that follows it is nowhere",
        );
        check(
            &[filter(polygon.clone(), "severity > 2")],
            here,
            None,
            false,
            "the event is 36 m outside of the polygon, and severity is 2, which is not > 2",
        );
        check(&[filter(Area::Everywhere, "FALSE")], here, None, false, "the condition holds for no event");
        check(
            &[filter(Area::Everywhere, "severity = 2")],
            here,
            Some(40.0),
            false,
            "the client is 10 m outside of the event's reach of 40 m",
        );
        check(
            &[filter(Area::Everywhere, "severity = 2")],
            None,
            Some(40.0),
            true,
            "the filter takes the event",
        );
        let two = [filter(polygon, "severity = 2"), filter(following(50.0), "severity = 2")];
        check(&two, here, None, true, "filter 1 takes the event");
        check(
            &two,
            None,
            None,
            false,
            "none of the 2 filters takes the event: filter 0: the event is 36 m outside of the polygon; filter 1: the client has told no position, so that the area that follows it is nowhere",
        );
        check(
            &[filter(Area::Everywhere, "a = 1 OR b = 1 OR c = 1 OR d = 1 OR e = 1")],
            here,
            None,
            false,
            "there is no attribute a, and there is no attribute b, and there is no attribute c, and 2 more",
        );
    }
}
