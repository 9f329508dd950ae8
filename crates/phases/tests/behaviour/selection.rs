//! Who goes in which phase.

use baton_phases::forecast::forecast;
use baton_phases::{Plan, Roster, Standing, Target, assign, assign_beside};

/// Most Applications of one phase, where an operator says nothing else.
const MOST: usize = 1000;

use crate::world::{World, fleet, phase, plan, target};

fn roster(plan: &Plan, targets: &[Target]) -> Roster {
    assign(plan, targets).expect("they fit")
}

fn own(plan: &Plan, targets: &[Target]) -> Vec<Vec<String>> {
    let groups = roster(plan, targets).phases;
    groups.iter().map(|group| group.own.iter().map(|name| name.to_string()).collect()).collect()
}

fn numbered(count: usize) -> Vec<Target> {
    (0..count).map(|at| target(&format!("t{at:05}"), &[("name", &format!("t{at:05}"))])).collect()
}

/// Names that one entry of targets selects.
fn chosen(entry: &str, targets: &[Target]) -> Vec<String> {
    own(&plan(&format!("- {{name: p, targets: [{entry}]}}")), targets).remove(0)
}

#[test]
fn row_09_percentages_are_cumulative_rounded_up_and_of_what_the_phase_matches() {
    let all = "targets: [{matchExpressions: [{key: name, operator: Exists}]}]";
    for (count, percentages, expected) in [
        (10, vec![10, 100], vec![1, 9]),
        (11, vec![10, 100], vec![2, 9]),
        (3, vec![1, 50, 100], vec![1, 1, 1]),
        (10, vec![0, 50], vec![0, 5]),
        (10, vec![50, 50, 20], vec![5, 0, 0]),
        (1, vec![1], vec![1]),
    ] {
        let phases: String = percentages
            .iter()
            .enumerate()
            .map(|(at, percentage)| format!("- {{name: p{at}, {all}, percentage: {percentage}}}\n"))
            .collect();
        let sizes: Vec<usize> = own(&plan(&phases), &numbered(count)).iter().map(Vec::len).collect();
        assert_eq!(sizes, expected, "{count} {percentages:?}");
    }
}

#[test]
fn row_09_who_was_updated_already_counts_towards_the_share_when_others_join() {
    let canary = plan("- {name: canary, targets: [{values: {env: prod}}], percentage: 10}");
    let before = fleet(&["prod-b", "prod-c", "prod-d"]);
    assert_eq!(own(&canary, &before), [["prod-b"]]);
    let after = fleet(&["prod-a", "prod-b", "prod-c", "prod-d"]);
    let roster = assign_beside(
        &canary,
        &after,
        &Standing { home: &|name| (name == "prod-b").then_some(0), ..Standing::default() },
    )
    .expect("they fit");
    assert_eq!(*roster.phases[0].own[0], *"prod-b", "it has begun, and the newcomer before it by name waits");
    assert_eq!(roster.phases[0].own.len(), 1);
}

#[test]
fn nobody_is_asked_twice_whether_it_has_begun() {
    let all = plan("- {name: all, targets: [{matchExpressions: [{key: name, operator: Exists}]}]}");
    let targets = numbered(MOST);
    let asked = std::cell::Cell::new(0);
    let home = |name: &str| {
        asked.set(asked.get() + 1);
        name.ends_with('7').then_some(0)
    };
    assign_beside(&all, &targets, &Standing { home: &home, ..Standing::default() }).expect("they fit");
    assert_eq!(asked.get(), MOST, "asking may look at all that is on record");
}

#[test]
fn row_10_max_update_selects_so_many_targets_and_counts_those_of_before() {
    let all = "targets: [{matchExpressions: [{key: name, operator: Exists}]}]";
    for (first, second, expected) in
        [("2", "5", [2, 3]), ("\"25%\"", "\"50%\"", [3, 2]), ("20", "5", [10, 0]), ("0", "1", [0, 1])]
    {
        let phases =
            format!("- {{name: a, {all}, maxUpdate: {first}}}\n- {{name: b, {all}, maxUpdate: {second}}}\n");
        let sizes: Vec<usize> = own(&plan(&phases), &numbered(10)).iter().map(Vec::len).collect();
        assert_eq!(sizes, expected, "{first} {second}");
    }
    let concurrent = plan(&format!("- {{name: a, {all}, maxConcurrent: 2}}"));
    assert_eq!(own(&concurrent, &numbered(10))[0].len(), 10, "maxConcurrent selects nobody");
    assert_eq!(concurrent.phases[0].limit(10), Some(2));
}

