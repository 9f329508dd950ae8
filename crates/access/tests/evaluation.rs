//! Who may do what, row by row: the rules of Kubernetes' RBAC.

use baton_access::{Attributes, Caller, Decision, Policy, Request, RoleRef, Rule, uncovered};
use serde_json::{Value, json};

fn role(kind: &str, namespace: &str, name: &str, rules: Value) -> Value {
    json!({"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": rules})
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: Value) -> Value {
    let kind = if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
    json!({
        "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": role.0, "name": role.1}, "subjects": subjects,
    })
}

fn user(name: &str) -> Value {
    json!([{"kind": "User", "name": name}])
}

/// `verb group/resource[/subresource] namespace name`, where `-` is none, or `verb /path`.
fn may(policy: &Policy, name: &str, groups: &[&str], question: &str) -> Decision {
    let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    let caller = Caller { name, groups: &groups };
    let words: Vec<&str> = question.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
    let request = match words.as_slice() {
        [verb, path] => Request::Path { verb, path },
        [verb, kind, namespace, name] => {
            let (group, resource) = kind.split_once('/').expect("a group");
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            Request::Resource(Attributes { verb, group, resource, subresource, namespace, name })
        }
        other => panic!("{other:?} is no question"),
    };
    policy.decide(&caller, &request)
}

#[test]
fn a_rule_grants_what_it_names_and_nothing_else() {
    let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
    let rows: &[(Value, &str, bool)] = &[
        (pods.clone(), "get /pods a x", true),
        (pods.clone(), "list /pods a -", true),
        (pods.clone(), "watch /pods a -", false),
        (pods.clone(), "get /pods/log a x", false),
        (pods.clone(), "get /secrets a x", false),
        (pods.clone(), "get metrics.k8s.io/pods a x", false),
        (pods.clone(), "get /pods b x", false),
        (pods.clone(), "get /pods - x", false),
        (json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}), "impersonate /pods a x", true),
        (json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["pods"]}), "get any/pods a x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*"]}), "get /pods a x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*"]}), "get /pods/log a x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}), "get /pods/log a x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}), "get /pods a x", false),
        (
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}),
            "get /pods/status a x",
            false,
        ),
        (
            json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}),
            "get apps/deployments/scale a x",
            true,
        ),
        (
            json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}),
            "get apps/deployments a x",
            false,
        ),
        (
            json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}),
            "get apps/deployments/status a x",
            false,
        ),
        // What is below a resource is nothing of its own kind.
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/"]}), "get /pods a x", false),
        (json!({"verbs": ["get"], "apiGroups": [""]}), "get /pods a x", false),
        (json!({"verbs": "get", "apiGroups": [""], "resources": ["pods"]}), "get /pods a x", false),
        (json!(null), "get /pods a x", false),
    ];
    for (rule, question, expected) in rows {
        let objects = [role("Role", "a", "r", json!([rule])), binding("a", "b", ("Role", "r"), user("jane"))];
        let policy = Policy::read(&objects);
        assert_eq!(may(&policy, "jane", &[], question).is_allowed(), *expected, "{rule}: {question}");
        assert!(!may(&policy, "john", &[], question).is_allowed(), "nobody else: {question}");
    }
}

#[test]
fn a_rule_with_names_is_about_these_alone() {
    let named =
        json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"]}]);
    let policy =
        Policy::read(&[role("Role", "a", "r", named), binding("a", "b", ("Role", "r"), user("jane"))]);
    for (question, expected) in [
        ("get /configmaps a one", true),
        ("delete /configmaps a one", true),
        // A selection by name carries the name.
        ("watch /configmaps a one", true),
        ("get /configmaps a two", false),
        ("list /configmaps a -", false),
        // What is created has no name yet.
        ("create /configmaps a -", false),
        ("deletecollection /configmaps a -", false),
    ] {
        assert_eq!(may(&policy, "jane", &[], question).is_allowed(), expected, "{question}");
    }
}

