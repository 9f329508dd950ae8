//! Scripts of health: what they see, what they may return, and how numbers and times come out.

use std::collections::BTreeMap;

use baton_health::{Customizations, HealthError, assess_at};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A script in a directory may call everything.
fn open(script: &str, object: &Value) -> Result<(String, String), HealthError> {
    let files = [("example.com/Thing/health.lua".to_owned(), script.to_owned())];
    assess(&Customizations::from_files(files).expect("one script"), object)
}

/// A script in a config map may not.
fn restricted(script: &str, object: &Value) -> Result<(String, String), HealthError> {
    let key = "resource.customizations.health.example.com_Thing".to_owned();
    let data = BTreeMap::from([(key, script.to_owned())]);
    assess(&Customizations::from_config_map(&data).expect("one script"), object)
}

fn assess(customizations: &Customizations, object: &Value) -> Result<(String, String), HealthError> {
    let mut object = object.clone();
    object["apiVersion"] = json!("example.com/v1");
    object["kind"] = json!("Thing");
    let now: Timestamp = "2026-03-04T05:06:07Z".parse().expect("a time");
    let health = assess_at(&object, customizations, now)?;
    Ok(health.map_or_else(Default::default, |health| (health.code.to_string(), health.message)))
}

/// The message of a script that evaluates an expression.
#[track_caller]
fn says(expression: &str, object: &Value) -> String {
    let script = format!("return {{ status = 'Healthy', message = {expression} }}");
    let (status, message) = open(&script, object).unwrap_or_else(|error| panic!("{expression}: {error}"));
    assert_eq!(status, "Healthy", "{expression}");
    message
}

#[test]
fn a_script_tells_status_and_message() {
    let script = r#"
        hs = {}
        for i, condition in ipairs(obj.status.conditions) do
          if condition.type ~= "Ready" then goto continue end
          hs.status = condition.status == "True" and "Healthy" or "Degraded"
          hs.message = condition.message
          ::continue::
        end
        return hs"#;
    let object = json!({"status": {"conditions": [
        {"type": "Other", "status": "False"}, {"type": "Ready", "status": "True", "message": "all is well"}]}});
    let expected = ("Healthy".to_owned(), "all is well".to_owned());
    assert_eq!(open(script, &object), Ok(expected.clone()));
    assert_eq!(restricted(script, &object), Ok(expected));
}

#[test]
fn numbers_print_as_they_stand_in_the_object() {
    let object = json!({"n": 3, "big": 123_456_789_012_345_678_i64, "half": 0.5, "neg": -7});
    for (expression, expected) in [
        ("'n ' .. obj.n", "n 3"),
        ("obj.n / 2 * 2 .. ''", "3"),
        ("6 / 2 .. ''", "3"),
        ("tostring(obj.half)", "0.5"),
        ("tostring(2 ^ 53)", "9007199254740992"),
        ("tostring(1234567890123456)", "1234567890123456"),
        ("tostring(obj.neg)", "-7"),
        ("string.format('%d of %s', obj.n, 2 ^ 50)", "3 of 1125899906842624"),
        (
            "string.format('%5.2f|%-4d|%04d|%x|%q', 3.14159, 7, 42, 255, 'a\"b')",
            " 3.14|7   |0042|ff|\"a\\\"b\"",
        ),
        ("tonumber('0x10') + tonumber('7') .. ''", "23"),
    ] {
        assert_eq!(says(expression, &object), expected, "{expression}");
    }
}

#[test]
fn null_is_absent_in_maps_and_lists() {
    let object = json!({"list": [1, null, 3], "map": {"a": null}});
    assert_eq!(says("#obj.list .. (obj.map.a == nil and ' absent' or ' there')", &object), "2 absent");
}

#[test]
fn times_stay_texts() {
    let object = json!({"at": "2024-01-02T03:04:05Z"});
    assert_eq!(says("type(obj.at) .. ' ' .. obj.at", &object), "string 2024-01-02T03:04:05Z");
}

#[test]
fn functions_of_lua_5_1_are_there() {
    let object = json!({"list": ["b", "a", "c"]});
    for (expression, expected) in [
        ("table.getn(obj.list) .. ''", "3"),
        ("table.maxn({ [7] = true }) .. ''", "7"),
        ("table.concat({ unpack(obj.list) }, ',')", "b,a,c"),
        ("select('#', unpack({ 1, 2 })) .. ''", "2"),
    ] {
        assert_eq!(says(expression, &object), expected, "{expression}");
    }
}

#[test]
fn lists_are_sorted_whatever_the_order_function_says() {
    let sort = |order: &str| {
        format!(
            "(function() local l = {{3, 1, 2, 5, 4}} table.sort(l{order}) return table.concat(l, ' ') end)()"
        )
    };
    assert_eq!(says(&sort(""), &json!({})), "1 2 3 4 5");
    assert_eq!(says(&sort(", function(a, b) return a > b end"), &json!({})), "5 4 3 2 1");
    assert_eq!(says(&sort(", function() return true end"), &json!({})).len(), 9);
}

#[test]
fn the_time_is_told_in_utc() {
    for (expression, expected) in [
        ("os.date('!%Y-%m-%dT%H:%M:%SZ')", "2026-03-04T05:06:07Z"),
        ("os.date('%F %X %p %j %a')", "2026-03-04 05:06:07 AM 063 Wed"),
        ("os.date('%Q%%', 0)", "%Q%"),
        ("os.time() .. ''", "1772600767"),
        ("os.time({ year = 2026, month = 3, day = 4, hour = 5, min = 6, sec = 7 }) .. ''", "1772600767"),
        ("os.time({ year = 2025, month = 15, day = 4, hour = 5, min = 6, sec = 7 }) .. ''", "1772600767"),
        ("os.date('*t', 86400).yday .. ' ' .. os.date('*t', 86400).wday", "2 6"),
        ("require('os').date('%Y')", "2026"),
    ] {
        assert_eq!(says(expression, &json!({})), expected, "{expression}");
    }
}