#[test]
fn row_11_any_entry_may_match_and_every_field_of_it_must() {
    let targets = [
        target("a", &[("name", "a"), ("values.env", "prod"), ("values.region", "eu")]),
        target("b", &[("name", "b"), ("values.env", "prod"), ("values.region", "us")]),
        target("c", &[("name", "c"), ("values.env", "dev"), ("values.region", "eu")]),
    ];
    assert_eq!(chosen("{values: {env: prod}}, {clusters: [c]}", &targets), ["a", "b", "c"]);
    assert_eq!(chosen("{values: {env: prod, region: eu}}", &targets), ["a"]);
    assert_eq!(chosen("{clusters: [a, c], values: {env: prod}}", &targets), ["a"]);
    let expression = "matchExpressions: [{key: region, operator: In, values: [us]}]";
    assert_eq!(chosen(&format!("{{values: {{env: prod}}, {expression}}}"), &targets), ["b"]);
}

#[test]
fn row_12_expressions_look_at_the_parameter_then_the_label_then_the_value() {
    let targets = [
        target("param", &[("env", "x"), ("metadata.labels.env", "y"), ("values.env", "y")]),
        target("label", &[("metadata.labels.env", "x"), ("values.env", "y")]),
        target("value", &[("values.env", "x")]),
        target("none", &[]),
    ];
    let one = |operator: &str, values: &str| {
        chosen(&format!("{{matchExpressions: [{{key: env, operator: {operator}{values}}}]}}"), &targets)
    };
    assert_eq!(one("In", ", values: [x]"), ["label", "param", "value"]);
    assert_eq!(one("NotIn", ", values: [x]"), ["none"], "what is absent is in no list");
    assert_eq!(one("Exists", ""), ["label", "param", "value"]);
    assert_eq!(one("DoesNotExist", ""), ["none"]);
}

#[test]
fn row_13_values_look_at_the_value_then_the_parameter_then_the_label_and_all_must_fit() {
    let targets = [
        target("value", &[("values.env", "x"), ("env", "y"), ("metadata.labels.env", "y")]),
        target("param", &[("env", "x"), ("metadata.labels.env", "y")]),
        target("label", &[("metadata.labels.env", "x")]),
        target("other", &[("values.env", "y"), ("env", "x")]),
    ];
    assert_eq!(chosen("{values: {env: x}}", &targets), ["label", "param", "value"]);
    assert_eq!(chosen("{values: {env: x, more: z}}", &targets), Vec::<String>::new());
}

#[test]
fn row_14_clusters_go_by_name_and_are_an_error_where_there_are_none() {
    let phases = plan("- {name: p, targets: [{clusters: [eu-1, \"https://b\"]}]}");
    let targets = [
        target("a", &[("name", "eu-1")]),
        target("b", &[("name", "other"), ("server", "https://b")]),
        target("eu-1", &[("name", "us")]),
    ];
    assert_eq!(own(&phases, &targets), [["a", "b"]]);
    let nameless = assign(&phases, &[target("a", &[("path", "x")])]).expect_err("no name");
    assert!(nameless[0].message.contains("parameter name"), "{nameless:?}");
}

#[test]
fn a_name_in_a_hook_that_no_target_gives_is_an_error_before_anything_is_deployed() {
    let text = |url: &str| {
        format!(
            "- {{name: p, targets: [{{clusters: [eu-1]}}], postHooks: [{{name: h, type: http, http: {{url: \
             \"https://example.com/{url}\"}}}}]}}"
        )
    };
    let targets = [target("a", &[("name", "eu-1")]), target("b", &[("name", "eu-2"), ("region", "eu")])];
    let found = assign(&plan(&text("{{nosuch}}")), &targets).expect_err("nobody has it");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let path = format!("{}.phases[0].postHooks[0].http.url", crate::world::PATH);
    let message = "no Application of this generator has a parameter for {{nosuch}}; a has name";
    assert_eq!(found, [format!("{path}: {message}")]);
    // What somebody has, what the set and the phase give, and what nobody can know.
    for good in ["{{name}}", "{{region}}", "{{target.name}}/{{appset.name}}/{{phase.name}}"] {
        assert!(assign(&plan(&text(good)), &targets).is_ok(), "{good}");
    }
    assert!(assign(&plan(&text("{{nosuch}}")), &[]).is_ok());
}

#[test]
fn row_15_who_is_in_no_phase_is_named() {
    let phases = plan(
        "- {name: p, targets: [{values: {env: dev}}]}\n- {name: q, targets: [{values: {env: prod}}], percentage: 50}",
    );
    let roster = roster(&phases, &fleet(&["dev-a", "test-a", "prod-a", "prod-b"]));
    assert_eq!(roster.unassigned, ["prod-b".into(), "test-a".into()]);
}

