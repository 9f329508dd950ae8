//! Lua's patterns: compiled once, matched with a meter running, since a hostile pattern takes exponential time.

use mlua::Error;

use super::limits::Meter;

/// Most captures of a pattern.
const MAX_CAPTURES: usize = 32;
/// Deepest nesting of repetitions and captures while matching.
const MAX_DEPTH: usize = 200;
/// Steps between two looks at the meter.
const STRIDE: u64 = 1024;

/// Why a text is no pattern.
pub(super) struct Malformed(pub(super) &'static str);

/// Why a match was not finished.
pub(super) enum Stopped {
    TooComplex,
    Meter(Error),
}

/// A match.
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) captures: Vec<Capture>,
}

/// What a pair of brackets matched.
#[derive(Clone, Copy)]
pub(super) enum Capture {
    /// From, and up to.
    Span(usize, usize),
    /// The place of `()`.
    Position(usize),
}

/// A compiled pattern.
pub(super) struct Pattern {
    anchored: bool,
    items: Vec<Item>,
    captures: usize,
}

enum Item {
    One(Set),
    Optional(Set),
    /// Any number, but at least this many; as many as possible.
    Many(Set, usize),
    /// Any number, as few as possible.
    Few(Set),
    Open(usize),
    Close(usize),
    Place(usize),
    Again(usize),
    Balanced(u8, u8),
    Frontier(Set),
    End,
}

impl Pattern {
    pub(super) fn new(text: &[u8]) -> Result<Pattern, Malformed> {
        let (anchored, text) = match text {
            [b'^', rest @ ..] => (true, rest),
            text => (false, text),
        };
        let mut compiler = Compiler { text, at: 0, items: Vec::new(), captures: 0, open: Vec::new() };
        while let Some(byte) = compiler.next() {
            compiler.item(byte)?;
        }
        if !compiler.open.is_empty() {
            return Err(Malformed("unfinished capture"));
        }
        Ok(Pattern { anchored, items: compiler.items, captures: compiler.captures })
    }

    pub(super) fn is_anchored(&self) -> bool {
        self.anchored
    }

    /// The first match from a place on.
    pub(super) fn search(&self, text: &[u8], from: usize, meter: &Meter) -> Result<Option<Match>, Stopped> {
        let unset = vec![Capture::Position(0); self.captures];
        let mut run = Run { pattern: self, text, captures: unset, meter, steps: 0 };
        let last = if self.anchored { from } else { text.len() };
        for start in from..=last {
            if let Some(end) = run.from(0, start, MAX_DEPTH)? {
                return Ok(Some(Match { start, end, captures: run.captures }));
            }
        }
        Ok(None)
    }
}

struct Compiler<'a> {
    text: &'a [u8],
    at: usize,
    items: Vec<Item>,
    captures: usize,
    /// Captures that are not closed, innermost last.
    open: Vec<usize>,
}

