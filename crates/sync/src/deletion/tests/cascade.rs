use super::*;

#[test]
fn the_highest_wave_goes_first_and_kinds_in_reverse() {
    let app = application(&[RESOURCES]);
    let mut objects = vec![
        annotated("ConfigMap", "early", json!({SYNC_WAVE: "-1"})),
        live("Namespace", "n", json!({})),
        live("Service", "web", json!({})),
        live("Widget", "custom", json!({})),
        annotated("ConfigMap", "late", json!({SYNC_WAVE: "5"})),
        annotated("Secret", "late-too", json!({SYNC_WAVE: "5"})),
    ];
    let mut order = Vec::new();
    while !objects.is_empty() {
        let decision = decided(&app, &objects, &[]);
        assert_eq!(decision.finalizers, None);
        let goes: Vec<String> = decision
            .verbs
            .iter()
            .map(|verb| match verb {
                Verb::Delete(delete) => delete.key.name.clone(),
                other => panic!("a deletion, not {other:?}"),
            })
            .collect();
        objects.retain(|object| !goes.contains(&object.name().to_owned()));
        order.push(goes.join(" "));
    }
    assert_eq!(order, ["late", "late-too", "custom", "web", "n", "early"]);
    assert_eq!(decided(&app, &[], &[]).finalizers, Some(Vec::new()));
}

#[test]
fn what_is_being_deleted_is_waited_for() {
    let app = application(&[RESOURCES]);
    let going = live(
        "Widget",
        "x",
        json!({"deletionTimestamp": DELETED,
        "finalizers": ["foregroundDeletion", "example.com/keep"]}),
    );
    let decision = decided(&app, &[going, live("ConfigMap", "later", json!({}))], &[]);
    assert_eq!(waits(&decision), "waiting for deletion of /Widget/x, held by finalizers example.com/keep");
    assert!(decision.verbs.is_empty());
    let objects: Vec<_> = (0..3).map(|index| live("ConfigMap", &format!("c{index}"), json!({}))).collect();
    let decision = decided(&app, &objects, &[]);
    assert_eq!(waits(&decision), "waiting for deletion of /ConfigMap/c0 and 2 more resources");
    assert_eq!(decision.verbs.len(), 3);
}

#[test]
fn dependants_go_as_the_first_finalizer_says() {
    for (finalizers, expected) in [
        (vec![RESOURCES], Propagation::Foreground),
        (vec![RESOURCES_BACKGROUND, RESOURCES], Propagation::Background),
        (vec![RESOURCES, RESOURCES_BACKGROUND], Propagation::Foreground),
    ] {
        let decision = decided(&application(&finalizers), &[live("ConfigMap", "a", json!({}))], &[]);
        let Verb::Delete(delete) = &decision.verbs[0] else { panic!("a deletion") };
        assert_eq!((delete.propagation, delete.uid.as_str()), (expected, "uid-a"));
        assert_eq!(delete.resource_version, None);
    }
    let both = application(&[RESOURCES_BACKGROUND, RESOURCES, "other"]);
    assert_eq!(decided(&both, &[], &[]).finalizers, Some(vec!["other".to_owned()]));
}

