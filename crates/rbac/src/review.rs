//! Decisions for one caller, in Argo CD's order.
//!
//! Each subject is judged by itself: a line must allow it and none deny it, among those of whoever the subject is by
//! its roles. The first subject that may decides:
//! 1. the default role, by the policy of the installation;
//! 2. with the roles of the request's project added: the default role, the caller, then each group that a `g` line
//!    gives a role. Groups that only `p` lines name are passed over;
//! 3. the empty subject, by the policy of the installation.
//!
//! Under `policy.strictDeny` a deny is looked for among all of the caller's subjects first, groups without a `g` line
//! included: they are the caller's too.

use std::collections::HashMap;
use std::sync::Arc;

use crate::action::Action;
use crate::caller::{Caller, Credential};
use crate::decision::{Because, Decision, Whose};
use crate::line::{Effect, Line};
use crate::pattern::Match;
use crate::policy::DenyScope;
use crate::project::{Project, TokenApproval};
use crate::request::{Request, Resource};
use crate::rights::Rights;
use crate::roles::{Links, names_of};
use crate::rules::Rules;

/// Most projects whose lines are remembered.
const MOST_REMEMBERED: usize = 10_000;

/// Decisions for one caller. What a list asks for again and again, the same action on another object, costs only the
/// comparison of objects.
#[derive(Debug)]
pub struct Review<'a> {
    rights: &'a Rights,
    caller: &'a Caller,
    asked: Option<(Resource, Action)>,
    /// What was found for the action asked last, by the name of the project, known or not.
    found: HashMap<Box<str>, Subjects<'a>>,
    /// The same for requests in no project.
    found_without: Option<Subjects<'a>>,
}

/// The caller's subjects in their order.
type Subjects<'a> = Vec<Subject<'a>>;

/// One of the caller's subjects, with the lines that speak of it, the resource, the action and, if only of that, the
/// project.
#[derive(Debug)]
struct Subject<'a> {
    whose: Whose,
    lines: Vec<&'a Arc<Line>>,
    /// A line of which that cannot be said.
    unreadable: Option<&'a Arc<Line>>,
    /// Whether it can be allowed something, or only be denied.
    allows: bool,
}

// === impl Review ===