#[test]
fn a_subject_is_a_user_a_group_or_a_service_account() {
    let anything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let account =
        |namespace: Value| json!([{"kind": "ServiceAccount", "name": "ci", "namespace": namespace}]);
    let rows: &[(Value, &str, &[&str], bool)] = &[
        (user("jane"), "jane", &[], true),
        (user("jane"), "janet", &[], false),
        (user("team"), "jane", &["team"], false),
        (json!([{"kind": "Group", "name": "team"}]), "jane", &["other", "team"], true),
        (json!([{"kind": "Group", "name": "team"}]), "team", &[], false),
        (account(json!("b")), "system:serviceaccount:b:ci", &[], true),
        (account(json!("b")), "system:serviceaccount:a:ci", &[], false),
        (account(json!("b")), "ci", &[], false),
        // Without a namespace it is one beside the binding.
        (account(json!(null)), "system:serviceaccount:a:ci", &[], true),
        (account(json!("")), "system:serviceaccount:b:ci", &[], false),
        (json!([{"kind": "Robot", "name": "jane"}]), "jane", &[], false),
        (json!(null), "jane", &[], false),
    ];
    for (subjects, name, groups, expected) in rows {
        let objects =
            [role("Role", "a", "r", anything.clone()), binding("a", "b", ("Role", "r"), subjects.clone())];
        let decision = may(&Policy::read(&objects), name, groups, "get /pods a x");
        assert_eq!(decision.is_allowed(), *expected, "{subjects} for {name}");
    }
}

#[test]
fn where_a_role_holds_is_said_by_its_binding() {
    let secrets = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets", "nodes"]}]);
    let all = role("ClusterRole", "", "reader", secrets.clone());
    let everywhere = [all.clone(), binding("", "b", ("ClusterRole", "reader"), user("jane"))];
    let within = [all.clone(), binding("a", "b", ("ClusterRole", "reader"), user("jane"))];
    let lost = [role("Role", "b", "reader", secrets), binding("a", "b", ("Role", "reader"), user("jane"))];
    for (objects, expected) in [
        (&everywhere[..], [true, true, true]),
        (&within[..], [true, false, false]),
        (&lost[..], [false, false, false]),
    ] {
        let policy = Policy::read(objects);
        let questions = ["get /secrets a x", "get /secrets b x", "get /nodes - x"];
        assert_eq!(questions.map(|asked| may(&policy, "jane", &[], asked).is_allowed()), expected);
    }
    // No ClusterRoleBinding leads to a Role, whatever its namespace.
    let crossed = [role("Role", "", "reader", json!([])), binding("", "b", ("Role", "reader"), user("jane"))];
    assert_eq!(may(&Policy::read(&crossed), "jane", &[], "get /secrets a x").reason(), "");
}

#[test]
fn paths_are_granted_for_the_whole_cluster_only() {
    let rules = json!([{"verbs": ["get"], "nonResourceURLs": ["/version", "/apis/*", "/logs*"]}]);
    let bound = |namespace: &str| {
        Policy::read(&[
            role("ClusterRole", "", "r", rules.clone()),
            binding(namespace, "b", ("ClusterRole", "r"), user("jane")),
        ])
    };
    for (question, expected) in [
        ("get /version", true),
        ("get /versions", false),
        ("post /version", false),
        ("get /apis/apps/v1", true),
        ("get /apis", false),
        ("get /logs", true),
        ("get /logs/kubelet", true),
    ] {
        assert_eq!(may(&bound(""), "jane", &[], question).is_allowed(), expected, "{question}");
        assert!(!may(&bound("a"), "jane", &[], question).is_allowed(), "{question}");
    }
}

