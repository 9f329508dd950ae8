//! From a template and one set of parameters to an Application.
