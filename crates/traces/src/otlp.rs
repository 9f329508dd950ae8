//! Spans in the JSON of OTLP, as collectors take it at `/v1/traces`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::span::{Attribute, Outcome, Span};

/// What is done within this process, in OTLP's numbers.
const INTERNAL: u8 = 1;
const OK: u8 = 1;
const ERROR: u8 = 2;

/// A request that tells of spans.
pub fn request(service: &str, spans: &[Span]) -> Value {
    let service = attribute("service.name", &Attribute::Text(service.to_owned()));
    json!({
        "resourceSpans": [{
            "resource": {"attributes": [service]},
            "scopeSpans": [{
                "scope": {"name": "baton", "version": env!("CARGO_PKG_VERSION")},
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

fn span(span: &Span) -> Value {
    let mut object = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": span.attributes.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>(),
    });
    if let Some(parent) = &span.parent {
        object["parentSpanId"] = hex(parent).into();
    }
    match &span.outcome {
        Outcome::Unset => {}
        Outcome::Well => object["status"] = json!({"code": OK}),
        Outcome::Badly(why) => object["status"] = json!({"code": ERROR, "message": why}),
    }
    object
}

fn attribute(key: &str, value: &Attribute) -> Value {
    let text = |text: &String| json!({"stringValue": text});
    let value = match value {
        Attribute::Text(one) => text(one),
        // 64 bits do not fit into a number of JSON.
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
        Attribute::Flag(flag) => json!({"boolValue": flag}),
        Attribute::Texts(all) => json!({"arrayValue": {"values": all.iter().map(text).collect::<Vec<_>>()}}),
    };
    json!({"key": key, "value": value})
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Times before 1970, which there are none of, count as its beginning.
fn nanoseconds(at: Timestamp) -> String {
    at.as_nanosecond().max(0).to_string()
}
