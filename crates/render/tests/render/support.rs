//! Templates and parameters written as YAML.

use baton_api::application_set::ApplicationTemplate;
use baton_render::{Engine, Params, RenderError, Renderer};
use baton_template::{MissingKey, Value as Param};
use serde_json::Value;

pub(crate) const GO: Engine = Engine::Go(MissingKey::Default);
pub(crate) const STRICT: Engine = Engine::Go(MissingKey::Error);

pub(crate) fn yaml(text: &str) -> Value {
    baton_grammar::yaml::first(text).expect("the test's own YAML")
}

pub(crate) fn params(text: &str) -> Params {
    match Param::from(&yaml(text)) {
        Param::Map(map) => map,
        other => panic!("parameters are a map, not {other:?}"),
    }
}

pub(crate) fn template(text: &str) -> ApplicationTemplate {
    serde_json::from_value(yaml(text)).expect("the test's own template")
}

/// Renders into the namespace `argocd` and returns metadata and spec, or the error's text.
pub(crate) fn rendered(
    engine: Engine,
    application: &str,
    patch: Option<&str>,
    parameters: &str,
) -> Result<Value, String> {
    render(engine, application, patch, parameters).map_err(|error| error.to_string())
}

pub(crate) fn render(
    engine: Engine,
    application: &str,
    patch: Option<&str>,
    parameters: &str,
) -> Result<Value, RenderError> {
    let renderer = Renderer::new(&engine, &template(application), patch, false)?;
    let mut object = renderer.render(&params(parameters), "argocd")?;
    assert_eq!(object["apiVersion"], "argoproj.io/v1alpha1");
    assert_eq!(object["kind"], "Application");
    let fields = object.as_object_mut().expect("an object");
    fields.remove("apiVersion");
    fields.remove("kind");
    Ok(object)
}
