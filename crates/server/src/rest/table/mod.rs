//! Every operation of the API, in one table: requests are matched by it, and the document that describes the API is made
//! of it.

mod applications;
mod general;
mod parameters;
mod projects;
mod registered;
mod rollouts;
mod sets;

use std::sync::LazyLock;

use super::operation::Operation;

/// Every operation there is. What is written out comes before what a parameter stands for.
pub(super) static ALL: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let parts = [general::ALL, applications::ALL, sets::ALL, projects::ALL, registered::ALL, rollouts::ALL];
    parts.concat()
});
