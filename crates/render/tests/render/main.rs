//! What templates render to, what they refuse, and what hostile ones cannot do.

mod argo;
mod hostile;
mod interpolate;
mod overlay;
mod patch;
mod support;
mod template;