impl Compiler<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn item(&mut self, byte: u8) -> Result<(), Malformed> {
        let item = match (byte, self.peek()) {
            (b'(', _) => self.capture()?,
            (b')', _) => Item::Close(self.open.pop().ok_or(Malformed("invalid pattern capture"))?),
            (b'$', None) => Item::End,
            (b'%', Some(b'b')) => {
                self.at += 1;
                match (self.next(), self.next()) {
                    (Some(open), Some(close)) => Item::Balanced(open, close),
                    _ => return Err(Malformed("unbalanced pattern")),
                }
            }
            (b'%', Some(b'f')) => {
                self.at += 1;
                if self.next() != Some(b'[') {
                    return Err(Malformed("missing '[' after '%f' in pattern"));
                }
                Item::Frontier(self.set()?)
            }
            (b'%', Some(digit @ b'0'..=b'9')) => {
                self.at += 1;
                let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
                if index >= self.captures || self.open.contains(&index) {
                    return Err(Malformed("invalid capture index"));
                }
                Item::Again(index)
            }
            _ => self.repeated(byte)?,
        };
        self.items.push(item);
        Ok(())
    }

    fn capture(&mut self) -> Result<Item, Malformed> {
        let index = self.captures;
        if index == MAX_CAPTURES {
            return Err(Malformed("too many captures"));
        }
        self.captures += 1;
        if self.peek() == Some(b')') {
            self.at += 1;
            return Ok(Item::Place(index));
        }
        self.open.push(index);
        Ok(Item::Open(index))
    }

    fn repeated(&mut self, byte: u8) -> Result<Item, Malformed> {
        let set = match byte {
            b'.' => Set::all(),
            b'[' => self.set()?,
            b'%' => Set::class(self.next().ok_or(Malformed("malformed pattern (ends with '%')"))?),
            literal => Set::of(literal),
        };
        let item = match self.peek() {
            Some(b'?') => Item::Optional(set),
            Some(b'*') => Item::Many(set, 0),
            Some(b'+') => Item::Many(set, 1),
            Some(b'-') => Item::Few(set),
            _ => return Ok(Item::One(set)),
        };
        self.at += 1;
        Ok(item)
    }

    /// What stands between `[` and `]`.
    fn set(&mut self) -> Result<Set, Malformed> {
        const OPEN: Malformed = Malformed("malformed pattern (missing ']')");
        let mut set = Set::default();
        let negated = self.peek() == Some(b'^');
        self.at += usize::from(negated);
        let first = self.at;
        loop {
            match self.next().ok_or(OPEN)? {
                // A bracket that comes first stands for itself.
                b']' if self.at > first + 1 => break,
                b'%' => set.join(&Set::class(self.next().ok_or(OPEN)?)),
                low => match (self.peek(), self.text.get(self.at + 1)) {
                    (Some(b'-'), Some(high)) if *high != b']' => {
                        self.at += 2;
                        (low..=*high).for_each(|byte| set.add(byte));
                    }
                    _ => set.add(low),
                },
            }
        }
        Ok(if negated { set.inverted() } else { set })
    }
}

struct Run<'a> {
    pattern: &'a Pattern,
    text: &'a [u8],
    captures: Vec<Capture>,
    meter: &'a Meter,
    steps: u64,
}

