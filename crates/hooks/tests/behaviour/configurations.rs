//! Configurations that are refused before anything runs, or doubted: each with the field's path and what to do.

use baton_api::ApplicationSet;
use baton_api::phases::DeploymentStrategy;
use baton_hooks::sandbox::Support;
use baton_hooks::{AllowList, Finding, Language, Limits, Namespace, Policy, Settings, Severity, validate};
use serde_json::{Value, json};

/// What most operators have: a directory for commands, and nothing loosened.
fn settings() -> Settings {
    let support = Support { landlock: true, scopes: true, seccomp: true };
    Settings { directory: Some("hooks".into()), support, ..Settings::default() }
}

fn policy() -> Policy {
    Policy::new(&settings(), Namespace::ControlPlane, Language::Params)
}

fn find(phase: Value, policy: &Policy) -> Vec<Finding> {
    let strategy = json!({"type": "phaseDeployment", "phases": [phase]});
    let strategy: DeploymentStrategy = serde_json::from_value(strategy).expect("the JSON of a strategy");
    validate(&strategy, "s", policy)
}

/// Errors of a phase with one hook, as `path: message`; the path from the hook on.
fn errors(hook: Value, policy: &Policy) -> Vec<String> {
    let found = find(json!({"name": "p", "preHooks": [hook]}), policy);
    let errors = found.into_iter().filter(Finding::is_error);
    errors.map(|finding| finding.to_string().replace("s.phases[0].preHooks[0].", "")).collect()
}

fn http(fields: Value) -> Value {
    let mut call = json!({"url": "https://example.com/"});
    merge(&mut call, fields);
    json!({"name": "h", "type": "http", "http": call})
}

fn command(fields: Value) -> Value {
    let mut call = json!({"command": ["./check.sh"]});
    merge(&mut call, fields);
    json!({"name": "h", "type": "command", "command": call})
}

fn with(mut hook: Value, fields: Value) -> Value {
    merge(&mut hook, fields);
    hook
}

fn merge(object: &mut Value, fields: Value) {
    let (Value::Object(object), Value::Object(fields)) = (object, fields) else { panic!("both are objects") };
    object.extend(fields);
}

