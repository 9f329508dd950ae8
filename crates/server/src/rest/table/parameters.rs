//! Parameters that several operations take.

use super::super::operation::{Kind, Parameter};

pub(super) const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, kind: Kind::Text }
}

pub(super) const fn flag(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, kind: Kind::Flag }
}

pub(super) const fn number(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, kind: Kind::Number }
}

pub(super) const APP_NAMESPACE: Parameter =
    text("appNamespace", "Namespace of the Application; the control plane's by default");
pub(super) const OF_PROJECT: Parameter =
    text("project", "Project of the Application, where the caller knows it");
pub(super) const SET_NAMESPACE: Parameter =
    text("appsetNamespace", "Namespace of the set; the control plane's by default");
pub(super) const NAME: Parameter = text("name", "Only what is of this name");
pub(super) const SELECTOR: Parameter = text("selector", "Only what has these labels");
pub(super) const REPO: Parameter = text("repo", "Only what is from this repository");
pub(super) const FIELDS: Parameter =
    text("fields", "Only these fields of the answer, or with a leading minus all others");
pub(super) const SINCE: Parameter = text("resourceVersion", "Only what is newer than this version");
pub(super) const PROJECTS: Parameter =
    Parameter { name: "projects", about: "Only what is of these projects", kind: Kind::Texts };
pub(super) const APP_PROJECT: Parameter = text("appProject", "Only what is registered for this project");
pub(super) const PROJECT: Parameter = Parameter { name: "project", ..PROJECTS };

/// What names one Application.
pub(super) const ONE: &[Parameter] = &[APP_NAMESPACE, OF_PROJECT];
pub(super) const GROUP: Parameter = text("group", "API group of the resource");
pub(super) const VERSION: Parameter = text("version", "API version of the resource, inside the group");
pub(super) const KIND: Parameter = text("kind", "Kind of the resource");
pub(super) const NAMESPACE: Parameter = text("namespace", "Namespace of the resource");
pub(super) const RESOURCE_NAME: Parameter = text("resourceName", "Name of the resource");
/// What names one resource of an Application.
pub(super) const RESOURCE: &[Parameter] =
    &[APP_NAMESPACE, OF_PROJECT, GROUP, VERSION, KIND, NAMESPACE, RESOURCE_NAME];
pub(super) const UPSERT: Parameter = flag("upsert", "Whether what is there is changed");
pub(super) const ID_TYPE: Parameter = Parameter {
    name: "id.type",
    about: "Whether the id is the URL, as by default, or the name",
    kind: Kind::Words(&["url", "url_escaped", "name", "name_escaped"]),
};
