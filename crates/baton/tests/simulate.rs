//! `baton simulate`: a set of one's own in a made-up world.

mod process;

use std::fs;
use std::path::Path;

use process::{Outcome, Running, baton, run};
use serde_json::Value;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/applicationsets").join(name);
    path.to_str().expect("UTF-8").to_owned()
}

fn simulate(arguments: &[&str]) -> Outcome {
    run([&["simulate"], arguments].concat())
}

/// The place of the first line that ends with these words, from a place on.
fn place(text: &str, words: &str, from: usize) -> usize {
    let found = text.lines().skip(from).position(|line| line.ends_with(words));
    from + found.unwrap_or_else(|| panic!("no line ends with {words:?}:\n{text}"))
}

#[test]
fn a_commit_goes_through_the_steps_and_the_judge_is_content() {
    let told = simulate(&["-f", &example("rolling-sync.yaml")]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{}", told.stdout);
    let text = &told.stdout;
    assert!(
        text.starts_with("ApplicationSet rolling-sync: rolling-dev, rolling-prod, rolling-staging\n"),
        "{text}"
    );
    assert!(text.contains("the clusters are those of `baton up`: dev, staging, prod"), "{text}");
    let mut from = place(text, "run 1 is finished", 0);
    for words in [
        "run 2 begins",
        "step 1 opens",
        "rolling-dev is to be synced to commit 1",
        "rolling-dev is done",
        "step 2 opens",
        "rolling-staging is done",
        "step 3 opens",
        "rolling-prod is done",
        "run 2 is finished",
        "Faults: none",
        "Judge: every invariant was kept in the world of seed 1",
    ] {
        from = place(text, words, from);
    }
}

/// The example with phases in the place of steps.
fn phases() -> String {
    let text = fs::read_to_string(example("rolling-sync.yaml")).expect("an example");
    let mut set: Value = serde_saphyr::from_str(&text).expect("a set");
    let phase = |env: &str| {
        serde_json::json!({
            "name": env, "targets": [{"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]}],
            "preHooks": [{"name": format!("ask-{env}"), "type": "http", "http": {"url": "https://a.example.com"}}],
            "waitDuration": "1m",
        })
    };
    let phases = serde_json::json!({"type": "phaseDeployment", "phases": [phase("dev"), phase("prod")]});
    set["spec"]["generators"][0]["deploymentStrategy"] = phases;
    set["spec"]["strategy"].take();
    set.to_string()
}

#[test]
fn a_commit_goes_through_the_phases_and_a_hook_that_fails_ends_them() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("set.json");
    fs::write(&file, phases()).expect("a file");
    let file = file.to_str().expect("UTF-8");
    let told = simulate(&["-f", file]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{}", told.stdout);
    let text = &told.stdout;
    assert!(text.contains("in no phase, and never touched: rolling-staging"), "{text}");
    let mut from = place(text, "run 1 is finished", 0);
    for words in [
        "hook ask-dev of dev passed",
        "rolling-dev is to be synced to commit 1",
        "phase dev waits 1m",
        "phase dev is complete",
        "hook ask-prod of prod is called",
        "rolling-prod is to be synced to commit 1",
        "phase prod is complete",
        "Judge: every invariant was kept in the world of seed 1",
    ] {
        from = place(text, words, from);
    }
    let told = simulate(&["-f", file, "--failing-hook", "ask-prod"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{}", told.stdout);
    assert!(told.stdout.contains("phase prod failed"), "{}", told.stdout);
    assert!(!told.stdout.contains("rolling-prod is to be synced to commit 1"), "{}", told.stdout);
    let told = simulate(&["-f", file, "--failing-hook", "nobody"]);
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert!(told.stderr.contains("no hook or check of its phases is named \"nobody\""), "{}", told.stderr);
}

#[test]
fn a_seed_tells_the_same_again() {
    let arguments = [
        "-f",
        &example("rolling-sync.yaml"),
        "--faults",
        "all",
        "--commits",
        "2",
        "--seed",
        "7",
        "-o",
        "json",
    ];
    let first = simulate(&arguments);
    assert_eq!(first.code, Some(0), "{}{}", first.stdout, first.stderr);
    assert_eq!(first.stdout, simulate(&arguments).stdout);
    let whole: Value = serde_json::from_str(&first.stdout).expect("JSON");
    assert_eq!(whole["violations"], serde_json::json!([]));
    assert!(
        whole["timeline"].as_array().is_some_and(|lines| lines.iter().any(|line| line["about"] == "fault"))
    );
}

#[test]
fn many_worlds_are_told_in_sum() {
    let file = example("rolling-sync.yaml");
    let told = simulate(&["-f", &file, "--faults", "late,crash", "--seeds", "4", "--failing", "rolling-dev"]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("Worlds: 4, of which 0 break an invariant"), "{}", told.stdout);
    assert!(told.stdout.contains("seed 4: waits in the end: "), "{}", told.stdout);
    assert!(told.stdout.contains("crash before a write"), "{}", told.stdout);
}

#[test]
fn generators_are_run_as_generate_runs_them() {
    let told =
        simulate(&["-f", &example("clusters-values.yaml"), "--cluster", "one,env=prod", "--commits", "0"]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("one"), "{}", told.stdout);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/repo");
    let mapping = format!("https://git.example.com/fleet/config.git={}", repository.display());
    let told = simulate(&["-f", &example("git-directories.yaml"), "--repo", &mapping]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("a commit to https://git.example.com/fleet/config.git"), "{}", told.stdout);
}

#[test]
fn a_world_of_the_soak_is_told() {
    let told = simulate(&["--world", "3"]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.starts_with("world 3 of the soak\n"), "{}", told.stdout);
    place(&told.stdout, "run 1 begins", 0);
}

#[test]
fn what_cannot_be_simulated_is_refused_with_a_word() {
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let rolling = example("rolling-sync.yaml");
    let text = fs::read_to_string(&rolling).expect("an example");
    let two =
        write("two.yaml", &format!("{text}\n---\n{}", text.replace("name: rolling-sync", "name: other")));
    let odd = write("odd.yaml", &text.replace("operator: In, values: [prod]", "operator: Exists"));
    let cases: &[(&[&str], &str)] = &[
        (&["--seed", "1"], "--filename"),
        (&["-f", "/no/such/file"], "cannot read /no/such/file"),
        (&["-f", &rolling, "--world", "1"], "--world"),
        (
            &["-f", &rolling, "--faults", "gremlins"],
            "no fault is named \"gremlins\": none, all, crash-before",
        ),
        (&["-f", &rolling, "--seed", "-1"], "-1"),
        (&["-f", &rolling, "--seeds", "0"], "0"),
        (&["-f", &rolling, "--commits", "51"], "51"),
        (&["-f", &rolling, "--failing", "nobody"], "gives no Application \"nobody\""),
        (&["-f", &rolling, "--cluster", "One"], "\"One\" is not a cluster name"),
        (&["-f", &rolling, "--cluster", "in-cluster"], "choose another"),
        (&["-f", &two], "2 ApplicationSets: one world has one"),
        (&["-f", &odd], "step 3: \"Exists\" is no operator of steps"),
    ];
    for (arguments, words) in cases {
        let told = simulate(arguments);
        assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""), "{arguments:?}: {}", told.stderr);
        assert!(told.stderr.contains(words), "{arguments:?}: {}", told.stderr);
    }
}

#[test]
fn whoever_ends_it_finds_nothing_left_behind() {
    let temporary = tempfile::tempdir().expect("a directory");
    let entries = || fs::read_dir(temporary.path()).expect("a directory").count();
    let mut command = baton();
    command.env("TMPDIR", temporary.path());
    command.args(["simulate", "-f", &example("rolling-sync.yaml"), "--seeds", "10000"]);
    let mut running = Running::of(command);
    let is_under_way = || {
        let inside = fs::read_dir(temporary.path()).expect("a directory").flatten();
        inside.map(|entry| fs::read_dir(entry.path()).map_or(0, Iterator::count)).sum::<usize>() > 0
    };
    while !is_under_way() {
        assert!(running.runs(), "it has ended by itself");
        std::thread::sleep(process::LOOK_EVERY);
    }
    let told = running.interrupt();
    assert_eq!(told.code, Some(130), "{told:?}");
    assert!(told.stderr.contains("ended before all of it was seen"), "{told:?}");
    assert_eq!(entries(), 0);
}
