//! Applications that people create.

use baton_api::names::application::DELETION_APPROVED;
use serde_json::{Map, Value};

use super::applications::{Named, OWN, deed, project, typed};
use crate::audit::{Affected, Deed};
use crate::error::{Code, Error};
use crate::masking;
use crate::objects::{APPLICATIONS, text};
use crate::server::{Context, Server, plain};

impl Server {
    /// Creates an Application, or with `upsert` changes the one that is there.
    ///
    /// # Errors
    /// The caller may not, or there is another already.
    pub async fn create_application(
        &self,
        context: &Context,
        mut wanted: Value,
        upsert: bool,
    ) -> Result<Value, Error> {
        let after = typed(&wanted)?;
        let name = after.metadata.name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Error::invalid("the Application has no name"))?;
        let asked = after.metadata.namespace.clone().unwrap_or_default();
        let namespace = self.namespace(&asked)?.to_owned();
        self.demand(
            context,
            "applications",
            "create",
            &self.policy_name(project(&wanted), &namespace, &name),
        )?;
        self.check_project(context, &name, &after.spec.project).await?;
        wanted["apiVersion"] = baton_api::names::API_VERSION.into();
        wanted["kind"] = "Application".into();
        wanted["metadata"]["namespace"] = namespace.as_str().into();
        bare(&mut wanted);
        let applications = self.objects(APPLICATIONS, &namespace);
        let result = applications.create(&wanted, false).await;
        if matches!(&result, Err(error) if error.code == Code::AlreadyExists) {
            return self.create_again(context, &namespace, &name, wanted, upsert).await;
        }
        let about = result.as_ref().unwrap_or(&wanted);
        let object = Affected {
            kind: "Application",
            namespace,
            name,
            uid: text(about, "/metadata/uid").to_owned(),
            project: project(about).to_owned(),
        };
        let deed = Deed { verb: "create", reason: "ResourceCreated", object, ..Deed::default() };
        self.audited(context, deed, result.map(plain)).await
    }

    /// What is the same is there already; what is another is changed only if that is wanted.
    async fn create_again(
        &self,
        context: &Context,
        namespace: &str,
        name: &str,
        wanted: Value,
        upsert: bool,
    ) -> Result<Value, Error> {
        let at = Named { name: name.to_owned(), namespace: namespace.to_owned(), project: String::new() };
        let found = self.find(context, &at, "get").await?;
        let mut restored = wanted.clone();
        masking::restore(&mut restored, &found.raw);
        let same = |field: &str| {
            let (stored, wanted) = (&found.raw["metadata"][field], &restored["metadata"][field]);
            // An empty map is not stored.
            let empty = wanted.as_object().is_some_and(Map::is_empty) && stored.is_null();
            stored == wanted || wanted.is_null() || empty
        };
        if found.raw["spec"] == restored["spec"]
            && ["labels", "annotations", "finalizers"].into_iter().all(same)
        {
            return Ok(plain(found.raw));
        }
        if !upsert {
            return Err(Error::invalid(
                "existing application spec is different, use upsert flag to force update",
            ));
        }
        let deed = |found: &super::applications::Found| deed("update", "ResourceUpdated", found);
        self.rewrite(context, &at, deed, |_| Ok(wanted.clone())).await
    }
}

/// Leaves what a person may say of a new Application: what was done to it and what it may delete is not theirs.
fn bare(wanted: &mut Value) {
    if let Some(fields) = wanted.as_object_mut() {
        fields.remove("status");
        fields.remove("operation");
    }
    if let Some(metadata) = wanted["metadata"].as_object_mut() {
        for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"] {
            metadata.remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| name != DELETION_APPROVED && !OWN.contains(&name.as_str()));
        }
    }
}
