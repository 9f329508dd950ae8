//! What is refused, and what is said about it.

use baton_api::generators::Generator;
use baton_hooks::{Language, Namespace, Policy, Settings};
use baton_phases::{Action, compile, misplaced};

use crate::world::{PATH, compiled, hook, policy, strategy};

const TARGETS: &str = "targets: [{clusters: [a]}]";

/// What is wrong with a phase that has these fields besides a name and targets.
fn findings(text: &str) -> Vec<String> {
    let found = compile(&strategy(text), PATH, &policy());
    assert_eq!(found.plan.is_none(), found.errors().count() > 0);
    found.errors().map(|finding| finding.to_string()).collect()
}

fn with(fields: &str) -> String {
    format!("type: phaseDeployment\nphases: [{{{fields}}}]")
}

#[test]
fn rows_04_10_11_12_34_46_every_bad_configuration_is_refused_with_its_path() {
    let more = |fields: &str| with(&format!("name: p, {TARGETS}, {fields}"));
    let target = |entry: &str| with(&format!("name: p, targets: [{entry}]"));
    let named = |name: &str| with(&format!("name: {name}, {TARGETS}"));
    let call = |list: &str, fields: &str| more(&format!("{list}: [{{name: h, {fields}}}]"));
    let http = "type: http, http: {url: \"https://example.com\"}";
    let many = |list: &str| {
        let hooks: Vec<String> = (0..51).map(|at| hook(&format!("h{at}"), "")).collect();
        more(&format!("{list}: [{}]", hooks.join(", ")))
    };
    let phases = |count: usize| {
        let all: Vec<String> = (0..count).map(|at| format!("{{name: p{at}, {TARGETS}}}")).collect();
        format!("type: phaseDeployment\nphases: [{}]", all.join(", "))
    };
    let table: Vec<(String, &str, &str)> = vec![
        ("type: canary\nphases: [{name: p, targets: [{clusters: [a]}]}]".into(), ".type", "phaseDeployment"),
        ("phases: [{name: p, targets: [{clusters: [a]}]}]".into(), ".type", "not nothing"),
        ("type: phaseDeployment".into(), ".phases", "at least one"),
        ("type: phaseDeployment\nphases: []".into(), ".phases", "at least one"),
        (phases(51), ".phases", "51 phases"),
        (with(TARGETS), ".phases[0].name", "needs a name"),
        (named("\"\""), ".phases[0].name", "needs a name"),
        (named(&"x".repeat(41)), ".phases[0].name", "40 characters"),
        (named("Prod"), ".phases[0].name", "lower case"),
        (named("-prod"), ".phases[0].name", "begin and end"),
        (named("prod-"), ".phases[0].name", "begin and end"),
        (named("a.b"), ".phases[0].name", "lower case"),
        (named("a/b"), ".phases[0].name", "lower case"),
        (
            format!("type: phaseDeployment\nphases: [{{name: p, {TARGETS}}}, {{name: p, {TARGETS}}}]"),
            ".phases[1].name",
            "taken",
        ),
        (with("name: p"), ".phases[0].targets", "needs targets"),
        (with("name: p, targets: []"), ".phases[0].targets", "needs targets"),
        (
            with(&format!("name: p, targets: [{}]", vec!["{clusters: [a]}"; 101].join(", "))),
            ".phases[0].targets",
            "101",
        ),
        (target("{}"), ".phases[0].targets[0]", "says nothing"),
        (target("{clusters: []}"), ".phases[0].targets[0]", "says nothing"),
        (target("{clusters: [\"\"]}"), ".phases[0].targets[0].clusters[0]", "needed"),
        (target("{values: {\"\": x}}"), ".phases[0].targets[0].values", "name of a parameter"),
        (target("{matchExpressions: [{operator: Exists}]}"), ".matchExpressions[0].key", "needed"),
        (target("{matchExpressions: [{key: a}]}"), ".matchExpressions[0].operator", "not nothing"),
        (target("{matchExpressions: [{key: a, operator: Gt, values: [\"1\"]}]}"), ".operator", "\"Gt\""),
        (target("{matchExpressions: [{key: a, operator: in, values: [x]}]}"), ".operator", "In, NotIn"),
        (
            target("{matchExpressions: [{key: a, operator: In}]}"),
            ".matchExpressions[0].values",
            "at least one",
        ),
        (target("{matchExpressions: [{key: a, operator: NotIn, values: []}]}"), ".values", "at least one"),
        (
            target("{matchExpressions: [{key: a, operator: Exists, values: [x]}]}"),
            ".values",
            "takes no values",
        ),
        (
            target("{matchExpressions: [{key: a, operator: DoesNotExist, values: [x]}]}"),
            ".values",
            "no values",
        ),
        (more("percentage: 101"), ".phases[0].percentage", "between 0 and 100"),
        (more("percentage: -1"), ".phases[0].percentage", "between 0 and 100"),
        (more("percentage: 10, maxUpdate: 1"), ".phases[0].maxUpdate", "excludes percentage"),
        (more("maxUpdate: -1"), ".phases[0].maxUpdate", "\"-1\""),
        (more("maxUpdate: \"101%\""), ".phases[0].maxUpdate", "up to 100%"),
        (more("maxUpdate: many"), ".phases[0].maxUpdate", "\"many\""),
        (more("maxUpdate: \"\""), ".phases[0].maxUpdate", "an empty text"),
        (more("maxConcurrent: 0"), ".phases[0].maxConcurrent", "nothing would ever"),
        (more("maxUpdate: \"3\""), ".phases[0].maxUpdate", "write 3 without quotes"),
        (more("waitDuration: 9000000h"), ".phases[0].waitDuration", "too long"),
        // What is made for each Application is never made where there is none.
        (
            more("percentage: 0, preHooks: [{name: h, type: http, http: {url: \"https://a.b/{{name}}\"}}]"),
            ".phases[0].preHooks[0]",
            "would never be made",
        ),
        (
            more(
                "maxUpdate: 0, checks: [{name: h, type: http, scope: target, http: {url: \"https://a.b/\"}}]",
            ),
            ".phases[0].checks[0]",
            "would never be made",
        ),
        (more("maxConcurrent: \"0%\""), ".phases[0].maxConcurrent", "nothing would ever"),
        (more("maxConcurrent: \"-5%\""), ".phases[0].maxConcurrent", "number or a percentage"),
        (more("waitDuration: soon"), ".phases[0].waitDuration", "no duration"),
        (more("waitDuration: -5m"), ".phases[0].waitDuration", "no duration"),
        (more("waitDuration: \"5\""), ".phases[0].waitDuration", "5m"),
        (more("progressDeadline: 0s"), ".phases[0].progressDeadline", "longer than nothing"),
        (more("progressDeadline: later"), ".phases[0].progressDeadline", "no duration"),
        (more("onFailure: {action: explode}"), ".phases[0].onFailure.action", "\"explode\""),
        (
            format!("type: phaseDeployment\nrevisionHistoryLimit: -1\nphases: [{{name: p, {TARGETS}}}]"),
            ".revisionHistoryLimit",
            "between 0 and 100",
        ),
        (
            format!("type: phaseDeployment\nrevisionHistoryLimit: 101\nphases: [{{name: p, {TARGETS}}}]"),
            ".revisionHistoryLimit",
            "101",
        ),
        (
            format!(
                "type: phaseDeployment\nrevisionHistoryLimit: 0\nphases: [{{name: p, {TARGETS}, onFailure: {{action: rollback}}}}]"
            ),
            ".phases[0].onFailure.action",
            "at least 1",
        ),
        (many("preHooks"), ".phases[0].preHooks", "51"),
        (many("checks"), ".phases[0].checks", "51"),
        (call("preHooks", "type: http"), ".preHooks[0].http", "needs it"),
        (call("preHooks", "type: smoke"), ".preHooks[0].type", "http or command"),
        (
            call("postHooks", &format!("{http}, command: {{command: [a]}}")),
            ".postHooks[0].command",
            "excludes",
        ),
        (
            call("postHooks", &format!("{http}, failurePolicy: maybe")),
            ".postHooks[0].failurePolicy",
            "ignore",
        ),
        (call("checks", &format!("{http}, timeout: 24h")), ".checks[0].timeout", "retry"),
        (
            call("preHooks", &format!("{http}, retry: {{interval: 1m, deadline: 73h}}")),
            ".retry.deadline",
            "73h",
        ),
        (call("preHooks", &format!("{http}, scope: galaxy")), ".preHooks[0].scope", "phase or target"),
    ];
    assert!(table.len() >= 50);
    for (text, path, words) in table {
        let found = findings(&text);
        let fits = |finding: &&String| {
            let (at, message) = finding.split_once(": ").expect("a path and a message");
            at.starts_with(PATH) && at.ends_with(path) && message.contains(words)
        };
        assert!(found.iter().any(|finding| fits(&finding)), "{text}\n{path}: …{words}…\n{found:#?}");
    }
}

