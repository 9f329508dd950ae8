use super::*;
use baton_api::names::FIELD_MANAGER;
use serde_json::json;

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn since() -> Timestamp {
    time("2026-01-01T10:00:00Z")
}

fn app(annotations: Value) -> Application {
    serde_json::from_value(json!({"metadata": {"name": "a", "annotations": annotations}}))
        .expect("an Application")
}

fn judge(application: &Application) -> Approvals<'_> {
    Approvals { application, since: since(), now: time("2026-01-01T11:00:00Z") }
}

fn by(manager: &str, at: &str, fields: &[&str]) -> Value {
    let fields: Map<String, Value> = fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
    json!({"manager": manager, "operation": "Update", "time": at,
        "fieldsV1": {"f:metadata": {"f:annotations": fields}}})
}

fn live(annotations: Value, managed: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n",
        "annotations": annotations, "managedFields": managed}})
}

#[test]
fn the_applications_time_approves_from_the_second_the_operation_began() {
    let cases = [
        ("2026-01-01T09:59:59Z", false),
        ("2026-01-01T09:59:59.999Z", false),
        ("2026-01-01T10:00:00Z", true),
        ("2026-01-01T10:00:00.123Z", true),
        ("2026-01-01T12:00:00+02:00", true),
        ("2026-01-01T11:04:00Z", true),
        ("2026-01-01T11:06:00Z", false),
        ("2999-01-01T00:00:00Z", false),
        ("true", false),
        ("", false),
    ];
    for (text, expected) in cases {
        let application = app(json!({application::DELETION_APPROVED: text}));
        assert_eq!(approved(&live(json!({}), json!([])), None, &judge(&application)), expected, "{text}");
    }
}

#[test]
fn the_start_of_an_operation_counts_to_the_second() {
    let application = app(json!({application::DELETION_APPROVED: "2026-01-01T10:00:00.2Z"}));
    let approvals = Approvals { since: time("2026-01-01T10:00:00.9Z"), ..judge(&application) };
    assert!(by_application(&approvals));
}

#[test]
fn true_counts_if_a_person_wrote_it_since_the_operation_began() {
    let field = [resource::DELETION_APPROVED];
    let cases = [
        (json!([by("kubectl-annotate", "2026-01-01T10:00:00Z", &field)]), true),
        (json!([by("kubectl-annotate", "2026-01-01T09:00:00Z", &field)]), false),
        (json!([by(FIELD_MANAGER, "2026-01-01T10:30:00Z", &field)]), false),
        (
            json!([
                by("kubectl", "2026-01-01T10:30:00Z", &field),
                by(FIELD_MANAGER, "2026-01-01T10:30:00Z", &field)
            ]),
            false,
        ),
        (json!([by("kubectl", "2026-01-01T10:30:00Z", &["other"])]), false),
        (json!([]), false),
        (json!(null), false),
    ];
    let nobody = app(json!({}));
    for (managed, expected) in cases {
        let object = live(json!({resource::DELETION_APPROVED: "true"}), managed.clone());
        assert_eq!(by_object(&object, None, &judge(&nobody)), expected, "{managed}");
    }
}

#[test]
fn a_time_on_the_object_approves_unless_it_came_from_the_source() {
    let nobody = app(json!({}));
    let field = [resource::DELETION_APPROVED];
    let object = |text: &str, managed: Value| live(json!({resource::DELETION_APPROVED: text}), managed);
    assert!(by_object(&object("2026-01-01T10:00:00Z", json!([])), None, &judge(&nobody)));
    assert!(!by_object(&object("2026-01-01T09:00:00Z", json!([])), None, &judge(&nobody)));
    assert!(!by_object(&object("yes", json!([])), None, &judge(&nobody)));
    let ours = json!([by(FIELD_MANAGER, "2026-01-01T10:30:00Z", &field)]);
    assert!(!by_object(&object("2026-01-01T10:30:00Z", ours), None, &judge(&nobody)));
}

#[test]
fn what_the_target_carries_is_no_approval() {
    let nobody = app(json!({}));
    let managed = json!([by("kubectl", "2026-01-01T10:30:00Z", &[resource::DELETION_APPROVED])]);
    let object = live(json!({resource::DELETION_APPROVED: "true"}), managed);
    assert!(by_object(&object, None, &judge(&nobody)));
    assert!(!by_object(&object, Some(&object), &judge(&nobody)));
}