impl<'a> Review<'a> {
    pub(crate) fn new(rights: &'a Rights, caller: &'a Caller) -> Review<'a> {
        Review { rights, caller, asked: None, found: HashMap::new(), found_without: None }
    }

    /// Whether the caller may do what they ask, and why.
    pub fn decide(&mut self, request: &Request) -> Decision {
        let project = request.project().and_then(|name| self.rights.project(name));
        if self.caller.is_program()
            && request.action.approves_deletion()
            && project.is_none_or(|project| project.token_approval == TokenApproval::Refused)
        {
            return Decision::refused(Because::TokenApproves);
        }
        let foreign = self.foreign_token(request);
        let denies = self.rights.policy.deny_scope();
        let subjects = self.subjects(request, project, foreign.is_some());
        let object = request.object.as_str();
        let mut reason = None;
        let mut allowed = None;
        for subject in subjects {
            match subject.judge(object) {
                Verdict::Allowed(line) if subject.allows => {
                    allowed = allowed.or_else(|| Some((subject.whose.clone(), line.clone())));
                    if denies == DenyScope::Subject {
                        break;
                    }
                }
                Verdict::Allowed(_) | Verdict::Nothing => {}
                Verdict::Refused(because) => {
                    if denies == DenyScope::Caller {
                        return Decision::refused(because);
                    }
                    reason = reason.or(Some(because));
                }
            }
        }
        if let Some((whose, line)) = allowed {
            return Decision::allowed(whose, line);
        }
        let unread = || {
            let error = project?.rules.as_ref().err()?.clone();
            Some(Because::ProjectUnread { error })
        };
        Decision::refused(reason.or(foreign).or_else(unread).unwrap_or(Because::Nothing))
    }

    /// As [`Review::decide`], where the right to change or delete an Application covers its resources
    /// (`server.rbac.disableApplicationFineGrainedRBACInheritance: "false"`).
    pub fn decide_inherited(&mut self, request: &Request) -> Decision {
        let whole = request.action.over_the_whole().filter(|_| request.resource == Resource::Applications);
        if let Some(action) = whole {
            let decision = self.decide(&Request { action, ..request.clone() });
            if decision.allowed {
                return decision;
            }
        }
        self.decide(request)
    }

    /// A token of a project says nothing in another, known or not.
    fn foreign_token(&self, request: &Request) -> Option<Because> {
        match (self.caller.credential(), request.project()) {
            (Credential::ProjectToken { project }, Some(asked)) if **project != *asked => {
                Some(Because::ForeignToken { project: project.clone() })
            }
            _ => None,
        }
    }

    /// The caller's subjects for a request, remembered until another action is asked for.
    fn subjects(
        &mut self,
        request: &Request,
        project: Option<&'a Project>,
        is_foreign: bool,
    ) -> &Subjects<'a> {
        let same = |(resource, action): &(Resource, Action)| {
            *resource == request.resource && *action == request.action
        };
        if !self.asked.as_ref().is_some_and(same) || self.found.len() > MOST_REMEMBERED {
            self.asked = Some((request.resource, request.action.clone()));
            self.found.clear();
            self.found_without = None;
        }
        match request.project() {
            Some(name) => {
                if !self.found.contains_key(name) {
                    let subjects = self.find(request, project, is_foreign);
                    self.found.insert(name.into(), subjects);
                }
                &self.found[name]
            }
            None => {
                let found = self.found_without.take();
                let found = found.unwrap_or_else(|| self.find(request, project, is_foreign));
                self.found_without.insert(found)
            }
        }
    }

    fn find(&self, request: &Request, project: Option<&'a Project>, is_foreign: bool) -> Subjects<'a> {
        let (rights, caller) = (self.rights, self.caller);
        let policy = &rights.policy;
        let global: [&Rules; 1] = [&policy.rules];
        let local: Vec<&Rules> =
            global.into_iter().chain(project.and_then(|project| project.rules.as_ref().ok())).collect();
        let by = |rules: &[&'a Rules], name: &'a str, whose: Whose, allows: bool| {
            Subject::find(rules, name, whose, allows, request)
        };
        let mut subjects = Vec::new();
        let default_role = |rules: &[&'a Rules]| {
            let role = policy.default_role()?;
            Some(by(rules, role, Whose::DefaultRole(role.clone()), true))
        };
        subjects.extend(default_role(&global));
        if !is_foreign && let Some(id) = caller.subject() {
            if local.len() > 1 {
                subjects.extend(default_role(&local));
            }
            subjects.push(by(&local, id, Whose::Own(id.into()), true));
            let strict = policy.deny_scope() == DenyScope::Caller;
            for group in caller.group_subjects() {
                let has_role = local.iter().any(|rules| rules.links.has_member(group));
                if has_role || strict {
                    subjects.push(by(&local, group, Whose::Group(group.clone()), has_role));
                }
            }
        }
        subjects.push(by(&global, "", Whose::Everybody, true));
        subjects.retain(|subject| !subject.lines.is_empty() || subject.unreadable.is_some());
        subjects
    }
}

/// What comes of judging one subject.
enum Verdict<'a> {
    Allowed(&'a Arc<Line>),
    Refused(Because),
    Nothing,
}

// === impl Subject ===

impl<'a> Subject<'a> {
    fn find(
        rules: &[&'a Rules],
        name: &'a str,
        whose: Whose,
        allows: bool,
        request: &Request,
    ) -> Subject<'a> {
        let links: Vec<&Links> = rules.iter().map(|rules| &rules.links).collect();
        let mut subject = Subject { whose, lines: Vec::new(), unreadable: None, allows };
        let beginning = request.beginning();
        for name in names_of(name, &links) {
            for line in rules.iter().flat_map(|rules| rules.of(name, request.resource)) {
                subject.take(line, request, &beginning);
            }
        }
        subject.lines.sort_by_key(|line| line.number);
        subject
    }

    /// Keeps a line that speaks of the action, unless it speaks of other projects only. An expression for objects that cannot be read spoils every object.
    fn take(&mut self, line: &'a Arc<Line>, request: &Request, beginning: &str) {
        let action = match line.resource.compare(request.resource.word()) {
            Match::Yes => line.action.compare(request.action.as_str()),
            other => other,
        };
        match action {
            Match::No => {}
            Match::Yes if !line.object.is_unknown() => {
                if line.effect() != Effect::None && line.object.may_begin_with(beginning) {
                    self.lines.push(line);
                }
            }
            Match::Yes | Match::Unknown => self.unreadable = Some(line),
        }
    }

    /// A line must allow it and none deny it.
    fn judge(&self, object: &str) -> Verdict<'a> {
        let mut allowing = None;
        for line in &self.lines {
            if line.object.compare(object) != Match::Yes {
                continue;
            }
            if line.effect() == Effect::Deny {
                let (whose, line) = (self.whose.clone(), (*line).clone());
                return Verdict::Refused(Because::Line { whose, line });
            }
            allowing = allowing.or(Some(*line));
        }
        match (self.unreadable, allowing) {
            (Some(line), _) => {
                Verdict::Refused(Because::Unreadable { whose: self.whose.clone(), line: line.clone() })
            }
            (None, Some(line)) => Verdict::Allowed(line),
            (None, None) => Verdict::Nothing,
        }
    }
}
