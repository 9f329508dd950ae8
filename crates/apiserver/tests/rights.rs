//! Rights, where the cluster is asked to enforce them: what Roles grant, who one is by a token, and for whom one may speak.

use std::time::Duration;

use baton_apiserver::{Authorization, Cluster, Options, User};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A cluster that enforces rights, with a namespace `a`.
struct World(Cluster);

struct Answer {
    code: u16,
    body: Value,
}

impl World {
    async fn new() -> World {
        let options = Options { authorization: Authorization::rbac(), ..Options::default() };
        let world = World(Cluster::memory(options));
        for name in ["a", "b"] {
            world.make("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        }
        world
    }

    async fn send(
        &self,
        user: &User,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let kind = match method {
            Method::PATCH => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let mut request = Request::builder().method(method).uri(path).header("content-type", kind);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = request.body(Full::<Bytes>::from(text)).expect("a request");
        request.extensions_mut().insert(user.clone());
        let response = self.0.handle(request).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        Answer { code, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
    }

    async fn ask(&self, user: &User, method: Method, path: &str, body: Value) -> Answer {
        self.send(user, method, path, &[], body).await
    }

    async fn get(&self, user: &User, path: &str) -> Answer {
        self.ask(user, Method::GET, path, Value::Null).await
    }

    /// By the owner.
    async fn make(&self, path: &str, object: Value) -> Value {
        let made = self.ask(&User::admin(), Method::POST, path, object).await;
        assert_eq!(made.code, 201, "{}", made.body);
        made.body
    }

    /// Lets a user do something in namespace `a`.
    async fn grant(&self, name: &str, user: &User, rules: Value) {
        self.make(&format!("{RBAC}/namespaces/a/roles"), json!({"metadata": {"name": name}, "rules": rules}))
            .await;
        let subjects = json!([{"kind": "User", "name": user.name, "apiGroup": "rbac.authorization.k8s.io"}]);
        self.bind("namespaces/a/rolebindings", name, "Role", name, subjects).await;
    }

    async fn bind(&self, bindings: &str, name: &str, kind: &str, role: &str, subjects: Value) {
        let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role});
        let binding = json!({"metadata": {"name": name}, "roleRef": reference, "subjects": subjects});
        self.make(&format!("{RBAC}/{bindings}"), binding).await;
    }

    /// A token of a service account of namespace `a`, which is made.
    async fn token(&self, name: &str) -> String {
        self.make("/api/v1/namespaces/a/serviceaccounts", json!({"metadata": {"name": name}})).await;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let made = self.make(&format!("/api/v1/namespaces/a/serviceaccounts/{name}/token"), request).await;
        made["status"]["token"].as_str().expect("a token").to_owned()
    }
}

fn jane() -> User {
    User { name: "jane".into(), groups: vec!["system:authenticated".into()] }
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}, "data": {"k": "v"}})
}

const MAPS: &str = "/api/v1/namespaces/a/configmaps";

fn on_maps(verbs: &[&str]) -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}])
}

#[tokio::test]
async fn who_has_no_rights_is_told_in_kubernetes_words() {
    let world = World::new().await;
    let refused = world.get(&jane(), &format!("{MAPS}/one")).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403,
            "message": "configmaps \"one\" is forbidden: User \"jane\" cannot get resource \"configmaps\" in API group \"\" \
                        in the namespace \"a\"",
            "details": {"name": "one", "kind": "configmaps"},
        })
    );
    let refused = world.get(&jane(), "/apis/apps/v1/deployments").await;
    assert_eq!(
        refused.body["message"],
        "deployments.apps is forbidden: User \"jane\" cannot list resource \"deployments\" in API group \"apps\" at the \
         cluster scope"
    );
    let nobody = User { name: "system:anonymous".into(), groups: vec!["system:unauthenticated".into()] };
    let refused = world.get(&nobody, "/apis").await;
    assert_eq!(refused.body["message"], "forbidden: User \"system:anonymous\" cannot get path \"/apis\"");
    // What there is may be found out by everybody who is known.
    assert_eq!(world.get(&jane(), "/apis").await.code, 200);
    assert_eq!(world.get(&nobody, "/version").await.code, 200);
    // Whoever may not look does not learn what is missing.
    assert_eq!(world.get(&jane(), "/apis/none.example.com/v1/things").await.code, 403);
}

