//! Randomness that a seed repeats: one stream per purpose, so that a draw more here changes nothing there.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The stream of a purpose in the world of a seed.
    pub fn new(seed: u64, purpose: &str) -> Dice {
        Dice(mix(seed ^ hash(purpose)))
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below a bound; 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll().checked_rem(bound).unwrap_or(0)
    }

    /// A number from a range, both ends included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Whether it happens, with so many chances of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        let place = usize::try_from(self.below(items.len() as u64)).unwrap_or(0);
        &items[place]
    }
}

/// A number that belongs to a text.
pub fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    mix(text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_a_stream_and_purposes_have_their_own() {
        let draw = |seed, purpose| {
            let mut dice = Dice::new(seed, purpose);
            [dice.roll(), dice.roll(), dice.roll()]
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut dice = Dice::new(7, "bounds");
        let drawn: Vec<u64> = (0..200).map(|_| dice.between(2, 4)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&2), Some(&4)));
        assert_eq!(dice.below(0), 0);
    }
}
