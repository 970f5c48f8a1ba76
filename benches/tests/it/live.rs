//! Towns of live events, tiny.

use benches::live::{Size, Town};

#[test]
fn what_is_known_after_moves_is_what_brute_force_says() {
    let mut town = Town::new(Size { live: 400, subscribers: 200 }, 7).unwrap();
    for _ in 0..300 {
        town.move_subscriber();
        town.transport_subscriber();
        town.move_object();
    }
    assert!(town.take_told() > 300);
    assert!(town.check(200).unwrap() > 100);
}
