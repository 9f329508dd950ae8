//! The API as its callers see it: real HTTP on a socket, a Kubernetes API in memory.

mod applications;
mod approvals;
mod around;
mod audited;
mod auth;
mod canary;
mod document;
mod hostile;
mod issuer;
mod logs;
mod matrix;
mod oidc;
mod registered;
mod rollouts;
mod rows;
mod scene;
mod sets;
mod spellings;
mod streams;
mod writing;
