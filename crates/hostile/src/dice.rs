//! Bytes read as dice.

/// Decisions taken from bytes: equal bytes decide equally, so a failing case repeats and shrinks. When the bytes are
/// used up every roll is zero; generators put their plainest choice there.
#[derive(Debug, Clone)]
pub struct Dice<'a> {
    bytes: &'a [u8],
}

impl<'a> Dice<'a> {
    /// Dice that roll these bytes in order.
    pub fn new(bytes: &'a [u8]) -> Self {
        Dice { bytes }
    }

    /// Whether the bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next byte.
    pub fn roll(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let roll = usize::from(self.roll());
        let roll = if bound > 256 { roll << 8 | usize::from(self.roll()) } else { roll };
        roll % bound
    }

    /// True about once in `times`; never when the bytes are used up.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of several; the first when the bytes are used up.
    pub fn pick<'t, T>(&mut self, choices: &'t [T]) -> &'t T {
        &choices[self.below(choices.len())]
    }

    /// Up to `most` of the next bytes, as they are.
    pub fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(most.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
}
