//! Label selectors, field selectors and JSON paths.

use baton_grammar::fields::FieldSelector;
use baton_grammar::jsonpath::Path;
use baton_grammar::labels::Selector;
use serde_json::json;

use crate::dice::Dice;
use crate::templates::OBJECTS;
use crate::values;

/// What selectors and paths are made of.
const TOKENS: [&str; 40] = [
    "a",
    "app",
    "=",
    "==",
    "!=",
    ",",
    "!",
    " in ",
    " notin ",
    "(",
    ")",
    "web",
    " ",
    ">",
    "<",
    "1",
    "\\",
    "metadata.name",
    ".",
    "..",
    "[",
    "]",
    "*",
    "?(",
    "@",
    "'",
    "\"",
    ":",
    "-1",
    "{",
    "}",
    "spec",
    "containers",
    "==\"a\"",
    "&&",
    "||",
    "range",
    "end",
    "é",
    "99999999999999999999",
];

/// Any text is a selector or path, or an error; those that are can be matched against any object.
pub fn grammars(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text);
    }
    let mut dice = Dice::new(bytes);
    let mut object = dice.pick(&OBJECTS).clone();
    values::damage(&mut dice, &mut object);
    let _ = Selector::from_object(&object["spec"]["selector"]);
    let _ = Selector::from_object(&values::value(&mut dice, 4));
    let mut text = String::new();
    while !dice.is_empty() && text.len() < 200 {
        text.push_str(dice.pick::<&str>(&TOKENS));
    }
    read(&text);
    if let Ok(path) = Path::parse(&text) {
        path.find(&object);
        path.find(&json!([[1, [2]], { "a": [object] }]));
    }
}

fn read(text: &str) {
    if let Ok(selector) = Selector::parse(text) {
        selector.matches_object(&OBJECTS[0]);
        let unlabelled = selector.matches(|_| None);
        assert!(!selector.is_empty() || unlabelled, "an empty selector matches everything: {text:?}");
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let unset = selector.matches(|_| None);
        assert!(!selector.is_empty() || unset, "an empty selector matches everything: {text:?}");
    }
    if let Ok(path) = Path::parse(text) {
        path.find(&OBJECTS[0]);
        path.plain_fields();
    }
}
