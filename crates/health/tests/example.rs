//! The customization under `examples/health` offers and does what it says.

use std::{collections::BTreeMap, fs, path::Path};

use baton_grammar::yaml;
use baton_health::{Change, Customizations, actions, run_action_at};
use serde_json::Value;

#[test]
fn the_example_offers_a_restart() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/health");
    let read = |path: &str| fs::read_to_string(examples.join(path)).expect("a file of the example");
    let scripts = ["health.lua", "actions/discovery.lua", "actions/restart/action.lua"];
    let files = scripts.map(|script| {
        let path = format!("example.com/Database/{script}");
        let text = read(&format!("customizations/{path}"));
        (path, text)
    });
    let customizations = Customizations::from_files(files).expect("readable");
    let database: Value = yaml::first(&read("database.yaml")).expect("YAML");

    let offered = actions(&database, &customizations).expect("it runs");
    let shown: Vec<&str> = offered.iter().map(|action| action.display_name.as_str()).collect();
    assert_eq!(shown, ["Restart"]);

    let now = "2026-03-04T05:06:07Z".parse().expect("a time");
    let changes =
        run_action_at(&database, "restart", &BTreeMap::new(), &customizations, now).expect("it runs");
    let mut expected = database;
    expected["metadata"]["annotations"] =
        serde_json::json!({"example.com/restarted-at": "2026-03-04T05:06:07Z"});
    assert_eq!(changes, [Change::Patch(expected)]);
}