fn many(count: usize, value: &str) -> Value {
    (0..count).map(|number| (format!("X_{number}"), json!(value))).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn bad_configurations_are_refused_with_the_field_and_a_remedy() {
    let long = "x".repeat(40 << 10);
    let table: Vec<(Value, &str)> = vec![
        // The hook itself.
        (with(http(json!({})), json!({"name": ""})), "name: a name is needed"),
        (
            with(http(json!({})), json!({"name": "x".repeat(64)})),
            "name: a name may have 63 characters, this has 64",
        ),
        (
            with(http(json!({})), json!({"name": "a\r\nb"})),
            "name: a name is made of printable ASCII characters and neither begins nor ends with a blank",
        ),
        (
            with(http(json!({})), json!({"name": "größe"})),
            "name: a name is made of printable ASCII characters and neither begins nor ends with a blank",
        ),
        (with(http(json!({})), json!({"type": "grpc"})), "type: must be http or command, not \"grpc\""),
        (with(http(json!({})), json!({"type": null})), "type: must be http or command, not \"\""),
        (json!({"name": "h", "type": "http"}), "http: type http needs it"),
        (json!({"name": "h", "type": "command"}), "command: type command needs it"),
        (
            with(http(json!({})), json!({"command": {"command": ["./x"]}})),
            "command: type http excludes it; remove it or change the type",
        ),
        (
            with(command(json!({})), json!({"http": {"url": "https://example.com"}})),
            "http: type command excludes it; remove it or change the type",
        ),
        (
            with(http(json!({})), json!({"failurePolicy": "retry"})),
            "failurePolicy: must be fail, ignore or abort, not \"retry\"",
        ),
        (
            with(http(json!({})), json!({"scope": "cluster"})),
            "scope: must be phase or target, not \"cluster\"",
        ),
        // Times.
        (
            with(http(json!({})), json!({"timeout": "5 minutes"})),
            "timeout: \"5 minutes\" is no duration; write for example 30s, 5m or 1h30m",
        ),
        (with(http(json!({})), json!({"timeout": "0s"})), "timeout: must be longer than nothing"),
        (with(http(json!({})), json!({"timeout": "-5m"})), "timeout: must be longer than nothing"),
        (
            with(http(json!({})), json!({"timeout": "11m"})),
            "timeout: 11m is more than an HTTP call may take, which is 10m; for something that takes \
             longer, let each attempt be short and repeat it with retry",
        ),
        (
            with(command(json!({})), json!({"timeout": "24h"})),
            "timeout: 24h is more than a command may take, which is 30m; for something that takes longer, \
             let each attempt be short and repeat it with retry",
        ),
        (
            with(http(json!({})), json!({"retry": {"interval": "1m", "deadline": "73h"}})),
            "retry.deadline: 73h is more than the longest, which is 72h",
        ),
        (
            with(http(json!({})), json!({"retry": {"interval": "10ms", "deadline": "1h"}})),
            "retry.interval: must be at least 1s",
        ),
        (
            with(http(json!({})), json!({"retry": {"interval": "2h", "deadline": "1h"}})),
            "retry.interval: is longer than the deadline: there would be no second attempt",
        ),
        (
            with(http(json!({})), json!({"retry": {"interval": "soon", "deadline": "1h"}})),
            "retry.interval: \"soon\" is no duration; write for example 30s, 5m or 1h30m",
        ),
        // Secrets.
        (
            with(http(json!({})), json!({"secretRefs": [{"name": "a"}, {"name": "a"}]})),
            "secretRefs[1].name: \"a\" is taken; names must differ",
        ),
        (
            with(
                http(json!({})),
                json!({"secretRefs": [{"name": "a", "secretName": "../../other/secrets/loot"}]}),
            ),
            "secretRefs[0].secretName: \"../../other/secrets/loot\" is no name of a Secret; use lower-case letters, \
             digits, '-' and '.'",
        ),
        (
            with(http(json!({})), json!({"secretRefs": [{"name": "good?x=y"}]})),
            "secretRefs[0].name: \"good?x=y\" is no name of a Secret; use lower-case letters, digits, '-' and '.'",
        ),
        (http(json!({"url": "https:///x"})), "http.url: the URL has no host"),
        (
            with(http(json!({})), json!({"secretRefs": [{"name": ""}]})),
            "secretRefs[0].name: a name is needed",
        ),
        (
            http(json!({"headers": {"Authorization": "Bearer {{.secrets.servicenow.token}}"}})),
            "http.headers[Authorization]: uses the Secret \"servicenow\", which secretRefs does not \
             declare; add `secretRefs: [{name: servicenow}]` and label the Secret for use by hooks",
        ),
        (
            with(
                http(json!({"url": "https://example.com/{{.secrets.s.t}}"})),
                json!({"secretRefs": [{"name": "s"}]}),
            ),
            "http.url: a secret does not belong here, where others can see it; send it in a header",
        ),
        (
            with(
                command(json!({"command": ["./x", "{{.secrets.s.t}}"]})),
                json!({"secretRefs": [{"name": "s"}]}),
            ),
            "command.command[1]: a secret does not belong here, where others can see it; give it as an \
             environment variable",
        ),
        (
            with(http(json!({})), json!({"secretRefs": [{"name": "s", "keys": []}]})),
            "secretRefs[0].keys: an empty list would let no key be used; name some, or leave it out for all",
        ),
        (
            with(
                http(json!({"body": "{{ secrets.s.token }}"})),
                json!({"secretRefs": [{"name": "s", "keys": ["user"]}]}),
            ),
            "http.body: uses the key \"token\" of the Secret \"s\", which its keys do not list; add it",
        ),
        (
            with(http(json!({"body": "{{name}}"})), json!({"scope": "phase"})),
            "http.body: names \"name\" of a target, and with scope: phase there is none; use scope: target",
        ),
        // URLs.
        (http(json!({"url": ""})), "http.url: a URL is needed"),
        (
            http(json!({"url": "example.com/hook"})),
            "http.url: is no URL: relative URL without a base; write for example https://host/path",
        ),
        (
            http(json!({"url": "https://"})),
            "http.url: is no URL: empty host; write for example https://host/path",
        ),
        (
            http(json!({"url": "ftp://example.com/"})),
            "http.url: the scheme \"ftp\" is not allowed; use https://",
        ),
        (
            http(json!({"url": "file:///etc/passwd"})),
            "http.url: the scheme \"file\" is not allowed; use https://",
        ),
        (
            http(json!({"url": "gopher://example.com/"})),
            "http.url: the scheme \"gopher\" is not allowed; use https://",
        ),
        (
            http(json!({"url": "http://example.com/"})),
            "http.url: http:// is not encrypted; use https://, or let the operator allow it with \
             --hooks-allow-http",
        ),
        (
            http(json!({"url": "https://user:password@example.com/"})),
            "http.url: user names and passwords do not belong into a URL; use an Authorization header \
             filled in from secretRefs",
        ),
        (
            http(json!({"url": "https://{{name}}@example.com/"})),
            "http.url: user names and passwords do not belong into a URL; use an Authorization header \
             filled in from secretRefs",
        ),
        (
            http(json!({"url": "https://example.com/\nHost: other"})),
            "http.url: holds a control character, a line end or a blank at its edge",
        ),
        (
            http(json!({"url": "https://example.com/\u{0}"})),
            "http.url: holds a control character, a line end or a blank at its edge",
        ),
        (
            http(json!({"url": format!("https://example.com/{}", "x".repeat(2048))})),
            "http.url: a URL may have 2048 bytes, this has 2068",
        ),
        (
            http(json!({"url": "https://127.0.0.1/"})),
            "http.url: 127.0.0.1 is this machine (loopback); the operator can allow it with --hooks-allow",
        ),
        (
            http(json!({"url": "https://localhost:8443/"})),
            "http.url: localhost is this machine (loopback); the operator can allow it with --hooks-allow",
        ),
        (
            http(json!({"url": "https://0x7f.1/"})),
            "http.url: 127.0.0.1 is this machine (loopback); the operator can allow it with --hooks-allow",
        ),
        (
            http(json!({"url": "https://169.254.169.254/latest"})),
            "http.url: 169.254.169.254 is link-local, where cloud metadata is served; the operator can \
             allow it with --hooks-allow and this very address",
        ),
        (
            http(json!({"url": "https://[::ffff:10.0.0.1]/"})),
            "http.url: [::ffff:a00:1] is in a private network; the operator can allow it with --hooks-allow",
        ),
        // A template behind the host leaves nothing open of where it leads.
        (
            http(json!({"url": "https://10.0.0.1/{{name}}"})),
            "http.url: 10.0.0.1 is in a private network; the operator can allow it with --hooks-allow",
        ),
        (
            http(json!({"url": "https://example.com/{{name"})),
            "http.url: is no template: a \"{{\" has no \"}}\"",
        ),
        // The rest of a call.
        (
            http(json!({"method": "TRACE"})),
            "http.method: must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS, not \"TRACE\"",
        ),
        (
            http(json!({"method": "post"})),
            "http.method: must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS, not \"post\"",
        ),
        (
            http(json!({"headers": many(51, "x")})),
            "http.headers: 51 headers are more than the 50 that are allowed",
        ),
        (http(json!({"headers": {"Bad Name": "x"}})), "http.headers[Bad Name]: is no name of a header"),
        (http(json!({"headers": {"": "x"}})), "http.headers[]: is no name of a header"),
        (
            http(json!({"headers": {"X-A": "x\r\nX-B: y"}})),
            "http.headers[X-A]: the value holds a line end, a control character or other text than ASCII",
        ),
        (
            http(json!({"headers": {"X-A": "é"}})),
            "http.headers[X-A]: the value holds a line end, a control character or other text than ASCII",
        ),
        (
            http(json!({"headers": {"X-A": "1", "x-a": "2"}})),
            "http.headers[x-a]: is the same header as X-A; case makes no difference",
        ),
        (
            http(json!({"headers": {"X-Hook-Type": "post"}})),
            "http.headers[X-Hook-Type]: is set automatically and cannot be given; remove it",
        ),
        (
            http(json!({"headers": {"idempotency-key": "1"}})),
            "http.headers[idempotency-key]: is set automatically and cannot be given; remove it",
        ),
        (
            http(json!({"headers": {"Host": "other"}})),
            "http.headers[Host]: belongs to the connection and cannot be given; remove it",
        ),
        (
            http(json!({"headers": {"Transfer-Encoding": "chunked"}})),
            "http.headers[Transfer-Encoding]: belongs to the connection and cannot be given; remove it",
        ),
        (
            http(json!({"headers": {"X-A": "x".repeat(8193)}})),
            "http.headers[X-A]: a header may have 8192 bytes, this has 8193",
        ),
        (
            http(json!({"body": "x".repeat(262_145)})),
            "http.body: a body may have 262144 bytes, this has 262145",
        ),
        (
            http(json!({"expectedStatus": 99})),
            "http.expectedStatus: 99 is not the status of an answer, which is from 200 to 599",
        ),
        (
            http(json!({"expectedStatus": [200, 600]})),
            "http.expectedStatus: 600 is not the status of an answer, which is from 200 to 599",
        ),
        (
            http(json!({"expectedStatus": []})),
            "http.expectedStatus: an empty list would accept no answer; leave it out for 200",
        ),
        (
            http(json!({"expectedStatus": "2xx"})),
            "http.expectedStatus: must be a status such as 200, or a list such as [200, 204]",
        ),
        (
            http(json!({"expectedStatus": "200"})),
            "http.expectedStatus: must be a number: write 200 without quotes",
        ),
        (
            http(json!({"insecureSkipVerify": true})),
            "http.insecureSkipVerify: certificates are always verified here; add the receiver's authority \
             with --hooks-ca, or let the operator allow it with --hooks-allow-insecure-tls",
        ),
        // Commands.
        (
            command(json!({"command": []})),
            "command.command: a program is needed, for example [\"./check.sh\"]",
        ),
        (command(json!({"command": [""]})), "command.command[0]: the program is missing"),
        (
            command(json!({"command": ["/bin/true"]})),
            "command.command[0]: an absolute path is not allowed; put the program into the operator's hooks \
             directory and name it as ./NAME",
        ),
        (
            command(json!({"command": ["./../true"]})),
            "command.command[0]: \"..\" is not allowed: programs lie in the operator's hooks directory",
        ),
        (
            command(json!({"command": ["scripts/x.sh"]})),
            "command.command[0]: a path must begin with \"./\", which is the operator's hooks directory",
        ),
        (
            command(json!({"command": ["{{name}}"]})),
            "command.command[0]: the program must be written out, not by a template: what runs is decided \
             when the set is written",
        ),
        (
            command(json!({"command": ["./x.sh --all"]})),
            "command.command[0]: the program holds a character that no name has",
        ),
        (
            command(json!({"command": ["rm", "-rf", "/"]})),
            "command.command[0]: \"rm\" is refused as a dangerous command; put a program that does just \
             what is needed into the operator's hooks directory",
        ),
        (
            command(json!({"command": ["sudo", "true"]})),
            "command.command[0]: \"sudo\" is refused as a dangerous command; put a program that does just \
             what is needed into the operator's hooks directory",
        ),
        (
            command(json!({"command": ["./curl", "https://example.com"]})),
            "command.command[0]: \"curl\" is refused as a dangerous command; put a program that does just \
             what is needed into the operator's hooks directory",
        ),
        (
            command(json!({"command": ["sh", "-c", "true"]})),
            "command.command[0]: \"sh\" is refused as a dangerous command; put a program that does just \
             what is needed into the operator's hooks directory",
        ),
        (command(json!({"command": ["./x", "a\u{0}b"]})), "command.command[1]: holds a NUL character"),
        (
            command(json!({"command": ["./x", long]})),
            "command.command[1]: an argument may have 32768 bytes, this has 40960",
        ),
        (
            command(json!({"command": vec!["./x"; 101]})),
            "command.command: 101 arguments are more than the 100 that are allowed",
        ),
        // Environments.
        (
            command(json!({"env": many(101, "x")})),
            "command.env: 101 environment variables are more than the 100 that are allowed",
        ),
        (
            command(json!({"env": {"LD_PRELOAD": "x"}})),
            "command.env[LD_PRELOAD]: would change which programs or files are used, or means the \
             controller; it cannot be given",
        ),
        // The controller's own settings and credentials, by any name they go by.
        (
            command(json!({"env": {"ARGOCD_AUTH_TOKEN": "x"}})),
            "command.env[ARGOCD_AUTH_TOKEN]: would change which programs or files are used, or means the \
             controller; it cannot be given",
        ),
        (
            command(json!({"env": {"kubernetes_service_host": "x"}})),
            "command.env[kubernetes_service_host]: would change which programs or files are used, or means \
             the controller; it cannot be given",
        ),
        (
            command(json!({"env": {"PATH": "x"}})),
            "command.env[PATH]: would change which programs or files are used, or means the controller; it \
             cannot be given",
        ),
        (
            command(json!({"env": {"BASH_ENV": "x"}})),
            "command.env[BASH_ENV]: would change which programs or files are used, or means the controller; \
             it cannot be given",
        ),
        (
            command(json!({"env": {"BATON_HOOKS_DIR": "x"}})),
            "command.env[BATON_HOOKS_DIR]: would change which programs or files are used, or means the \
             controller; it cannot be given",
        ),
        (
            command(json!({"env": {"APPSET_NAME": "x"}})),
            "command.env[APPSET_NAME]: is set automatically and cannot be given; remove it",
        ),
        (
            command(json!({"env": {"HOOK_TYPE": "x"}})),
            "command.env[HOOK_TYPE]: is set automatically and cannot be given; remove it",
        ),
        (
            command(json!({"env": {"A=B": "x"}})),
            "command.env[A=B]: the name of a variable is made of letters, digits and underscores, and does \
             not begin with a digit",
        ),
        (
            command(json!({"env": {"1A": "x"}})),
            "command.env[1A]: the name of a variable is made of letters, digits and underscores, and does \
             not begin with a digit",
        ),
        (
            command(json!({"env": {"A": "x\ny"}})),
            "command.env[A]: the value holds a NUL character or a line end",
        ),
        (
            command(json!({"env": {"A": "x\u{0}y"}})),
            "command.env[A]: the value holds a NUL character or a line end",
        ),
        (
            command(json!({"env": {"A": long}})),
            "command.env[A]: a value may have 32768 bytes, this has 40960",
        ),
    ];
    assert!(table.len() >= 40, "{}", table.len());
    for (hook, expected) in table {
        assert_eq!(errors(hook.clone(), &policy()), [expected], "{hook}");
    }
}

#[test]
fn good_configurations_pass() {
    for hook in [
        http(json!({})),
        http(json!({"url": "https://{{name}}.example.com/health?set={{.appset.name}}", "method": "GET"})),
        http(json!({"url": "{{url}}"})),
        http(
            json!({"url": "https://8.8.8.8/", "expectedStatus": [200, 204], "headers": {"User-Agent": "own"}}),
        ),
        with(http(json!({})), json!({"timeout": "10m", "failurePolicy": "ignore", "scope": "target"})),
        with(http(json!({})), json!({"retry": {"interval": "1m", "deadline": "72h"}})),
        with(
            http(
                json!({"headers": {"Authorization": "Bearer {{.secrets.s.t}}"}, "body": "{{ .secrets.s.t }}"}),
            ),
            json!({"secretRefs": [{"name": "s"}]}),
        ),
        with(
            command(json!({"env": {"TARGET_URL": "https://{{name}}.example.com"}})),
            json!({"timeout": "30m"}),
        ),
        command(
            json!({"command": ["kubectl", "get", "nodes", "--no-headers"], "env": {"KUBECONFIG": "/etc/kubeconfig"}}),
        ),
    ] {
        assert_eq!(errors(hook.clone(), &policy()), Vec::<String>::new(), "{hook}");
    }
}

#[test]
fn a_check_is_judged_like_a_hook() {
    let check =
        json!({"name": "c", "type": "http", "timeout": "1h", "http": {"url": "ftp://x/", "method": "TRACE"}});
    let found = find(json!({"name": "p", "checks": [check]}), &policy());
    let paths: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
    let path = "s.phases[0].checks[0]";
    assert_eq!(paths, [format!("{path}.timeout"), format!("{path}.http.url"), format!("{path}.http.method")]);
}

#[test]
fn names_differ_within_a_list() {
    let hook = |name: &str| with(http(json!({})), json!({"name": name}));
    let phase = json!({"name": "p", "preHooks": [hook("a"), hook("b"), hook("a")], "postHooks": [hook("a")]});
    let found = find(phase, &policy());
    let found: Vec<String> = found.iter().map(Finding::to_string).collect();
    assert_eq!(found, ["s.phases[0].preHooks[2].name: \"a\" is taken; names must differ"]);
}

#[test]
fn doubts_are_warnings() {
    let warnings = |phase: Value| -> Vec<String> {
        let found = find(phase, &policy());
        assert!(found.iter().all(|finding| finding.severity == Severity::Warning), "{found:?}");
        found.iter().map(|finding| finding.to_string().replace("s.phases[0].preHooks[0].", "")).collect()
    };
    let literal = "a credential is written out here, for every reader of the set; declare it in secretRefs \
                   and write {{.secrets.NAME.KEY}}";
    for header in ["Authorization", "cookie", "Proxy-Authorization", "Proxy-Anything", "X-API-Key"] {
        let hook = http(json!({"headers": {header: "Bearer literal"}}));
        let found = warnings(json!({"name": "p", "preHooks": [hook]}));
        assert_eq!(found, [format!("http.headers[{header}]: {literal}")]);
        assert!(!found[0].contains("Bearer"));
    }
    let hook = command(json!({"env": {"API_TOKEN": "literal", "ENDPOINT": "x"}}));
    assert_eq!(
        warnings(json!({"name": "p", "preHooks": [hook]})),
        [format!("command.env[API_TOKEN]: {literal}")]
    );

    let hooks = |count: usize| -> Vec<Value> {
        (0..count).map(|number| with(http(json!({})), json!({"name": format!("h{number}")}))).collect()
    };
    assert_eq!(
        warnings(json!({"name": "p", "preHooks": hooks(5), "postHooks": hooks(5)})),
        Vec::<String>::new()
    );
    assert_eq!(
        warnings(json!({"name": "p", "preHooks": hooks(5), "postHooks": hooks(6)})),
        ["s.phases[0]: 11 hooks in one phase: more than 10 make it slow; join some of them"]
    );
}

#[test]
fn what_the_operator_allows_passes() {
    let loose = Settings {
        allow: AllowList::parse(["127.0.0.0/8", "localhost"]).expect("good entries"),
        allow_http: true,
        allow_insecure_tls: true,
        ..settings()
    };
    let policy = Policy::new(&loose, Namespace::ControlPlane, Language::Params);
    for hook in [
        http(json!({"url": "http://127.0.0.1:8080/"})),
        http(json!({"url": "https://localhost/", "insecureSkipVerify": true})),
    ] {
        assert_eq!(errors(hook.clone(), &policy), Vec::<String>::new(), "{hook}");
    }
}

#[test]
fn limits_go_down_but_not_up() {
    let narrow = Limits { headers: 1, http_timeout: std::time::Duration::from_secs(30), ..Limits::default() };
    let policy =
        Policy::new(&Settings { limits: narrow, ..settings() }, Namespace::ControlPlane, Language::Params);
    let hook = with(http(json!({"headers": {"A": "1", "B": "2"}})), json!({"timeout": "1m"}));
    assert_eq!(errors(hook, &policy).len(), 2);
    let wide = Limits { headers: 1000, ..Limits::default() };
    let policy =
        Policy::new(&Settings { limits: wide, ..settings() }, Namespace::ControlPlane, Language::Params);
    assert_eq!(errors(http(json!({"headers": many(51, "x")})), &policy).len(), 1);
}

#[test]
fn namespaces_and_kernels_decide_what_there_is() {
    let listed = Policy::new(&settings(), Namespace::Listed, Language::Params);
    let other = Policy::new(&settings(), Namespace::Other, Language::Params);
    let nowhere =
        Policy::new(&Settings { directory: None, ..settings() }, Namespace::ControlPlane, Language::Params);
    let support = Support { landlock: false, scopes: false, seccomp: true };
    let old = Settings { support, ..settings() };
    let kernel = Policy::new(&old, Namespace::ControlPlane, Language::Params);
    let brave = Settings { allow_unsandboxed: true, ..old };
    let brave = Policy::new(&brave, Namespace::ControlPlane, Language::Params);
    let foreign = "command: commands run only for sets in the control plane's namespace; use an HTTP call";
    let calls = "http: the operator does not allow HTTP calls in this namespace; they can be allowed with \
                 --hooks-namespaces";
    let off = "command: commands are off: the operator has set no directory for them with --hooks-dir (baton install \
               --hooks-configmap)";
    let lacking = "command: commands are off: the kernel has no Landlock to hold them with; the operator \
                   can run them all the same with --hooks-allow-unsandboxed";
    for (policy, hook, expected) in [
        (&listed, http(json!({})), None),
        (&listed, command(json!({})), Some(foreign)),
        (&other, http(json!({})), Some(calls)),
        (&other, command(json!({})), Some(foreign)),
        (&nowhere, command(json!({})), Some(off)),
        (&nowhere, http(json!({})), None),
        (&kernel, command(json!({})), Some(lacking)),
        (&kernel, http(json!({})), None),
        (&brave, command(json!({})), None),
    ] {
        assert_eq!(errors(hook.clone(), policy), expected.into_iter().collect::<Vec<_>>(), "{hook}");
    }
}

#[test]
fn go_templates_are_read_too() {
    let policy = Policy::new(&settings(), Namespace::ControlPlane, Language::Go);
    let hook =
        http(json!({"url": "https://example.com/{{ .name | lower }}", "body": "{{ range .x }}{{ end }}"}));
    assert_eq!(errors(hook, &policy), Vec::<String>::new());
    let found = errors(http(json!({"body": "{{ .appset.name }} {{ .appset.uid | quote }}"})), &policy);
    assert_eq!(
        found,
        [
            "http.body: nothing is known as .appset.uid; there are .appset.name, .appset.namespace and .phase.name"
        ]
    );
    let found = errors(http(json!({"body": "{{ if .x }}"})), &policy);
    assert!(
        found.len() == 1 && found[0].starts_with("http.body: is no template: template: hook:1: "),
        "{found:?}"
    );
}

/// The proposal's third use case as it stands there: it asks for what its own limits forbid.
#[test]
fn the_proposals_change_management_is_refused_with_the_way_out() {
    let text = "
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: compliance-deployment}
spec:
  generators:
  - clusters: {}
    deploymentStrategy:
      type: phaseDeployment
      phases:
      - name: production
        targets:
        - matchExpressions:
          - {key: environment, operator: In, values: [production]}
        preHooks:
        - name: create-change-request
          type: http
          failurePolicy: fail
          http:
            url: https://api.servicenow.com/api/now/table/change_request
            method: POST
            headers:
              Authorization: 'Bearer {{.secrets.servicenow.token}}'
            body: '{\"short_description\": \"Production deployment for {{.appset.name}}\", \"category\": \"Software\"}'
        - name: wait-for-approval
          type: command
          timeout: 24h
          command:
            command: [./scripts/wait-for-approval.sh]
";
    let set: ApplicationSet = serde_saphyr::from_str(text).expect("the YAML of a set");
    let generator = &set.spec.generators[0];
    let strategy = generator.deployment_strategy.as_ref().expect("it has one");
    let path = "spec.generators[0].deploymentStrategy";
    let found: Vec<String> = validate(strategy, path, &policy()).iter().map(Finding::to_string).collect();
    let hooks = "spec.generators[0].deploymentStrategy.phases[0].preHooks";
    assert_eq!(
        found,
        [
            format!(
                "{hooks}[0].http.headers[Authorization]: uses the Secret \"servicenow\", which secretRefs \
                 does not declare; add `secretRefs: [{{name: servicenow}}]` and label the Secret for use by \
                 hooks"
            ),
            format!(
                "{hooks}[1].timeout: 24h is more than a command may take, which is 30m; for something that \
                 takes longer, let each attempt be short and repeat it with retry"
            ),
        ]
    );
}