#[test]
fn an_answer_says_by_what() {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let accounts = json!([{"kind": "ServiceAccount", "name": "ci", "namespace": "b"}]);
    let policy = Policy::read(&[
        role("Role", "a", "reader", rules.clone()),
        role("ClusterRole", "", "every", rules),
        binding("a", "one", ("Role", "reader"), accounts),
        binding("", "two", ("ClusterRole", "every"), json!([{"kind": "Group", "name": "team"}])),
        binding("a", "three", ("Role", "gone"), user("jane")),
    ]);
    let told = |name, groups: &[&str]| may(&policy, name, groups, "get /pods a x").reason().to_owned();
    assert_eq!(
        told("system:serviceaccount:b:ci", &[]),
        r#"RBAC: allowed by RoleBinding "one/a" of Role "reader/a" to ServiceAccount "ci/b""#
    );
    assert_eq!(
        told("jane", &["team"]),
        r#"RBAC: allowed by ClusterRoleBinding "two" of ClusterRole "every" to Group "team""#
    );
    assert_eq!(told("jane", &[]), r#"RBAC: role.rbac.authorization.k8s.io "gone" not found"#);
    assert_eq!(told("john", &[]), "");
    assert!(may(&policy, "john", &["system:masters"], "delete /nodes - x").is_allowed());
}

#[test]
fn what_is_refused_is_told_in_kubernetes_words() {
    let mut asked = Attributes {
        verb: "update",
        group: "apps",
        resource: "deployments",
        subresource: "scale",
        namespace: "a",
        name: "web",
    };
    assert_eq!(
        Request::Resource(asked).refused("jane"),
        r#"User "jane" cannot update resource "deployments/scale" in API group "apps" in the namespace "a""#
    );
    (asked.namespace, asked.subresource) = ("", "");
    assert_eq!(
        Request::Resource(asked).refused("jane"),
        r#"User "jane" cannot update resource "deployments" in API group "apps" at the cluster scope"#
    );
    let path = Request::Path { verb: "get", path: "/metrics" };
    assert_eq!(path.refused("jane"), r#"User "jane" cannot get path "/metrics""#);
}

#[test]
fn an_aggregated_role_has_the_rules_of_those_it_chooses() {
    let part = |name: &str, label: &str, resource: &str| {
        let mut role = role(
            "ClusterRole",
            "",
            name,
            json!([{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}]),
        );
        role["metadata"]["labels"] = json!({"to": label});
        role
    };
    // Its own rules count for nothing: a controller would overwrite them.
    let mut whole = part("whole", "x", "secrets");
    whole["aggregationRule"] = json!({"clusterRoleSelectors": [
        {"matchLabels": {"to": "x"}}, {"matchExpressions": [{"key": "to", "operator": "In", "values": ["y"]}]},
    ]});
    let objects = [
        whole,
        part("one", "x", "pods"),
        part("two", "y", "services"),
        part("three", "z", "nodes"),
        binding("", "b", ("ClusterRole", "whole"), user("jane")),
    ];
    let policy = Policy::read(&objects);
    let questions = ["get /pods a x", "get /services a x", "get /nodes - x", "get /secrets a x"];
    assert_eq!(
        questions.map(|asked| may(&policy, "jane", &[], asked).is_allowed()),
        [true, true, false, false]
    );
}

#[test]
fn nobody_hands_out_what_they_do_not_have() {
    let rule = |verbs: &[&str], resources: &[&str], names: &[&str]| {
        Rule::read(
            &json!({"verbs": verbs, "apiGroups": ["", "apps"], "resources": resources, "resourceNames": names}),
        )
    };
    let path = |path: &str| Rule::read(&json!({"verbs": ["get"], "nonResourceURLs": [path]}));
    let rows: &[(&[Rule], Rule, bool)] = &[
        (&[], rule(&["get"], &["pods"], &[]), false),
        (&[rule(&["get"], &["pods"], &[])], rule(&["get"], &["pods"], &[]), true),
        (&[rule(&["*"], &["*"], &[])], rule(&["get", "list"], &["pods", "pods/log"], &["x"]), true),
        (&[rule(&["get"], &["pods"], &[])], rule(&["*"], &["pods"], &[]), false),
        (&[rule(&["get"], &["pods"], &[])], rule(&["get"], &["*"], &[]), false),
        // One rule may grant one half, another the other.
        (
            &[rule(&["get"], &["pods", "services"], &[]), rule(&["list"], &["pods", "services"], &[])],
            rule(&["get", "list"], &["services", "pods"], &[]),
            true,
        ),
        (&[rule(&["get"], &["pods"], &[])], rule(&["get"], &["pods"], &["x"]), true),
        (&[rule(&["get"], &["pods"], &["x"])], rule(&["get"], &["pods"], &[]), false),
        (&[rule(&["get"], &["pods"], &["x", "y"])], rule(&["get"], &["pods"], &["y"]), true),
        (&[rule(&["get"], &["pods"], &["x"])], rule(&["get"], &["pods"], &["x", "y"]), false),
        (&[rule(&["get"], &["*/status"], &[])], rule(&["get"], &["pods/status"], &[]), true),
        (&[rule(&["get"], &["*/status"], &[])], rule(&["get"], &["pods"], &[]), false),
        (&[path("/apis/*")], path("/apis/apps"), true),
        (&[path("/apis/*")], path("/apis"), false),
        (&[path("*")], path("/anything"), true),
        (&[rule(&["*"], &["*"], &[])], path("/anything"), false),
    ];
    for (held, wanted, covered) in rows {
        let held: Vec<&Rule> = held.iter().collect();
        let wanted = std::slice::from_ref(wanted);
        assert_eq!(uncovered(&held, wanted).is_empty(), *covered, "{held:?} for {wanted:?}");
    }
}

#[test]
fn a_rule_of_a_million_rights_is_judged_at_once() {
    let many = |what: &str| -> Vec<String> { (0..1000).map(|number| format!("{what}{number}")).collect() };
    let wanted = [Rule::read(&json!({
        "verbs": many("verb"), "apiGroups": many("group"), "resources": many("kind"), "resourceNames": many("name"),
    }))];
    let part = Rule::read(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": many("kind")[1..]}));
    let all = Rule::read(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    assert_eq!(uncovered(&[&part], &wanted).len(), 1);
    assert_eq!(uncovered(&[&part, &all], &wanted).len(), 0);
}

#[test]
fn the_rules_of_a_caller_are_those_that_hold_where_they_ask() {
    let rules = |resource: &str| json!([{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}]);
    let mixed = json!([
        {"verbs": ["get"], "nonResourceURLs": ["/x"]}, {"verbs": ["get"], "apiGroups": [""], "resources": ["events"]},
    ]);
    let policy = Policy::read(&[
        role("Role", "a", "r", rules("pods")),
        role("Role", "b", "r", rules("secrets")),
        role("ClusterRole", "", "all", rules("nodes")),
        role("ClusterRole", "", "mixed", mixed),
        binding("a", "1", ("Role", "r"), user("jane")),
        binding("b", "2", ("Role", "r"), user("jane")),
        binding("a", "3", ("ClusterRole", "mixed"), user("jane")),
        binding("", "4", ("ClusterRole", "all"), user("jane")),
    ]);
    let caller = Caller { name: "jane", groups: &[] };
    let held = |namespace: &str| -> Vec<String> {
        policy
            .rules(&caller, namespace)
            .into_iter()
            .map(|rule| rule.to_value()["resources"][0].to_string())
            .collect()
    };
    assert_eq!(held("a"), ["\"nodes\"", "\"pods\"", "\"events\""]);
    assert_eq!(held(""), ["\"nodes\""]);
    let role = RoleRef::new("Role", "b", "r").expect("a role");
    assert_eq!(policy.role(&role).map(<[Rule]>::len), Some(1));
    assert_eq!(RoleRef::new("Role", "", "r"), None);
}
