//! Scripts that try to run for ever, to fill the memory, or to get out. Each must end with an error of its own: a test
//! that hangs is the failure.

use baton_health::{Customizations, HealthError, ScriptError, assess, run_action};
use serde_json::{Value, json};

fn run(script: &str) -> HealthError {
    let files = [("example.com/Thing/health.lua".to_owned(), script.to_owned())];
    let customizations = Customizations::from_files(files).expect("one script");
    let object = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
    match assess(&object, &customizations) {
        Err(error) => error,
        Ok(health) => panic!("{script}: {health:?}"),
    }
}

#[track_caller]
fn is_stopped(script: &str) {
    assert_eq!(run(script), HealthError::Script(ScriptError::TooLong), "{script}");
}

/// Ends by one of the limits; which comes first depends on the machine.
#[track_caller]
fn is_limited(script: &str) {
    match run(script) {
        HealthError::Script(ScriptError::TooLong | ScriptError::TooMuchMemory | ScriptError::TooLarge(_)) => {
        }
        HealthError::Script(ScriptError::Runtime(why))
            if ["too large", "not enough memory", "overflow", "too complex", "too many"]
                .iter()
                .any(|limit| why.contains(limit)) => {}
        other => panic!("{script}: {other}"),
    }
}

#[test]
fn a_loop_is_stopped() {
    is_stopped("while true do end");
    is_stopped("local function f() return f() end f()");
    is_stopped("::again:: goto again");
    is_stopped("for i = 1, math.huge do end");
}

#[test]
fn the_stop_cannot_be_caught() {
    is_stopped("while true do pcall(function() while true do end end) end");
    is_stopped("pcall(function() while true do end end) return { status = 'Healthy' }");
    is_stopped("local function f() pcall(f) end while true do f() end");
    is_stopped("while true do xpcall(function() while true do end end, function(e) return e end) end");
    is_stopped("xpcall(function() while true do end end, function() while true do end end)");
    is_stopped("pcall(pcall, pcall, function() while true do end end) while true do end");
    is_stopped(
        "while true do pcall(error, setmetatable({}, { __tostring = function() while true do end end })) end",
    );
    is_stopped("while true do pcall(string.find, ('a'):rep(40), ('a*'):rep(30) .. 'b') end");
}

#[test]
fn metamethods_are_stopped() {
    is_stopped(
        "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) while true do pcall(function() return t[1] end) end",
    );
    is_stopped(
        "local t = setmetatable({}, { __eq = function() while true do end end }) return t == setmetatable({}, getmetatable(t))",
    );
    is_stopped("local t = setmetatable({}, { __concat = function() while true do end end }) return t .. 'x'");
    is_stopped("table.sort({ 3, 2, 1 }, function() while true do end end)");
    is_stopped("('x'):gsub('x', function() while true do end end)");
}

#[test]
fn a_finalizer_does_not_run() {
    // Where a finalizer runs no hook is called: this one would never end.
    let script = "
        for i = 1, 1000 do setmetatable({}, { __gc = function() while true do end end }) end
        local kept = {}
        for i = 1, 100000 do kept[i % 10] = { i } end
        collectgarbage()
        return { status = 'Splendid' }";
    let files = [("example.com/Thing/health.lua".to_owned(), script.to_owned())];
    let customizations = Customizations::from_files(files).expect("one script");
    let object = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
    let health = assess(&object, &customizations).expect("it ends").expect("it speaks");
    assert_eq!(health.message, "Lua returned an invalid health status");
}

#[test]
fn memory_is_bounded() {
    is_limited("local s = 'x' while true do s = s .. s end");
    is_limited("local t = {} while true do t[#t + 1] = {} end");
    is_limited("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end");
    is_limited(
        "local t = {} while true do pcall(function() while true do t[#t + 1] = ('x'):rep(1e6) .. #t end end) end",
    );
    is_limited("local function f() return 1 + f() end return f()");
    is_limited("return { unpack({}, 1, 1e8) }");
    is_limited(
        "local t = {} for i = 1, 1e7 do t[i] = 'x' end return { status = table.concat(t, ('x'):rep(1e6)) }",
    );
}

#[test]
fn texts_are_bounded() {
    is_limited("return { status = ('x'):rep(1e9) }");
    is_limited("return { status = ('x'):rep(2 ^ 62) }");
    is_limited("local s = ('x'):rep(4e6) return { status = s:gsub('x', s) }");
    is_limited("local s = ('x'):rep(4e6) return { status = s:gsub('x', '%0%0%0%0%0%0') }");
    is_limited("local s = ('x'):rep(1e6) return { status = s:gsub('x', function(x) return x end) }");
    is_limited("return { status = ('%99d'):rep(1e6):format(1) }");
    is_limited("local s = ('x'):rep(8e6) return { status = ('%s%s'):format(s, s) }");
    is_limited("return { status = os.date(('%c'):rep(4e6)) }");
    is_stopped("while true do (''):rep(2 ^ 31) end");
}

