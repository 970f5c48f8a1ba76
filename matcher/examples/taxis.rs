//! Ten thousand taxis that each want jobs within a kilometre, and a thousand jobs.

use std::time::Instant;

use nearcast_matcher::{EventBuilder, FilterBuilder, Matcher, World};

const TAXIS: u32 = 10_000;
const JOBS: u32 = 1_000;

/// Places all over a city, twenty kilometres across, always the same.
fn place(number: u32) -> [f64; 2] {
    let part = |factor: u32| f64::from(number.wrapping_mul(factor) % 10_007) / 10_007.0;
    [9.06 + 0.26 * part(7_919), 45.37 + 0.18 * part(104_729)]
}

fn main() -> Result<(), nearcast_matcher::Error> {
    let mut matcher: Matcher<()> = Matcher::new(World::Geodetic);
    let mut taxis = Vec::new();
    for number in 0..TAXIS {
        let taxi = matcher.add_client();
        let seats = 1 + number % 8;
        matcher.subscribe(taxi, [FilterBuilder::around(1_000.0).when(format!("seats <= {seats}"))])?;
        matcher.set_position(taxi, Some(place(number)))?;
        taxis.push(taxi);
    }

    let begun = Instant::now();
    for (number, taxi) in (1..).zip(&taxis) {
        matcher.set_position(*taxi, Some(place(number)))?;
    }
    println!("{TAXIS} moves took {:?}", begun.elapsed());

    let begun = Instant::now();
    let mut found = 0;
    for number in 0..JOBS {
        let job = EventBuilder::at(place(31 * number)).with("seats", f64::from(1 + number % 8));
        found += matcher.publish(&job)?.len();
    }
    println!("{JOBS} jobs went to {found} taxis in {:?}", begun.elapsed());
    Ok(())
}