#[test]
fn a_grant_holds_for_its_own_operation_only() {
    let nobody = app(json!({}));
    let key = ResourceKey::default();
    let given = |at: &str| grant([&key], "ada", time("2026-01-01T10:30:00Z"), &operation_name(time(at)));
    let fields = [resource::DELETION_APPROVED, baton::APPROVAL];
    // The hand that gave the grant wrote to the object again since; that does not renew it.
    let managed = json!([by("baton", "2026-01-01T10:45:00Z", &fields)]);
    let this = live(Value::Object(given("2026-01-01T10:00:00Z")), managed.clone());
    assert!(by_object(&this, None, &judge(&nobody)));
    let other = live(Value::Object(given("2026-01-01T08:00:00Z")), managed);
    assert!(!by_object(&other, None, &judge(&nobody)));
    let unmanaged = live(Value::Object(given("2026-01-01T10:00:00Z")), json!(null));
    assert!(by_object(&unmanaged, None, &judge(&nobody)));
    let from_source = live(
        Value::Object(given("2026-01-01T10:00:00Z")),
        json!([by(FIELD_MANAGER, "2026-01-01T10:45:00Z", &fields)]),
    );
    assert!(!by_object(&from_source, None, &judge(&nobody)));
}

#[test]
fn a_later_true_counts_beside_a_stale_grant_of_another_hand() {
    let nobody = app(json!({}));
    let key = ResourceKey::default();
    let stale = grant([&key], "ada", time("2026-01-01T08:30:00Z"), "2026-01-01T08:00:00Z");
    let managed = json!([
        by("baton", "2026-01-01T08:30:00Z", &[baton::APPROVAL]),
        by("kubectl-annotate", "2026-01-01T10:30:00Z", &[resource::DELETION_APPROVED])
    ]);
    assert!(by_object(&live(Value::Object(stale), managed), None, &judge(&nobody)));
}

#[test]
fn an_approval_taken_back_is_none() {
    let nobody = app(json!({}));
    let mut annotations = grant([&ResourceKey::default()], "ada", since(), &operation_name(since()));
    for (name, value) in revocation() {
        assert_eq!(value, Value::Null);
        annotations.remove(&name);
    }
    assert!(!by_object(&live(Value::Object(annotations), json!(null)), None, &judge(&nobody)));
}

#[test]
fn what_is_being_deleted_needs_no_approval() {
    let nobody = app(json!({}));
    let mut object = live(json!({}), json!([]));
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T09:00:00Z");
    assert!(approved(&object, None, &judge(&nobody)));
}

#[test]
fn who_asks_for_approval() {
    // own options, default of Prune, default of Delete -> needed to prune, needed to delete, guarded at all
    let cases = [
        ("", None::<&str>, None::<&str>, [false, false, false]),
        ("Prune=confirm", None, None, [true, true, true]),
        ("Delete=confirm", None, None, [false, true, true]),
        ("Prune=confirm,Delete=true", None, None, [true, false, true]),
        ("Prune=confirm,Delete=false", None, None, [true, false, true]),
        ("Prune=true", Some("confirm"), None, [false, false, false]),
        ("", Some("confirm"), None, [true, true, true]),
        ("", None, Some("confirm"), [false, true, true]),
        ("Delete=true", Some("confirm"), Some("confirm"), [true, false, true]),
        ("Prune=false", None, None, [false, false, false]),
        ("prune=confirm", None, None, [false, false, false]),
    ];
    for (own, prune, delete, expected) in cases {
        let object = live(json!({resource::SYNC_OPTIONS: own}), json!([]));
        let defaults = Defaults { prune, delete };
        let found = [
            needs(&object, Purpose::Prune, &defaults),
            needs(&object, Purpose::Delete, &defaults),
            guarded(Some(&object), None, &defaults),
        ];
        assert_eq!(found, expected, "{own} {prune:?} {delete:?}");
        assert_eq!(guarded(None, Some(&object), &defaults), expected[2]);
    }
}

#[test]
fn an_operation_without_a_word_on_pruning_takes_the_specs() {
    let application: Application = serde_json::from_value(
        json!({"spec": {"syncPolicy": {"syncOptions": ["Prune=confirm", "Delete=false"]}}}),
    )
    .expect("an Application");
    let mut sync = SyncOperation::default();
    assert_eq!(
        sync_defaults(&application, &sync),
        Defaults { prune: Some("confirm"), delete: Some("false") }
    );
    sync.sync_options = vec!["Prune=true".to_owned()];
    assert_eq!(sync_defaults(&application, &sync).prune, Some("true"));
}

