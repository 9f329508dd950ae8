//! Where customizations come from, and which of several counts.

use std::collections::BTreeMap;

use baton_health::{Customizations, actions, assess, customized, run_action};
use serde_json::{Value, json};

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn config_map(entries: &[(&str, &str)]) -> Customizations {
    Customizations::from_config_map(&map(entries)).expect("readable")
}

fn files(entries: &[(&str, &str)]) -> Customizations {
    Customizations::from_files(map(entries)).expect("readable")
}

fn object(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}})
}

/// The message of the script that was chosen.
fn chosen(customizations: &Customizations, api_version: &str, kind: &str) -> String {
    let health = assess(&object(api_version, kind), customizations).expect("it runs");
    health.map_or_else(|| "none".to_owned(), |health| health.message)
}

fn saying(word: &str) -> String {
    format!("return {{ status = 'Healthy', message = '{word}' }}")
}

#[test]
fn a_key_names_group_and_kind() {
    let all = config_map(&[
        ("resource.customizations.health.cert-manager.io_Certificate", &saying("certificate")),
        ("resource.customizations.health.PersistentVolumeClaim", &saying("claim")),
        ("resource.customizations.ignoreDifferences.apps_Deployment", "jsonPointers: [/spec/replicas]"),
        ("resource.exclusions", "not: [looked, at"),
    ]);
    assert_eq!(chosen(&all, "cert-manager.io/v1", "Certificate"), "certificate");
    assert_eq!(chosen(&all, "cert-manager.io/v1", "Issuer"), "none");
    assert_eq!(chosen(&all, "v1", "PersistentVolumeClaim"), "claim", "a script wins over a rule");
}

#[test]
fn an_exact_key_wins_over_wildcards_and_these_over_all() {
    let old = format!(
        "'*.example.com/*': {{health.lua: \"{}\"}}\n'b.example.com/Thing': {{health.lua: \"{}\"}}\n'*/Empty': {{}}\n",
        saying("group"),
        saying("exact")
    );
    let all = config_map(&[
        ("resource.customizations", &old),
        ("resource.customizations.health.all", &saying("all")),
    ]);
    assert_eq!(chosen(&all, "b.example.com/v1", "Thing"), "exact");
    assert_eq!(chosen(&all, "b.example.com/v1", "Other"), "group");
    assert_eq!(chosen(&all, "example.org/v1", "Thing"), "all");
    assert_eq!(chosen(&all, "example.org/v1", "Empty"), "all", "a key without a script is passed over");
    assert_eq!(chosen(&all, "v1", "Thing"), "none", "the core group has no slash for */* to match");
}

#[test]
fn the_new_keys_win_over_the_old_map() {
    let old = format!("apps/Deployment: {{health.lua: \"{}\", health.lua.useOpenLibs: true}}", saying("old"));
    let both = config_map(&[
        ("resource.customizations", &old),
        (
            "resource.customizations.health.apps_Deployment",
            "return { status = 'Healthy', message = ('new'):upper() }",
        ),
    ]);
    assert_eq!(chosen(&both, "apps/v1", "Deployment"), "NEW", "what the old map says besides stays");
}

#[test]
fn underscores_of_directories_stand_for_anything_in_a_group_or_kind() {
    let all = files(&[
        ("_.example.com/_/health.lua", &saying("wild")),
        ("b.example.com/Thing/health.lua", &saying("exact")),
        ("Pod/health.lua", &saying("core")),
        ("example.org/_/health.lua", &saying("kinds")),
        ("embed.go", "not a script"),
        ("b.example.com/Thing/testdata/health.lua", "not a script"),
    ]);
    assert_eq!(chosen(&all, "b.example.com/v1", "Thing"), "exact");
    assert_eq!(chosen(&all, "b.example.com/v1", "Other"), "wild");
    assert_eq!(chosen(&all, "deep.b.example.com/v1", "Other"), "wild");
    assert_eq!(chosen(&all, "example.com/v1", "Other"), "none");
    assert_eq!(chosen(&all, "example.org/v1", "Other"), "kinds");
    assert_eq!(chosen(&all, "v1", "Pod"), "core");
}

