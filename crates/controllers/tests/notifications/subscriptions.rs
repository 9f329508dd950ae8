//! Who is told: by annotation, by project, by configuration.

use std::time::Duration;

use serde_json::json;

use crate::scene::{NAMESPACE, project};
use crate::stage::{PLAIN, Stage, application, health, pass};

const ON_DEGRADED: &str = "notifications.argoproj.io/subscribe.on-degraded.slack";

#[tokio::test(start_paused = true)]
async fn an_annotation_a_project_and_the_configuration_subscribe() {
    let everybody = "- recipients: ['ops:']\n  triggers: [on-degraded]\n  selector: tier=web";
    let stage = Stage::new(&[PLAIN, &[("subscriptions", everybody)]].concat()).await;
    let mut ours = project("default", json!({}));
    ours["metadata"]["annotations"] = json!({ON_DEGRADED: "team"});
    stage.apply(ours).await;
    let mut app = application("web", json!({ON_DEGRADED: "me"}));
    app["metadata"]["labels"] = json!({"tier": "web"});
    stage.apply(app).await;
    stage.application("other", json!({}), health("Healthy")).await;
    let _controller = stage.run();
    stage.status("applications", "web", health("Degraded")).await;
    stage.status("applications", "other", health("Degraded")).await;
    let mut letters = stage.arrived(4).await;
    letters.sort();
    let expected = [
        "ops: web is degraded in ",
        "slack:me web is degraded in me",
        "slack:team other is degraded in team",
        "slack:team web is degraded in team",
    ];
    assert_eq!(letters, expected);
    pass(Duration::from_secs(600)).await;
    assert_eq!(stage.letters.attempts().len(), 4);
    assert_eq!(stage.notified("web").len(), 3);
    // Without oncePer it is told again once it was better meanwhile.
    stage.status("applications", "other", health("Healthy")).await;
    stage.until("it is forgotten", || stage.notified("other").is_empty()).await;
    stage.status("applications", "other", health("Degraded")).await;
    stage.arrived(5).await;
}

#[tokio::test(start_paused = true)]
async fn an_annotation_reaches_no_further_than_the_operator_allows() {
    let configuration = [
        ("service.slack", "token: $token\nallowedRecipients: ['team-*']"),
        ("template.degraded", "message: degraded"),
        ("trigger.on-degraded", "- when: app.status?.health?.status == 'Degraded'\n  send: [degraded]"),
    ];
    let stage = Stage::new(&configuration).await;
    let mut theirs = project("theirs", json!({"sourceNamespaces": ["other"]}));
    theirs["metadata"]["annotations"] = json!({ON_DEGRADED: "their-channel"});
    stage.apply(theirs).await;
    let _controller = stage.run_with(|settings| settings.application_namespaces = vec!["team".to_owned()]);
    for namespace in ["team", "elsewhere"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        stage.apply(object).await;
        // A project that does not list the namespace is not theirs to speak in the name of.
        let annotations = json!({
            ON_DEGRADED: "team-a;boss",
            "notifications.argoproj.io/subscribe.on-degraded.pager": "x",
            "notifications.argoproj.io/subscribe.on-nothing.slack": "team-a",
        });
        let mut app = application("web", annotations);
        app["metadata"]["namespace"] = namespace.into();
        app["spec"]["project"] = "theirs".into();
        app["status"] = health("Degraded");
        stage.apply(app).await;
    }
    stage.arrived(1).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(stage.letters.arrived(), ["slack:team-a degraded"], "another namespace is not looked at");
    let events = stage.events();
    for told in
        ["\"boss\" is not among the allowedRecipients", "there is no service pager", "no trigger on-nothing"]
    {
        let count = events.iter().filter(|event| event.contains(told)).count();
        assert_eq!(count, 1, "{told}: {events:?}");
    }
    assert!(
        events.iter().all(|event| event.starts_with("Application web NotificationProblem: ")),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_set_is_told_of_at_every_step_of_its_rollout() {
    let mut configuration: Vec<(String, String)> =
        baton_notifications::catalog::catalog().data.expect("a catalog").into_iter().collect();
    configuration.push(("service.slack".to_owned(), "token: $token".to_owned()));
    let configuration: Vec<(&str, &str)> =
        configuration.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let stage = Stage::new(&configuration).await;
    let subscriptions = "- trigger: [on-rollout-step, on-phase-failed, on-rollout-completed]\n  destinations: [{service: slack, recipients: [ops]}]";
    stage
        .apply(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {
                "name": "fleet", "namespace": NAMESPACE,
                "annotations": {"notifications.argoproj.io/subscriptions": subscriptions},
            },
            "spec": {"generators": [], "template": {"spec": {"project": "default"}}},
        }))
        .await;
    let _controller = stage.run();
    let rollout = |state: &str, step: u32| json!({"rollout": {"run": 1, "state": state, "step": step}});
    let failed = json!([{"generator": 0, "rolloutID": "r1", "currentPhase": 0, "state": "Failed", "phases": [
        {"name": "canary", "state": "Failed", "failure": {"reason": "CheckFailed", "message": "too slow."}},
    ]}]);
    let steps = [
        (rollout("Progressing", 1), "has opened step 1."),
        (rollout("Progressing", 2), "has opened step 2."),
        (json!({"phases": failed}), "CheckFailed: too slow."),
        (rollout("Complete", 2), "is done."),
    ];
    for (number, (status, told)) in steps.into_iter().enumerate() {
        stage.status("applicationsets", "fleet", status).await;
        let letters = stage.arrived(number + 1).await;
        assert!(letters[number].contains(told), "{letters:?}");
        pass(Duration::from_secs(120)).await;
        assert_eq!(stage.letters.attempts().len(), number + 1);
    }
}
