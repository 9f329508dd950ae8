//! Functions of texts compared with those of Lua's own library, on texts and patterns made up at random.

use baton_health::{Customizations, assess};
use mlua::Lua;
use proptest::prelude::*;
use serde_json::json;

/// What the expression prints here.
fn ours(expression: &str) -> Result<String, String> {
    let script = format!("return {{ status = 'Healthy', message = 'x' .. {expression} }}");
    let files = [("example.com/Thing/health.lua".to_owned(), script)];
    let customizations = Customizations::from_files(files).expect("one script");
    let object = json!({"apiVersion": "example.com/v1", "kind": "Thing"});
    let health = assess(&object, &customizations).map_err(|error| error.to_string())?;
    Ok(health.expect("it speaks").message)
}

/// What it prints in Lua.
fn theirs(expression: &str) -> Result<String, String> {
    Lua::new().load(format!("return 'x' .. {expression}")).eval().map_err(|error| error.to_string())
}

/// A text as Lua reads it.
fn literal(text: &str) -> String {
    let escaped: String = text.bytes().map(|byte| format!("\\{byte:03}")).collect();
    format!("'{escaped}'")
}

fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ab1 .()%-]{0,12}").expect("a pattern")
}

/// A pattern, most of the time a valid one.
fn pattern() -> impl Strategy<Value = String> {
    let single = prop::sample::select(vec![
        "a", "b", "1", ".", "%a", "%d", "%s", "%w", "%p", "%A", "%.", "%%", "[ab]", "[^a]", "[%d.]", "[a-z]",
        "[]]", "[^]]", "[a-]", "%-", "-", "$", "^",
    ]);
    let repeated =
        (single, prop::sample::select(vec!["", "", "*", "+", "-", "?"])).prop_map(|(s, r)| format!("{s}{r}"));
    let special =
        prop::sample::select(vec!["(", ")", "()", "%1", "%b()", "%f[%w]", "[", "%"]).prop_map(str::to_owned);
    let item =
        prop_oneof![5 => repeated.clone(), 1 => special, 2 => repeated.prop_map(|item| format!("({item})"))];
    let anchors = (prop::sample::select(vec!["", "", "^"]), prop::sample::select(vec!["", "", "$"]));
    (anchors, prop::collection::vec(item, 0..5))
        .prop_map(|((from, to), items)| from.to_owned() + &items.concat() + to)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_are_searched_as_lua_searches_them(
        text in text(), pattern in pattern(), start in -14_i32..14, replacement in "(x|%0|%1|y%1z|%%){0,2}", most in 0_u32..4,
    ) {
        let show = "(function(...) local t = {} for i = 1, select('#', ...) do t[i] = tostring((select(i, ...))) end \
                    return table.concat(t, '|') end)";
        let (text, pattern, replacement) = (literal(&text), literal(&pattern), literal(&replacement));
        for expression in [
            format!("{show}(string.find({text}, {pattern}, {start}))"),
            format!("{show}(string.find({text}, {pattern}, {start}, true))"),
            format!("{show}(string.match({text}, {pattern}, {start}))"),
            format!("{show}(string.gsub({text}, {pattern}, {replacement}))"),
            format!("{show}(string.gsub({text}, {pattern}, {replacement}, {most}))"),
            format!("{show}(string.gsub({text}, {pattern}, {{ a = 'A', ['1'] = 1 }}))"),
            format!("{show}(string.gsub({text}, {pattern}, function(...) return select('#', ...) .. tostring((...)) end))"),
            format!("{show}(string.sub({text}, {start}, {most}), string.sub({text}, {start}), string.rep({text}, {most}))"),
            format!("{show}(string.byte({text}, {start}, -1))"),
            format!("{show}(string.format('%5s|%-5s|%.2s|%q', {text}, {text}, {text}, {text}))"),
            format!("{show}(string.format('%d|%05d|%x|%5.1f|%e|%g|%c', {start}, {start}, {most}, {start}, {start}, {start}, 65))"),
        ] {
            match (ours(&expression), theirs(&expression)) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs, "{}", expression),
                (Err(_), Err(_)) => {}
                // Lua notices that a pattern is malformed only where a text leads it there.
                (Err(why), Ok(_)) if why.contains("pattern") || why.contains("capture") => {}
                (ours, theirs) => prop_assert!(false, "{expression}: {ours:?}, not {theirs:?}"),
            }
        }
    }
}
