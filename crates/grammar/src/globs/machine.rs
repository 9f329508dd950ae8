//! Patterns as instructions, and a run over a name that follows all their branches side by side.

/// A set of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) negated: bool,
    pub(super) ranges: Vec<(char, char)>,
}

impl Class {
    fn holds(&self, char: char) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&char)) != self.negated
    }
}

/// One step of a pattern. Targets of forks and jumps lie ahead, so that no run goes round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Char(char),
    Class(Class),
    /// Any character but a separator.
    One,
    /// Any characters but separators.
    Star,
    /// Any characters.
    Everything,
    /// Doublestar's `**`: any directories when it is a segment of its own, otherwise [`Step::Star`].
    Segments,
    /// A `/` written as such, which [`Step::Segments`] looks for.
    Slash,
    Fork(Vec<usize>),
    Jump(usize),
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    steps: Vec<Step>,
    separators: Vec<char>,
    /// For a machine of doublestar: from which steps the end of a name is a match.
    empty_rests: Option<Vec<bool>>,
}

/// How a step was come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// After anything but a separator.
    Inside,
    /// At the start or after a separator.
    Start,
    /// A star that has taken characters.
    Taking,
    /// `**/` that has taken whole directories.
    Between,
    /// `**/` within a directory.
    Within,
}

const MODES: usize = 5;

type State = (usize, Mode);

impl Machine {
    /// Machine of a language whose stars may match nothing wherever they stand. The last step is [`Step::End`].
    pub(super) fn new(steps: Vec<Step>, separators: &[char]) -> Machine {
        Machine { steps, separators: separators.to_vec(), empty_rests: None }
    }

    /// Machine of doublestar, which says of few rests of a pattern that they match nothing.
    pub(super) fn with_directories(steps: Vec<Step>) -> Machine {
        let mut empty = vec![false; steps.len()];
        for at in (0..steps.len()).rev() {
            empty[at] = match &steps[at] {
                Step::Fork(targets) => targets.iter().any(|target| empty[*target]),
                Step::Jump(target) => empty[*target],
                _ => is_empty_rest(&steps, at),
            };
        }
        Machine { steps, separators: vec!['/'], empty_rests: Some(empty) }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let mut states = Set::new(self.steps.len());
        states.add((0, Mode::Start));
        let mut next = Set::new(self.steps.len());
        for char in name.chars() {
            if self.settle(&mut states) {
                return true;
            }
            next.clear();
            for state in &states.list {
                self.take(*state, char, &mut next);
            }
            if next.list.is_empty() {
                return false;
            }
            std::mem::swap(&mut states, &mut next);
        }
        match &self.empty_rests {
            Some(empty) => states.list.iter().any(|state| self.rest(*state).is_some_and(|rest| empty[rest])),
            None => {
                self.settle(&mut states);
                states.list.iter().any(|(at, _)| self.steps[*at] == Step::End)
            }
        }
    }

    /// Adds what is reached without a character. Says whether all that can follow matches.
    fn settle(&self, states: &mut Set) -> bool {
        let mut done = 0;
        while let Some(&(at, mode)) = states.list.get(done) {
            done += 1;
            match &self.steps[at] {
                Step::Fork(targets) => targets.iter().for_each(|target| states.add((*target, mode))),
                Step::Jump(target) => states.add((*target, mode)),
                Step::Star | Step::Everything => states.add((at + 1, Mode::Inside)),
                Step::Segments => match mode {
                    Mode::Start | Mode::Between => match self.after_segments(at) {
                        After::Slash(after) => states.add((after, Mode::Start)),
                        After::End => return true,
                        After::Other => states.add((at, Mode::Inside)),
                    },
                    Mode::Inside | Mode::Taking => states.add((at + 1, Mode::Inside)),
                    Mode::Within => {}
                },
                Step::Char(_) | Step::Class(_) | Step::One | Step::Slash | Step::End => {}
            }
        }
        false
    }