#[test]
fn row_16_a_target_belongs_to_the_first_phase_that_selects_it() {
    let all = "targets: [{matchExpressions: [{key: name, operator: Exists}]}]";
    let phases = plan(&format!(
        "- {{name: a, targets: [{{clusters: [t00001]}}]}}\n- {{name: b, {all}, percentage: 50}}\n- {{name: c, {all}}}"
    ));
    assert_eq!(own(&phases, &numbered(4)), [vec!["t00001"], vec!["t00000"], vec!["t00002", "t00003"]]);
}

#[test]
fn row_37_the_order_is_that_of_names_bytewise() {
    let half =
        plan("- {name: p, targets: [{matchExpressions: [{key: name, operator: Exists}]}], percentage: 50}");
    let targets = fleet(&["b", "Z", "a", "é"]);
    assert_eq!(own(&half, &targets), [["Z", "a"]]);
    let mut turned = targets;
    turned.reverse();
    assert_eq!(own(&half, &turned), [["Z", "a"]]);
}

#[test]
fn row_38_more_than_a_thousand_in_one_phase_is_an_error_and_nobody_is_left_out() {
    let all = plan("- {name: p, targets: [{matchExpressions: [{key: name, operator: Exists}]}]}");
    assert_eq!(own(&all, &numbered(MOST))[0].len(), MOST);
    let found = assign(&all, &numbered(MOST + 1)).expect_err("too many");
    assert!(found[0].message.contains("1001") && found[0].path.ends_with(".phases[0]"), "{found:?}");
    let tenth =
        plan("- {name: p, targets: [{matchExpressions: [{key: name, operator: Exists}]}], percentage: 10}");
    assert_eq!(own(&tenth, &numbered(5000))[0].len(), 500, "only who goes in it counts");
}

#[test]
fn row_49_the_local_cluster_has_no_labels_and_is_found_by_name_or_by_what_is_absent() {
    let targets = [
        target("in-cluster", &[("name", "in-cluster"), ("server", "https://kubernetes.default.svc")]),
        target("eu", &[("name", "eu"), ("metadata.labels.env", "prod")]),
    ];
    assert_eq!(chosen("{clusters: [in-cluster]}", &targets), ["in-cluster"]);
    assert_eq!(chosen("{matchExpressions: [{key: env, operator: DoesNotExist}]}", &targets), ["in-cluster"]);
    assert_eq!(
        chosen("{matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}", &targets),
        ["in-cluster"]
    );
    assert_eq!(chosen("{matchExpressions: [{key: env, operator: Exists}]}", &targets), ["eu"]);
}

#[test]
fn who_has_begun_stays_in_its_phase_whatever_it_is_labelled_since() {
    let phases = plan(
        "- {name: first, targets: [{values: {env: dev}}], maxUpdate: 1}\n- {name: last, targets: [{values: {env: prod}}]}",
    );
    // It was dev when it began.
    let targets = [
        target("moved", &[("name", "moved"), ("metadata.labels.env", "prod")]),
        target("other", &[("name", "other"), ("metadata.labels.env", "dev")]),
    ];
    let shared = |begun: bool| {
        let home = |name: &str| (name == "moved").then_some(0);
        let standing =
            Standing { home: &home, begun: &|name| begun && name == "moved", ..Standing::default() };
        let roster = assign_beside(&phases, &targets, &standing).expect("they fit");
        let names = |group: &baton_phases::Group| group.own.iter().map(|name| name.to_string()).collect();
        roster.phases.iter().map(names).collect::<Vec<Vec<String>>>()
    };
    assert_eq!(shared(true), [vec!["moved", "other"], vec![]], "it takes the place of nobody who is matched");
    assert_eq!(
        shared(false),
        [["other"], ["moved"]],
        "a failed phase has left it behind; it goes where it is matched"
    );
}

#[test]
fn a_phase_that_adds_nobody_to_those_before_it_is_told_of() {
    let half = "maxUpdate: 1";
    let phases = phase("one", "dev", half) + &phase("two", "dev", half) + &phase("rest", "dev", "");
    let told = forecast(&plan(&phases), &fleet(&["dev-a", "dev-b"])).expect("a forecast");
    let expected = "phase \"two\" changes nobody: percentage and maxUpdate count those of earlier phases, which update \
                    as many of the 2 it matches already";
    assert_eq!(told.warnings, [expected]);
    let mut world = World::new(&phases, &["dev-a", "dev-b"]);
    assert!(world.settle().notices.iter().any(|notice| notice.message == expected));
    // Hooks alone are what some phases are for.
    let hooks = phase("hooks", "dev", "percentage: 0") + &phase("rest", "dev", "");
    let told = forecast(&plan(&hooks), &fleet(&["dev-a"])).expect("a forecast");
    assert_eq!(told.warnings, [""; 0]);
}
