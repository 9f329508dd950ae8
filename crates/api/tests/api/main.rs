//! What the types read and write, what the CRDs say, and what an edit keeps.

mod crds;
mod edit;
mod examples;
mod hostile;
mod quirks;
mod reference;
mod schemas;
