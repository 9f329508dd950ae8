use super::*;

fn set() -> Value {
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    json!({
        "metadata": {"name": "web"},
        "spec": {"strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), step("prod")]}}},
    })
}

fn application(name: &str, env: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"env": env}},
        "spec": {
            "project": "shop",
            "source": {
                "repoURL": "https://charts.example.com", "chart": "web", "targetRevision": "1.*",
                "helm": {"valueFiles": ["prod.yaml"]},
            },
            "destination": {"name": env, "namespace": "shop"},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    })
}

fn given() -> Given {
    let all = [("123", "dev"), ("web-b", "dev"), ("web-c", "prod")];
    Given::new(&set(), &all.map(|(name, env)| application(name, env)), &BTreeMap::new()).expect("a world")
}

fn plan(faults: &str, commits: usize) -> Plan {
    let faults = Faults::read(faults).expect("faults");
    Plan { commits, faults, failing: BTreeSet::new(), failing_calls: BTreeSet::new(), deletes: false }
}

/// When something was told first.
fn place(report: &Report, text: &str) -> usize {
    let place = report.course.iter().position(|line| line.text == text);
    place.unwrap_or_else(|| panic!("nobody tells that {text}: {:#?}", report.course))
}

#[test]
fn a_commit_goes_through_the_steps_of_a_set_that_is_given() {
    let report = given().simulate(&plan("none", 1), 1).expect("a report");
    assert_eq!(report.violations, [], "{report}");
    assert_eq!(report.waiting, [""; 0]);
    let late = place(&report, "web-c is to be synced to commit 1");
    for early in ["123", "web-b"] {
        assert!(place(&report, &format!("{early} is to be synced to commit 1")) < late);
        let done = report.course.iter().rposition(|line| line.text == format!("{early} is done"));
        assert!(done.is_some_and(|done| done < late), "{:#?}", report.course);
    }
    assert!(report.course.iter().all(|line| line.about != crate::course::About::Fault));
}

#[test]
fn whoever_fails_keeps_later_steps_shut_and_is_named() {
    let failing = BTreeSet::from(["web-b".to_owned()]);
    let report = given().simulate(&Plan { failing, ..plan("none", 1) }, 1).expect("a report");
    assert_eq!(report.violations, [], "{report}");
    assert!(report.course.iter().all(|line| line.text != "web-c is to be synced to commit 1"));
    assert!(report.waiting.iter().any(|wait| wait.contains("web-b")), "{:?}", report.waiting);
}

/// A set with a canary and the rest, a hook before, a check and a wait; `more` is what the first phase has beside.
fn phased(more: Value) -> (Value, Vec<Value>, BTreeMap<usize, Vec<Target>>) {
    let hook = |name: &str, url: &str| json!({"name": name, "type": "http", "http": {"url": url}});
    let mut canary = json!({
        "name": "canary", "targets": [{"values": {"env": "prod"}}], "percentage": 10, "waitDuration": "1h",
        "preHooks": [hook("ask", "https://a.example.com/")],
        "checks": [hook("probe", "https://a.example.com/{{name}}")],
    });
    canary.as_object_mut().expect("a phase").extend(more.as_object().cloned().unwrap_or_default());
    let phases = json!([
        canary,
        {"name": "hooks-only", "targets": [{"values": {"env": "prod"}}], "percentage": 0,
         "preHooks": [{"name": "tell", "type": "command", "command": {"command": ["./tell"]}}]},
        {"name": "all", "targets": [{"values": {"env": "prod"}}], "maxConcurrent": 1},
    ]);
    let set = json!({"metadata": {"name": "web"}, "spec": {"generators": [
        {"list": {"elements": []}},
        {"list": {"elements": []}, "deploymentStrategy": {"type": "phaseDeployment", "phases": phases}},
    ]}});
    let names = [("free", "dev", 0), ("a", "prod", 1), ("b", "prod", 1), ("c", "prod", 1), ("lab", "lab", 1)];
    let mut targets: BTreeMap<usize, Vec<Target>> = BTreeMap::new();
    for (name, env, generator) in names {
        let params =
            BTreeMap::from([("name".to_owned(), name.to_owned()), ("env".to_owned(), env.to_owned())]);
        targets.entry(generator).or_default().push(Target { name: name.into(), params });
    }
    (set, names.map(|(name, env, _)| application(name, env)).into(), targets)
}