#[test]
fn a_restricted_script_finds_tables_and_the_required_clock_only() {
    let script = "local os = require('os') return { status = 'Healthy', message = os.date('!%H') }";
    assert_eq!(restricted(script, &json!({})), Ok(("Healthy".to_owned(), "05".to_owned())));
    for absent in ["os", "string", "math", "io", "debug", "coroutine"] {
        let script = format!("return {{ status = 'Healthy', message = type({absent}) }}");
        assert_eq!(restricted(&script, &json!({})).expect("runs").1, "nil", "{absent}");
    }
    let error =
        restricted("return { status = ('x'):upper() }", &json!({})).expect_err("texts have no methods");
    assert!(error.to_string().contains("attempt to index"), "{error}");
}

#[test]
fn useopenlibs_opens_the_libraries() {
    let data = BTreeMap::from([
        (
            "resource.customizations.health.example.com_Thing".to_owned(),
            "return { status = ('healthy'):gsub('^%l', string.upper), message = math.floor(2.5) .. os.date('%Y') }"
                .to_owned(),
        ),
        ("resource.customizations.useOpenLibs.example.com_Thing".to_owned(), "true".to_owned()),
    ]);
    let error = assess(&Customizations::from_config_map(&data).expect("readable"), &json!({}));
    // `gsub` returns two values, of which a field keeps the first.
    assert_eq!(error, Ok(("Healthy".to_owned(), "22026".to_owned())));
}

#[test]
fn nothing_of_the_machine_is_there() {
    for expression in [
        "load",
        "loadstring",
        "loadfile",
        "dofile",
        "io",
        "debug",
        "package.loadlib",
        "package.path",
        "os.execute",
        "os.getenv",
        "os.exit",
        "os.remove",
        "os.rename",
        "os.tmpname",
        "string.dump",
        "getfenv",
        "setfenv",
        "newproxy",
        "module",
        "coroutine",
    ] {
        assert_eq!(says(&format!("type({expression})"), &json!({})), "nil", "{expression}");
    }
    assert_eq!(says("tostring(pcall(require, 'io'))", &json!({})), "false");
}

#[test]
fn what_a_script_leaves_is_gone_in_the_next_run() {
    let script = "local seen = left; left = 'yes'; string.left = 'yes'
        return { status = 'Healthy', message = tostring(seen) .. tostring(string.left) }";
    for _ in 0..2 {
        assert_eq!(open(script, &json!({})).expect("runs").1, "nilyes");
    }
}

#[test]
fn what_is_no_health_is_told() {
    let unknown = |message: &str| Ok(("Unknown".to_owned(), message.to_owned()));
    let invalid = "Lua returned an invalid health status";
    for (script, expected) in [
        ("return {}", Ok((String::new(), String::new()))),
        ("return nil", Ok((String::new(), String::new()))),
        ("local x = 1", Ok((String::new(), String::new()))),
        ("return { status = 'Splendid' }", unknown(invalid)),
        ("return { status = 7 }", unknown(invalid)),
        ("return { message = 'no status' }", unknown(invalid)),
        ("return { Status = 'Missing', MESSAGE = 'm' }", Ok(("Missing".to_owned(), "m".to_owned()))),
        ("return { status = 'Healthy', message = 7 }", Ok(("Healthy".to_owned(), "7".to_owned()))),
        ("return 1, { status = 'Healthy' }", Ok(("Healthy".to_owned(), String::new()))),
    ] {
        assert_eq!(open(script, &json!({})), expected, "{script}");
    }
}

#[test]
fn errors_name_the_line_and_nothing_else() {
    for (script, expected) in [
        ("\nerror('broken')", "<string>:2: broken"),
        ("return 'text'", "expect table output from Lua script, not string"),
        ("return obj.a.b", "<string>:1: attempt to index field 'a' (a nil value)"),
        ("\n\nx = = 1", "<string>:3: unexpected symbol near '='"),
        ("return { f = print }", "cannot encode function to JSON"),
        ("return { 1, x = 2 }", "cannot encode mixed or invalid key types"),
        ("return { [1] = 1, [9] = 2 }", "cannot encode sparse array"),
        ("local t = {} t.t = t return t", "cannot encode recursively nested tables to JSON"),
        ("return { x = 0/0 }", "cannot encode a number that is not finite to JSON"),
        ("local x = os.time('x')", "<string>:1: bad argument #1 to 'time' (table expected, got string)"),
        ("local x = os.time({})", "<string>:1: field 'year' missing in date table"),
        (
            "error('caught ' .. select(2, pcall(os.date, {})), 0)",
            "caught bad argument #1 to 'date' (string expected, got table)",
        ),
        ("string.rep()", "<string>:1: bad argument #1 to 'rep' (string expected, got nil)"),
    ] {
        let error = open(script, &json!({})).expect_err(script);
        assert_eq!(error.to_string(), expected, "{script}");
    }
}

#[test]
fn an_object_being_deleted_is_progressing_unless_a_hook_finalizer_holds_it() {
    let script = "return { status = 'Degraded', message = 'says the script' }";
    let deleted = |finalizers: Value| {
        let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers});
        open(script, &json!({"metadata": metadata})).expect("runs")
    };
    assert_eq!(deleted(json!(["x"])), ("Progressing".to_owned(), "Pending deletion".to_owned()));
    let held = deleted(json!(["argocd.argoproj.io/hook-finalizer"]));
    assert_eq!(held, ("Degraded".to_owned(), "says the script".to_owned()));
}