#[test]
fn row_01_all_four_actions_are_known_and_stop_is_what_is_done_unless_said() {
    for (text, action) in [
        ("", Action::Stop),
        (", onFailure: {}", Action::Stop),
        (", onFailure: {action: stop}", Action::Stop),
        (", onFailure: {action: rollback}", Action::Rollback),
        (", onFailure: {action: continue}", Action::Continue),
        (", onFailure: {action: abort}", Action::Abort),
    ] {
        let found = compile(&strategy(&with(&format!("name: p, {TARGETS}{text}"))), PATH, &policy());
        assert_eq!(found.plan.expect("a plan").phases[0].on_failure, action, "{text}");
    }
}

#[test]
fn row_18_a_call_that_names_its_target_runs_for_each_unless_it_says_otherwise() {
    for (url, scope, expected) in [
        ("https://{{name}}.example.com", "", true),
        ("https://example.com/{{appset.name}}/{{phase.name}}", "", false),
        ("https://example.com", ", scope: target", true),
        ("https://example.com/{{phase.name}}", ", scope: phase", false),
    ] {
        let call = format!("{{name: h, type: http, http: {{url: \"{url}\"}}{scope}}}");
        let found = compiled(&format!("- {{name: p, {TARGETS}, preHooks: [{call}], checks: [{call}]}}"));
        let phase = &found.plan.expect("a plan").phases[0];
        assert_eq!(
            (phase.pre_hooks[0].per_target, phase.checks[0].per_target),
            (expected, expected),
            "{url}{scope}"
        );
    }
    // Once for the phase there is no target whose name could be filled in.
    let call = "{name: h, type: http, scope: phase, http: {url: \"https://{{name}}.example.com\"}}";
    let found = compiled(&format!("- {{name: p, {TARGETS}, checks: [{call}]}}"));
    let message = found.errors().map(ToString::to_string).collect::<String>();
    assert!(message.contains(".checks[0].http.url: names \"name\" of a target"), "{message}");
}

