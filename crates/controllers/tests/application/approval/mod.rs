//! Nothing guarded is deleted without a person's word: the cases of the contract, and crashes at every write.

mod crash;
mod doors;
mod journal;
mod judge;
mod namespaces;
mod prune;
mod removal;
mod times;
mod trial;
mod witness;
mod words;
