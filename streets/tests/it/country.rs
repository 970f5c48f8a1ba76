//! Countries that are made up.

use streets::{Class, Country, CountryArc, Network};

fn arcs(country: &Country, node: u32) -> Vec<CountryArc> {
    let mut arcs = Vec::new();
    country.arcs(node, &mut arcs);
    arcs
}

#[test]
fn a_country_has_as_many_nodes_as_asked_for_and_all_of_them_are_connected() {
    for (nodes, seed) in [(64, 1), (65, 2), (100, 3), (999, 4), (5000, 5), (40_000, 6)] {
        let country = Country::new(nodes, seed);
        let network = Network::country(&country);
        assert_eq!((country.nodes_count(), network.nodes_count()), (nodes, nodes as usize), "{seed}");
        assert_eq!((network.census().nodes_cut, network.census().arcs_cut), (0, 0), "{nodes} nodes");
        assert!(country.cities_count() >= 2);
    }
}

#[test]
fn every_street_goes_both_ways_and_is_the_same_in_both() {
    let country = Country::new(20_000, 7);
    for node in 0..country.nodes_count() {
        let out = arcs(&country, node);
        assert!((1..=8).contains(&out.len()), "{node}: {out:?}");
        for arc in &out {
            let back: Vec<_> = arcs(&country, arc.to).into_iter().filter(|back| back.to == node).collect();
            assert_eq!(back, [CountryArc { to: node, ..*arc }], "{node} to {}", arc.to);
            let ([x, y], [to_x, to_y]) = (country.node_at(node), country.node_at(arc.to));
            let long_m = (to_x - x).hypot(to_y - y);
            assert!((10.0..15_000.0).contains(&long_m), "{node} to {}: {long_m} m", arc.to);
        }
    }
}

#[test]
fn a_country_is_like_a_state() {
    let country = Country::new(1_000_000, 2012);
    let mut classes = [0_usize; 9];
    let mut count = 0;
    for node in 0..country.nodes_count() {
        for arc in arcs(&country, node) {
            classes[arc.class as usize] += 1;
            count += 1;
        }
    }
    let per_node = count as f64 / 1e6;
    assert!((2.3..2.5).contains(&per_node), "{per_node} arcs a node");
    for class in [Class::Motorway, Class::Primary, Class::Secondary, Class::Residential] {
        assert!(classes[class as usize] > 10_000, "{class:?}: {classes:?}");
    }
    assert!(classes[Class::Residential as usize] * 2 > count);
}

#[test]
fn a_seed_gives_the_same_country_and_another_one_another() {
    let places = |seed| {
        let country = Country::new(3000, seed);
        (0..3000).map(|node| country.node_at(node)).collect::<Vec<_>>()
    };
    assert_eq!(places(1), places(1));
    assert_ne!(places(1), places(2));
}
