//! Which Application an object belongs to, as written on the object.

use std::fmt;

use baton_api::names::resource::{INSTALLATION_ID, INSTANCE_LABEL, TRACKING_ID};
use baton_api::object::{Object, annotations_mut, labels_mut};
use serde_json::Value;

/// Longest value of a label.
const LABEL_LIMIT: usize = 63;

/// How objects are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// By annotation.
    #[default]
    Annotation,
    /// By label.
    Label,
    /// By annotation, with a label for people.
    AnnotationAndLabel,
}

/// How objects are marked as belonging to an Application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracking {
    /// By annotation, label, or both.
    pub method: Method,
    /// Name of the label.
    pub label: String,
    /// Tells several installations apart; empty where there is one.
    pub installation: String,
}

/// What a tracking annotation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackingId {
    /// The Application, as [`instance_name`] writes it.
    pub instance: String,
    /// Group of the object it was written for.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; that of the destination where it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// How an Application is written on its objects: its name, with its namespace before it unless that is the controller's.
pub fn instance_name(namespace: &str, name: &str, controller_namespace: &str) -> String {
    if namespace.is_empty() || namespace == controller_namespace {
        name.to_owned()
    } else {
        format!("{namespace}_{name}")
    }
}

/// Whether an object is a CustomResourceDefinition, which is never marked: it outlives the Application.
pub fn is_crd(object: &Value) -> bool {
    object.group() == "apiextensions.k8s.io" && object.kind() == "CustomResourceDefinition"
}

// === impl Method ===

impl Method {
    /// Reads `application.resourceTrackingMethod`; what is unknown is [`Method::Annotation`].
    pub fn read(word: &str) -> Method {
        match word {
            "label" => Method::Label,
            "annotation+label" => Method::AnnotationAndLabel,
            _ => Method::Annotation,
        }
    }
}

// === impl Tracking ===

impl Default for Tracking {
    fn default() -> Tracking {
        Tracking { method: Method::default(), label: INSTANCE_LABEL.to_owned(), installation: String::new() }
    }
}

impl Tracking {
    /// Marks an object as belonging to an Application. `namespace` is written for objects that have none.
    ///
    /// Anybody's earlier mark is replaced, so that a manifest cannot claim to belong elsewhere.
    pub fn stamp(&self, object: &mut Value, instance: &str, namespace: &str) {
        if is_crd(object) {
            return;
        }
        if self.method != Method::Label {
            let id = TrackingId::of(object, instance, namespace).to_string();
            let Some(annotations) = annotations_mut(object) else { return };
            annotations.insert(TRACKING_ID.to_owned(), id.into());
            if self.installation.is_empty() {
                annotations.remove(INSTALLATION_ID);
            } else {
                annotations.insert(INSTALLATION_ID.to_owned(), self.installation.as_str().into());
            }
        }
        let value = match self.method {
            Method::Annotation => return,
            Method::Label => instance,
            Method::AnnotationAndLabel => label_value(instance),
        };
        if let Some(labels) = labels_mut(object) {
            labels.insert(self.label.clone(), value.into());
        }
    }

    /// The Application an object is marked as belonging to.
    pub fn owner_of(&self, object: &Value) -> Option<String> {
        if self.method == Method::Label {
            return object.label(&self.label).filter(|label| !label.is_empty()).map(str::to_owned);
        }
        self.id_of(object).map(|id| id.instance)
    }

    /// Whether an object is managed by an Application: marked as its own, and not made by another object.
    pub fn manages(&self, object: &Value, instance: &str) -> bool {
        object.owners().is_empty() && self.owner_of(object).is_some_and(|owner| owner == instance)
    }

    /// Whether the mark of a live object was made for this very object and not copied from another.
    ///
    /// An object that is in the source needs no such proof, and a label cannot give it.
    pub fn refers_to_itself(&self, live: Option<&Value>, target: Option<&Value>) -> bool {
        let (Some(live), None) = (live, target) else { return true };
        if self.method == Method::Label {
            return true;
        }
        let Some(id) = self.id_of(live) else { return true };
        let namespace = live.namespace();
        id.group == live.group()
            && id.kind == live.kind()
            && id.name == live.name()
            && (namespace.is_empty() || id.namespace == namespace)
    }

    fn id_of(&self, object: &Value) -> Option<TrackingId> {
        let installation = object.annotation(INSTALLATION_ID).unwrap_or_default();
        if !self.installation.is_empty() && self.installation != installation {
            return None;
        }
        TrackingId::parse(object.annotation(TRACKING_ID)?)
    }
}

/// As much of a name as a label takes, ending in a letter or digit.
fn label_value(name: &str) -> &str {
    if name.len() <= LABEL_LIMIT {
        return name;
    }
    let cut = (0..=LABEL_LIMIT).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
    name[..cut].trim_end_matches(|last: char| !last.is_ascii_alphanumeric())
}

// === impl TrackingId ===

impl TrackingId {
    /// What is written on an object of an Application.
    pub fn of(object: &Value, instance: &str, namespace: &str) -> TrackingId {
        let own = object.namespace();
        TrackingId {
            instance: instance.to_owned(),
            group: object.group().to_owned(),
            kind: object.kind().to_owned(),
            namespace: if own.is_empty() { namespace } else { own }.to_owned(),
            name: object.name().to_owned(),
        }
    }

