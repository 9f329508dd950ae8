//! From an Application's sources to the objects they describe.
