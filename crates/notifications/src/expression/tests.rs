use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

fn application() -> Json {
    json!({
        "metadata": {
            "name": "web", "uid": "u-1", "generation": 12,
            "labels": {"env": "prod", "a.b/c": "x"},
            "annotations": {},
        },
        "spec": {"source": {"repoURL": "git@github.com:org/repo.git"}, "sources": null},
        "status": {
            "sync": {"status": "OutOfSync"},
            "health": {"status": "Healthy", "lastTransitionTime": "2026-03-01T11:50:00Z"},
            "operationState": {
                "phase": "Succeeded",
                "startedAt": "2026-03-01T11:40:00Z",
                "finishedAt": "2026-03-01T11:45:00Z",
                "syncResult": {"revision": "abc"},
            },
            "resources": [
                {"kind": "Service", "name": "a", "requiresPruning": true, "wave": 1},
                {"kind": "Deployment", "name": "b", "wave": 2},
            ],
        },
    })
}

fn evaluated_on(text: &str, app: &Json) -> Result<String, String> {
    let context = json!({"minutes": 5, "empty": {}, "text": "x"});
    let variables = BTreeMap::from([("app", app), ("context", &context)]);
    let expression = Expression::parse(text).map_err(|error| error.to_string())?;
    let value = expression.evaluate(&variables, now()).map_err(|error| error.to_string())?;
    Ok(value.to_string())
}

fn evaluated(text: &str) -> Result<String, String> {
    evaluated_on(text, &application())
}

fn assert_values(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(evaluated(text).as_deref(), Ok(*expected), "{text}");
    }
}

