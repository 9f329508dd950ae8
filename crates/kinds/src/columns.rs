//! Table columns.

use jiff::Timestamp;
use serde_json::Value;

use crate::Kind;
use crate::lookup::text;

/// One column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// OpenAPI type of the cells.
    pub type_: &'static str,
    /// OpenAPI format of the cells; `name` marks the object's name.
    pub format: &'static str,
    /// What the column tells.
    pub description: &'static str,
    /// 0 is always shown; larger ones with `-o wide`.
    pub priority: i32,
}

impl Kind {
    /// The columns of a table of this kind.
    pub fn columns(&self) -> &'static [Column] {
        &[Column { name: "Name", type_: "string", format: "name", description: "", priority: 0 }]
    }

    /// One row: a cell for each column.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let _ = now;
        vec![text(object, "metadata.name").into()]
    }
}
