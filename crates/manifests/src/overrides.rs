//! Options kept beside the manifests: `.argocd-source.yaml`, for all Applications or for one.

use baton_api::source::Source;
use baton_grammar::yaml;
use baton_source::{Astray, Place};

use crate::checkout::{Checkout, joined};
use crate::documents;
use crate::error::Fault;

/// Longest file of overrides that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The source with the overrides of its directory. Where it is read from stays as it was.
pub(crate) async fn applied(
    checkout: &Checkout,
    directory: &str,
    instance: &str,
    source: &Source,
) -> Result<Source, Fault> {
    let mut applied = source.clone();
    let own = format!(".argocd-source-{instance}.yaml");
    for name in [".argocd-source.yaml", &own] {
        // An instance's name may come from anywhere: it names a file here, never a path.
        if name.contains('/') {
            continue;
        }
        let path = joined(directory, name);
        match checkout.tree.place(&path) {
            Ok(Place::File(_)) => {}
            Ok(Place::Directory(_)) | Err(Astray::Missing) => continue,
            Err(astray) => return Err(fault(name, astray.to_string())),
        }
        let contents = checkout.read(&[path], MAX_BYTES).await?;
        for content in contents {
            merge(&mut applied, &documents::text(&content)).map_err(|why| fault(name, why))?;
        }
    }
    applied.repo_url.clone_from(&source.repo_url);
    applied.path.clone_from(&source.path);
    applied.target_revision.clone_from(&source.target_revision);
    applied.chart.clone_from(&source.chart);
    applied.reference.clone_from(&source.reference);
    Ok(applied)
}

fn merge(source: &mut Source, text: &str) -> Result<(), String> {
    let patch = yaml::first(text).map_err(|error| error.to_string())?;
    if !patch.is_object() {
        return if patch.is_null() { Ok(()) } else { Err("it is no object".to_owned()) };
    }
    let mut value = serde_json::to_value(&*source).map_err(|error| error.to_string())?;
    json_patch::merge(&mut value, &patch);
    *source = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(())
}

fn fault(file: &str, why: String) -> Fault {
    Fault::Overrides { file: file.to_owned(), why }
}
