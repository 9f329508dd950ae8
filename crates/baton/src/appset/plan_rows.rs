//! Which Applications of a plan get a row: all of a few, and of many the first of each kind.

use baton_rollout::plan::ApplicationPlan;

use super::plan_phases::Places;

/// Most rows that a person reads without being asked to.
const MANY: usize = 40;
/// So many of a kind get a row before the rest is counted.
const FIRST: usize = 3;

/// A row.
pub(super) enum Row<'a> {
    One(&'a ApplicationPlan),
    More(More<'a>),
}

/// Applications of one kind that follow those shown.
pub(super) struct More<'a> {
    pub(super) count: usize,
    /// The first of them; the others are in the same step and phase.
    pub(super) first: &'a ApplicationPlan,
    /// First and last batch, where they have one.
    pub(super) batches: Option<(usize, usize)>,
    /// Why they go, where it is the same for all.
    pub(super) why: Option<&'a str>,
}

/// The rows of Applications, which are sorted by step and batch, or by phase.
pub(super) fn rows<'a>(all: &[&'a ApplicationPlan], places: &Places<'_>, elides: bool) -> Vec<Row<'a>> {
    if !elides || all.len() <= MANY {
        return all.iter().map(|one| Row::One(one)).collect();
    }
    let beside =
        |a: &ApplicationPlan, b: &ApplicationPlan| a.step == b.step && places.place(a) == places.place(b);
    let alike = grouped(all, |a, b| beside(a, b) && a.why == b.why);
    match alike.len() <= MANY {
        true => alike,
        false => grouped(all, |a, b| beside(a, b) && a.change.syncs() == b.change.syncs()),
    }
}

fn grouped<'a>(
    all: &[&'a ApplicationPlan],
    alike: impl Fn(&ApplicationPlan, &ApplicationPlan) -> bool,
) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for group in all.chunk_by(|a, b| alike(a, b)) {
        let shown = if group.len() > FIRST + 1 { FIRST } else { group.len() };
        rows.extend(group[..shown].iter().map(|one| Row::One(one)));
        if let Some((first, rest)) = group[shown..].split_first() {
            let batches = || group[shown..].iter().filter_map(|one| one.batch);
            rows.push(Row::More(More {
                count: rest.len() + 1,
                first,
                batches: batches().min().zip(batches().max()),
                why: rest.iter().all(|one| one.why == first.why).then_some(first.why.as_str()),
            }));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_rollout::plan::Change;

    fn one(number: usize, step: i64, why: &str) -> ApplicationPlan {
        ApplicationPlan {
            name: format!("a{number:03}"),
            step: Some(step),
            batch: Some(number + 1),
            batch_of_all: None,
            also_matches: Vec::new(),
            change: Change::New,
            why: why.to_owned(),
        }
    }

    fn told(all: &[ApplicationPlan], elides: bool) -> Vec<String> {
        let row = |row: Row<'_>| match row {
            Row::One(one) => one.name.clone(),
            Row::More(more) => format!("{} {:?} {:?}", more.count, more.batches, more.why),
        };
        rows(&all.iter().collect::<Vec<_>>(), &Places::default(), elides).into_iter().map(row).collect()
    }

    #[test]
    fn of_many_the_first_of_each_kind_are_shown() {
        let mut all: Vec<ApplicationPlan> = (0..40).map(|number| one(number, 1, "new")).collect();
        assert_eq!(told(&all, true).len(), 40, "a few are shown");
        all.push(one(40, 2, "new"));
        assert_eq!(told(&all, false).len(), 41, "a program gets all");
        assert_eq!(told(&all, true), ["a000", "a001", "a002", "37 Some((4, 40)) Some(\"new\")", "a040"]);
    }

    #[test]
    fn where_each_has_a_reason_of_its_own_the_step_is_the_kind() {
        let all: Vec<ApplicationPlan> =
            (0..50).map(|number| one(number, 1, &format!("revision {number}"))).collect();
        assert_eq!(told(&all, true), ["a000", "a001", "a002", "47 Some((4, 50)) None"]);
    }
}