#[tokio::test]
async fn each_request_needs_its_own_verb() {
    let requests: [(&str, Method, String, Value); 9] = [
        ("create", Method::POST, MAPS.into(), map("new")),
        ("get", Method::GET, format!("{MAPS}/one"), Value::Null),
        ("list", Method::GET, MAPS.into(), Value::Null),
        ("update", Method::PUT, format!("{MAPS}/one"), map("one")),
        ("patch", Method::PATCH, format!("{MAPS}/one?fieldManager=m&force=true"), map("one")),
        ("watch", Method::GET, format!("{MAPS}?watch=true&timeoutSeconds=1"), Value::Null),
        ("watch", Method::GET, "/api/v1/watch/namespaces/a/configmaps?timeoutSeconds=1".into(), Value::Null),
        ("delete", Method::DELETE, format!("{MAPS}/one"), Value::Null),
        ("deletecollection", Method::DELETE, MAPS.into(), Value::Null),
    ];
    let all = ["create", "get", "list", "update", "patch", "watch", "delete", "deletecollection"];
    for (verb, method, path, body) in requests {
        let others: Vec<&str> = all.into_iter().filter(|other| *other != verb).collect();
        for (verbs, expected) in [(vec![verb], true), (others, false)] {
            let world = World::new().await;
            world.make(MAPS, map("one")).await;
            world.grant("r", &jane(), on_maps(&verbs)).await;
            let answer = world.ask(&jane(), method.clone(), &path, body.clone()).await;
            assert_eq!(answer.code != 403, expected, "{method} {path} with {verbs:?}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn subresources_and_names_are_rights_of_their_own() {
    let world = World::new().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "example.com/i:1"}]}});
    world.make("/api/v1/namespaces/a/pods", pod).await;
    world.grant("pods", &jane(), json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}])).await;
    let log = "/api/v1/namespaces/a/pods/p/log";
    assert_eq!(world.get(&jane(), log).await.code, 403);
    world
        .grant("logs", &jane(), json!([{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]))
        .await;
    assert_ne!(world.get(&jane(), log).await.code, 403);
    let named = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"], "verbs": ["get", "list", "watch"]}]);
    world.grant("named", &jane(), named).await;
    world.make(MAPS, map("one")).await;
    for (path, code) in [
        (format!("{MAPS}/one"), 200),
        (format!("{MAPS}/two"), 403),
        (MAPS.to_owned(), 403),
        (format!("{MAPS}?fieldSelector=metadata.name%3Done"), 200),
        (format!("{MAPS}?fieldSelector=metadata.name!%3Done"), 403),
        (format!("{MAPS}?fieldSelector=metadata.name%3Dtwo"), 403),
    ] {
        assert_eq!(world.get(&jane(), &path).await.code, code, "{path}");
    }
    // A namespace lies in itself.
    world
        .grant("own", &jane(), json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]))
        .await;
    assert_eq!(world.get(&jane(), "/api/v1/namespaces/a").await.code, 200);
    assert_eq!(world.get(&jane(), "/api/v1/namespaces/b").await.code, 403);
}

#[tokio::test]
async fn what_a_write_would_create_needs_the_right_to_create_it() {
    let world = World::new().await;
    world.grant("r", &jane(), on_maps(&["patch", "update"])).await;
    let path = format!("{MAPS}/new?fieldManager=m");
    let refused = world.ask(&jane(), Method::PATCH, &path, map("new")).await;
    assert_eq!(refused.code, 403, "{}", refused.body);
    assert!(refused.body["message"].as_str().is_some_and(|told| told.contains("cannot create")));
    world.make(MAPS, map("new")).await;
    assert_eq!(world.ask(&jane(), Method::PATCH, &path, map("new")).await.code, 200);
    world.grant("also", &jane(), on_maps(&["create"])).await;
    let other = format!("{MAPS}/other?fieldManager=m");
    assert_eq!(world.ask(&jane(), Method::PATCH, &other, map("other")).await.code, 201);
}

