//! The proposals' examples: accepted by the CRDs, and read and written back without loss.

use std::fs;
use std::path::PathBuf;

use baton_api::phases::{DeploymentStrategyType, ExpectedStatus, FailureAction, HookType};
use baton_api::strategy::DeletionOrder;
use baton_api::{Application, ApplicationSet};
use serde_json::Value;

use crate::schemas::{complaints, lost, validator};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/seeds")
}

fn text(name: &str) -> String {
    let path = directory().join(format!("{name}.yaml"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn application_set(name: &str) -> ApplicationSet {
    serde_saphyr::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn written_back(raw: &Value) -> Value {
    let result = match raw["kind"].as_str() {
        Some("Application") => {
            serde_json::from_value::<Application>(raw.clone()).and_then(serde_json::to_value)
        }
        Some("ApplicationSet") => {
            serde_json::from_value::<ApplicationSet>(raw.clone()).and_then(serde_json::to_value)
        }
        other => panic!("no type for kind {other:?}"),
    };
    result.unwrap_or_else(|error| panic!("{raw}: {error}"))
}

#[test]
fn every_example_is_accepted_and_survives_reading_and_writing() {
    let files = fs::read_dir(directory()).expect("the examples are in the repository");
    let mut seen = 0;
    for file in files {
        let path = file.expect("the directory is readable").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("an example is text");
        let raw: Value = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let validator = validator(raw["kind"].as_str().expect("an example has a kind"));
        assert_eq!(complaints(&validator, &raw), [""; 0], "{}", path.display());
        assert_eq!(baton_schema::unknown_fields(validator.schema(), &raw), [""; 0], "{}", path.display());
        assert_eq!(lost(&raw, &written_back(&raw)), [""; 0], "{}", path.display());
        seen += 1;
    }
    assert_eq!(seen, 11);
}

#[test]
fn deletion_orders_are_read() {
    let order = |name: &str| {
        let set = application_set(name);
        let strategy = set.spec.strategy.unwrap_or_default();
        let order = strategy.deletion_order();
        order.unwrap_or_else(|word| panic!("{name}: unknown order {word}"))
    };
    assert_eq!(order("000-deletion-all-at-once"), DeletionOrder::AllAtOnce);
    assert_eq!(order("000-deletion-reverse"), DeletionOrder::Reverse);
    assert_eq!(order("000-deletion-custom"), DeletionOrder::Custom);

    let strategy = application_set("000-deletion-custom").spec.strategy.unwrap_or_default();
    let steps = strategy.deletion_sync.unwrap_or_default().steps;
    let components: Vec<&str> =
        steps.iter().map(|step| step.match_expressions[0].values[0].as_str()).collect();
    assert_eq!(components, ["config", "frontend", "db"]);
}

#[test]
fn a_pending_approval_is_read() {
    let app: Application =
        serde_saphyr::from_str(&text("001-requires-deletion-approval")).expect("the example is valid");
    let resource = &app.status.resources[0];
    assert!(resource.requires_pruning && resource.requires_deletion_approval);
    assert!(!resource.requires_deletion_confirmation);
}

#[test]
fn phases_with_hooks_and_checks_are_read() {
    let set = application_set("004-every-field");
    let strategy = set.spec.generators[0].deployment_strategy.clone().unwrap_or_default();
    assert_eq!(strategy.kind, DeploymentStrategyType::PhaseDeployment);
    let phase = &strategy.phases[0];
    assert_eq!(phase.percentage, Some(50));
    assert_eq!(phase.targets.len(), 3);
    assert_eq!(phase.wait_duration.as_deref(), Some("5m"));
    assert_eq!(phase.on_failure.clone().unwrap_or_default().action, FailureAction::Stop);
    assert_eq!(phase.pre_hooks[0].kind, HookType::Http);
    let call = phase.pre_hooks[0].http.clone().unwrap_or_default();
    assert_eq!(call.expected_status, Some(ExpectedStatus::One(200)));
    assert_eq!(phase.post_hooks[0].command.clone().unwrap_or_default().command[1], "--env");
    assert_eq!(phase.checks[1].command.clone().unwrap_or_default().env["KUBECONFIG"], "/etc/kubeconfig");
}
