//! Repositories, branches and pull requests of source code hosts.