#[tokio::test]
async fn a_right_that_is_taken_away_is_gone_at_once() {
    let world = World::new().await;
    world.grant("r", &jane(), on_maps(&["list"])).await;
    assert_eq!(world.get(&jane(), MAPS).await.code, 200);
    let path = format!("{RBAC}/namespaces/a/rolebindings/r");
    assert_eq!(world.ask(&User::admin(), Method::DELETE, &path, Value::Null).await.code, 200);
    assert_eq!(world.get(&jane(), MAPS).await.code, 403);
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_have() {
    let world = World::new().await;
    let roles = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["*"]}]);
    // Everything but the two verbs that would allow it.
    let mut own = roles.clone();
    own[0]["verbs"] = json!(["create", "update", "get", "patch"]);
    world.grant("own", &jane(), own).await;
    world.grant("maps", &jane(), on_maps(&["get"])).await;
    let path = format!("{RBAC}/namespaces/a/roles");
    let role = |name: &str, verbs: &[&str]| json!({"metadata": {"name": name}, "rules": on_maps(verbs)});
    assert_eq!(world.ask(&jane(), Method::POST, &path, role("fine", &["get"])).await.code, 201);
    let refused = world.ask(&jane(), Method::POST, &path, role("more", &["get", "delete"])).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.body["message"],
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is attempting \
         to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"get\" \"delete\"]}"
    );
    let mut changed = role("fine", &["get"]);
    changed["rules"] = on_maps(&["delete"]);
    assert_eq!(world.ask(&jane(), Method::PUT, &format!("{path}/fine"), changed).await.code, 403);

    world.make(&path, role("strong", &["delete"])).await;
    let bindings = format!("{RBAC}/namespaces/a/rolebindings");
    let binding = |name: &str, role: &str| {
        json!({
            "metadata": {"name": name}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "Role", "name": role, "apiGroup": "rbac.authorization.k8s.io"},
        })
    };
    assert_eq!(world.ask(&jane(), Method::POST, &bindings, binding("weak", "fine")).await.code, 201);
    assert_eq!(world.ask(&jane(), Method::POST, &bindings, binding("strong", "strong")).await.code, 403);
    assert_eq!(world.ask(&jane(), Method::POST, &bindings, binding("gone", "gone")).await.code, 404);
    world.grant("bind", &jane(), json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "resourceNames": ["strong"], "verbs": ["bind"]}])).await;
    assert_eq!(world.ask(&jane(), Method::POST, &bindings, binding("strong", "strong")).await.code, 201);
    world.grant("escalate", &jane(), roles).await;
    assert_eq!(world.ask(&jane(), Method::POST, &path, role("more", &["watch"])).await.code, 201);
}

#[tokio::test]
async fn a_token_is_its_account_until_it_goes_or_the_time_is_over() {
    let world = World::new().await;
    let token = world.token("ci").await;
    let user = world.0.authenticate(&token).expect("it is good");
    assert_eq!(user.name, "system:serviceaccount:a:ci");
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]);
    assert_eq!(world.get(&user, MAPS).await.code, 403);
    let account = json!([{"kind": "ServiceAccount", "name": "ci", "namespace": "a"}]);
    world
        .make(
            &format!("{RBAC}/namespaces/a/roles"),
            json!({"metadata": {"name": "r"}, "rules": on_maps(&["list"])}),
        )
        .await;
    world.bind("namespaces/a/rolebindings", "r", "Role", "r", account).await;
    assert_eq!(world.get(&user, MAPS).await.code, 200);

    // Another byte, another key, another algorithm, nothing.
    let other = World::new().await.token("ci").await;
    let parts: Vec<&str> = token.split('.').collect();
    let none = format!("eyJhbGciOiJub25lIn0.{}.", parts[1]);
    for bad in [&token[..token.len() - 2], &other, &none, "", ".", ".."] {
        assert_eq!(world.0.authenticate(bad), None, "{bad}");
    }
    let review = |token: &str| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let told = world.make(reviews, review(&token)).await;
    assert_eq!(told["status"]["user"]["username"], "system:serviceaccount:a:ci");
    assert_eq!(world.make(reviews, review(&other)).await["status"]["authenticated"], false);

    // An account of the same name is another one.
    let path = "/api/v1/namespaces/a/serviceaccounts/ci";
    assert_eq!(world.ask(&User::admin(), Method::DELETE, path, Value::Null).await.code, 200);
    assert_eq!(world.0.authenticate(&token), None);
    let anew = world.token("ci").await;
    assert_eq!(world.0.authenticate(&token), None);
    assert!(world.0.authenticate(&anew).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_token_expires() {
    let options = Options {
        authorization: Authorization::rbac(),
        clock: baton_apiserver::Clock::starting_at("2026-01-01T00:00:00Z".parse().expect("a time")),
        ..Options::default()
    };
    let world = World(Cluster::memory(options));
    world.make("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let token = world.token("ci").await;
    tokio::time::advance(Duration::from_secs(3599)).await;
    assert!(world.0.authenticate(&token).is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(world.0.authenticate(&token), None);
    let asked =
        |spec: Value| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let path = "/api/v1/namespaces/a/serviceaccounts/ci/token";
    for (spec, code) in [
        (json!({"expirationSeconds": 600}), 201),
        (json!({"expirationSeconds": 599}), 422),
        (json!({"expirationSeconds": 1_i64 << 33}), 422),
        (json!({"boundObjectRef": {"kind": "Pod", "name": "p"}}), 422),
    ] {
        let answer = world.ask(&User::admin(), Method::POST, path, asked(spec.clone())).await;
        assert_eq!(answer.code, code, "{spec}: {}", answer.body);
    }
    // One for somebody else opens nothing here.
    let other = world.make(path, asked(json!({"audiences": ["vault"]}))).await;
    let token = other["status"]["token"].as_str().expect("a token");
    assert_eq!(world.0.authenticate(token), None);
}

#[tokio::test]
async fn who_speaks_for_another_needs_the_right_to() {
    let world = World::new().await;
    world.grant("maps", &jane(), on_maps(&["list"])).await;
    let as_jane = [("impersonate-user", "jane")];
    let admin = User::admin();
    assert_eq!(world.send(&admin, Method::GET, MAPS, &as_jane, Value::Null).await.code, 200);
    let secrets = "/api/v1/namespaces/a/secrets";
    let refused = world.send(&admin, Method::GET, secrets, &as_jane, Value::Null).await;
    assert_eq!(refused.code, 403);
    assert!(refused.body["message"].as_str().is_some_and(|told| told.contains("User \"jane\" cannot list")));
    let john = User { name: "john".into(), groups: vec!["system:authenticated".into()] };
    let refused = world.send(&john, Method::GET, MAPS, &as_jane, Value::Null).await;
    assert_eq!(
        refused.body["message"],
        "users \"jane\" is forbidden: User \"john\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    // The groups of others are a right of their own.
    let rule = json!([{"apiGroups": [""], "resources": ["users"], "resourceNames": ["jane"], "verbs": ["impersonate"]}]);
    world.make(&format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "speak"}, "rules": rule})).await;
    world
        .bind(
            "clusterrolebindings",
            "speak",
            "ClusterRole",
            "speak",
            json!([{"kind": "User", "name": "john", "apiGroup": "rbac.authorization.k8s.io"}]),
        )
        .await;
    assert_eq!(world.send(&john, Method::GET, MAPS, &as_jane, Value::Null).await.code, 200);
    let masters = [("impersonate-user", "jane"), ("impersonate-group", "system:masters")];
    assert_eq!(world.send(&john, Method::GET, secrets, &masters, Value::Null).await.code, 403);
    assert_eq!(world.send(&admin, Method::GET, secrets, &masters, Value::Null).await.code, 200);
    let nobody = [("impersonate-group", "system:masters")];
    assert_eq!(world.send(&admin, Method::GET, secrets, &nobody, Value::Null).await.code, 400);
    let account = [("impersonate-user", "system:serviceaccount:a:ci")];
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = world
        .send(&admin, Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &account, review)
        .await;
    assert_eq!(
        who.body["status"]["userInfo"]["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"])
    );
}