#[test]
fn a_config_map_wins_over_a_directory() {
    let directory = files(&[
        ("example.com/Thing/health.lua", &saying("directory")),
        ("example.com/Other/health.lua", &saying("directory")),
    ]);
    let both = config_map(&[("resource.customizations.health.example.com_Thing", &saying("map"))])
        .with_fallback(directory);
    assert_eq!(chosen(&both, "example.com/v1", "Thing"), "map");
    assert_eq!(chosen(&both, "example.com/v1", "Other"), "directory");
}

#[test]
fn what_cannot_be_read_is_said() {
    for (entries, expected) in [
        ([("resource.customizations", "[not, a, map]")], "resource.customizations: expected a map of kinds"),
        (
            [("resource.customizations", "a: b: c")],
            "resource.customizations: yaml: line 1, column 5: mapping values are not allowed in this context",
        ),
        (
            [("resource.customizations", "apps/Deployment: {health.lua: 7}")],
            "resource.customizations: health.lua of \"apps/Deployment\" is no text",
        ),
        (
            [("resource.customizations.useOpenLibs.apps_Deployment", "maybe")],
            "resource.customizations.useOpenLibs.apps_Deployment: expected true or false",
        ),
        (
            [("resource.customizations.helth.apps_Deployment", "x")],
            "resource customization type helth not supported",
        ),
        (
            [("resource.customizations.health.a_b_c", "x")],
            "resource.customizations.health.a_b_c: group kind should be in format \
             `resource.customizations.<type>.<group_kind>` or `resource.customizations.<type>.<kind>`",
        ),
    ] {
        let error = Customizations::from_config_map(&map(&entries)).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn actions_that_cannot_be_read_leave_the_health_of_all_kinds_alone() {
    let all = config_map(&[
        ("resource.customizations.actions.example.com_Thing", "a: b: c"),
        ("resource.customizations.health.example.com_Thing", &saying("well")),
    ]);
    assert_eq!(chosen(&all, "example.com/v1", "Thing"), "well");
    let error = actions(&object("example.com/v1", "Thing"), &all).expect_err("no YAML");
    assert!(error.to_string().starts_with("cannot read the actions of this kind: yaml: line 1"), "{error}");
}

#[test]
fn actions_of_a_directory_are_offered_beside_those_of_a_config_map_if_it_says_so() {
    let directory = files(&[
        (
            "example.com/Thing/actions/discovery.lua",
            "return { start = {}, stop = { displayName = 'Directory' } }",
        ),
        ("example.com/Thing/actions/start/action.lua", "obj.by = 'directory' return obj"),
    ]);
    let custom = |merge: bool| {
        let text = format!(
            "mergeBuiltinActions: {merge}\ndiscovery.lua: \"return {{ stop = {{ displayName = 'Map' }} }}\"\n\
             definitions: [{{name: stop, action.lua: \"obj.by = 'map' return obj\"}}]"
        );
        config_map(&[("resource.customizations.actions.example.com_Thing", &text)])
            .with_fallback(directory.clone())
    };
    let thing = object("example.com/v1", "Thing");
    let names = |all: &Customizations| -> Vec<(String, String)> {
        let offered = actions(&thing, all).expect("they run");
        offered.into_iter().map(|action| (action.name, action.display_name)).collect()
    };
    let pair = |name: &str, shown: &str| (name.to_owned(), shown.to_owned());
    assert_eq!(names(&custom(true)), [pair("start", ""), pair("stop", "Map")]);
    assert_eq!(names(&custom(false)), [pair("stop", "Map")]);
    assert_eq!(names(&directory), [pair("start", ""), pair("stop", "Directory")]);

    run_action(&thing, "start", &BTreeMap::new(), &custom(true)).expect("the directory's action");
    let error = run_action(&thing, "start", &BTreeMap::new(), &custom(false)).expect_err("not offered");
    assert_eq!(error.to_string(), "there is no action \"start\" for example.com/Thing");
}

#[test]
fn a_script_is_asked_alone_where_it_is_tested() {
    let mut deleted = object("example.com/v1", "Thing");
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let all = files(&[("example.com/Thing/health.lua", &saying("of the script"))]);
    assert_eq!(assess(&deleted, &all).expect("known").expect("said").message, "Pending deletion");
    let said = customized(&deleted, &all).expect("a script").expect("it runs").expect("it speaks");
    assert_eq!(said.message, "of the script");
    assert!(customized(&object("example.com/v1", "Other"), &all).is_none());
}
