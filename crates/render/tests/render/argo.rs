//! What Argo CD itself rendered, for the cases whose parameters need no generator but a list.

use std::path::{Path, PathBuf};

use baton_api::Application;
use baton_api::application_set::{ApplicationSet, ApplicationSetSpec};
use baton_api::generators::Generator;
use baton_render::{Engine, Params, RenderError, Renderer, overlay};
use baton_template::Value as Param;
use serde_json::Value;

/// Cases that differ on purpose.
const DIFFERENT: [(&str, &str); 2] = [
    ("go-printing", "complex numbers are not understood"),
    ("walk-values-object", "large integers keep their last digits"),
];

#[test]
fn lists_render_as_argo_cd_renders_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../generators/tests/argo");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&root)
        .expect("the goldens are in the repository")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir() && !DIFFERENT.iter().any(|(name, _)| path.ends_with(name)))
        .collect();
    cases.sort();
    let mut compared = 0;
    let mut differences = Vec::new();
    for case in &cases {
        let difference = compare(case);
        compared += usize::from(difference.is_some());
        differences.extend(difference.and_then(Result::err));
    }
    assert!(differences.is_empty(), "{} of {compared}:\n{}", differences.len(), differences.join("\n"));
    assert!(compared >= 40, "only {compared} cases were compared");
}

/// Tells what differs; `None` if the case cannot be compared here.
fn compare(case: &Path) -> Option<Result<(), String>> {
    let text = |name: &str| std::fs::read_to_string(case.join(name)).ok();
    let set = text("appset.yaml").expect("every case has a set");
    let set: ApplicationSet = serde_json::from_value(yaml(&set)).unwrap_or_default();
    let reason = text("reason.txt");
    let failed_before = reason.is_some_and(|reason| reason.trim() != "RenderTemplateParamsError");
    if failed_before || set.spec.generators.is_empty() || !set.spec.generators.iter().all(is_plain_list) {
        return None;
    }
    let name = case.display();
    let namespace = set.metadata.namespace.clone().unwrap_or_default();
    let same = match (applications(&set.spec, &namespace), text("expected.yaml"), text("error.txt")) {
        (Ok(mut ours), Some(theirs), _) => {
            let theirs = baton_grammar::yaml::documents(&theirs).expect("YAML");
            let theirs: Vec<Value> = theirs.into_iter().filter(|document| !document.is_null()).collect();
            ours.sort_by_key(|application| application["metadata"]["name"].to_string());
            let (ours, theirs) = (typed(&ours), typed(&theirs));
            if ours == theirs {
                Ok(())
            } else {
                Err(format!("{name}: {ours:#?}\nwhere Argo CD has {theirs:#?}"))
            }
        }
        (Err(error), _, Some(theirs)) => match theirs.lines().next() {
            Some(core) if !error.to_string().contains(core) => Err(format!("{name}: {error}\nlacks {core}")),
            _ => Ok(()),
        },
        (ours, _, theirs) => Err(format!("{name}: {ours:?}\nwhere Argo CD has {theirs:?}")),
    };
    Some(same)
}

/// The objects as the types write them: Argo CD writes some empty parts of an operation out.
fn typed(applications: &[Value]) -> Vec<Value> {
    let typed = |application: &Value| {
        let application: Application = serde_json::from_value(application.clone()).expect("an Application");
        serde_json::to_value(application).expect("it can be written")
    };
    applications.iter().map(typed).collect()
}

fn is_plain_list(generator: &Generator) -> bool {
    let others = Generator { list: None, ..generator.clone() };
    let list = generator.list.as_ref();
    others == Generator::default() && list.is_some_and(|list| list.elements_yaml.is_empty())
}

fn applications(spec: &ApplicationSetSpec, namespace: &str) -> Result<Vec<Value>, RenderError> {
    let engine = Engine::of(spec)?;
    let preserve = spec.sync_policy.as_ref().is_some_and(|policy| policy.preserve_resources_on_deletion);
    let mut applications = Vec::new();
    for list in spec.generators.iter().filter_map(|generator| generator.list.as_ref()) {
        let template = overlay(&list.template, &spec.template);
        let renderer = Renderer::new(&engine, &template, spec.template_patch.as_deref(), preserve)?;
        for element in &list.elements {
            applications.push(renderer.render(&params(engine, element), namespace)?);
        }
    }
    Ok(applications)
}

/// An element as parameters (1.5): as it is for Go templates, otherwise with `values` flattened.
fn params(engine: Engine, element: &Value) -> Params {
    let Param::Map(map) = Param::from(element) else { return Params::new([]) };
    if let (Engine::Fast, Some(Param::Map(values))) = (engine, map.get("values")) {
        let kept = map.snapshot().into_iter().filter(|(key, _)| key.as_ref() != "values");
        let flat = values.snapshot().into_iter().map(|(key, value)| (format!("values.{key}").into(), value));
        return Params::new(kept.chain(flat));
    }
    map
}

fn yaml(text: &str) -> Value {
    baton_grammar::yaml::first(text).expect("YAML")
}