    /// Reads `<instance>:<group>/<kind>:<namespace>/<name>`.
    ///
    /// A name may hold colons, as those of RBAC objects do; only the first two divide.
    pub fn parse(text: &str) -> Option<TrackingId> {
        let mut parts = text.splitn(3, ':');
        let (instance, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
        let halves = |text: &str| {
            let (first, second) = text.split_once('/')?;
            (!second.contains('/')).then(|| (first.to_owned(), second.to_owned()))
        };
        let ((group, kind), (namespace, name)) = (halves(kind)?, halves(name)?);
        Some(TrackingId { instance: instance.to_owned(), group, kind, namespace, name })
    }
}

impl fmt::Display for TrackingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TrackingId { instance, group, kind, namespace, name } = self;
        write!(f, "{instance}:{group}/{kind}:{namespace}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ui", "namespace": "default"}})
    }

    fn by(method: Method) -> Tracking {
        Tracking { method, ..Tracking::default() }
    }

    #[test]
    fn an_object_says_whose_it_is() {
        let cases = [
            (Method::Annotation, Some("guestbook:/Service:default/ui"), None),
            (Method::Label, None, Some("guestbook")),
            (Method::AnnotationAndLabel, Some("guestbook:/Service:default/ui"), Some("guestbook")),
        ];
        for (method, annotation, label) in cases {
            let mut object = service();
            by(method).stamp(&mut object, "guestbook", "elsewhere");
            assert_eq!(object.annotation(TRACKING_ID), annotation, "{method:?}");
            assert_eq!(object.label(INSTANCE_LABEL), label, "{method:?}");
            assert_eq!(by(method).owner_of(&object).as_deref(), Some("guestbook"));
            assert!(by(method).manages(&object, "guestbook"));
        }
    }

    #[test]
    fn an_object_without_namespace_carries_the_destinations() {
        let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "system:x"}});
        by(Method::Annotation).stamp(&mut role, "a", "shop");
        let id = role.annotation(TRACKING_ID).expect("a mark");
        assert_eq!(id, "a:rbac.authorization.k8s.io/ClusterRole:shop/system:x");
        assert_eq!(TrackingId::parse(id).expect("an id").name, "system:x");
        assert!(by(Method::Annotation).refers_to_itself(Some(&role), None));
    }

    #[test]
    fn definitions_of_kinds_are_never_marked() {
        let mut crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "x"}});
        by(Method::AnnotationAndLabel).stamp(&mut crd, "a", "shop");
        assert_eq!(crd["metadata"], json!({"name": "x"}));
    }

    #[test]
    fn a_copied_mark_does_not_refer_to_its_bearer() {
        let tracking = by(Method::Annotation);
        let mut copy = service();
        tracking.stamp(&mut copy, "a", "");
        copy["metadata"]["name"] = json!("copy");
        assert!(!tracking.refers_to_itself(Some(&copy), None));
        assert!(tracking.refers_to_itself(Some(&copy), Some(&service())));
        assert!(by(Method::Label).refers_to_itself(Some(&copy), None));
        assert!(tracking.refers_to_itself(Some(&service()), None));
        assert!(tracking.refers_to_itself(None, None));
    }

    #[test]
    fn what_another_object_made_is_not_managed() {
        let mut object = service();
        by(Method::Annotation).stamp(&mut object, "a", "");
        object["metadata"]["ownerReferences"] = json!([{"uid": "u"}]);
        assert!(!by(Method::Annotation).manages(&object, "a"));
    }

    #[test]
    fn another_installations_objects_are_not_ours() {
        let ours = Tracking { installation: "ours".to_owned(), ..Tracking::default() };
        let theirs = Tracking { installation: "theirs".to_owned(), ..Tracking::default() };
        let mut object = service();
        theirs.stamp(&mut object, "a", "");
        assert_eq!(ours.owner_of(&object), None);
        assert_eq!(theirs.owner_of(&object).as_deref(), Some("a"));
        Tracking::default().stamp(&mut object, "a", "");
        assert_eq!(object.annotation(INSTALLATION_ID), None);
    }

    #[test]
    fn what_is_no_mark_names_nobody() {
        for text in ["", "a", "a:b:c", "a:b/c:d", "a:b/c/d:e/f", "a:/Pod:x/y/z"] {
            assert_eq!(TrackingId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_long_name_is_cut_to_a_valid_label() {
        let name = format!("{}--{}", "a".repeat(62), "b".repeat(9));
        let mut object = service();
        by(Method::AnnotationAndLabel).stamp(&mut object, &name, "");
        assert_eq!(object.label(INSTANCE_LABEL), Some("a".repeat(62).as_str()));
        assert_eq!(by(Method::AnnotationAndLabel).owner_of(&object).as_deref(), Some(name.as_str()));
        assert_eq!(label_value(&"ä".repeat(40)), "");
    }

    #[test]
    fn an_instance_is_named_with_its_namespace_outside_the_controllers() {
        assert_eq!(instance_name("argocd", "web", "argocd"), "web");
        assert_eq!(instance_name("team", "web", "argocd"), "team_web");
        assert_eq!(Method::read("annotation+label"), Method::AnnotationAndLabel);
        assert_eq!(Method::read("?"), Method::Annotation);
    }
}