    fn take(&self, (at, mode): State, char: char, next: &mut Set) {
        let separator = self.separators.contains(&char);
        let after = |char| if char == '/' { Mode::Start } else { Mode::Inside };
        match &self.steps[at] {
            Step::Char(wanted) if *wanted == char => next.add((at + 1, after(char))),
            Step::Slash if char == '/' => next.add((at + 1, Mode::Start)),
            Step::Class(class) if class.holds(char) => next.add((at + 1, Mode::Inside)),
            Step::One if !separator => next.add((at + 1, Mode::Inside)),
            Step::Star if !separator => next.add((at, Mode::Taking)),
            Step::Everything => next.add((at, Mode::Taking)),
            Step::Segments => match mode {
                Mode::Inside | Mode::Taking if !separator => next.add((at, Mode::Taking)),
                Mode::Inside | Mode::Taking => {}
                Mode::Start | Mode::Between | Mode::Within => {
                    if let After::Slash(_) = self.after_segments(at) {
                        next.add((at, if separator { Mode::Between } else { Mode::Within }));
                    }
                }
            },
            _ => {}
        }
    }

    /// The step that is next for a state at the end of the name: a star that has taken something is behind us, and
    /// nothing follows from within a directory.
    fn rest(&self, (at, mode): State) -> Option<usize> {
        match (mode, self.after_segments(at)) {
            (Mode::Taking, _) => Some(at + 1),
            (Mode::Between, After::Slash(after)) => Some(after),
            (Mode::Within, _) => None,
            _ => Some(at),
        }
    }

    fn after_segments(&self, at: usize) -> After {
        match follow(&self.steps, at + 1) {
            Some((at, Step::Slash)) => After::Slash(at + 1),
            Some((_, Step::End)) => After::End,
            _ => After::Other,
        }
    }
}

enum After {
    Slash(usize),
    End,
    Other,
}

/// The step at a place, past the ends of alternatives.
fn follow(steps: &[Step], mut at: usize) -> Option<(usize, &Step)> {
    loop {
        match steps.get(at)? {
            Step::Jump(target) => at = *target,
            step => return Some((at, step)),
        }
    }
}

/// Whether the rest is one of: nothing, `*`, `**`, `/**`, `**/`, `/**/`.
fn is_empty_rest(steps: &[Step], mut at: usize) -> bool {
    let mut rest = Vec::new();
    while let Some((place, step)) = follow(steps, at) {
        if *step == Step::End || rest.len() > 3 {
            break;
        }
        rest.push(step);
        at = place + 1;
    }
    matches!(
        rest[..],
        [] | [Step::Star]
            | [Step::Segments]
            | [Step::Slash, Step::Segments]
            | [Step::Segments, Step::Slash]
            | [Step::Slash, Step::Segments, Step::Slash]
    )
}

/// States in the order they were come to, each once.
struct Set {
    list: Vec<State>,
    present: Vec<bool>,
}

impl Set {
    fn new(steps: usize) -> Set {
        Set { list: Vec::new(), present: vec![false; steps * MODES] }
    }

    fn add(&mut self, state: State) {
        let present = &mut self.present[state.0 * MODES + state.1 as usize];
        if !*present {
            *present = true;
            self.list.push(state);
        }
    }

    fn clear(&mut self) {
        for state in self.list.drain(..) {
            self.present[state.0 * MODES + state.1 as usize] = false;
        }
    }
}

/// Collects steps of a pattern with alternatives, which may nest.
pub(super) struct Builder {
    pub(super) steps: Vec<Step>,
    open: Vec<Alternatives>,
}

struct Alternatives {
    fork: usize,
    branches: Vec<usize>,
    ends: Vec<usize>,
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder { steps: Vec::new(), open: Vec::new() }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn open(&mut self) {
        let fork = self.steps.len();
        self.steps.push(Step::Fork(Vec::new()));
        self.open.push(Alternatives { fork, branches: vec![fork + 1], ends: Vec::new() });
    }

    pub(super) fn next_branch(&mut self) {
        if let Some(alternatives) = self.open.last_mut() {
            alternatives.ends.push(self.steps.len());
            self.steps.push(Step::Jump(0));
            alternatives.branches.push(self.steps.len());
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(mut alternatives) = self.open.pop() {
            alternatives.ends.push(self.steps.len());
            self.steps.push(Step::Jump(0));
            let after = self.steps.len();
            for end in alternatives.ends {
                self.steps[end] = Step::Jump(after);
            }
            self.steps[alternatives.fork] = Step::Fork(alternatives.branches);
        }
    }

    pub(super) fn finish(mut self) -> Vec<Step> {
        while self.is_open() {
            self.close();
        }
        self.steps.push(Step::End);
        // Where braces close together a jump would lead to a jump.
        for at in (0..self.steps.len()).rev() {
            if let Step::Jump(target) = self.steps[at]
                && let Step::Jump(further) = self.steps[target]
            {
                self.steps[at] = Step::Jump(further);
            }
        }
        self.steps
    }
}
