//! Randomness by number: what is drawn depends on who draws and for the how-many-th time, and not on when or on which thread.

use rand::SeedableRng;
use rand::rngs::SmallRng;

/// A generator for one purpose: `who` draws for the `nth` time.
pub(crate) fn generator(seed: u64, who: u64, nth: u64) -> SmallRng {
    SmallRng::seed_from_u64(mixed(seed, who, nth))
}

/// 64 random bits.
///
/// Source: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014: the finaliser of SplitMix64,
/// once for each input.
pub(crate) fn mixed(seed: u64, who: u64, nth: u64) -> u64 {
    let mix = |state: u64| {
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ (state >> 31)
    };
    mix(mix(mix(seed) ^ who) ^ nth)
}

/// A number from 0 to below 1 out of random bits.
pub(crate) fn unit(bits: u64) -> f32 {
    f32::from(u16::try_from(bits >> 48).unwrap_or(0)) / 65_536.0
}
