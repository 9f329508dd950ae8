//! Whether somebody's rules already grant what other rules would: nobody may hand out what they do not have.

use crate::rule::{ALL, Rule, covers_path};

/// The most single rights that are looked at one by one. Who asks for more must have them by one rule.
const MOST: usize = 100_000;

/// The rules among `wanted` that `held` do not grant in full.
pub fn uncovered<'w>(held: &[&Rule], wanted: &'w [Rule]) -> Vec<&'w Rule> {
    wanted.iter().filter(|rule| !is_covered(held, rule)).collect()
}

fn is_covered(held: &[&Rule], wanted: &Rule) -> bool {
    if held.iter().any(|rule| covers(rule, wanted)) {
        return true;
    }
    let several = |list: &[String]| list.len().max(1);
    let lists = [&wanted.groups, &wanted.resources, &wanted.names, &wanted.paths];
    let rights = lists.iter().fold(several(&wanted.verbs), |all, list| all.saturating_mul(several(list)));
    rights <= MOST && singles(wanted).iter().all(|single| held.iter().any(|rule| covers(rule, single)))
}

/// A rule taken apart: one verb on one resource or path each.
fn singles(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut found = Vec::new();
    for verb in &rule.verbs {
        let verbs = one(verb);
        found.extend(rule.paths.iter().map(|path| Rule {
            verbs: verbs.clone(),
            paths: one(path),
            ..Rule::default()
        }));
        for (group, resource) in
            rule.groups.iter().flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)))
        {
            let whole = Rule {
                verbs: verbs.clone(),
                groups: one(group),
                resources: one(resource),
                ..Rule::default()
            };
            match rule.names.as_slice() {
                [] => found.push(whole),
                names => found.extend(names.iter().map(|name| Rule { names: one(name), ..whole.clone() })),
            }
        }
    }
    found
}

fn covers(held: &Rule, wanted: &Rule) -> bool {
    let all = |held: &[String], wanted: &[String]| {
        held.iter().any(|text| text == ALL) || wanted.iter().all(|text| held.contains(text))
    };
    let resource = |wanted: &String| {
        let subresource = wanted.split_once('/').map(|(_, subresource)| format!("{ALL}/{subresource}"));
        held.resources.contains(wanted) || subresource.is_some_and(|any| held.resources.contains(&any))
    };
    let names = match wanted.names.as_slice() {
        [] => held.names.is_empty(),
        wanted => held.names.is_empty() || wanted.iter().all(|name| held.names.contains(name)),
    };
    let paths = |wanted: &String| held.paths.iter().any(|rule| covers_path(rule, wanted));
    all(&held.verbs, &wanted.verbs)
        && all(&held.groups, &wanted.groups)
        && (held.resources.iter().any(|text| text == ALL) || wanted.resources.iter().all(resource))
        && names
        && wanted.paths.iter().all(paths)
}