fn simulated(more: Value, change: impl FnOnce(&mut Plan)) -> Report {
    let (set, applications, targets) = phased(more);
    let given = Given::new(&set, &applications, &targets).expect("a world");
    let mut plan = plan("none", 1);
    change(&mut plan);
    let report = given.simulate(&plan, 1).expect("a report");
    assert_eq!(report.violations, [], "{:#?} {report}", report.course);
    report
}

/// The lines of the last run that begin with these words.
fn lines(report: &Report) -> Vec<&str> {
    let texts: Vec<&str> = report.course.iter().map(|line| line.text.as_str()).collect();
    let from = texts.iter().rposition(|text| *text == "a rollout of 3 phases begins").expect("phases begin");
    texts[from..].to_vec()
}

#[test]
fn a_commit_goes_through_the_phases_of_a_set_that_is_given() {
    let report = simulated(json!({}), |_| {});
    let lines = lines(&report);
    let mut from = 0;
    for words in [
        "phase canary begins",
        "hook ask of canary is called",
        "hook ask of canary passed",
        "phase canary deploys 1 Application",
        "a is to be synced to commit 1",
        "check probe of canary for a passed",
        "phase canary waits 5m",
        "phase canary is complete",
        "hook tell of hooks-only passed",
        "phase hooks-only is complete",
        "phase all deploys 2 Applications",
        "b is to be synced to commit 1",
        "c is to be synced to commit 1",
        "phase all is complete",
        "every phase is complete",
    ] {
        let place = lines[from..].iter().position(|line| *line == words);
        from += place.unwrap_or_else(|| panic!("{words:?} is not told from {from} on: {lines:#?}"));
    }
    assert!(report.course.iter().any(|line| line.text == "free is to be synced to commit 1"));
    assert!(report.course.iter().all(|line| !line.text.starts_with("lab ")), "no phase takes it");
    assert_eq!(report.waiting, [""; 0]);
}

#[test]
fn a_hook_that_fails_ends_its_phase_and_is_named() {
    let failing = |plan: &mut Plan| plan.failing_calls = ["probe".to_owned()].into();
    let report = simulated(json!({}), failing);
    let told = lines(&report);
    assert!(told.iter().any(|line| line.starts_with("phase canary failed")), "{told:#?}");
    assert!(told.iter().all(|line| !line.starts_with("b is to be synced")), "{told:#?}");
    assert!(report.waiting.iter().any(|wait| wait.contains("PhaseGate")), "{:?}", report.waiting);
    let back = simulated(json!({"onFailure": {"action": "rollback"}}), failing);
    let told = lines(&back);
    assert!(told.contains(&"phase canary was put back"), "{told:#?}");
    let on = simulated(json!({"onFailure": {"action": "continue"}}), failing);
    assert!(lines(&on).contains(&"b is to be synced to commit 1"), "{:#?}", lines(&on));
}

#[test]
fn phases_outlive_every_fault() {
    for seed in 1..=4 {
        let (set, applications, targets) = phased(json!({}));
        let given = Given::new(&set, &applications, &targets).expect("a world");
        let report = given.simulate(&plan("all", 2), seed).expect("a report");
        assert_eq!(report.violations, [], "{:#?} {report}", report.course);
    }
}

