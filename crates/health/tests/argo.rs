//! Healths compared with what Argo CD itself says; see `argo/README.md`.

use std::{collections::BTreeMap, fs, path::Path};

use baton_api::health::Health;
use baton_grammar::yaml;
use baton_health::{Customizations, HealthError, assess};
use serde_json::{Value, json};

#[test]
fn rules_say_what_argo_cd_says() {
    compare("rules", 150, |object| assess(object, &Customizations::default()));
}

#[test]
fn scripts_say_what_they_say_in_argo_cd() {
    compare("scripts", 150, |case| {
        let mut data = BTreeMap::from([(
            "resource.customizations.health.example.com_Thing".to_owned(),
            case["script"].as_str().expect("a script").to_owned(),
        )]);
        let open = case["openLibs"].as_bool().unwrap_or_default();
        data.insert("resource.customizations.useOpenLibs.example.com_Thing".to_owned(), open.to_string());
        let mut object = match &case["object"] {
            Value::Null => json!({}),
            object => object.clone(),
        };
        object["apiVersion"] = json!("example.com/v1");
        object["kind"] = json!("Thing");
        assess(&object, &Customizations::from_config_map(&data).expect("a readable script"))
    });
}

fn compare(directory: &str, least: usize, assess: impl Fn(&Value) -> Result<Option<Health>, HealthError>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/argo").join(directory);
    let mut compared = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(directory).expect("the cases") {
        let path = entry.expect("a case").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        let cases = yaml::documents(&text).expect("YAML");
        let expected = fs::read_to_string(path.with_extension("expected.jsonl")).expect("what is expected");
        let expected: Vec<Value> =
            expected.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(cases.len(), expected.len(), "{}", path.display());
        for ((case, expected), number) in cases.iter().zip(&expected).zip(1..) {
            let said = assess(case);
            if !agrees(&said, expected) {
                wrong.push(format!("{} document {number}: {said:?}, not {expected}", path.display()));
            }
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= least, "only {compared} cases were found");
}

/// Errors agree where Argo CD's ends with ours: it says besides which of its functions met them.
fn agrees(said: &Result<Option<Health>, HealthError>, expected: &Value) -> bool {
    match said {
        Ok(Some(health)) => {
            *expected == json!({"status": health.code.to_string(), "message": health.message})
        }
        Ok(None) => *expected == json!({"status": "", "message": ""}),
        Err(error) => expected["error"].as_str().is_some_and(|text| text.ends_with(&error.to_string())),
    }
}
