//! Which tool a source is for.

use baton_api::application_status::SourceType;
use baton_api::source::Source;
use baton_source::{Kind, Tree};

use crate::error::Fault;

/// Names of a Kustomize build's main file, the first that exists counts.
pub(crate) const KUSTOMIZATION_NAMES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The type a source states by its options.
pub(crate) fn explicit(source: &Source) -> Result<Option<SourceType>, Fault> {
    let stated = [
        (source.kustomize.is_some(), SourceType::Kustomize),
        (source.helm.is_some(), SourceType::Helm),
        (source.directory.is_some(), SourceType::Directory),
        (source.plugin.is_some(), SourceType::Plugin),
    ];
    let mut types: Vec<SourceType> = stated.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect();
    if types.len() > 1 {
        let names: Vec<&str> = types.iter().map(SourceType::as_str).collect();
        return Err(Fault::Options(format!("multiple application sources defined: {}", names.join(","))));
    }
    Ok(types.pop())
}

/// The type the files of a directory speak for.
pub(crate) fn detected(tree: &Tree, directory: &str) -> SourceType {
    let mut found = SourceType::Directory;
    for entry in tree.beneath(directory) {
        let name = entry.path()[directory.len()..].trim_start_matches('/');
        if name.contains('/') || *entry.kind() == Kind::Submodule {
            continue;
        }
        // In order of names, as the last one counts.
        if name.ends_with("Chart.yaml") {
            found = SourceType::Helm;
        } else if KUSTOMIZATION_NAMES.contains(&name) {
            found = SourceType::Kustomize;
        }
    }
    found
}
