use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;

/// Objects as a Go client encodes them, each with the JSON the same client would have sent (`null`s aside).
const TYPICAL: &str = include_str!("typical.txt");

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).expect("short")];
    field.extend(bytes);
    field
}

fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let head = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &head), field(2, raw)].concat()
}

#[test]
fn what_go_clients_send_reads_as_their_json() {
    let mut kinds = 0;
    for line in TYPICAL.lines() {
        let (bytes, expected) = line.split_once(' ').expect("two columns");
        let bytes = STANDARD.decode(bytes).expect("base64");
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        assert_eq!(decode(&bytes), Ok(expected));
        kinds += 1;
    }
    assert!(kinds >= 25);
}

#[test]
fn unknown_fields_are_passed_over() {
    let metadata = field(1, b"a");
    let raw = [field(1, &metadata), field(9, b"from the future")].concat();
    let expected = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    assert_eq!(decode(&enveloped("v1", "Namespace", &raw)), Ok(expected));
}

#[test]
fn a_message_in_two_parts_is_one() {
    let raw = [field(1, &field(1, b"a")), field(1, &field(3, b"b"))].concat();
    let object = decode(&enveloped("v1", "Namespace", &raw)).expect("a namespace");
    assert_eq!(object["metadata"], json!({"name": "a", "namespace": "b"}));
}

#[test]
fn what_is_no_object_is_refused_for_its_reason() {
    assert_eq!(decode(b"{}"), Err(ProtobufError::NotProtobuf));
    assert_eq!(decode(&vec![0; MAX_SIZE + 1]), Err(ProtobufError::TooLarge));
    assert!(matches!(
        decode(&enveloped("v1", "Widget", b"")),
        Err(ProtobufError::UnknownKind { kind, .. }) if kind == "Widget"
    ));
    for broken in [&[0x0a, 5, 1][..], &[0x0b], &[0xff; 11], &[0x00, 0x01], &[0x09, 1]] {
        let result = decode(&enveloped("v1", "Namespace", broken));
        assert!(matches!(result, Err(ProtobufError::Malformed(_))), "{broken:?} {result:?}");
    }
    let not_text = field(1, &field(1, &[0xff]));
    assert_eq!(decode(&enveloped("v1", "Namespace", &not_text)), Err(ProtobufError::InvalidValue("name")));
    // A creation time in the year 300,000,000,000.
    let late = field(8, &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(
        decode(&enveloped("v1", "Namespace", &field(1, &late))),
        Err(ProtobufError::InvalidValue("creationTimestamp"))
    );
}

#[test]
fn nesting_has_a_bottom() {
    // A schema within `not` within `not` …: the one message that contains itself.
    let mut schema: Vec<u8> = Vec::new();
    let deep = |bytes: &[u8]| {
        let mut field = vec![0xe2, 0x01];
        let mut length = bytes.len();
        while length > 0x7f {
            field.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend(bytes);
        field
    };
    for _ in 0..200 {
        schema = deep(&schema);
    }
    let mut message =
        crate::protobuf::tables::Tables::get().find("apiextensions.v1.JSONSchemaProps").into_iter();
    let not = message.next().expect("in the table").fields.iter().find(|field| field.name == Some("not"));
    assert_eq!(not.map(|field| field.number), Some(28), "the test nests by this field");
    let long = |number: u8, bytes: &[u8]| {
        let mut field = deep(bytes);
        field.splice(0..2, [number << 3 | 2]);
        field
    };
    let head = [field(1, b"apiextensions.k8s.io/v1"), field(2, b"CustomResourceDefinition")].concat();
    let spec = long(7, &long(4, &long(1, &schema)));
    let bytes = [MAGIC.to_vec(), field(1, &head), long(2, &long(2, &spec))].concat();
    assert_eq!(decode(&bytes), Err(ProtobufError::TooDeep));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(raw in proptest::collection::vec(proptest::num::u8::ANY, 0..120), place in 0usize..51) {
        let kind = &crate::all()[place % crate::all().len()];
        let _ = decode(&raw);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(&raw);
        let _ = decode(&bytes);
        let _ = decode(&enveloped(&kind.api_version(), kind.kind, &raw));
    }

    #[test]
    fn no_damage_makes_it_panic(line in 0usize..26, at in 0usize..400, byte in proptest::num::u8::ANY) {
        let line = TYPICAL.lines().nth(line).expect("as many lines");
        let mut bytes = STANDARD.decode(line.split(' ').next().expect("a column")).expect("base64");
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = decode(&bytes);
        bytes.truncate(at);
        let _ = decode(&bytes);
    }
}