#[test]
fn phases_that_have_no_place_in_a_world_are_refused_in_words() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let (mut set, applications, targets) = phased(json!({}));
        change(&mut set);
        Given::new(&set, &applications, &targets).map(drop).expect_err("refused").to_string()
    };
    let phases = |set: &mut Value| set["spec"]["generators"][1]["deploymentStrategy"]["phases"].take();
    let twice = refused(&|set| {
        set["spec"]["generators"][0] = set["spec"]["generators"][1].clone();
    });
    assert!(twice.contains("2 generators have phases"), "{twice}");
    let empty = refused(&|set| drop(phases(set)));
    assert!(empty.contains("phases"), "{empty}");
    let rolling = refused(&|it| it["spec"]["strategy"] = set()["spec"]["strategy"].clone());
    assert!(rolling.contains("RollingSync"), "{rolling}");
    let nobody = refused(&|set| {
        let mut one = phases(set);
        one[0]["targets"] = json!([{"values": {"env": "nowhere"}}]);
        set["spec"]["generators"][1]["deploymentStrategy"]["phases"] = json!([one[0]]);
    });
    assert!(nobody.contains("none matches any Application"), "{nobody}");
    let (set, applications, targets) = phased(json!({}));
    let given = Given::new(&set, &applications, &targets).expect("a world");
    let plan = Plan { failing_calls: ["other".to_owned()].into(), ..plan("none", 1) };
    let error = given.simulate(&plan, 1).expect_err("no such hook").to_string();
    assert!(error.contains("\"other\"") && error.contains("ask, probe, tell"), "{error}");
}

#[test]
fn every_fault_that_is_chosen_strikes_and_no_other() {
    for fault in Fault::ALL {
        // Calls are made by phases alone.
        let at_calls = [Fault::CallCrashBefore, Fault::CallCrashAfter].contains(&fault);
        let given = || match at_calls {
            true => {
                let (set, applications, targets) = phased(json!({}));
                Given::new(&set, &applications, &targets).expect("a world")
            }
            false => given(),
        };
        let struck = (1..=8).any(|seed| {
            let report = given().simulate(&plan(&fault.name(), 2), seed).expect("a report");
            assert_eq!(report.violations, [], "{report}");
            let words = format!("fault: {}", fault.words());
            let others = report.counts.keys().filter(|what| what.starts_with("fault: ") && **what != words);
            let brought = brings(fault).iter().map(|fault| format!("fault: {}", fault.words()));
            let brought: BTreeSet<String> = brought.collect();
            let beside = others.filter(|what| !brought.contains(*what)).count();
            assert_eq!(beside, 0, "{fault:?}: {:?}", report.counts);
            report.counts.contains_key(&words)
        });
        assert!(struck, "{fault:?} was chosen and never struck");
    }
}

/// What there must be for a fault to be.
fn brings(fault: Fault) -> &'static [Fault] {
    match fault {
        Fault::TooOld | Fault::Replayed => &[Fault::WatchCut],
        Fault::ApartClocks => &[Fault::SecondLeader, Fault::Skew],
        _ => &[],
    }
}

#[test]
fn a_seed_repeats_its_course() {
    let courses = [5, 5, 6].map(|seed| given().simulate(&plan("all", 2), seed).expect("a report").course);
    assert_eq!(courses[0], courses[1]);
    assert_ne!(courses[0], courses[2]);
}

#[test]
fn faults_are_named_by_one_word_or_whole() {
    let names = |text: &str| Faults::read(text).map(|faults| faults.0);
    assert_eq!(names("none"), Ok(BTreeSet::new()));
    assert_eq!(
        names("crash"),
        Ok(BTreeSet::from([Fault::CrashBefore, Fault::CrashAfter, Fault::CrashAtRead]))
    );
    assert_eq!(names("late, git-away"), Ok(BTreeSet::from([Fault::Late, Fault::GitAway])));
    assert_eq!(names("all").map(|all| all.len()), Ok(Fault::ALL.len() - 1));
    assert_eq!(names("all,rewritten"), Ok(Fault::ALL.into()));
    for wrong in ["", "crashes", "crash,,late", "git-", "All"] {
        let error = names(wrong).expect_err(wrong);
        assert!(error.contains("no fault is named") && error.contains("crash-before"), "{error}");
    }
}

