//! Phased deployments, by the rules they follow. The proposal leaves fifty questions open, and each has one answer; a test
//! that holds answer number 7 has `row_07` in its name and fails when the answer is turned around.
//!
//! | row | answer | tests |
//! |---|---|---|
//! | 1 | what stop, rollback, continue and abort do; stop unless said | `configurations::row_01…`, `failure::row_01…` (4), `crashes::every_failure_leads_to…` |
//! | 2 | what is put back, in which order, to what, and that it stays so | `failure::row_02…`, `back::row_02…` (4), `history::tests::row_02…` |
//! | 3 | fail, ignore and abort of a hook | `failure::row_03…` (2) |
//! | 4 | caps win; long approvals are repeated | `configurations::rows_04…`, `calls::row_04…` |
//! | 5 | a gate removes nobody | `course::row_05…` |
//! | 6 | what is a new rollout | `identity::tests::row_06…`, `course::row_06…`, `configurations::row_06…` |
//! | 8 | beside steps | `orders::row_08…` (2) |
//! | 9 | shares are cumulative and rounded up; 0 is hooks only | `selection::row_09…` (2), `course::row_09…` |
//! | 10 | `maxUpdate` selects, `maxConcurrent` paces | `selection::row_10…`, `configurations::rows_04_10…` |
//! | 11–14 | entries, expressions, values, clusters | `selection::row_11…` to `row_14…` |
//! | 15 | who is in no phase | `selection::row_15…`, `course::row_15…` (2) |
//! | 16 | who is in several | `selection::row_16…` |
//! | 17 | one after the other, five and ten at once | `calls::row_17…` (3) |
//! | 18 | once or for each target | `configurations::row_18…`, `calls::row_18…` |
//! | 28 | when checks run, how often, how long | `calls::row_28…` (4) |
//! | 29 | health is a gate, with a deadline | `configurations::row_29…`, `course::row_29…`, `calls::row_29…` |
//! | 30 | a wait is a stored time after the hooks | `course::row_30…`, `course::a_wait_is_never_shorter…` |
//! | 31 | at least once, same key, results of others left aside | `calls::row_31…` (2), `crashes::invariant_i5…` |
//! | 32, 33 | annotations mirror and are never read | `orders::row_32…`, `row_33…` |
//! | 34 | names of phases fit into names of annotations | `orders::row_34…`, `configurations::rows_04_10…` |
//! | 35 | when a phase ends; an empty one is passed over | `course::row_35…` (2), `calls::row_28_and_35…` (2) |
//! | 36 | numbers and JSON of the status functions | `orders::row_36…` |
//! | 37 | the order of names | `selection::row_37…` |
//! | 38 | a thousand at most, an error beyond | `selection::row_38…`, `course::row_38…` |
//! | 39, 40 | limits are the operator's; headers | `baton` (`hooks/limits.rs`), `baton-hooks` |
//! | 41 | more than ten hooks is a warning | `configurations::row_41…` |
//! | 42 | `min-version` | `version::tests::row_42…` |
//! | 44 | the field is removed | `removal::row_44…` (4) |
//! | 45 | phases inside matrix and merge | `configurations::row_45…` |
//! | 46 | what cannot be followed holds everybody | `configurations::rows_04…`, `course::row_46…` |
//! | 47 | rollback with nothing to put back | `failure::row_47…` |
//! | 48 | deletion of the set | `course::row_48…` |
//! | 49 | the local cluster | `selection::row_49…` |
//!
//! Rows 19 to 27 and 40 are about one call, and held by `baton-hooks`; 7, 43 and 50 are held by the controller's tests, as are
//! that a run keeps to what is decided here (1, 5, 8, 10, 15), Secrets of the set's own namespace (20) and what is told of
//! `min-version` (42).

mod anew;
mod back;
mod calls;
mod configurations;
mod course;
mod crashes;
mod endings;
mod failure;
mod orders;
mod outlook;
mod people;
mod removal;
mod room;
mod selection;
mod world;