#[test]
fn patterns_are_bounded() {
    is_stopped("return { status = ('a'):rep(28):find(('a*'):rep(14) .. 'b') }");
    is_stopped("return { status = ('a'):rep(40):match(('a-'):rep(20) .. 'b') }");
    is_stopped("return { status = ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(41)) }");
    is_stopped("return { status = ('('):rep(4e6):gsub('%b()', '') }");
    is_stopped("local s = ('a'):rep(4e6) return { status = s:find(('a'):rep(2e6) .. 'b', 1, true) }");
    is_stopped("for x in ('a'):rep(5000):gmatch('.-.-.-.-b') do end");
    is_limited("return { status = ('a'):rep(1e6):match(('(a)'):rep(32) .. ('a*'):rep(1000)) }");
    is_limited("return { status = ('a'):rep(1000):match(('a?'):rep(1000)) }");
}

#[test]
fn what_is_returned_is_bounded() {
    is_limited("local t = {} for i = 1, 60 do t = { t, t } end return t");
    is_limited("local s = ('x'):rep(4e6) local t = {} for i = 1, 100 do t[i] = s end return t");
    is_limited("local t = {} t = setmetatable(t, { __index = function() return 1 end, __len = function() return 2 ^ 60 end })
        for i = 1, 2e6 do t[i] = true end return t");
}

#[test]
fn many_arguments_are_bounded() {
    for call in [
        "string.len",
        "string.char",
        "string.format",
        "print",
        "tostring",
        "math.max",
        "os.time",
        "os.date",
        "select",
    ] {
        let script = format!(
            "local t = {{}} for i = 1, 3e5 do t[i] = 'x' .. i end t[1] = '!%Y'
            for n = 1, 3e5, 5e4 do pcall({call}, unpack(t, 1, n)) end error('too many')"
        );
        is_limited(&script);
    }
}

#[test]
fn recursion_through_other_languages_is_bounded() {
    is_limited(
        "local t t = setmetatable({}, { __tostring = function() return string.format('%s', t) end }) error(string.format('%s', t))",
    );
    is_limited(
        "local t t = setmetatable({}, { __tostring = function() return tostring(t) end }) error(tostring(t))",
    );
    is_limited(
        "local t t = setmetatable({}, { __index = function(_, k) return t[k .. 'x'] end }) error(t.x)",
    );
    is_limited("local function f() return (('x'):gsub('x', f)) end f()");
    is_limited("local function f() table.sort({ 2, 1 }, f) end f()");
    is_limited("local function f() local good, why = pcall(f) error(why, 0) end f()");
    is_limited("local function f() xpcall(f, f) end while true do f() end");
}

#[test]
fn deep_objects_go_in_and_out() {
    let nested = |depth: usize| {
        let deep = (0..depth).fold(json!("bottom"), |deep, _| json!({"d": [deep]}));
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "deep": deep})
    };
    let action = |script: &str, object: &Value| {
        let files = [("example.com/Thing/actions/go/action.lua".to_owned(), script.to_owned())];
        let customizations = Customizations::from_files(files).expect("one script");
        run_action(object, "go", &Default::default(), &customizations)
    };
    let fits = nested(120);
    assert_eq!(action("return obj", &fits), Ok(vec![baton_health::Change::Patch(fits)]));
    let refused = |error| Err(HealthError::Script(error));
    assert_eq!(action("return obj", &nested(200)), refused(ScriptError::TooDeep));
    assert_eq!(
        action("for i = 1, 1e5 do obj = { d = obj } end return obj", &nested(1)),
        refused(ScriptError::NotJson("recursively nested tables to JSON"))
    );
}

#[test]
fn compiled_code_is_refused() {
    let error = run("\u{1b}Lua\u{52}\0\u{1}\u{4}\u{8}\u{4}\u{8}\0");
    assert!(matches!(error, HealthError::Script(ScriptError::Syntax(_))), "{error:?}");
}

#[test]
fn text_that_is_nested_too_deep_is_refused() {
    for bomb in [
        "(".repeat(100_000),
        format!("return {}", "{".repeat(100_000)),
        format!("x = {}1", "-".repeat(2) + &"not ".repeat(100_000)),
        "do ".repeat(100_000),
        format!("return {}", "function() return ".repeat(10_000)),
    ] {
        let error = run(&bomb);
        assert!(matches!(error, HealthError::Script(ScriptError::Syntax(_))), "{error:?}");
    }
    assert_eq!(run(&" ".repeat(2 << 20)), HealthError::Script(ScriptError::TooLarge("the script")));
}

#[test]
fn a_large_object_fits() {
    let items: Vec<Value> = (0..100_000).map(|number| json!({"n": number})).collect();
    let object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "items": items});
    let files = [(
        "example.com/Thing/actions/touch/action.lua".to_owned(),
        "obj.items[1].n = -1 return obj".to_owned(),
    )];
    let customizations = Customizations::from_files(files).expect("one script");
    let changes = run_action(&object, "touch", &Default::default(), &customizations).expect("it fits");
    let mut expected = object;
    expected["items"][0]["n"] = json!(-1);
    assert_eq!(changes, [baton_health::Change::Patch(expected)]);
}
