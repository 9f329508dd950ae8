//! Objects as bytes: the forms clients send, and forms none should.

use serde_json::Value;

use crate::dice::Dice;
use crate::values;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// JSON text, now and then with what only text can hold: repeated keys, numbers beyond any type, deep nesting.
pub(crate) fn json(dice: &mut Dice<'_>, value: &Value) -> Vec<u8> {
    let mut text = value.to_string();
    match dice.below(48) {
        1 => text = text.replacen('{', r#"{"kind":"X","metadata":{"name":"twice"},"#, 1),
        2 => text = text.replacen(":1", ":99999999999999999999999999", 1),
        3 => text = text.replacen(":1", ":1e999", 1),
        4 => text = text.replacen(":{", &format!(":{}", "[".repeat(10_000)), 1),
        5 => {
            let deep = format!("\"deep\":{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
            text = text.replacen('{', &format!("{{{deep},"), 1);
        }
        6 => text = text.replacen('"', "\"\\ud800", 1),
        7 => text.insert(0, '\u{feff}'),
        8 => text.push_str(" {}"),
        9 => text = text.replacen(',', ",,", 1),
        10 => {
            let deep = 90 + dice.below(60);
            let deep = format!("\"deep\":{}1{}", r#"{"a":"#.repeat(deep), "}".repeat(deep));
            text = text.replacen(":{", &format!(":{{{deep},"), 1);
        }
        _ => {}
    }
    let mut bytes = text.into_bytes();
    if dice.one_in(40) {
        bytes.truncate(dice.below(bytes.len() + 1));
    }
    if dice.one_in(40) && !bytes.is_empty() {
        let at = dice.below(bytes.len());
        bytes[at] = dice.roll();
    }
    bytes
}

/// YAML text, now and then with what only YAML has: anchors, tags, several documents, merge keys.
pub(crate) fn yaml(dice: &mut Dice<'_>, value: &Value) -> Vec<u8> {
    let mut text = serde_saphyr::to_string(value).unwrap_or_default();
    match dice.below(36) {
        1 => text.push_str("\n---\na: b\n"),
        2 => text.insert_str(0, "x: &x [1]\ny: [*x, *x]\n"),
        3 => text.insert_str(0, &laughs()),
        4 => text.insert_str(0, "<<: {a: b}\n"),
        5 => text.insert_str(0, "n: !!binary YWJj\nm: !foo bar\n"),
        6 => text.insert_str(0, "? [a, b]\n: c\n1: d\n~: e\n"),
        7 => text.insert_str(0, &format!("deep: {}{}\n", "[".repeat(10_000), "]".repeat(10_000))),
        8 => text.insert_str(0, "x: *nowhere\n"),
        9 => text.insert_str(0, "o: 0o17\nh: 0x1F\nf: .inf\ng: .nan\nt: yes\nd: 2026-01-01\n"),
        10 => text.insert(0, '\t'),
        11 => {
            let deep = 90 + dice.below(60);
            text = text.replacen(
                "free:",
                &format!("free:\n    deep: {}{}", "[".repeat(deep), "]".repeat(deep)),
                1,
            );
        }
        _ => {}
    }
    text.into_bytes()
}

/// Aliases of aliases: small text that would be a huge value.
fn laughs() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    text
}

/// A protobuf body: the envelope of the kind around a message of any fields.
pub(crate) fn protobuf(dice: &mut Dice<'_>, api_version: &str, kind: &str) -> Vec<u8> {
    let mut type_meta = Vec::new();
    field(&mut type_meta, 1, api_version.as_bytes());
    field(&mut type_meta, 2, kind.as_bytes());
    let mut raw = Vec::new();
    if !dice.one_in(4) {
        let mut metadata = Vec::new();
        field(&mut metadata, 1, b"web");
        field(&mut raw, 1, &metadata);
    }
    raw.extend(message(dice, 6));
    let mut body = b"k8s\0".to_vec();
    field(&mut body, 1, &type_meta);
    field(&mut body, 2, &raw);
    if dice.one_in(16) {
        body.truncate(dice.below(body.len()));
    }
    body
}

fn message(dice: &mut Dice<'_>, depth: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..dice.below(5) {
        let number = if dice.one_in(12) { dice.below(5000) as u64 } else { 1 + dice.below(20) as u64 };
        match dice.below(8) {
            0..3 if depth > 0 => field(&mut out, number, &message(dice, depth - 1)),
            0..5 => field(&mut out, number, values::text(dice).as_bytes()),
            5 => {
                varint(&mut out, number << 3);
                varint(&mut out, *dice.pick(&[1, 0, u64::MAX, 1 << 31, 300]));
            }
            6 => {
                varint(&mut out, number << 3 | u64::from(dice.roll() % 8));
                out.extend(dice.take(8));
            }
            _ => {
                varint(&mut out, number << 3 | 2);
                varint(&mut out, *dice.pick(&[5, u64::MAX, 1 << 40]));
            }
        }
    }
    out
}

fn field(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