#[test]
fn some_objects_outlive_the_application() {
    let app = application(&[RESOURCES]);
    let definition =
        Arc::new(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crd"}}));
    let itself = Arc::new(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u"}}));
    let objects = [
        definition,
        itself,
        annotated("ConfigMap", "kept", json!({SYNC_OPTIONS: "Delete=false"})),
        annotated("ConfigMap", "helm", json!({HELM_RESOURCE_POLICY: "keep"})),
        live("Forbidden", "secret", json!({"deletionTimestamp": DELETED})),
    ];
    let decision = decided(&app, &objects, &[]);
    assert_eq!(decision.finalizers, Some(Vec::new()));
    let kept: Vec<(&str, Kept)> = decision.kept.iter().map(|(key, why)| (key.name.as_str(), *why)).collect();
    assert_eq!(
        kept,
        [
            ("crd", Kept::Definition),
            ("web", Kept::Itself),
            ("kept", Kept::Option),
            ("helm", Kept::HelmPolicy),
            ("secret", Kept::NotPermitted),
        ]
    );
    // The Application's default holds for objects that say nothing.
    let mut by_default = app;
    by_default.spec.sync_policy =
        serde_json::from_value(json!({"syncOptions": ["Delete=false"]})).expect("a policy");
    let objects = [
        live("ConfigMap", "kept", json!({})),
        annotated("ConfigMap", "goes", json!({SYNC_OPTIONS: "Delete=true"})),
    ];
    assert_eq!(said(&decided(&by_default, &objects, &[])), ["delete goes"]);
}

#[test]
fn nothing_goes_before_everything_guarded_is_approved() {
    let app = application(&[RESOURCES]);
    let guarded = annotated("ConfigMap", "guarded", json!({SYNC_OPTIONS: "Delete=confirm", SYNC_WAVE: "-9"}));
    let other = live("ConfigMap", "other", json!({}));
    let decision = decided(&app, &[guarded.clone(), other.clone()], &[]);
    assert_eq!(decision.verbs, Vec::new());
    let expected = "waiting for deletion confirmation of /ConfigMap/guarded";
    assert_eq!(condition(&decision), (DELETION_APPROVAL_REQUIRED_INFO, expected));
    assert_eq!(decision.approvals, [guarded.key()]);
    for (time, approved) in
        [("2026-01-01T11:59:59Z", false), ("2026-01-01T12:00:00.5Z", true), ("true", false)]
    {
        let mut app = app.clone();
        app.metadata.annotations = Some([(DELETION_APPROVED.to_owned(), time.to_owned())].into());
        let decision = decided(&app, &[guarded.clone(), other.clone()], &[]);
        assert_eq!(said(&decision).is_empty(), !approved, "{time}");
    }
    // Guarded objects are deleted in the version whose approval was read.
    let mut approved = app.clone();
    approved.metadata.annotations = Some([(DELETION_APPROVED.to_owned(), DELETED.to_owned())].into());
    let decision = decided(&approved, &[guarded], &[]);
    let Verb::Delete(delete) = &decision.verbs[0] else { panic!("a deletion") };
    assert_eq!(delete.resource_version.as_deref(), Some("7"));
}

#[test]
fn what_the_last_comparison_saw_guards_too() {
    let mut app = application(&[RESOURCES]);
    app.status.resources = serde_json::from_value(json!([
        {"kind": "ConfigMap", "namespace": "n", "name": "a", "requiresDeletionConfirmation": true}]))
    .expect("rows");
    let decision = decided(&app, &[live("ConfigMap", "a", json!({}))], &[]);
    assert_eq!(decision.approvals.len(), 1);
    let own_word = annotated("ConfigMap", "a", json!({SYNC_OPTIONS: "Delete=true"}));
    assert_eq!(said(&decided(&app, &[own_word], &[])), ["delete a"]);
}

#[test]
fn a_namespace_is_as_guarded_as_what_it_holds() {
    let app = application(&[RESOURCES]);
    let inside = |name: &str| -> Vec<(ResourceKey, Arc<Value>)> {
        let object = annotated("Secret", "inside", json!({SYNC_OPTIONS: "Delete=confirm"}));
        if name == "n" { vec![(object.key(), object)] } else { Vec::new() }
    };
    let rules = rules();
    let decide_on = |namespace: &str| {
        decide(&Observation {
            application: &app,
            project: Project::Found(&rules),
            own_namespace: "argocd",
            cluster: READY,
            live: &[live("Namespace", namespace, json!({}))],
            kinds: &kinds,
            hooks: Rendered::Not,
            health: &health,
            guarded_in_namespace: &inside,
            settings: &DeletionSettings::default(),
            now: DELETED.parse().expect("a time"),
        })
    };
    assert_eq!(decide_on("n").approvals[0].name, "inside");
    assert_eq!(said(&decide_on("m")), ["delete m"]);
}

#[test]
fn hooks_need_no_approval() {
    let mut app = application(&[RESOURCES]);
    app.spec.sync_policy =
        serde_json::from_value(json!({"syncOptions": ["Delete=confirm"]})).expect("a policy");
    let left = annotated("Job", "hook", json!({HOOK: "PreSync"}));
    assert_eq!(said(&decided(&app, std::slice::from_ref(&left), &[])), ["delete hook"]);
    let now = DELETED.parse().expect("a time");
    assert!(!Guard::of(&app).awaits_approval(&left, now));
    assert!(Guard::of(&app).awaits_approval(&live("ConfigMap", "a", json!({})), now));
}

#[test]
fn what_is_known_and_not_seen_is_to_be_read() {
    let mut app = application(&[RESOURCES]);
    let known = |name: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": "n", "name": name});
    let result = |name: &str, status: &str| {
        let mut known = known(name);
        known["status"] = status.into();
        known
    };
    app.status = serde_json::from_value(json!({
        "resources": [known("seen"), known("compared"),
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "n", "name": "web"}],
        "operationState": {
            "operation": {}, "phase": "Succeeded", "startedAt": "2025-01-01T12:00:00Z",
            "finishedAt": "2025-01-01T12:00:00Z",
            "syncResult": {"revision": "r", "resources": [
                result("synced", "Synced"), result("compared", "Synced"), result("refused", "SyncFailed")]},
        },
    }))
    .expect("a status");
    assert!(unseen(&application(&[]), &[]).is_empty());
    let unseen = unseen(&app, &[live("ConfigMap", "seen", json!({}))]);
    let unseen: Vec<(&str, &str)> =
        unseen.iter().map(|(key, version)| (key.name.as_str(), version.as_str())).collect();
    assert_eq!(unseen, [("compared", "v1"), ("synced", "v1"), ("web", "apps/v1")], "however long ago");
}
