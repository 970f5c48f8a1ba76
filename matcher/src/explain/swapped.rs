//! Longitude and latitude that have changed places, which nothing but the distance tells where both are in range.

use crate::area::Area;
use crate::geo::{Position, World};

/// How far outside a place has to be before it is asked whether its coordinates were exchanged. Next to the line on which both are the
/// same an exchange moves a place so little that it would often be inside by chance.
const FAR_M: f64 = 10_000.0;

/// The distance to the centre or the corridor's line, 0 in a polygon, that a place so far outside would have with its longitude and latitude
/// exchanged; `None` where it would not be inside then. If the area follows the client, it may as well be the client's that were exchanged:
/// what is near stays near.
pub(super) fn distance_m(
    world: World,
    area: &Area,
    client: Option<&Position>,
    position: &Position,
    outside_m: f64,
) -> Option<f64> {
    // In a plane neither number comes first by custom.
    if world == World::Planar || outside_m < FAR_M {
        return None;
    }
    let exchanged = world.position(&[position.y(), position.x()]).ok()?;
    let is_inside = area.holds(world, client, &exchanged);
    is_inside.then(|| area.distance_m(world, client, &exchanged).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Polygon;
    use crate::condition::Condition;
    use crate::event::Event;
    use crate::explain::explain;
    use crate::geo::Radius;
    use crate::subscription::Filter;

    const MILAN: [f64; 2] = [9.19, 45.46];

    #[track_caller]
    fn check(world: World, area: Area, client: [f64; 2], event: [f64; 2], why: &str) {
        let at = |place: [f64; 2]| world.position(&place).unwrap();
        let filters = [Filter { area, condition: Condition::always() }];
        let explanation = explain(world, &filters, Some(&at(client)), &Event::at(at(event)));
        assert_eq!(explanation.why(), why);
    }

    fn radius(world: World, metres: f64) -> Radius {
        Radius::new(world, metres).unwrap()
    }

    #[test]
    fn an_exchange_that_brings_a_place_inside_is_told() {
        let world = World::Geodetic;
        let following = || Area::Following(radius(world, 500.0));
        let away = "the event is 5312 km outside of the circle around the client";
        let event = format!("{away} (with longitude and latitude swapped it would be 0 m away)");
        check(world, following(), MILAN, [45.46, 9.19], &event);
        check(world, following(), [45.46, 9.19], MILAN, &event);
        let circle = Area::Circle { centre: world.position(&MILAN).unwrap(), radius: radius(world, 500.0) };
        let near = "the event is 5312 km outside of the circle (with longitude and latitude swapped it would be 111 m away)";
        check(world, circle, [0.0, 0.0], [45.461, 9.19], near);
        let ring = [[9.0, 45.0], [10.0, 45.0], [10.0, 46.0], [9.0, 46.0], [9.0, 45.0]];
        let ring = ring.map(|place| world.position(&place).unwrap()).to_vec();
        let polygon = Area::Polygon(Box::new(Polygon::new(world, &[vec![ring]]).unwrap()));
        let explanation = "the event is 5231 km outside of the polygon (with longitude and latitude swapped it would be inside)";
        check(world, polygon, [0.0, 0.0], [45.46, 9.19], explanation);
    }

    #[test]
    fn an_exchange_that_brings_nothing_is_not() {
        let world = World::Geodetic;
        let following = |world| Area::Following(radius(world, 500.0));
        let far = "the event is 5313 km outside of the circle around the client";
        check(world, following(world), [9.19, 45.48], [45.46, 9.19], far);
        // So close to the line on which both are the same it says nothing.
        let near = "the event is 9031 m outside of the circle around the client";
        check(world, following(world), [45.0, 45.07], [45.07, 45.0], near);
        // Of a longitude beyond 90 no latitude can be made.
        let beyond = "the event is 9316 km outside of the circle around the client";
        check(world, following(world), [114.04, 22.63], MILAN, beyond);
        let planar = "the event is 127 km outside of the circle around the client";
        check(World::Planar, following(World::Planar), [90_000.0, 0.0], [0.0, 90_000.0], planar);
    }
}
