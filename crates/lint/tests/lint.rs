//! Findings, each with its rule, path and line.

use std::collections::BTreeMap;

use baton_lint::{Finding, Severity, read, rendered};
use baton_phases::Target;
use serde_json::json;

/// A set without a mistake; cases change a part of it.
const GOOD: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: web
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
    - clusters: {}
  strategy:
    type: RollingSync
    rollingSync:
      steps:
        - matchExpressions:
            - {key: env, operator: In, values: [dev]}
        - matchExpressions:
            - {key: env, operator: In, values: [prod]}
          maxUpdate: 25%
  template:
    metadata:
      name: 'web-{{.name}}'
      labels:
        env: '{{.metadata.labels.env}}'
    spec:
      project: default
      source:
        repoURL: https://git.example.com/web.git
        targetRevision: main
        path: .
      destination:
        server: '{{.server}}'
        namespace: web
";

fn findings(text: &str) -> Vec<Finding> {
    read(text).1
}

#[test]
fn a_good_set_has_no_findings() {
    assert_eq!(findings(GOOD), []);
}

#[test]
fn each_mistake_is_found_where_it_stands() {
    // What to replace, with what, and the rule, path and line that must be told.
    let cases: &[(&str, &str, &str, &str, u64)] = &[
        ("kind: ApplicationSet", "kind: ApplicationSet\nbad: [", "yaml", "", 5),
        ("kind: ApplicationSet", "kind: Application", "no-applicationset", "", 1),
        ("argoproj.io/v1alpha1", "argoproj.io/v1", "api-version", "apiVersion", 1),
        ("  name: web\nspec", "  labels: {}\nspec", "name", "metadata.name", 3),
        (
            "project: default",
            "project: default\n      projekt: x",
            "unknown-field",
            "spec.template.spec.projekt",
            26,
        ),
        ("goTemplate: true", "goTemplate: maybe", "schema", "spec.goTemplate", 6),
        ("missingkey=error", "missingkey=panic", "template-option", "spec.goTemplateOptions[0]", 7),
        ("- clusters: {}", "[]", "no-generators", "spec.generators", 8),
        ("- clusters: {}", "- {}", "empty-generator", "spec.generators[0]", 9),
        (
            "- clusters: {}",
            "- clusters: {}\n      list: {elements: [{name: a, server: b, metadata: c}]}",
            "several-generators",
            "spec.generators[0]",
            9,
        ),
        (
            "- clusters: {}",
            "- matrix: {generators: [{clusters: {}}]}",
            "matrix-size",
            "spec.generators[0].matrix.generators",
            9,
        ),
        (
            "- clusters: {}",
            "- merge: {mergeKeys: [], generators: [{clusters: {}}, {clusters: {}}]}",
            "merge-keys",
            "spec.generators[0].merge.mergeKeys",
            9,
        ),
        (
            "- clusters: {}",
            "- matrix: {generators: [{clusters: {template: {}}}, {clusters: {}}]}",
            "ignored-template",
            "spec.generators[0].matrix.generators[0].clusters.template",
            9,
        ),
        (
            "- clusters: {}",
            "- matrix:\n        generators:\n          - matrix: {generators: [{matrix: {generators: []}}, {clusters: {}}]}\n          - clusters: {}",
            "too-deep",
            "spec.generators[0].matrix.generators[0].matrix.generators[0].matrix",
            11,
        ),
        ("- clusters: {}", "- git: {repoURL: x, revision: main}", "git-neither", "spec.generators[0].git", 9),
        (
            "- clusters: {}",
            "- clusters: {}\n      selector: {matchLabels: {'path[0]': x}}",
            "selector",
            "spec.generators[0].selector.matchLabels.path[0]",
            10,
        ),
        (
            "- clusters: {}",
            "- clusters: {selector: {matchExpressions: [{key: a, operator: Is}]}}",
            "selector",
            "spec.generators[0].clusters.selector",
            9,
        ),
        (
            "- clusters: {}",
            "- scmProvider: {filters: [{repositoryMatch: '('}]}",
            "regexp",
            "spec.generators[0].scmProvider.filters[0].repositoryMatch",
            9,
        ),
        ("type: RollingSync", "type: Rolling", "strategy-type", "spec.strategy.type", 11),
        ("type: RollingSync", "type: AllAtOnce", "unused-steps", "spec.strategy.rollingSync", 12),
        (
            "type: RollingSync",
            "type: RollingSync\n    deletionOrder: Backwards",
            "deletion-order",
            "spec.strategy.deletionOrder",
            12,
        ),
        (
            "type: RollingSync",
            "type: RollingSync\n    deletionOrder: Custom",
            "deletion-order",
            "spec.strategy.deletionOrder",
            12,
        ),
        (
            "operator: In, values: [dev]",
            "operator: Exists, values: [dev]",
            "step-operator",
            "spec.strategy.rollingSync.steps[0].matchExpressions[0].operator",
            15,
        ),
        (
            "{key: env, operator: In, values: [dev]}",
            "{key: stage, operator: In, values: [dev]}",
            "unreachable-step",
            "spec.strategy.rollingSync.steps[0]",
            14,
        ),
        (
            "values: [prod]",
            "values: [prod, dev]",
            "overlapping-steps",
            "spec.strategy.rollingSync.steps[1]",
            16,
        ),
        (
            "- matchExpressions:\n            - {key: env, operator: In, values: [dev]}",
            "- {}",
            "unreachable-step",
            "spec.strategy.rollingSync.steps[1]",
            15,
        ),
        ("maxUpdate: 25%", "maxUpdate: 25", "", "", 0),
        (
            "maxUpdate: 25%",
            "maxUpdate: '25'",
            "max-update",
            "spec.strategy.rollingSync.steps[1].maxUpdate",
            18,
        ),
        ("maxUpdate: 25%", "maxUpdate: 0", "max-update", "spec.strategy.rollingSync.steps[1].maxUpdate", 18),
        ("web-{{.name}}", "web-{{.cluster}}", "unknown-parameter", "spec.template.metadata.name", 21),
        ("web-{{.name}}", "web-{{.name | shout}}", "template", "spec.template.metadata.name", 21),
        (
            "web-{{.name}}",
            "web-{{.name}}-{{randAlpha 3}}",
            "restless-function",
            "spec.template.metadata.name",
            21,
        ),
        ("web-{{.name}}", "web", "fixed-name", "spec.template.metadata.name", 21),
        (
            "project: default",
            "project: '{{.project}}'",
            "templated-project",
            "spec.template.spec.project",
            25,
        ),
        (
            "server: '{{.server}}'",
            "server: '{{.server}}'\n        name: '{{.name}}'",
            "destination",
            "spec.template.spec.destination",
            30,
        ),
    ];
    let mut missed = Vec::new();
    for (from, to, rule, path, line) in cases {
        assert!(GOOD.contains(from), "{from}");
        let found = findings(&GOOD.replacen(from, to, 1));
        let told = match *rule {
            "" => found.is_empty(),
            rule => found.iter().any(|one| (one.rule, one.path.as_str(), one.line) == (rule, *path, *line)),
        };
        if !told {
            missed.push(format!("{to}: {rule} at {path}, line {line}, is not what was found: {found:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn an_order_of_deletion_that_is_not_kept_is_told() {
    let ordered = |from: &str, to: &str| {
        let text = GOOD.replacen("type: RollingSync", "type: RollingSync\n    deletionOrder: Reverse", 1);
        let found = findings(&text.replacen(from, to, 1));
        found.into_iter().map(|finding| (finding.rule, finding.path, finding.message)).collect::<Vec<_>>()
    };
    assert_eq!(ordered("", ""), []);
    let long = format!("name: {}\nspec:", "w".repeat(240));
    for (from, to, path, message) in [
        (
            "spec:\n",
            "spec:\n  syncPolicy: {applicationsSync: create-update}\n",
            "spec.strategy.deletionOrder",
            "lets nothing be deleted",
        ),
        ("name: web\nspec:", &*long, "spec.strategy.deletionOrder", "--cascade=foreground"),
    ] {
        let found = ordered(from, to);
        let told = found
            .iter()
            .any(|(rule, at, text)| *rule == "deletion-order" && at == path && text.contains(message));
        assert!(told, "{to}: {found:?}");
    }
    let fused =
        GOOD.replacen("  name: web", "  name: web\n  annotations: {baton.dev/deletion-fuse: half}", 1);
    let found = findings(&fused);
    assert_eq!(found.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["deletion-fuse"]);
    assert_eq!(findings(&fused.replacen("half", "30%", 1)), []);
    let held = fused.replacen("baton.dev/deletion-fuse: half", "baton.dev/paused: 'yes'", 1);
    let found = findings(&held);
    assert_eq!(found.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["annotation"]);
    assert_eq!(findings(&held.replacen("'yes'", "'true'", 1)), []);
}

#[test]
fn what_ends_a_step_must_be_readable() {
    for (field, ok) in [
        ("waitDuration: soon", false),
        ("waitDuration: 1d", false),
        ("waitDuration: 10m", true),
        ("progressDeadline: 0s", false),
        ("maxFailures: -1", false),
        ("maxFailures: 200%", false),
        ("maxFailures: 1", true),
    ] {
        let first = "- matchExpressions:";
        let set = GOOD.replacen(first, &format!("- {field}\n          matchExpressions:"), 1);
        assert_ne!(set, GOOD);
        let found = findings(&set);
        let path =
            format!("spec.strategy.rollingSync.steps[0].{}", field.split(':').next().unwrap_or_default());
        let told: Vec<(&str, &str)> = found.iter().map(|one| (one.rule, one.path.as_str())).collect();
        let expected = if ok { vec![] } else { vec![("step-end", path.as_str())] };
        assert_eq!(told, expected, "{field}");
    }
}

#[test]
fn steps_of_a_deletion_are_judged_as_such() {
    let text = GOOD.replacen(
        "type: RollingSync",
        "type: RollingSync\n    deletionOrder: Custom\n    deletionSync: {steps: [{maxUpdate: 0}]}",
        1,
    );
    let found = findings(&text);
    assert!(found.iter().any(|finding| finding.message == "0 counts as 1 in a deletion"), "{found:?}");
}

#[test]
fn without_go_templates_list_values_must_be_text() {
    let text = GOOD
        .replace("goTemplate: true", "goTemplate: false")
        .replace("  goTemplateOptions: [missingkey=error]\n", "")
        .replace("- clusters: {}", "- list: {elements: [{name: a, server: b, n: 3}]}")
        .replace("{{.metadata.labels.env}}", "dev");
    let rules: Vec<_> = findings(&text).into_iter().map(|one| (one.rule, one.line)).collect();
    // A Go template in the older language is an unknown parameter, with a hint.
    assert_eq!(rules.iter().filter(|(rule, _)| *rule == "unknown-parameter").count(), 2, "{rules:?}");
    assert!(rules.contains(&("list-element", 8)), "{rules:?}");
}

#[test]
fn what_is_rendered_shows_names_and_steps() {
    let (sets, _) = read(GOOD);
    let application = |name: &str, env: &str| json!({"metadata": {"name": name, "labels": {"env": env}}});
    let rules = |applications: &[serde_json::Value]| -> Vec<(&str, String)> {
        rendered(&sets[0], applications, &BTreeMap::new())
            .into_iter()
            .map(|one| (one.rule, one.path))
            .collect()
    };
    assert_eq!(rules(&[application("a", "dev"), application("b", "prod")]), []);
    let steps = "spec.strategy.rollingSync.steps";
    assert_eq!(rules(&[application("a", "dev")]), [("empty-step", format!("{steps}[1]"))]);
    let name = "spec.template.metadata.name".to_owned();
    let found = rules(&[application("a", "dev"), application("a", "prod"), application("B", "test")]);
    assert!(
        found.contains(&("duplicate-name", name.clone())) && found.contains(&("name", name)),
        "{found:?}"
    );
    assert!(found.contains(&("unmatched-applications", steps.to_owned())), "{found:?}");
}

/// The good set with phases: what a phase has beside its name and targets can be replaced.
fn phased(canary: &str) -> String {
    let phases = format!(
        "- clusters: {{}}
      deploymentStrategy:
        type: phaseDeployment
        phases:
          - name: canary
            targets: [{{values: {{env: dev}}}}]
            {canary}
          - name: all
            targets: [{{values: {{env: prod}}}}]"
    );
    GOOD.replace("- clusters: {}", &phases)
}

const PHASES: &str = "spec.generators[0].deploymentStrategy.phases";

#[test]
fn mistakes_in_phases_and_hooks_are_found_where_they_stand() {
    assert_eq!(findings(&phased("percentage: 10")), []);
    let hook = |more: &str| format!("preHooks: [{{name: h, type: http, {more}}}]");
    let many = (0..11).map(|n| format!("{{name: h{n}, type: http, http: {{url: 'https://a.example'}}}}"));
    let many = format!("preHooks: [{}]", many.collect::<Vec<_>>().join(", "));
    let word = "headers: {Authorization: Bearer abc}";
    let cases: &[(String, Severity, &str, String, &str)] = &[
        (
            "percentage: 10\n            maxUpdate: 1".to_owned(),
            Severity::Error,
            "phase",
            "[0].maxUpdate".to_owned(),
            "excludes percentage",
        ),
        (many, Severity::Warning, "phase", "[0]".to_owned(), "11 hooks in one phase"),
        (
            hook(&format!("http: {{url: 'https://a.example', {word}}}")),
            Severity::Warning,
            "hook",
            "[0].preHooks[0].http.headers[Authorization]".to_owned(),
            "a credential is written out",
        ),
        (
            hook("timeout: 24h, http: {url: 'https://a.example'}"),
            Severity::Error,
            "hook",
            "[0].preHooks[0].timeout".to_owned(),
            "24h is more than an HTTP call may take",
        ),
        (
            hook("http: {url: 'http://a.example'}"),
            Severity::Warning,
            "hook-operator",
            "[0].preHooks[0].http.url".to_owned(),
            "--hooks-allow-http",
        ),
        (
            hook("http: {url: 'https://10.0.0.1'}"),
            Severity::Warning,
            "hook-operator",
            "[0].preHooks[0].http.url".to_owned(),
            "--hooks-allow",
        ),
        (
            "preHooks: [{name: h, type: command, command: {command: [./check]}}]".to_owned(),
            Severity::Warning,
            "hook-operator",
            "[0].preHooks[0].command".to_owned(),
            "--hooks-dir",
        ),
    ];
    for (text, severity, rule, path, words) in cases {
        let found = findings(&phased(text));
        let path = format!("{PHASES}{path}");
        let one = found.iter().find(|one| one.rule == *rule && one.path == path);
        let one = one.unwrap_or_else(|| panic!("{rule} at {path}: {found:#?}"));
        assert!(one.severity == *severity && one.message.contains(words) && one.line > 9, "{one:?}");
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}

#[test]
fn names_in_hooks_that_nothing_can_give_are_found() {
    let hook =
        |url: &str| format!("postHooks: [{{name: h, type: http, http: {{url: 'https://a.example/{url}'}}}}]");
    let path = format!("{PHASES}[0].postHooks[0].http.url");
    let text = phased(&hook("{{.nosuch}}"));
    let found = findings(&text);
    let found: Vec<_> =
        found.iter().map(|finding| (finding.rule, &*finding.path, &*finding.message)).collect();
    let message = "spec.generators[0] gives no parameter for .nosuch; it has metadata, name, nameNormalized, project, server";
    assert_eq!(found, [("unknown-parameter", &*path, message)]);
    // What is inside may not come to be asked for, and labels are known only with the clusters.
    for good in ["{{.name}}", "{{if hasKey . \"x\"}}{{.x}}{{end}}", "{{.metadata.labels.env}}"] {
        assert_eq!(findings(&phased(&hook(good))), [], "{good}");
    }
    let text = phased(&hook("{{.metadata.labels.env}}"));
    let (sets, _) = read(&text);
    let target = Target {
        name: "a".into(),
        params: [("name", "a"), ("server", "https://a"), ("values.env", "dev"), ("env", "dev")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    };
    let found = rendered(&sets[0], &[], &[(0, vec![target])].into());
    let of_hooks = found.iter().filter(|finding| finding.rule == "hook");
    let found: Vec<_> = of_hooks.map(|finding| (finding.rule, &*finding.path, &*finding.message)).collect();
    let message = "no Application of this generator has a parameter for .metadata.labels.env; a has env, name, server, \
                   values.env";
    assert_eq!(found, [("hook", &*path, message)]);
}

#[test]
fn what_is_rendered_shows_who_is_in_which_phase_and_orders_that_contradict_each_other() {
    let rules = |text: &str, names: &[(&str, &str)]| -> Vec<(&'static str, String)> {
        let (sets, found) = read(text);
        assert_eq!(found, []);
        let application =
            |(name, env): &(&str, &str)| json!({"metadata": {"name": name, "labels": {"env": env}}});
        let target = |(name, env): &(&str, &str)| Target {
            name: (*name).into(),
            params: BTreeMap::from([("metadata.labels.env".to_owned(), (*env).to_owned())]),
        };
        let applications: Vec<_> = names.iter().map(application).collect();
        let targets = BTreeMap::from([(0, names.iter().map(target).collect())]);
        let found = rendered(&sets[0], &applications, &targets);
        found.into_iter().filter(|one| one.path.starts_with(PHASES)).map(|one| (one.rule, one.path)).collect()
    };
    let good = phased("maxConcurrent: 1");
    let both = [("a", "dev"), ("b", "prod")];
    assert_eq!(rules(&good, &both), []);
    assert_eq!(rules(&good, &[("a", "dev")]), [("empty-phase", format!("{PHASES}[1]"))]);
    assert_eq!(rules(&good, &[("a", "test")]), [("no-phase-matches", PHASES.to_owned())]);
    let third = [("a", "dev"), ("b", "prod"), ("c", "test")];
    assert_eq!(rules(&good, &third), [("unmatched-applications", PHASES.to_owned())]);
    let turned = good.replace("values: [dev]", "values: [x]").replace("values: [prod]", "values: [dev]");
    let turned = turned.replace("values: [x]", "values: [prod]");
    assert_eq!(rules(&turned, &both), [("phase-order", format!("{PHASES}[1]"))]);
}

#[test]
fn a_null_is_judged_as_a_server_stores_it() {
    let text = GOOD.replace("- clusters: {}", "- clusters: {}\n      deploymentStrategy: null");
    assert_eq!(findings(&text), []);
}

#[test]
fn an_error_in_one_document_leaves_the_others_sound() {
    let broken = GOOD.replace("name: web\n", "name: ''\n");
    let (sets, found) = read(&format!("{broken}---\n{GOOD}"));
    assert_eq!(sets.iter().map(|set| set.is_sound).collect::<Vec<_>>(), [false, true]);
    assert!(found.iter().all(|finding| finding.rule == "name"), "{found:?}");
}

#[test]
fn what_is_wrong_with_a_whole_document_names_no_field() {
    for finding in findings("kind: ApplicationSet\n") {
        assert!(!finding.message.contains("<nil>"), "{finding:?}");
    }
}
