//! git's wildcards, in time proportional to the name: all ways to match are followed side by side, one bit each.

/// A compiled wildcard pattern.
#[derive(Debug)]
pub(crate) struct Wildcard {
    /// For each byte, the steps it carries on to the next one.
    advance: Vec<Vec<u64>>,
    /// For each byte, the steps it may be swallowed by.
    stay: Vec<Vec<u64>>,
    /// Stars: they may match nothing, at any time.
    skip: Vec<u64>,
    /// `**/`: may match nothing, but only if nothing has been swallowed.
    skip_fresh: Vec<u64>,
    steps: usize,
    /// The pattern can match nothing at all.
    hopeless: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// One byte of a set.
    One(Box<[bool; 256]>),
    /// Any bytes, with or without slashes.
    Star { crosses: bool },
    /// Any number of whole directories.
    Directories,
}

impl Wildcard {
    /// Compiles a pattern. With `pathname`, stars and sets do not match slashes and `**` stands for directories.
    pub(crate) fn new(pattern: &[u8], pathname: bool) -> Wildcard {
        let steps = parse(pattern, pathname);
        let hopeless = steps.is_none();
        let steps = steps.unwrap_or_default();
        let words = steps.len() / 64 + 1;
        let mut wildcard = Wildcard {
            advance: vec![vec![0; words]; 256],
            stay: vec![vec![0; words]; 256],
            skip: vec![0; words],
            skip_fresh: vec![0; words],
            steps: steps.len(),
            hopeless,
        };
        for (at, step) in steps.iter().enumerate() {
            let (word, bit) = (at / 64, 1_u64 << (at % 64));
            match step {
                Step::One(set) => {
                    for byte in (0..256).filter(|byte| set[*byte]) {
                        wildcard.advance[byte][word] |= bit;
                    }
                }
                Step::Star { crosses } => {
                    for byte in (0..256).filter(|byte| *crosses || *byte != usize::from(b'/')) {
                        wildcard.stay[byte][word] |= bit;
                    }
                    wildcard.skip[word] |= bit;
                }
                Step::Directories => {
                    for byte in 0..256 {
                        wildcard.stay[byte][word] |= bit;
                    }
                    wildcard.advance[usize::from(b'/')][word] |= bit;
                    wildcard.skip_fresh[word] |= bit;
                }
            }
        }
        wildcard
    }

    /// Whether the whole name matches.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        if self.hopeless {
            return false;
        }
        let words = self.skip.len();
        let mut here = vec![0_u64; words];
        let mut next = vec![0_u64; words];
        here[0] = 1;
        self.close(&mut here, true);
        for byte in name {
            let (advance, stay) = (&self.advance[usize::from(*byte)], &self.stay[usize::from(*byte)]);
            let mut carry = 0;
            for word in 0..words {
                let moved = here[word] & advance[word];
                next[word] = (moved << 1) | carry;
                carry = moved >> 63;
            }
            self.close(&mut next, true);
            let mut alive = 0;
            for word in 0..words {
                here[word] &= stay[word];
                alive |= here[word] | next[word];
            }
            if alive == 0 {
                return false;
            }
            self.close(&mut here, false);
            for word in 0..words {
                here[word] |= next[word];
            }
        }
        here[self.steps / 64] >> (self.steps % 64) & 1 == 1
    }

    /// Adds the steps that are reached by matching nothing.
    fn close(&self, set: &mut [u64], fresh: bool) {
        loop {
            let mut carry = 0;
            let mut grew = false;
            for (word, steps) in set.iter_mut().enumerate() {
                let skippable = if fresh { self.skip[word] | self.skip_fresh[word] } else { self.skip[word] };
                let moved = *steps & skippable;
                let reached = (moved << 1) | carry;
                carry = moved >> 63;
                grew |= reached & !*steps != 0;
                *steps |= reached;
            }
            if !grew {
                return;
            }
        }
    }
}

/// Reads a pattern; `None` when nothing can match it.
fn parse(pattern: &[u8], pathname: bool) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut at = 0;
    while let Some(byte) = pattern.get(at).copied() {
        match byte {
            b'*' => {
                let begin = at;
                while pattern.get(at) == Some(&b'*') {
                    at += 1;
                }
                let whole = begin.checked_sub(1).is_none_or(|before| pattern[before] == b'/');
                let step = match pattern.get(at) {
                    _ if !pathname => Step::Star { crosses: true },
                    Some(b'/') if at - begin > 1 && whole => {
                        at += 1;
                        Step::Directories
                    }
                    None if at - begin > 1 && whole => Step::Star { crosses: true },
                    _ => Step::Star { crosses: false },
                };
                if steps.last() != Some(&step) {
                    steps.push(step);
                }
                continue;
            }
            b'?' => steps.push(one(|byte| !pathname || byte != b'/')),
            b'[' => {
                let set = class(pattern, &mut at)?;
                steps.push(one(|byte| set[usize::from(byte)] && (!pathname || byte != b'/')));
                continue;
            }
            b'\\' => {
                at += 1;
                let escaped = *pattern.get(at)?;
                steps.push(one(|byte| byte == escaped));
            }
            other => steps.push(one(|byte| byte == other)),
        }
        at += 1;
    }
    Some(steps)
}

fn one(fits: impl Fn(u8) -> bool) -> Step {
    let mut set = Box::new([false; 256]);
    for byte in 0..=255 {
        set[usize::from(byte)] = fits(byte);
    }
    Step::One(set)
}

/// Reads a set from its `[`, leaving `at` after its `]`. A `]` that comes first is one of its bytes.
fn class(pattern: &[u8], at: &mut usize) -> Option<[bool; 256]> {
    let mut set = [false; 256];
    *at += 1;
    let negated = matches!(pattern.get(*at), Some(b'!' | b'^'));
    *at += usize::from(negated);
    let mut before: Option<u8> = None;
    let mut first = true;
    loop {
        let byte = *pattern.get(*at)?;
        if byte == b']' && !first {
            *at += 1;
            break;
        }
        first = false;
        let after = pattern.get(*at + 1).copied();
        if byte == b'-' && before.is_some() && after.is_some_and(|after| after != b']') {
            *at += 1;
            let high = escaped(pattern, at)?;
            let low = before.take().unwrap_or(high);
            for byte in low..=high {
                set[usize::from(byte)] = true;
            }
        } else if byte == b'['
            && after == Some(b':')
            && let Some(length) = name_length(&pattern[*at + 2..])
        {
            let fits = named(&pattern[*at + 2..*at + 2 + length])?;
            for byte in (0..=255).filter(fits) {
                set[usize::from(byte)] = true;
            }
            *at += length + 3;
            before = None;
        } else {
            let byte = escaped(pattern, at)?;
            set[usize::from(byte)] = true;
            before = Some(byte);
        }
        *at += 1;
    }
    if negated {
        set.iter_mut().for_each(|bit| *bit = !*bit);
    }
    Some(set)
}

/// The byte at `at`, or the one after a `\` there.
fn escaped(pattern: &[u8], at: &mut usize) -> Option<u8> {
    if pattern.get(*at) == Some(&b'\\') {
        *at += 1;
    }
    pattern.get(*at).copied()
}

/// The length of a name that ends with `:]`.
fn name_length(text: &[u8]) -> Option<usize> {
    let end = text.iter().position(|byte| *byte == b']')?;
    (end > 0 && text[end - 1] == b':').then(|| end - 1)
}

fn named(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}
