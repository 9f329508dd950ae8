//! The command line itself: help, usage errors, exit codes and `baton crds`.

mod process;

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::Stdio,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::PostParams};
use process::{Outcome, Running, baton, client, run};
use serde_json::Value;

const COMMANDS: [&str; 5] = ["up", "apiserver", "server", "simulate", "crds"];
/// Those that the overview has only a word for.
const OTHERS: [&str; 7] = ["login", "logout", "context", "account", "health", "version", "completion"];
/// Commands that have others below them.
const FAMILIES: [&[&str]; 9] = [
    &["app"],
    &["app", "actions"],
    &["appset"],
    &["approvals"],
    &["proj"],
    &["proj", "role"],
    &["proj", "windows"],
    &["cluster"],
    &["repo"],
];
const DEFINITIONS: [&str; 3] =
    ["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"];
/// Rows of a small terminal, which an error must fit on.
const SCREEN: usize = 24;

#[test]
fn help_of_every_command_has_an_example() {
    let overview = run(["--help"]);
    let also =
        overview.stdout.lines().find(|line| line.starts_with("Also: ")).expect("a line for the others");
    for command in COMMANDS.into_iter().chain(OTHERS) {
        let row = format!("\n  {command} ");
        let told = overview.stdout.contains(&row) || overview.stdout.contains(&format!(" --{command} "));
        let told = told || also.split(' ').any(|word| word == command);
        assert!(told, "{command} is not in the overview");
        let help = run([command, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{command}");
        let (_, examples) = help.stdout.split_once("Example").unwrap_or_else(|| panic!("{}", help.stdout));
        assert!(examples.contains(&format!("\n  baton {command}")), "{}", help.stdout);
        assert_eq!(run(["help", command]).stdout, help.stdout);
    }
    assert_eq!(overview.code, Some(0));
    assert!(overview.stdout.contains("Exit codes:"), "{}", overview.stdout);
    for tool in ["lag-proxy", "hook-receiver"] {
        let help = run(["dev", tool, "--help"]).stdout;
        assert!(help.contains(&format!("\n  baton dev {tool} --")) && help.contains("Exit codes:"), "{help}");
    }
}

/// The commands below a command, as its help lists them.
fn below(family: &[&str]) -> Vec<String> {
    let help = run(family.iter().chain(&["--help"])).stdout;
    let (_, rows) = help.split_once("Commands:\n").unwrap_or_else(|| panic!("{family:?}: {help}"));
    let rows = rows.lines().take_while(|row| !row.is_empty());
    // A row that goes on in a second line is indented further.
    let first = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
    let names = first.filter_map(|row| row.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn help_of_every_command_below_another_has_an_example_of_it() {
    for family in FAMILIES.into_iter().chain([&["repocreds"][..]]) {
        let names = below(family);
        assert!(names.len() > 1, "{family:?}");
        for name in names {
            let words: Vec<&str> = family.iter().copied().chain([name.as_str()]).collect();
            if FAMILIES.contains(&&words[..]) {
                continue;
            }
            let help = run(words.iter().chain(&["--help"]));
            assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{words:?}");
            let example = format!("baton {}", words.join(" "));
            let (_, examples) =
                help.stdout.split_once("Examples:").unwrap_or_else(|| panic!("{}", help.stdout));
            assert!(examples.contains(&example), "{example}: {}", help.stdout);
        }
    }
}

#[test]
fn shells_are_told_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completion", shell]);
        assert_eq!((script.code, script.stderr.as_str()), (Some(0), ""), "{shell}");
        for command in COMMANDS.into_iter().chain(OTHERS).chain([
            "approvals",
            "confirm-deletion",
            "repocreds",
            "add-destination",
            "create-token",
            "windows",
        ]) {
            assert!(script.stdout.contains(command), "{shell} does not know {command}");
        }
    }
    assert_eq!(run(["completion", "tcsh"]).code, Some(1));
}

#[test]
fn the_version_is_told() {
    let version = run(["--version"]);
    assert_eq!((version.code, version.stdout), (Some(0), format!("baton {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn wrong_usage_ends_with_1_and_names_what_is_wrong() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["frobnicate"], "frobnicate"),
        (&["up", "--frobnicate"], "--frobnicate"),
        (&["up", "--clusters", "0"], "--clusters"),
        (&["up", "--clusters", "100000"], "--clusters"),
        (&["up", "--clusters", "3", "--cluster", "a"], "--cluster"),
        (&["up", "--cluster", "Dev"], "\"Dev\" is not a cluster name"),
        (&["up", "--cluster", "dev,env"], "write it as key=value"),
        (&["up", "--cluster", "dev,env=a,env=b"], "given twice"),
        (&["up", "--cluster", "dev", "--cluster", "dev"], "\"dev\" is given twice"),
        (&["up", "--cluster", "in-cluster"], "choose another"),
        (&["up", "--listen", "nowhere"], "--listen"),
        (&["up", "extra"], "extra"),
        // Local repositories are always read there, so there is nothing to allow.
        (&["up", "--allow-local-repos"], "--allow-local-repos"),
        (&["apiserver", "--listen", "127.0.0.1:99999"], "--listen"),
        (&["apiserver", "--ready-delay", "soon"], "expected a duration"),
        (&["apiserver", "--ready-delay=-1s"], "must not be negative"),
        (&["apiserver", "--nodes", "-1"], "-1"),
        (&["apiserver", "--nodes", "4000000000"], "--nodes"),
        (&["up", "--repo", "https://git.example.com/x.git"], "write it as URL=PATH"),
        (&["up", "--repo", "https://git.example.com/x.git=/no/such/place"], "is not a directory"),
        (&["controller", "--kubeconfig", "/no/such/file"], "cannot read /no/such/file"),
        (&["controller", "--policy", "sometimes"], "--policy=\"sometimes\": must be sync"),
        (&["controller", "--concurrent-application-updates", "201"], "from 1 to 200"),
        (&["controller", "--controllers", "moon"], "moon"),
        (&["controller", "--metrics-addr", "8080"], "write it as ADDRESS:PORT or :PORT"),
        (&["controller", "--webhook-addr=:7000", "--debug", "--kubeconfig", "/no/such/file"], "cannot read"),
        (&["appset", "generate"], "--filename"),
        (&["appset", "generate", "-f", "/no/such/file"], "cannot read /no/such/file"),
        (&["appset", "lint", "-f", "/no/such/file"], "cannot read /no/such/file"),
        (&["appset", "get"], "NAME"),
        (&["proj", "add-source", "shop"], "URL"),
        (&["proj", "create", "--dry-run"], "give a name"),
        (&["proj", "create", "shop", "--dest", "nowhere", "--dry-run"], "SERVER,NAMESPACE"),
        (&["proj", "role", "create-token", "shop", "ci", "--expires-in", "soon"], "--expires-in"),
        (&["proj", "role", "add-policy", "shop", "ci", "-a", "a,b", "-o", "*"], "no comma"),
        (
            &["proj", "windows", "add", "shop", "-k", "allow", "--schedule", "x", "--duration", "1h"],
            "--schedule",
        ),
        (&["proj", "windows", "add", "shop", "-k", "maybe"], "maybe"),
        (&["cluster", "add"], "CONTEXT"),
        (&["cluster", "add", "x", "--cluster-kubeconfig", "/no/such/file"], "cannot read /no/such/file"),
        (&["cluster", "add", "x", "--own-credentials", "--exec-command", "y"], "--exec-command"),
        (&["cluster", "set", "x", "--cluster", "y"], "--cluster"),
        (&["repo", "add", "https://x", "--type", "svn"], "svn"),
        (&["repo", "add", "https://x", "--type", "helm"], "--name"),
        (&["repo", "add", "https://x", "--ssh-private-key-path", "/no/such/file"], "not reached over SSH"),
        (&["repocreds", "add", "https://x"], "say what opens"),
        (&["login"], "SERVER"),
        (&["login", "x", "--sso", "--username", "me"], "--username"),
        (&["app", "list", "--config", "/no/such/file", "--argocd-context", "x"], "there is no context \"x\""),
        (&["crds", "-o", "xml"], "xml"),
        (&["dev", "hook-receiver"], "--host"),
        (&["dev", "hook-receiver", "--host", "a.example", "--answer", "/a"], "[HOST]/PATH=STATUS"),
        (&["dev", "hook-receiver", "--host", "ä.example"], "--host"),
        (&["dev"], "lag-proxy"),
        (&["dev", "lag-proxy", "--kubeconfig", "/no/such/file"], "cannot read /no/such/file"),
        (&["dev", "lag-proxy", "--delay", "2h"], "an hour at most"),
        (&["dev", "lag-proxy", "--stale-lists", "101"], "--stale-lists"),
        (&["dev", "lag-proxy", "--upstream-ca", "ca.crt"], "--upstream"),
        (&["dev", "lag-proxy", "--upstream", "localhost:6443"], "write it as https://"),
        (
            &["dev", "lag-proxy", "--upstream", "https://localhost", "--upstream-ca", "/no/such/file"],
            "/no/such/file",
        ),
        (
            &["dev", "lag-proxy", "--upstream", "http://localhost", "--upstream-token-file", "x"],
            "over https only",
        ),
        (&["crds", "--log", "a=b=c"], "--log"),
    ];
    for (arguments, part) in cases {
        let outcome = run(*arguments);
        assert_eq!(outcome.code, Some(1), "{arguments:?}: {outcome:?}");
        assert_plain(&outcome, part);
    }
}

#[test]
fn work_that_cannot_be_done_ends_with_3_and_names_the_place() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| home.path().join(name).to_str().expect("temporary paths are UTF-8").to_owned();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).expect("an address");
    let file = place("file");
    std::fs::write(&file, "").expect("a temporary file");
    let damaged = place("damaged");
    std::fs::create_dir_all(format!("{damaged}/store")).expect("a temporary directory");
    std::fs::write(format!("{damaged}/store/objects.redb"), "not a store").expect("a temporary file");

    let fresh = place("fresh");
    let cases: [(&[&str], &str); 5] = [
        (&["apiserver", "--listen", &taken.1, "--data-dir", &fresh], &taken.1),
        (&["apiserver", "--listen", "127.0.0.1:0", "--data-dir", &file], &file),
        (&["apiserver", "--listen", "127.0.0.1:0", "--data-dir", &damaged], "damaged"),
        (&["up", "--listen", &taken.1, "--data-dir", &fresh], &taken.1),
        (&["up", "--listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0", "--data-dir", &file], &file),
    ];
    for (arguments, part) in cases {
        let outcome = run(arguments);
        assert_eq!(outcome.code, Some(3), "{arguments:?}: {outcome:?}");
        assert_plain(&outcome, part);
        assert!(outcome.stderr.contains("error: "), "{}", outcome.stderr);
    }
}

/// Names and values of variables.
type Variables<'a> = [(&'a str, &'a str)];

/// A controller in an environment that goes no further than to look for its cluster.
fn controller(arguments: &[&str], variables: &Variables<'_>) -> Outcome {
    let mut command = baton();
    command.args(["controller", "--kubeconfig", "/nowhere"]).args(arguments);
    command.envs(variables.iter().copied());
    Running::of(command).ends()
}

#[test]
fn a_controller_takes_the_command_line_and_environment_of_argo_cds() {
    let taken = "cannot read /nowhere";
    let rows: [(&[&str], &Variables<'_>, &str); 12] = [
        (&["--metrics-addr", "0", "--probe-addr=0", "--loglevel", "INFO"], &[], taken),
        (
            &[
                "--metrics-addr=localhost:8080",
                "--applicationset-namespaces=a",
                "--applicationset-namespaces=b",
                "--enable-scm-providers=false",
            ],
            &[],
            taken,
        ),
        (&[], &[("BATON_HOOKS_ALLOW_HTTP", ""), ("BATON_DELETION_FUSE", ""), ("BATON_HOOKS_DIR", "")], taken),
        (&[], &[("BATON_HOOKS_ALLOW_HTTP", "1"), ("BATON_LOG_FORMAT", ""), ("BATON_LOG", "")], taken),
        (&[], &[("BATON_HOOKS_ALLOW_HTTP", "yes")], "must be true or false"),
        (&["--as", "joe"], &[], "--as is about the way to the API: say it in a kubeconfig"),
        (&["--request-timeout=5s"], &[], "--request-timeout is about the way to the API"),
        (&["--unheard-of"], &[], "unexpected argument '--unheard-of'"),
        (&["--debug=bogus"], &[], "must be true or false"),
        (
            &[],
            &[("ARGOCD_APPLICATIONSET_CONTROLLER_LOGLEVEL", "bogus")],
            "must be trace, debug, info, warn or error",
        ),
        (&[], &[("ARGOCD_APPLICATIONSET_CONTROLLER_LOGFORMAT", "xml")], "must be text or json"),
        (&[], &[("BATON_LOG_FORMAT", "xml")], "BATON_LOG_FORMAT=\"xml\": must be text or json"),
    ];
    for (arguments, variables, part) in rows {
        let outcome = controller(arguments, variables);
        assert_eq!(outcome.code, Some(1), "{arguments:?} {variables:?}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{arguments:?} {variables:?}: {}", outcome.stderr);
    }
}

#[test]
fn last_words_are_errors_on_a_line_of_their_own_where_the_log_is_for_machines() {
    for (arguments, part) in [
        (&[][..], "error: cannot read /nowhere"),
        (&["--unheard-of"], "error: unexpected argument '--unheard-of'"),
        (&["--as=joe"], "error: --as is about"),
        (&["--policy=bogus"], "error: --policy="),
    ] {
        let outcome = controller(arguments, &[("BATON_LOG_FORMAT", "json")]);
        assert_eq!(outcome.code, Some(1), "{arguments:?}: {outcome:?}");
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{arguments:?}: {lines:#?}");
        let said: Value = serde_json::from_str(lines[0]).expect("an object");
        assert_eq!(said["level"], "ERROR", "{said}");
        let message = said["fields"]["message"].as_str().expect("a message");
        assert!(message.starts_with(part), "{message}");
    }
}

#[test]
fn the_definitions_are_printed_as_yaml_json_and_names() {
    let yaml = definitions_in_yaml();
    assert_eq!(yaml.iter().map(name_of).collect::<Vec<_>>(), DEFINITIONS);

    let json = run(["crds", "-o", "json"]);
    assert_eq!((json.code, json.stderr.as_str()), (Some(0), ""));
    let list: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((list["apiVersion"].as_str(), list["kind"].as_str()), (Some("v1"), Some("List")));
    assert_eq!(list["items"], Value::Array(yaml), "both forms say the same");

    let names = run(["crds", "--output", "name"]);
    assert_eq!(names.code, Some(0));
    let expected = DEFINITIONS.map(|name| format!("customresourcedefinition.apiextensions.k8s.io/{name}\n"));
    assert_eq!(names.stdout, expected.concat());
}

#[tokio::test]
async fn the_printed_definitions_are_accepted_by_the_api() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let directory = home.path().to_str().expect("temporary paths are UTF-8");
    let mut server =
        Running::start(["apiserver", "--listen", "127.0.0.1:0", "--ephemeral", "--data-dir", directory]);
    server.line_with("Kubernetes API on");
    let api = Api::<CustomResourceDefinition>::all(client(&home.path().join("kubeconfig")).await);
    for definition in definitions_in_yaml() {
        let name = name_of(&definition).to_owned();
        let sent: CustomResourceDefinition = serde_json::from_value(definition).expect("a definition");
        api.create(&PostParams::default(), &sent).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        process::eventually("the definition is established", async || {
            let status = api.get(&name).await.expect("the definition").status?;
            let mut conditions = status.conditions.into_iter().flatten();
            conditions.any(|held| held.type_ == "Established" && held.status == "True").then_some(())
        })
        .await;
    }
    assert_eq!(server.terminate().code, Some(0));
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    for output in ["yaml", "json"] {
        let mut child = baton()
            .args(["crds", "-o", output])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary under test starts");
        let mut first = String::new();
        // As `head -1` does: one line, then the pipe is closed while most is still unwritten.
        let stdout = child.stdout.take().expect("piped");
        BufReader::with_capacity(64, stdout).read_line(&mut first).expect("a first line");
        assert!(!first.is_empty());
        let ended = child.wait_with_output().expect("an end");
        assert_eq!(ended.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    }
}

/// The error is for a person: short, to the point, without a trace.
#[track_caller]
fn assert_plain(outcome: &Outcome, part: &str) {
    let text = &outcome.stderr;
    assert!(text.contains(part), "{part:?} is not in:\n{text}");
    assert!(text.lines().count() <= SCREEN, "more than a screen:\n{text}");
    for trace in ["panicked", "RUST_BACKTRACE", "stack backtrace", "src/"] {
        assert!(!text.contains(trace), "{text}");
    }
    assert_eq!(outcome.stdout, "", "errors go to standard error");
}

fn definitions_in_yaml() -> Vec<Value> {
    let printed = run(["crds"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    let documents = printed.stdout.split("---\n").filter(|document| !document.is_empty());
    documents.map(|document| serde_saphyr::from_str(document).expect("YAML")).collect()
}

fn name_of(definition: &Value) -> &str {
    assert_eq!(definition["kind"], "CustomResourceDefinition");
    definition["metadata"]["name"].as_str().expect("a name")
}
