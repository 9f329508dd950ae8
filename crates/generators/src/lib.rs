//! Parameters of ApplicationSets: list, clusters, git, matrix, merge, pull requests and the rest.
