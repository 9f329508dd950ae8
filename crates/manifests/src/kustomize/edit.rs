//! A source's options, written into the kustomization as `kustomize edit` would write them.

use baton_api::source::{KustomizeReplica, KustomizeSource};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Map, Value, json};

use crate::environment::Environment;
use crate::error::Fault;

/// Whether any option changes the kustomization.
pub(super) fn is_needed(options: &KustomizeSource) -> bool {
    !(options.name_prefix.is_empty()
        && options.name_suffix.is_empty()
        && options.namespace.is_empty()
        && options.images.is_empty()
        && options.replicas.is_empty()
        && options.common_labels.is_empty()
        && options.common_annotations.is_empty()
        && options.patches.is_empty()
        && options.components.is_empty())
}

/// The kustomization with the options in it; `None` where they change nothing. `exists` tells whether a component
/// does.
pub(super) fn edited(
    kustomization: &Map<String, Value>,
    options: &KustomizeSource,
    environment: &Environment,
    exists: impl Fn(&str) -> bool,
) -> Result<Option<Map<String, Value>>, Fault> {
    if !is_needed(options) {
        return Ok(None);
    }
    let mut edited = kustomization.clone();
    for (field, text) in [
        ("namePrefix", &options.name_prefix),
        ("nameSuffix", &options.name_suffix),
        ("namespace", &options.namespace),
    ] {
        if !text.is_empty() {
            edited.insert(field.to_owned(), text.as_str().into());
        }
    }
    if !options.images.is_empty() {
        set_images(&mut edited, options, environment)?;
    }
    for replica in &options.replicas {
        set_replica(&mut edited, replica)?;
    }
    if !options.common_labels.is_empty() {
        add_labels(&mut edited, options, environment)?;
    }
    for (name, value) in &options.common_annotations {
        let value =
            if options.common_annotations_envsubst { environment.expand(value) } else { value.clone() };
        let annotations = map(&mut edited, "commonAnnotations")?;
        add(annotations, "annotation", name, value, options.force_common_annotations)?;
    }
    for patch in &options.patches {
        let patch = serde_json::to_value(patch).map_err(|error| Fault::Options(error.to_string()))?;
        list(&mut edited, "patches")?.push(patch);
    }
    for component in &options.components {
        if options.ignore_missing_components && !exists(component) {
            continue;
        }
        let components = list(&mut edited, "components")?;
        if !components.iter().any(|known| known == component) {
            components.push(component.as_str().into());
        }
    }
    Ok(Some(edited))
}

/// Sets images: an override replaces the one of the same name, except for what it says to keep by `*`.
fn set_images(
    kustomization: &mut Map<String, Value>,
    options: &KustomizeSource,
    environment: &Environment,
) -> Result<(), Fault> {
    const PARTS: [&str; 3] = ["newName", "newTag", "digest"];
    let images = list(kustomization, "images")?;
    for text in &options.images {
        let mut image = image(&environment.expand(text))?;
        let place = images.iter().position(|known| known["name"] == image["name"]);
        for part in PARTS {
            if image[part] == "*" {
                image[part] = place.and_then(|at| images[at].get(part).cloned()).unwrap_or_default();
            }
        }
        if let Some(image) = image.as_object_mut() {
            image.retain(|_, value| value.as_str().is_some_and(|text| !text.is_empty()));
        }
        match place {
            Some(at) => images[at] = image,
            None => images.push(image),
        }
    }
    images.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    Ok(())
}

/// Reads `[name=]image[:tag][@digest]`.
fn image(text: &str) -> Result<Value, Fault> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (Some(name), value),
        None => (None, text),
    };
    let (image, tag, digest) = split_image(value);
    if image == text {
        return Err(Fault::Options(format!(
            "image {text:?} changes nothing: it must be [name=]image[:tag][@digest]"
        )));
    }
    let (name, new_name) = name.map_or((image, ""), |name| (name, image));
    Ok(json!({"name": name, "newName": new_name, "newTag": tag, "digest": digest}))
}

/// Name, tag and digest of an image. A colon in its first part is the port of a registry.
fn split_image(text: &str) -> (&str, &str, &str) {
    let begin = text.find('/').unwrap_or(0);
    let (named, digest) = match text[begin..].find('@') {
        Some(at) => (&text[..begin + at], &text[begin + at + 1..]),
        None => (text, ""),
    };
    match named[begin..].find(':') {
        Some(at) => (&named[..begin + at], &named[begin + at + 1..], digest),
        None => (named, "", digest),
    }
}

fn set_replica(kustomization: &mut Map<String, Value>, replica: &KustomizeReplica) -> Result<(), Fault> {
    let count = match &replica.count {
        IntOrString::Int(count) => i64::from(*count),
        IntOrString::String(text) => text
            .parse()
            .map_err(|_| Fault::Options(format!("expected integer value for count. Received: {text:?}")))?,
    };
    let replicas = list(kustomization, "replicas")?;
    let set = json!({"name": replica.name, "count": count});
    match replicas.iter_mut().find(|known| known["name"] == replica.name.as_str()) {
        Some(known) => *known = set,
        None => replicas.push(set),
    }
    Ok(())
}

fn add_labels(
    kustomization: &mut Map<String, Value>,
    options: &KustomizeSource,
    environment: &Environment,
) -> Result<(), Fault> {
    let expanded = options.common_labels.iter().map(|(name, value)| (name, environment.expand(value)));
    if options.label_without_selector {
        let pairs: Map<String, Value> = expanded.map(|(name, value)| (name.clone(), value.into())).collect();
        let mut entry = json!({"pairs": pairs});
        if options.label_include_templates {
            entry["includeTemplates"] = true.into();
        }
        list(kustomization, "labels")?.push(entry);
        return Ok(());
    }
    if options.label_include_templates {
        return Err(Fault::Options(
            "kustomize.labelIncludeTemplates needs kustomize.labelWithoutSelector".to_owned(),
        ));
    }
    let labels = map(kustomization, "commonLabels")?;
    for (name, value) in expanded {
        add(labels, "label", name, value, options.force_common_labels)?;
    }
    Ok(())
}

fn add(
    pairs: &mut Map<String, Value>,
    kind: &str,
    name: &str,
    value: String,
    force: bool,
) -> Result<(), Fault> {
    if pairs.contains_key(name) && !force {
        return Err(Fault::Options(format!("{kind} {name} already in kustomization file")));
    }
    pairs.insert(name.to_owned(), value.into());
    Ok(())
}

fn list<'a>(kustomization: &'a mut Map<String, Value>, field: &str) -> Result<&'a mut Vec<Value>, Fault> {
    let value = kustomization.entry(field).or_insert_with(|| json!([]));
    if value.is_null() {
        *value = json!([]);
    }
    value
        .as_array_mut()
        .ok_or_else(|| Fault::Options(format!("{field} of the kustomization file is no list")))
}

fn map<'a>(
    kustomization: &'a mut Map<String, Value>,
    field: &str,
) -> Result<&'a mut Map<String, Value>, Fault> {
    let value = kustomization.entry(field).or_insert_with(|| json!({}));
    if value.is_null() {
        *value = json!({});
    }
    value
        .as_object_mut()
        .ok_or_else(|| Fault::Options(format!("{field} of the kustomization file is no map")))
}

#[cfg(test)]
mod tests;
