//! Who holds which role: the `g` lines, followed from role to role.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How many links from somebody a role may be away. Argo CD follows as many.
const DEEPEST: usize = 10;

/// Roles by who holds them.
#[derive(Debug, Default)]
pub(crate) struct Links(HashMap<Arc<str>, Vec<Arc<str>>>);

// === impl Links ===

impl Links {
    pub(crate) fn add(&mut self, member: Arc<str>, role: Arc<str>) {
        let roles = self.0.entry(member).or_default();
        if !roles.contains(&role) {
            roles.push(role);
        }
    }

    /// Whether a `g` line gives it a role.
    pub(crate) fn has_member(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Those who are given roles, and the roles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &[Arc<str>])> {
        self.0.iter().map(|(member, roles)| (member, &roles[..]))
    }

    fn of(&self, name: &str) -> &[Arc<str>] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Whoever `name` is by these links: itself, its roles, and theirs. Roles that hold each other end nowhere worse.
pub(crate) fn names_of<'a>(name: &'a str, all: &[&'a Links]) -> Vec<&'a str> {
    names_within(name, all, usize::MAX)
}

/// As [`names_of`], but it stops soon after `most` of them.
pub(crate) fn names_within<'a>(name: &'a str, all: &[&'a Links], most: usize) -> Vec<&'a str> {
    let mut names = vec![name];
    let mut seen = HashSet::from([name]);
    let mut level = 0..1;
    for _ in 0..DEEPEST {
        for at in level.clone() {
            let member = names[at];
            for role in all.iter().flat_map(|links| links.of(member)) {
                if seen.insert(role) {
                    names.push(role);
                }
            }
            if names.len() > most {
                return names;
            }
        }
        level = level.end..names.len();
        if level.is_empty() {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{Links, names_of, names_within};

    fn links(pairs: &[(&str, &str)]) -> Links {
        let mut links = Links::default();
        for (member, role) in pairs {
            links.add((*member).into(), (*role).into());
        }
        links
    }

    #[test]
    fn roles_of_roles_are_followed_and_circles_end() {
        let links = links(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "c"), ("c", "d")]);
        assert_eq!(names_of("a", &[&links]), ["a", "b", "c", "d"]);
        assert_eq!(names_of("d", &[&links]), ["d"]);
        assert_eq!(names_of("nobody", &[&links]), ["nobody"]);
    }

    #[test]
    fn links_of_several_policies_lead_into_each_other() {
        let global = links(&[("alice", "team"), ("proj:p:r", "role:x")]);
        let project = links(&[("team", "proj:p:r")]);
        assert_eq!(names_of("alice", &[&global, &project]), ["alice", "team", "proj:p:r", "role:x"]);
    }

    #[test]
    fn the_tenth_link_counts_and_the_eleventh_does_not() {
        let names: Vec<String> = (0..=12).map(|at| at.to_string()).collect();
        let pairs: Vec<(&str, &str)> =
            names.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
        let reached = links(&pairs);
        let reached = names_of("0", &[&reached]).len();
        assert_eq!(reached, 11);
    }

    #[test]
    fn following_stops_at_a_bound() {
        let names: Vec<String> = (0..100).map(|at| at.to_string()).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| ("a", name.as_str())).collect();
        let links = links(&pairs);
        assert!(names_within("a", &[&links], 10).len() > 10);
    }
}