#[test]
fn a_resource_is_deleted_on_request_only_with_a_fresh_approval() {
    let owner = app(json!({application::DELETION_APPROVED: "2026-01-01T11:00:00Z"}));
    let now = time("2026-01-01T11:00:00Z");
    let guarded = |at: &str| {
        let managed = json!([by("kubectl", at, &[resource::DELETION_APPROVED])]);
        live(json!({resource::SYNC_OPTIONS: "Delete=confirm", resource::DELETION_APPROVED: "true"}), managed)
    };
    assert_eq!(delete_of_resource(&live(json!({}), json!([])), &[], &owner, now), Ok(()));
    assert_eq!(delete_of_resource(&guarded("2026-01-01T10:50:00Z"), &[], &owner, now), Ok(()));
    let stale = guarded("2026-01-01T10:30:00Z");
    assert_eq!(delete_of_resource(&stale, &[], &owner, now), Err(vec![stale.key()]));
    let inside = [(stale.key(), Arc::new(stale.clone()))];
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    assert_eq!(delete_of_resource(&namespace, &inside, &owner, now), Err(vec![stale.key()]));
}

#[test]
fn a_grant_for_one_deletion_holds_for_that_object_only() {
    let owner = app(json!({}));
    let now = time("2026-01-01T11:00:00Z");
    let object = |uid: &str, operation: &str, at: &str| {
        let mut object =
            live(Value::Object(grant([&ResourceKey::default()], "ada", time(at), operation)), json!(null));
        object["metadata"]["annotations"][resource::SYNC_OPTIONS] = json!("Prune=confirm");
        object["metadata"]["uid"] = json!(uid);
        object
    };
    let cases = [
        ("u1", "deletion/u1", "2026-01-01T10:50:00Z", true),
        ("u1", "deletion/u2", "2026-01-01T10:50:00Z", false),
        ("u1", "deletion/u1", "2026-01-01T10:40:00Z", false),
        ("u1", "2026-01-01T10:45:00Z", "2026-01-01T10:50:00Z", false),
    ];
    for (uid, operation, at, expected) in cases {
        let object = object(uid, operation, at);
        assert_eq!(delete_of_resource(&object, &[], &owner, now).is_ok(), expected, "{operation} {at}");
    }
}

#[test]
fn inside_a_namespace_an_application_speaks_for_its_own_objects() {
    let agreed = app(json!({application::DELETION_APPROVED: "2026-01-01T10:30:00Z"}));
    let inside = ["ours", "theirs"].map(|name| {
        let mut object = live(json!({}), json!([]));
        object["metadata"]["name"] = json!(name);
        (object.key(), Arc::new(object))
    });
    let is_own = |object: &Value| object.name() == "ours";
    let missing = unapproved_inside(&inside, is_own, &judge(&agreed));
    assert_eq!(missing, [inside[1].0.clone()]);
    assert_eq!(unapproved_inside(&inside, is_own, &judge(&app(json!({})))).len(), 2);
}

#[test]
fn the_message_names_the_first_and_counts_the_rest() {
    let key = |group: &str, kind: &str, name: &str| ResourceKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: "n".to_owned(),
        name: name.to_owned(),
    };
    let (pod, web) = (key("", "Pod", "x"), key("apps", "Deployment", "web"));
    assert_eq!(waiting_message(std::slice::from_ref(&pod)), "waiting for pruning confirmation of /Pod/x");
    assert_eq!(
        waiting_message(&[web.clone(), pod.clone()]),
        "waiting for pruning confirmation of apps/Deployment/web and 1 more resources"
    );
    assert_eq!(waiting_message(&[]), "");
    assert_eq!(set_hash([&pod, &web]), set_hash([&web, &pod, &web]));
    assert_ne!(set_hash([&pod]), set_hash([&web]));
}

#[test]
fn a_true_that_was_not_given_for_the_operation_is_stale() {
    let field = [resource::DELETION_APPROVED];
    let none = app(json!({}));
    let marked = |at: &str| {
        live(json!({resource::DELETION_APPROVED: "true"}), json!([by("kubectl-annotate", at, &field)]))
    };
    let (before, after) = (marked("2026-01-01T09:00:00Z"), marked("2026-01-01T10:30:00Z"));
    assert!(is_stale(&before, None, &judge(&none), false));
    assert!(!is_stale(&after, None, &judge(&none), false));
    // Before anybody was asked, even a fresh time says nothing: the writer may have changed something else.
    assert!(is_stale(&after, None, &judge(&none), true));

    let now = time("2026-01-01T10:30:00Z");
    let granted = |operation: &str| {
        let mut object = live(Value::Object(grant([&before.key()], "ann", now, operation)), json!([]));
        object["metadata"]["managedFields"] =
            json!([by("ui", "2026-01-01T10:30:00Z", &[resource::DELETION_APPROVED, baton::APPROVAL])]);
        object
    };
    assert!(!is_stale(&granted(&operation_name(since())), None, &judge(&none), true));
    assert!(is_stale(&granted("another"), None, &judge(&none), false));

    // Neither what the source says, nor a time, nor what is going anyway is touched.
    let stated = json!({"metadata": {"annotations": {resource::DELETION_APPROVED: "true"}}});
    assert!(!is_stale(&before, Some(&stated), &judge(&none), true));
    let timed = live(json!({resource::DELETION_APPROVED: "2026-01-01T09:00:00Z"}), json!([]));
    assert!(!is_stale(&timed, None, &judge(&none), true));
    let mut going = before.clone();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T10:30:00Z");
    assert!(!is_stale(&going, None, &judge(&none), true));
}

