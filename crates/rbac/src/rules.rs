//! Lines that were read and compiled, found by whom and what they speak of.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::finding::{Finding, shown};
use crate::line::{self, Compiled, Effect, Entry, Line, LineFault, Origin};
use crate::pattern::{MatchMode, Patterns};
use crate::policy::LoadError;
use crate::request::Resource;
use crate::roles::{Links, names_within};

/// Most roles that one name may come to hold. Following them is done for every subject of every caller.
pub(crate) const MOST_ROLES: usize = 1_000;

/// Most doubts that are told of.
const MOST_WARNINGS: usize = 100;

/// Compiled lines.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    rights: HashMap<Arc<str>, Rights>,
    pub(crate) links: Links,
    /// How many lines there are.
    pub(crate) count: usize,
}

/// The lines that speak of one name, in their order, by resource.
#[derive(Debug, Default)]
struct Rights([Vec<Arc<Line>>; Resource::ALL.len()]);

/// What is to be made of patterns that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadPatterns {
    /// They match nothing (globs), or refuse whom they are about (expressions), as in Argo CD.
    Tolerated,
    /// Nothing is loaded.
    Refused,
}

/// How much one policy may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Lines.
    pub(crate) lines: usize,
    /// What its expressions may take to compile, in microseconds.
    pub(crate) expressions: u64,
}

/// Rules in the making.
#[derive(Debug)]
pub(crate) struct Builder {
    mode: MatchMode,
    bad_patterns: BadPatterns,
    most_lines: usize,
    patterns: Patterns,
    names: HashSet<Arc<str>>,
    rules: Rules,
    warnings: Vec<Finding>,
    /// Where links that lead to a name were seen first.
    linked: Vec<(Arc<str>, Origin)>,
    first: usize,
}

// === impl Rules ===

impl Rules {
    /// The lines that speak of a name and of a resource.
    pub(crate) fn of(&self, name: &str, resource: Resource) -> &[Arc<Line>] {
        self.rights.get(name).map_or(&[], |rights| &rights.0[resource as usize])
    }

    /// Whether there is a line that speaks of the name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.rights.contains_key(name) || self.links.has_member(name)
    }
}

// === impl Builder ===

impl Builder {
    /// Begins with lines that come after `first` others.
    pub(crate) fn new(mode: MatchMode, bad_patterns: BadPatterns, bounds: Bounds, first: usize) -> Builder {
        Builder {
            mode,
            bad_patterns,
            most_lines: bounds.lines,
            patterns: Patterns::new(bounds.expressions),
            names: HashSet::new(),
            rules: Rules::default(),
            warnings: Vec::new(),
            linked: Vec::new(),
            first,
        }
    }

    /// Adds a line as it is written.
    pub(crate) fn add(&mut self, text: &str, origin: Origin) -> Result<(), LoadError> {
        match line::parse(text) {
            Ok(None) => Ok(()),
            Ok(Some(entry)) => self.add_entry(entry, text, origin),
            Err(fault) => Err(refused(text, origin, fault)),
        }
    }

    /// Adds a line that was read.
    pub(crate) fn add_entry(&mut self, entry: Entry, text: &str, origin: Origin) -> Result<(), LoadError> {
        self.rules.count += 1;
        if self.rules.count > self.most_lines {
            return Err(LoadError::Lines { most: self.most_lines });
        }
        match entry {
            Entry::Link { member, role } => {
                let (member, role) = (self.name(member), self.name(role));
                self.linked.push((role.clone(), origin));
                self.rules.links.add(member, role);
            }
            Entry::Right(right) => {
                // The built-in policy is written in globs.
                let mode = if origin == Origin::BuiltIn { MatchMode::Glob } else { self.mode };
                let mut compile =
                    |text: &str| self.patterns.compile(mode, text).map_err(|_| LoadError::Expressions);
                let resource = compile(&right.resource)?;
                let action = compile(&right.action)?;
                let object = compile(&right.object)?;
                let compiled = Compiled { resource, action, object };
                let subject = self.name(right.subject);
                let number = self.first + self.rules.count;
                let line = Line::new(origin, text, subject.clone(), &right.effect, compiled, number);
                self.judge(&line, &right.effect)?;
                let line = Arc::new(line);
                let rights = self.rules.rights.entry(subject).or_default();
                for resource in Resource::ALL.into_iter().filter(|resource| line.speaks_of(*resource)) {
                    rights.0[resource as usize].push(line.clone());
                }
            }
        }
        Ok(())
    }

    /// The rules, and what is doubtful about them. `base` are the rules they are added to.
    pub(crate) fn finish(mut self, base: Option<&Rules>) -> Result<(Rules, Vec<Finding>), LoadError> {
        for (member, _) in self.rules.links.iter() {
            if names_within(member, &[&self.rules.links], MOST_ROLES).len() > MOST_ROLES {
                return Err(LoadError::Roles { name: shown(member) });
            }
        }
        for (role, origin) in std::mem::take(&mut self.linked) {
            if !self.rules.knows(&role) && !base.is_some_and(|base| base.knows(&role)) {
                self.warn(
                    &origin,
                    format!("no line gives {} a right: correct the name or add one", shown(&role)),
                );
            }
        }
        Ok((self.rules, self.warnings))
    }

    /// Tells of a line that does not do what it seems to.
    fn judge(&mut self, line: &Line, effect: &str) -> Result<(), LoadError> {
        for (which, pattern) in line.patterns() {
            let Some(why) = pattern.fault() else { continue };
            if self.bad_patterns == BadPatterns::Refused {
                return Err(refused(line.text(), line.origin().clone(), LineFault::Pattern(why.to_owned())));
            }
            let comes_of_it = match self.mode {
                MatchMode::Glob => "the line matches nothing",
                MatchMode::Regex => "whoever it speaks of is refused",
            };
            self.warn(line.origin(), format!("the {which} cannot be read, so {comes_of_it}: {why}"));
        }
        if line.effect() == Effect::None {
            let effect = shown(effect);
            self.warn(line.origin(), format!("{effect} does nothing: the effect is allow or deny"));
        }
        if !Resource::ALL.into_iter().any(|resource| line.speaks_of(resource)) {
            let message = format!(
                "it speaks of no resource there is: {}",
                Resource::ALL.map(Resource::word).join(", ")
            );
            self.warn(line.origin(), message);
        }
        Ok(())
    }

    fn warn(&mut self, origin: &Origin, message: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(Finding::new(origin, message));
        }
    }

    /// Each name is held once.
    fn name(&mut self, name: String) -> Arc<str> {
        match self.names.get(name.as_str()) {
            Some(held) => held.clone(),
            None => {
                let name: Arc<str> = name.into();
                self.names.insert(name.clone());
                name
            }
        }
    }
}

pub(crate) fn refused(text: &str, origin: Origin, fault: LineFault) -> LoadError {
    LoadError::Line { origin, text: shown(text.trim()), fault }
}
