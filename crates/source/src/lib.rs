//! Git repositories: revisions, trees and files, read without a checkout.