#[test]
fn who_wrote_the_applications_time_and_when_is_held_against_it() {
    let field = [application::DELETION_APPROVED];
    let at = "2026-01-01T10:30:00Z";
    let cases = [
        (by("kubectl-annotate", "2026-01-01T10:30:00Z", &field), true),
        // Ahead of the operation, by a clock that ran fast or on purpose.
        (by("kubectl-annotate", "2026-01-01T09:58:00Z", &field), false),
        // From git, by an Application of Applications; from the template of a set.
        (by(FIELD_MANAGER, "2026-01-01T10:30:00Z", &field), false),
        (by("argocd-applicationset-controller", "2026-01-01T10:30:00Z", &field), false),
    ];
    for (record, expected) in cases {
        let mut application = app(json!({application::DELETION_APPROVED: at}));
        let other = by("other", "2026-01-01T08:00:00Z", &["x"]);
        application.metadata.managed_fields =
            serde_json::from_value(json!([record, other])).expect("a record");
        keep_record(&mut application.metadata);
        assert_eq!(application.metadata.managed_fields.as_ref().map(Vec::len), Some(1), "{record}");
        assert_eq!(by_application(&judge(&application)), expected, "{record}");
    }
    let mut silent = app(json!({"x": "y"}));
    silent.metadata.managed_fields = serde_json::from_value(json!([by("m", at, &["x"])])).expect("a record");
    keep_record(&mut silent.metadata);
    assert_eq!(silent.metadata.managed_fields, None);
}

#[test]
fn whoever_approved_in_vain_is_told_why() {
    let told = |application: &Application, object: Value, target: Option<Value>| {
        refusals([(&object, target.as_ref())], &judge(application))
    };
    let nothing = || live(json!({}), json!([]));
    let on_application = "the approval on the Application does not count: ";
    for (text, why) in [
        (
            "2026-01-01T09:59:59Z",
            "its time 2026-01-01T09:59:59Z is before the operation began at 2026-01-01T10:00:00Z",
        ),
        ("2999-01-01T00:00:00Z", "its time 2999-01-01T00:00:00Z is ahead of the clock"),
        ("true", "it is not a time as 2006-01-02T15:04:05Z is"),
    ] {
        let application = app(json!({application::DELETION_APPROVED: text}));
        assert_eq!(told(&application, nothing(), None), [format!("{on_application}{why}")]);
    }
    for (manager, at, why) in [
        (FIELD_MANAGER, "2026-01-01T10:30:00Z", "it came from git, and only a person's word does"),
        (
            "kubectl-edit",
            "2026-01-01T09:00:00Z",
            "it was written at 2026-01-01T09:00:00Z, before the operation began at 2026-01-01T10:00:00Z",
        ),
    ] {
        let mut application = app(json!({application::DELETION_APPROVED: "2026-01-01T10:30:00Z"}));
        let record = json!([by(manager, at, &[application::DELETION_APPROVED])]);
        application.metadata.managed_fields = serde_json::from_value(record).expect("managed fields");
        assert_eq!(told(&application, nothing(), None), [format!("{on_application}{why}")]);
    }

    let silent = app(json!({}));
    let mine = resource::DELETION_APPROVED;
    let by_git = live(json!({mine: "true"}), json!([by(FIELD_MANAGER, "2026-01-01T10:30:00Z", &[mine])]));
    let person = json!([by("kubectl-annotate", "2026-01-01T10:30:00Z", &[mine])]);
    let in_target = live(json!({mine: "true"}), json!([]));
    let on_object = "the approval on /Pod/n/p does not count: ";
    for (object, target, why) in [
        (by_git, None, "it came from git, and only a person's word does"),
        (
            live(json!({mine: "true"}), person.clone()),
            Some(in_target),
            "it came from git, and only a person's word does",
        ),
        (live(json!({mine: "yes"}), person.clone()), None, "it is neither \"true\" nor a time"),
        (
            live(json!({mine: "true"}), json!([by("kubectl", "2026-01-01T09:00:00Z", &[mine])])),
            None,
            "nobody is recorded to have written it since the operation began",
        ),
    ] {
        assert_eq!(told(&silent, object, target), [format!("{on_object}{why}")]);
    }
    assert_eq!(told(&silent, live(json!({mine: "true"}), person), None), [] as [String; 0], "it counts");
    assert_eq!(told(&silent, nothing(), None), [] as [String; 0], "there is none");
}
