//! Options kept beside the manifests: `.argocd-source.yaml`, for all Applications or for one.

use baton_api::source::Source;
use baton_grammar::yaml;

use crate::checkout::joined;
use crate::documents;
use crate::error::Fault;
use crate::ground::Ground;

/// Longest file of overrides that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The source with the overrides of its directory. Where it is read from stays as it was.
pub(crate) async fn applied(
    ground: &Ground,
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
        if ground.holds(&path).map_err(|astray| fault(name, astray.to_string()))? {
            let content = ground.read(&path, MAX_BYTES).await?;
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
