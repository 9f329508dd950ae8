//! The reader of protobuf bodies.

use baton_schema::type_errors;

use crate::dice::Dice;
use crate::encoding;
use crate::templates::{self, OBJECTS};

/// Any bytes are an object of the kind they name, or an error.
pub fn protobuf(bytes: &[u8]) {
    let _ = baton_kinds::protobuf::decode(bytes);
    let mut dice = Dice::new(bytes);
    let template = dice.pick(&OBJECTS);
    let text = |name: &str| template[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let body = encoding::protobuf(&mut dice, api_version, kind);
    let Ok(object) = baton_kinds::protobuf::decode(&body) else { return };
    assert_eq!(object["apiVersion"], api_version);
    assert_eq!(object["kind"], kind);
    if let Some(schema) = templates::schema(api_version, kind) {
        // Protobuf writes all integers alike; their width is checked with the schema.
        let misfit = type_errors(&schema, &object).filter(|error| !error.ends_with("of type int32"));
        assert_eq!(misfit, None, "{object}");
    }
}