#[tokio::test]
async fn reviews_answer_as_requests_would_be() {
    let world = World::new().await;
    world.grant("maps", &jane(), on_maps(&["list"])).await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (verb, namespace, allowed) in [("list", "a", true), ("list", "b", false), ("get", "a", false)] {
        let attributes = json!({"verb": verb, "resource": "configmaps", "namespace": namespace});
        let own = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}});
        let answer = world.ask(&jane(), Method::POST, reviews, own).await;
        assert_eq!(
            (answer.code, &answer.body["status"]["allowed"]),
            (201, &json!(allowed)),
            "{verb} {namespace}"
        );
        let other = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "jane", "resourceAttributes": attributes}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        assert_eq!(world.make(path, other.clone()).await["status"]["allowed"], allowed);
        assert_eq!(world.ask(&jane(), Method::POST, path, other).await.code, 403);
    }
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "a"}});
    let rules = world.ask(&jane(), Method::POST, path, review).await.body["status"]["resourceRules"].clone();
    let rules = rules.as_array().expect("rules");
    assert!(
        rules.contains(&json!({"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]})),
        "{rules:?}"
    );
    assert!(!rules.iter().any(|rule| rule["verbs"] == json!(["*"])), "{rules:?}");
}

#[tokio::test]
async fn without_being_asked_the_owner_may_everything_and_there_are_no_tokens() {
    let world = World(Cluster::memory(Options::default()));
    world.make("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    assert_eq!(world.get(&jane(), MAPS).await.code, 200);
    world.make("/api/v1/namespaces/a/serviceaccounts", json!({"metadata": {"name": "ci"}})).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let refused = world
        .ask(&User::admin(), Method::POST, "/api/v1/namespaces/a/serviceaccounts/ci/token", request)
        .await;
    assert_eq!(refused.code, 403);
    assert!(refused.body["message"].as_str().is_some_and(|told| told.contains("--authorization-mode rbac")));
}
