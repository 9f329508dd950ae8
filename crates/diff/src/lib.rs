//! What differs between an object as it is and as it shall be.
//!
//! The API itself says in a dry run of server-side apply what an object would become; here it is decided what of that
//! counts. Pure: objects in, verdicts out.

mod abandoned;
mod compare;
mod fields;
mod fingerprint;
mod items;
mod masked;
mod options;
mod overlay;
mod prepare;
mod quick;
mod respect;
mod rules;
mod subset;
mod system;
mod takeover;
mod trusted;
mod unified;

pub use compare::{Difference, compare, subset};
pub use fingerprint::fingerprint;
pub use masked::masked;
pub use options::CompareOptions;
pub use prepare::prepare;
pub use quick::{Quick, quick};
pub use respect::respect;
pub use rules::{RuleError, Rules};
pub use system::SystemRules;
pub use takeover::{TAKEN_OVER, takeover};
pub use unified::unified;
