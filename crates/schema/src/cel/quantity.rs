//! Kubernetes quantities (`500m`, `1Gi`) as CEL values.

use baton_grammar::quantity::Quantity;
use cel::objects::Opaque;

/// The name of the type in expressions.
pub(super) const TYPE: &str = "kubernetes.Quantity";

/// A quantity that expressions can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Amount(pub(super) Quantity);

impl Opaque for Amount {
    fn runtime_type_name(&self) -> &str {
        TYPE
    }
}