#[test]
fn literals_are_read_as_expr_reads_them() {
    assert_values(&[
        ("1", "1"),
        ("1_000", "1000"),
        ("0xff", "255"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("\"a\\n\\u00e9\"", "a\né"),
        ("'it\\'s'", "it's"),
        ("`raw \\n`", "raw \\n"),
        ("true", "true"),
        ("nil", "<nil>"),
        ("[1, 'a', [true],]", "[1 a [true]]"),
        ("{a: 1, 'b c': 2, (\"x\" + \"y\"): 3}", "map[a:1 b c:2 xy:3]"),
        ("1 // a comment", "1"),
        ("/* a comment */ 1", "1"),
    ]);
}

#[test]
fn operators_bind_as_expr_binds_them() {
    assert_values(&[
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 2 - 3", "5"),
        ("7 % 4", "3"),
        ("7 / 2", "3.5"),
        ("-2 + 1", "-1"),
        ("1 + 1 == 2 and 3 < 4", "true"),
        ("true or false and false", "true"),
        ("true || false && false", "true"),
        ("not true or true", "true"),
        ("!false && true", "true"),
        ("nil ?? 1 + 1", "2"),
        ("true ? 1 : 2", "1"),
        ("false ? 1 : true ? 2 : 3", "2"),
        ("1 in [1, 2] and 3 not in [1, 2]", "true"),
        ("1..3", "[1 2 3]"),
        ("'a' + 'b' == 'ab'", "true"),
        ("1 == 1.0", "true"),
        ("1 == '1'", "false"),
        ("nil == nil", "true"),
        ("'b' > 'a'", "true"),
        ("[1, {a: 2}] == [1.0, {a: 2}]", "true"),
    ]);
}

#[test]
fn texts_are_compared_in_every_way() {
    assert_values(&[
        ("app.metadata.name matches '^w.b$'", "true"),
        ("app.metadata.name matches 'x|y'", "false"),
        ("app.metadata.name not matches 'x'", "true"),
        ("'hello' contains 'ell'", "true"),
        ("'hello' startsWith 'he' and 'hello' endsWith 'lo'", "true"),
        ("'hello' not contains 'z'", "true"),
        ("'env' in app.metadata.labels", "true"),
        ("'team' in app.metadata.labels", "false"),
        ("nil contains 'a'", "false"),
        ("app.status.nothing matches 'a'", "false"),
    ]);
}

#[test]
fn what_is_not_there_is_nil_and_a_field_of_it_is_an_error() {
    assert_values(&[
        ("app.nothing", "<nil>"),
        ("nothing", "<nil>"),
        ("app.nothing == nil", "true"),
        ("app?.nothing?.at?.all", "<nil>"),
        // What follows `?.` on nil is skipped to the end of the chain.
        ("app.nothing?.at.all", "<nil>"),
        ("app.nothing?.at.all.the[0].same", "<nil>"),
        ("app.nothing?.at.all ?? 'default'", "default"),
        ("(app.nothing?.list ?? []) == []", "true"),
        ("'x' in app.nothing", "false"),
        ("app.metadata.labels['a.b/c']", "x"),
        ("app.status.resources[-1].name", "b"),
        ("app.metadata?.['name']", "web"),
    ]);
    for (text, error) in [
        ("app.nothing.at", "column 12: cannot take at of nil; use ?. where there may be nothing"),
        ("(app.nothing?.at).all", "column 18: cannot take all of nil; use ?. where there may be nothing"),
        ("nothing.at", "column 8: cannot take at of nil; use ?. where there may be nothing"),
        ("app.metadata.name.first", "column 18: a text has no first"),
        ("app.status.resources[7]", "column 21: there is no element 7 of 2"),
        ("app.metadata.name and true", "column 13: a boolean is wanted, this is a text"),
        ("1 < 'a'", "column 3: a number and a text cannot be compared"),
        ("nil < 1", "column 5: nil and a number cannot be compared"),
        ("1 % 0", "column 3: the result is no whole number of 64 bits"),
        ("9223372036854775807 + 1", "column 21: the result is no whole number of 64 bits"),
        ("any(5, {# > 1})", "column 1: a list is wanted, this is a number"),
        ("any([1], {# + 1})", "column 13: a predicate must be a boolean, this is a number"),
        (
            "repo.GetCommitMetadata('x')",
            "column 6: repo.GetCommitMetadata reads a repository, which expressions cannot do",
        ),
    ] {
        assert_eq!(evaluated(text).as_ref().map_err(String::as_str), Err(error), "{text}");
    }
}

#[test]
fn lists_are_looked_through_with_predicates() {
    assert_values(&[
        ("any(app.status.resources, {#.requiresPruning == true})", "true"),
        ("any(app.status.resources, {.kind == 'Secret'})", "false"),
        ("any(app.status.resources, .kind == 'Service')", "true"),
        ("all(app.status.resources, {.wave > 0})", "true"),
        ("none(app.status.resources, {.wave > 2})", "true"),
        ("one(app.status.resources, {.wave > 1})", "true"),
        ("count(app.status.resources, {.wave >= 1})", "2"),
        ("map(filter(app.status.resources, {.wave == 2}), {.name})", "[b]"),
        ("find(app.status.resources, {.wave == 2}).name", "b"),
        ("find(app.status.resources, {.wave == 3})", "<nil>"),
        ("any([[1, 2], [3]], {any(#, {# == 3})})", "true"),
        ("map(1..3, {# * #})", "[1 4 9]"),
        ("any([], {# == 1})", "false"),
        ("all([], {# == 1})", "true"),
        ("map(app.status.resources, {.nothing?.at.all})", "[<nil> <nil>]"),
    ]);
}

#[test]
fn functions_do_what_their_names_say() {
    assert_values(&[
        ("len(app.status.resources)", "2"),
        ("len('héllo')", "5"),
        ("first([1, 2]) + last([1, 2])", "3"),
        ("keys(app.metadata.labels)", "[a.b/c env]"),
        ("values({a: 1, b: 2})", "[1 2]"),
        ("upper('a') + lower('B') + trim(' c ')", "Abc"),
        ("join(split('a,b', ','), '-')", "a-b"),
        ("replace('aXbX', 'X', '.')", "a.b."),
        ("string(app.metadata.generation) + '!'", "12!"),
        ("int('42') + int(1.9)", "43"),
        ("float('1.5')", "1.5"),
        ("abs(-3)", "3"),
        ("strings.ToUpper('a') + strings.ToLower('B') + strings.ReplaceAll('cc', 'c', 'd')", "Abdd"),
        ("repo.RepoURLToHTTPS(app.spec.source.repoURL)", "https://github.com/org/repo"),
        ("repo.RepoURLToHTTPS('ssh://git@host:22/a/b.git')", "https://host:22/a/b"),
        ("repo.FullNameByRepoURL(app.spec.source.repoURL)", "org/repo"),
        ("repo.FullNameByRepoURL('https://user:pw@host/a/b')", "a/b"),
        ("repo.QueryEscape('a b&c')", "a+b%26c"),
    ]);
}

#[test]
fn times_and_durations_can_be_calculated_with() {
    assert_values(&[
        ("time.Now().Sub(time.Parse(app.status.operationState.startedAt)).Minutes()", "20"),
        ("time.Now().Sub(time.Parse(app.status.operationState.startedAt)).Minutes() >= 5", "true"),
        ("time.Now() - time.Parse(app.status.operationState.startedAt) > 10 * time.Minute", "true"),
        ("time.Parse('2026-03-01T12:00:00+01:00').Before(time.Now())", "true"),
        ("time.Now().Add(time.Hour).After(time.Now())", "true"),
        ("time.Now().Weekday() == time.Sunday", "true"),
        ("time.Now().Hour()", "12"),
        ("now() == time.Now()", "true"),
        ("duration('90s').Minutes()", "1.5"),
        ("(time.Now() + duration('1h')).Unix() - time.Now().Unix()", "3600"),
        ("time.Minute", "1m0s"),
    ]);
    assert!(evaluated("time.Parse('yesterday')").is_err_and(|why| why.contains("no time")));
    assert!(evaluated("time.Parse(app.nothing)").is_err_and(|why| why.contains("takes texts")));
}

/// What Argo CD's own triggers ask, on Applications in every state. An expression that cannot be evaluated is not met.
#[test]
fn the_stock_triggers_mean_what_they_mean_for_argo_cd() {
    let fresh = json!({"metadata": {"name": "web"}});
    let deleted = json!({"metadata": {"name": "web", "deletionTimestamp": "2026-03-01T11:00:00Z"}});
    let with = |phase: &str, health: &str, since: &str| {
        json!({
            "metadata": {"name": "web"},
            "status": {
                "sync": {"status": "Unknown"},
                "health": {"status": health, "lastTransitionTime": since},
                "operationState": {"phase": phase, "finishedAt": "2026-03-01T11:45:00Z", "syncResult": {"revision": "abc"}},
            },
        })
    };
    let good = with("Succeeded", "Healthy", "2026-03-01T11:50:00Z");
    let early = with("Succeeded", "Healthy", "2026-03-01T11:30:00Z");
    let failed = with("Failed", "Degraded", "2026-03-01T11:50:00Z");
    let error = with("Error", "Degraded", "2026-03-01T11:50:00Z");
    let running = with("Running", "Progressing", "2026-03-01T11:50:00Z");
    let all = [&fresh, &deleted, &good, &early, &failed, &error, &running];
    // In the order of the list above: a letter where it is met.
    for (text, expected) in [
        ("true", "fdgexyr"),
        ("app.metadata.deletionTimestamp != nil", " d     "),
        (
            "app.status.operationState.phase in ['Succeeded'] and app.status.health.status == 'Healthy'",
            "  ge   ",
        ),
        (
            "app.status.operationState != nil and app.status.operationState.phase in ['Succeeded'] and \
             app.status.health.status == 'Healthy' and \
             !time.Parse(app.status.health.lastTransitionTime).Before(time.Parse(app.status.operationState.finishedAt))",
            "  g    ",
        ),
        ("app.status.health.status == 'Degraded'", "    xy "),
        ("app.status.operationState.phase in ['Error', 'Failed']", "    xy "),
        ("app.status?.operationState?.phase in ['Error', 'Failed']", "    xy "),
        ("app.status.operationState.phase in ['Running']", "      r"),
        ("app.status.sync.status == 'Unknown'", "  gexyr"),
        ("app.status.operationState.phase in ['Succeeded']", "  ge   "),
        ("app.status?.operationState.phase == nil", "fd     "),
    ] {
        let found: String = all
            .iter()
            .zip("fdgexyr".chars())
            .map(|(app, letter)| if evaluated_on(text, app).as_deref() == Ok("true") { letter } else { ' ' })
            .collect();
        assert_eq!(found, expected, "{text}");
    }
    let revision = "app.status.operationState?.syncResult?.revision";
    assert_eq!(evaluated_on(revision, &good).as_deref(), Ok("abc"));
    assert!(evaluated_on(revision, &fresh).is_err());
    assert_eq!(
        evaluated_on("app.status?.operationState?.syncResult?.revision", &fresh).as_deref(),
        Ok("<nil>")
    );
}

#[test]
fn an_error_points_at_its_place() {
    let error = Expression::parse("app.status in ['a', and]").expect_err("no expression");
    let expected = "column 21: \"and\" is an operator, and something is missing before it\n  app.status in ['a', and]\n                      ^";
    assert_eq!(error.to_string(), expected);
    for (text, column, why) in [
        ("", 1, "the expression ends too soon"),
        ("app.", 5, "the expression ends where the name of a field belongs"),
        ("app ==", 7, "the expression ends too soon"),
        ("(1", 3, "\")\" is missing at the end"),
        ("1 2", 3, "2 is not expected here"),
        ("foo(1)", 1, "there is no function foo"),
        ("len()", 1, "len does not take 0 arguments"),
        ("'abc", 1, "a text has no end"),
        ("'\\q'", 2, "this is no escape; write \\\\ for a backslash"),
        ("# == 1", 1, "# is known only in a predicate, as in any(list, {# > 1})"),
        ("1 @ 2", 3, "the character '@' means nothing here"),
        ("any([1])", 8, "\",\" is missing before \")\""),
        ("{1.5: 2}", 2, "1.5 is no key of a map"),
        ("true ? 1", 9, "\":\" is missing at the end"),
        ("1x", 1, "this is no number"),
    ] {
        let error = Expression::parse(text).expect_err(text);
        assert_eq!((error.column, error.why.as_str()), (column, why), "{text}");
    }
}

#[test]
fn depth_length_and_steps_are_bounded() {
    let refused = |text: String| Expression::parse(&text).expect_err("too much").why;
    assert!(refused(format!("{}1{}", "(".repeat(5000), ")".repeat(5000))).contains("nested deeper"));
    assert!(refused("!".repeat(5000) + "true").contains("nested deeper"));
    assert!(refused("1".to_owned() + &" + 1".repeat(3000)).contains("nested deeper"));
    assert!(refused("a".to_owned() + &".b".repeat(3000)).contains("nested deeper"));
    assert!(refused("a ? ".repeat(1000)).contains("nested deeper"));
    assert!(refused(" ".repeat(20_000)).contains("longer than"));
    for text in [
        "1..1000000000",
        "map(1..1000, {map(1..1000, {1})})",
        "len(map(1..400, {join(map(1..400, {'xxxxxxxxxxxxxxxx'}), 'y')}))",
        "len(replace(replace(replace(replace('aaaaaaaaaaaaaaaa', 'a', 'aaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaaaaaa'), \
         'a', 'aaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaaaaaa'))",
        "any(1..100, {'x' matches '(a{1,30}b){1,20}' + string(#)})",
    ] {
        let error = evaluated(text).expect_err(text);
        assert!(
            error.contains("steps") || error.contains("too long") || error.contains("too large"),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_an_expression_mentions_is_known() {
    let expression =
        Expression::parse("any(appset.status?.phases ?? [], {.x == context.y}) and time.Now() > 1");
    let expression = expression.expect("an expression");
    assert_eq!(expression.mentions().into_iter().collect::<Vec<_>>(), ["appset", "context", "time"]);
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "app",
        ".status",
        "?.",
        ".",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "#",
        "any(",
        "map(",
        "filter(",
        "len(",
        ",",
        "1",
        "2.5",
        "'x'",
        "\"",
        "nil",
        " and ",
        " or ",
        "not ",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "..",
        "??",
        "? ",
        ": ",
        "==",
        " in ",
        " matches ",
        "time.Now()",
        "time.",
        "Minute",
        ".Sub(",
        "é",
        "\\",
        "`",
        "//",
        "/*",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_panics_or_runs_long(text in prop_oneof![pieces(), any::<String>(), "[ -~]{0,60}"]) {
        // The bound on steps is what ends it; a hang would be a test that never ends.
        let _ = evaluated(&text);
    }

    #[test]
    fn an_error_is_inside_the_text(text in pieces()) {
        if let Err(error) = Expression::parse(&text) {
            prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1);
            prop_assert!(error.to_string().ends_with('^'));
        }
    }
}