#[test]
fn what_has_no_place_in_a_world_is_refused_in_words() {
    let changed = |change: &dyn Fn(&mut Value, &mut Value)| {
        let (mut set, mut app) = (set(), application("web", "dev"));
        change(&mut set, &mut app);
        Given::new(&set, &[app], &BTreeMap::new()).map(drop).map_err(|error| error.to_string())
    };
    type Change = fn(&mut Value, &mut Value);
    let cases: [(Change, &str); 8] = [
        (|set, _| set["spec"]["strategy"]["rollingSync"] = Value::Null, "without steps"),
        (
            |set, _| {
                set["spec"]["strategy"]["rollingSync"]["steps"][1]["matchExpressions"][0]["operator"] =
                    "Exists".into();
            },
            "step 2: \"Exists\" is no operator",
        ),
        (
            |set, _| set["spec"]["strategy"]["rollingSync"]["steps"][0]["maxFailures"] = 1.into(),
            "step 1: maxFailures",
        ),
        (|set, _| set["spec"]["generators"] = json!([{"deploymentStrategy": {}}]), "phases"),
        (|_, app| app["metadata"]["name"] = "x".repeat(64).into(), "1 to 63 characters"),
        (|_, app| app["spec"]["source"]["repoURL"] = "".into(), "without a repoURL"),
        (|_, app| app["spec"]["sourceHydrator"] = json!({}), "sourceHydrator"),
        (|_, app| *app = json!({"metadata": {"name": "x"}}), "without a repoURL"),
    ];
    for (change, words) in cases {
        let error = changed(&change).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
    assert!(Given::new(&set(), &[], &BTreeMap::new()).is_err());
    let twice = [application("web", "dev"), application("web", "dev")];
    assert!(Given::new(&set(), &twice, &BTreeMap::new()).is_err());
    let many: Vec<Value> = (0..=200).map(|number| application(&format!("web-{number}"), "dev")).collect();
    assert!(Given::new(&set(), &many, &BTreeMap::new()).is_err());
    assert!(given().simulate(&plan("none", 51), 1).is_err());
    let failing = BTreeSet::from(["nobody".to_owned()]);
    assert!(given().simulate(&Plan { failing, ..plan("none", 1) }, 1).is_err());
}

#[test]
fn destinations_and_branches_have_stand_ins_of_their_own() {
    let mut maker = Maker::default();
    let destinations = [
        json!({"server": "https://kubernetes.default.svc"}),
        json!({"name": "Prod EU"}),
        json!({"server": "https://prod-eu.example.com"}),
        json!({"name": "control"}),
        json!({"name": "Prod EU"}),
    ];
    let members = destinations.map(|destination| maker.member(&destination));
    assert_eq!(members, ["in-cluster", "prod-eu", "prod-eu-2", "control-cluster", "prod-eu"]);
    let source = |target: &str| json!({"repoURL": "https://x/a/b.git", "targetRevision": target});
    let branches = ["", "HEAD", "v1"].map(|target| maker.branch(&source(target)));
    assert_eq!(branches, [0, 0, 1]);
    assert_ne!(maker.branches[0].url, maker.branches[1].url);
}

#[test]
fn a_set_with_steps_gets_over_every_fault() {
    for (faults, seeds) in [("all", 1..=4), ("git-away,git-behind,lands-later,crash-after", 5..=12)] {
        for seed in seeds {
            let report = given().simulate(&plan(faults, 1), seed).expect("a report");
            assert_eq!(report.violations, [], "--faults {faults} --seed {seed}: {report}");
        }
    }
}

#[test]
fn a_set_that_is_deleted_takes_its_applications_along_in_order() {
    let plan = Plan { deletes: true, ..plan("none", 0) };
    let report = given().simulate(&plan, 1).expect("a report");
    assert_eq!(report.violations, [], "{report}");
    let going = place(&report, "the set is deleted");
    let gone = |name: &str| place(&report, &format!("{name} is gone"));
    assert!(["123", "web-b", "web-c"].into_iter().all(|name| gone(name) > going), "{:#?}", report.course);
}
