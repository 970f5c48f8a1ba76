//! Towns of taxis and riders, tiny.

use benches::pickups::{Setting, Town};
use matcher::World;

#[test]
fn groups_after_moves_are_those_of_all_pairs() {
    for (world, stands) in [(World::Planar, 0), (World::Geodetic, 0), (World::Geodetic, 60)] {
        let setting = Setting { world, taxis: 100, riders: 100, stands, side_m: 3_000.0, limit: 10 };
        let mut town = Town::new(setting, 7).unwrap();
        let mut took_ns = Vec::new();
        for _ in 0..3 {
            town.second(&mut took_ns).unwrap();
            town.serve(&mut took_ns).unwrap();
            assert!(town.check().unwrap() > 100);
        }
        assert!(took_ns.len() == 603 && town.take_told() > 10);
    }
}
