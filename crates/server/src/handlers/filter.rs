//! Which objects of a list or a stream are asked for.

use baton_grammar::labels::Selector;
use serde_json::Value;

use super::applications::project;
use crate::error::Error;
use crate::masking;
use crate::objects::text;

/// Which Applications are asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this name.
    pub name: String,
    /// In this namespace.
    pub namespace: String,
    /// Of one of these projects; all where there are none.
    pub projects: Vec<String>,
    /// With these labels.
    pub selector: String,
    /// With this repository.
    pub repo: String,
}

/// Judges which Applications are asked for.
pub(crate) struct Test {
    filter: Filter,
    selector: Selector,
}

// === impl Test ===

impl Test {
    /// # Errors
    /// The selector cannot be read.
    pub(crate) fn new(filter: &Filter) -> Result<Test, Error> {
        let selector = Selector::parse(&filter.selector);
        let selector = selector.map_err(|error| Error::invalid(format!("selector: {error}")))?;
        Ok(Test { filter: filter.clone(), selector })
    }

    pub(crate) fn holds(&self, application: &Value) -> bool {
        let Filter { name, namespace, projects, repo, .. } = &self.filter;
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let spec = &application["spec"];
        let of_repo = || {
            let several = spec["sources"].as_array().into_iter().flatten();
            let mut sources = several.chain(std::iter::once(&spec["source"]));
            sources.any(|source| masking::without_credentials(text(source, "/repoURL")) == *repo)
        };
        is(name, text(application, "/metadata/name"))
            && is(namespace, text(application, "/metadata/namespace"))
            && (projects.is_empty() || projects.iter().any(|one| one == project(application)))
            && (repo.is_empty() || of_repo())
            && self.selector.matches_object(application)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_holds_for_what_it_names() {
        let application = json!({"metadata": {"name": "web", "namespace": "argocd", "labels": {"env": "dev"}},
            "spec": {"project": "shop", "source": {"repoURL": "https://a:b@git/x"}}});
        let holds = |filter: Filter| Test::new(&filter).expect("a filter").holds(&application);
        let text = |text: &str| text.to_owned();
        assert!(holds(Filter::default()));
        assert!(holds(Filter { projects: vec![text("other"), text("shop")], ..Filter::default() }));
        assert!(!holds(Filter { projects: vec![text("other")], ..Filter::default() }));
        assert!(holds(Filter { selector: text("env in (dev,test)"), ..Filter::default() }));
        assert!(!holds(Filter { selector: text("env=prod"), ..Filter::default() }));
        assert!(holds(Filter { repo: text("https://***@git/x"), ..Filter::default() }));
        assert!(Test::new(&Filter { selector: text("a in (b"), ..Filter::default() }).is_err());
    }
}