#[test]
fn row_29_a_target_has_as_long_as_the_longest_check_and_ten_minutes_at_least() {
    for (fields, seconds) in [
        ("", 600),
        (", checks: [{name: c, type: http, timeout: 2m, http: {url: \"https://a.b\"}}]", 600),
        (", progressDeadline: 30m", 1800),
        (", progressDeadline: 30s", 30),
    ] {
        let plan = compiled(&format!("- {{name: p, {TARGETS}{fields}}}")).plan.expect("a plan");
        assert_eq!(plan.phases[0].deadline.as_secs(), seconds, "{fields}");
    }
    // Only commands may be given longer than the least.
    let check = "{name: c, type: command, timeout: 20m, command: {command: [./c]}}";
    let text = format!("type: phaseDeployment\nphases:\n- {{name: p, {TARGETS}, checks: [{check}]}}");
    let settings =
        Settings { directory: Some("hooks".into()), allow_unsandboxed: true, ..Settings::default() };
    let policy = Policy::new(&settings, Namespace::ControlPlane, Language::Params);
    let compiled = compile(&strategy(&text), PATH, &policy);
    let plan = compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    assert_eq!(plan.phases[0].deadline.as_secs(), 1200);
}

#[test]
fn row_06_how_many_good_states_are_kept_is_no_news_to_a_rollout() {
    let hash = |limit: &str, share: u32| {
        let text =
            format!("type: phaseDeployment\n{limit}phases:\n- {{name: p, {TARGETS}, percentage: {share}}}");
        compile(&strategy(&text), PATH, &policy()).plan.expect("a plan").hash
    };
    assert_eq!(hash("", 50), hash("revisionHistoryLimit: 3\n", 50));
    assert_eq!(hash("revisionHistoryLimit: 20\n", 50), hash("revisionHistoryLimit: 3\n", 50));
    assert_ne!(hash("", 50), hash("", 60));
}

#[test]
fn row_41_more_than_ten_hooks_are_a_warning_and_no_error() {
    let hooks: Vec<String> = (0..11).map(|at| hook(&format!("h{at}"), "")).collect();
    let found = compiled(&format!("- {{name: p, {TARGETS}, preHooks: [{}]}}", hooks.join(", ")));
    assert!(found.plan.is_some());
    assert!(
        found.findings.iter().any(|finding| finding.message.contains("11 hooks")),
        "{:?}",
        found.findings
    );
}

#[test]
fn row_45_phases_inside_matrix_and_merge_are_errors_at_every_depth() {
    let generator = |text: &str| -> Generator { serde_saphyr::from_str(text).expect("a generator") };
    let phases =
        "deploymentStrategy: {type: phaseDeployment, phases: [{name: p, targets: [{clusters: [a]}]}]}";
    for (text, path) in [
        (
            format!("matrix: {{generators: [{{clusters: {{}}, {phases}}}, {{list: {{elements: []}}}}]}}"),
            "g.matrix.generators[0]",
        ),
        (
            format!(
                "merge: {{mergeKeys: [a], generators: [{{list: {{elements: []}}}}, {{clusters: {{}}, {phases}}}]}}"
            ),
            "g.merge.generators[1]",
        ),
        (
            format!(
                "matrix: {{generators: [{{merge: {{mergeKeys: [a], generators: [{{clusters: {{}}, {phases}}}]}}}}]}}"
            ),
            "g.matrix.generators[0].merge.generators[0]",
        ),
    ] {
        let found = misplaced(&generator(&text), "g");
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].path, format!("{path}.deploymentStrategy"));
    }
    assert!(misplaced(&generator(&format!("clusters: {{}}\n{phases}")), "g").is_empty());
}

#[test]
fn a_share_that_adds_nobody_is_a_warning() {
    let found = compiled(&format!(
        "- {{name: a, {TARGETS}, percentage: 50}}\n- {{name: b, {TARGETS}, percentage: 50}}"
    ));
    assert!(found.plan.is_some());
    assert!(found.findings[0].message.contains("adds nobody"), "{:?}", found.findings);
}