impl Run<'_> {
    /// Where a match of the items from one on ends, if they match at this place.
    fn from(&mut self, mut item: usize, mut at: usize, depth: usize) -> Result<Option<usize>, Stopped> {
        let depth = depth.checked_sub(1).ok_or(Stopped::TooComplex)?;
        loop {
            self.step(1)?;
            let Some(current) = self.pattern.items.get(item) else { return Ok(Some(at)) };
            match current {
                Item::One(set) if self.has(set, at) => at += 1,
                Item::One(_) => return Ok(None),
                Item::Optional(set) => {
                    if self.has(set, at)
                        && let Some(end) = self.from(item + 1, at + 1, depth)?
                    {
                        return Ok(Some(end));
                    }
                }
                Item::Many(set, least) => return self.many(set, *least, item + 1, at, depth),
                Item::Few(set) => loop {
                    if let Some(end) = self.from(item + 1, at, depth)? {
                        return Ok(Some(end));
                    }
                    if !self.has(set, at) {
                        return Ok(None);
                    }
                    at += 1;
                },
                Item::Open(index) => {
                    return self.capturing(*index, Capture::Span(at, at), item + 1, at, depth);
                }
                Item::Place(index) => {
                    return self.capturing(*index, Capture::Position(at), item + 1, at, depth);
                }
                Item::Close(index) => {
                    let start = match self.captures.get(*index) {
                        Some(Capture::Span(start, _)) => *start,
                        _ => at,
                    };
                    return self.capturing(*index, Capture::Span(start, at), item + 1, at, depth);
                }
                Item::Again(index) => {
                    let Some(Capture::Span(from, to)) = self.captures.get(*index).copied() else {
                        return Ok(None);
                    };
                    self.step((to - from) as u64 / 16)?;
                    if !self.text[at..].starts_with(&self.text[from..to]) {
                        return Ok(None);
                    }
                    at += to - from;
                }
                Item::Balanced(open, close) => match self.balanced(*open, *close, at)? {
                    Some(end) => at = end,
                    None => return Ok(None),
                },
                Item::Frontier(set) => {
                    let before =
                        at.checked_sub(1).and_then(|at| self.text.get(at)).copied().unwrap_or_default();
                    let after = self.text.get(at).copied().unwrap_or_default();
                    if set.holds(before) || !set.holds(after) {
                        return Ok(None);
                    }
                }
                Item::End if at == self.text.len() => {}
                Item::End => return Ok(None),
            }
            item += 1;
        }
    }

    fn many(
        &mut self,
        set: &Set,
        least: usize,
        item: usize,
        at: usize,
        depth: usize,
    ) -> Result<Option<usize>, Stopped> {
        let most = self.text[at..].iter().take_while(|byte| set.holds(**byte)).count();
        self.step(most as u64 / 4)?;
        for taken in (least..=most).rev() {
            if let Some(end) = self.from(item, at + taken, depth)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Goes on with a capture set, and puts back what it was if that leads nowhere.
    fn capturing(
        &mut self,
        index: usize,
        capture: Capture,
        item: usize,
        at: usize,
        depth: usize,
    ) -> Result<Option<usize>, Stopped> {
        let before = std::mem::replace(&mut self.captures[index], capture);
        let end = self.from(item, at, depth)?;
        if end.is_none() {
            self.captures[index] = before;
        }
        Ok(end)
    }

    fn balanced(&mut self, open: u8, close: u8, at: usize) -> Result<Option<usize>, Stopped> {
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut level = 0_usize;
        for (offset, byte) in self.text[at..].iter().enumerate() {
            if offset % 64 == 63 {
                self.step(16)?;
            }
            if *byte == close && level > 0 {
                level -= 1;
                if level == 0 {
                    return Ok(Some(at + offset + 1));
                }
            } else if *byte == open {
                level += 1;
            }
        }
        Ok(None)
    }

    fn has(&self, set: &Set, at: usize) -> bool {
        self.text.get(at).is_some_and(|byte| set.holds(*byte))
    }

    fn step(&mut self, steps: u64) -> Result<(), Stopped> {
        self.steps += steps;
        if self.steps < STRIDE {
            return Ok(());
        }
        self.meter.charge(std::mem::take(&mut self.steps)).map_err(Stopped::Meter)
    }
}

/// A set of bytes.
#[derive(Clone, Default)]
struct Set([u64; 4]);

impl Set {
    fn of(byte: u8) -> Set {
        let mut set = Set::default();
        set.add(byte);
        set
    }

    fn all() -> Set {
        Set([u64::MAX; 4])
    }

    /// `%a` and the like; the capital is everything else. What is no letter of a class stands for itself.
    fn class(letter: u8) -> Set {
        let member: fn(&u8) -> bool = match letter.to_ascii_lowercase() {
            b'a' => u8::is_ascii_alphabetic,
            b'c' => u8::is_ascii_control,
            b'd' => u8::is_ascii_digit,
            b'g' => u8::is_ascii_graphic,
            b'l' => u8::is_ascii_lowercase,
            b'p' => u8::is_ascii_punctuation,
            b's' => |byte| byte.is_ascii_whitespace() || *byte == 0x0b,
            b'u' => u8::is_ascii_uppercase,
            b'w' => u8::is_ascii_alphanumeric,
            b'x' => u8::is_ascii_hexdigit,
            b'z' => |byte| *byte == 0,
            _ => return Set::of(letter),
        };
        let mut set = Set::default();
        (0..=u8::MAX).filter(member).for_each(|byte| set.add(byte));
        if letter.is_ascii_uppercase() { set.inverted() } else { set }
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn join(&mut self, other: &Set) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn inverted(&self) -> Set {
        Set(self.0.map(|bits| !bits))
    }

    fn holds(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }
}
