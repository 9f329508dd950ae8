//! Which kinds make objects of which other kinds.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::GroupKind;

/// Kinds and the kinds of their children. Others are learnt from owner references.
const KNOWN: &[(&str, &str, &str, &str)] = &[
    ("apps", "Deployment", "apps", "ReplicaSet"),
    ("apps", "ReplicaSet", "", "Pod"),
    ("apps", "StatefulSet", "", "Pod"),
    ("apps", "StatefulSet", "", "PersistentVolumeClaim"),
    ("apps", "StatefulSet", "apps", "ControllerRevision"),
    ("apps", "DaemonSet", "", "Pod"),
    ("apps", "DaemonSet", "apps", "ControllerRevision"),
    ("batch", "CronJob", "batch", "Job"),
    ("batch", "Job", "", "Pod"),
    ("", "ReplicationController", "", "Pod"),
    ("argoproj.io", "Rollout", "apps", "ReplicaSet"),
    ("argoproj.io", "Rollout", "argoproj.io", "AnalysisRun"),
    ("argoproj.io", "CronWorkflow", "argoproj.io", "Workflow"),
    ("argoproj.io", "Workflow", "", "Pod"),
    ("argoproj.io", "ApplicationSet", "argoproj.io", "Application"),
    ("cert-manager.io", "Certificate", "cert-manager.io", "CertificateRequest"),
    ("cert-manager.io", "Certificate", "", "Secret"),
];

/// Kinds and the kinds of their children.
#[derive(Debug, Clone)]
pub(crate) struct Children(BTreeMap<GroupKind, BTreeSet<GroupKind>>);

impl Default for Children {
    fn default() -> Children {
        let mut children = Children(BTreeMap::new());
        for (group, kind, child_group, child_kind) in KNOWN {
            children.learn(GroupKind::new(group, kind), GroupKind::new(child_group, child_kind));
        }
        children
    }
}

impl Children {
    /// Notes that objects of one kind own objects of another. Whether that was new.
    pub(crate) fn learn(&mut self, parent: GroupKind, child: GroupKind) -> bool {
        self.0.entry(parent).or_default().insert(child)
    }

    /// These kinds and all below them.
    pub(crate) fn closure(&self, kinds: &BTreeSet<GroupKind>) -> BTreeSet<GroupKind> {
        let mut all = BTreeSet::new();
        let mut next: Vec<&GroupKind> = kinds.iter().collect();
        while let Some(kind) = next.pop() {
            if all.insert(kind.clone()) {
                next.extend(self.0.get(kind).into_iter().flatten());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_included_and_circles_end() {
        let mut children = Children::default();
        children.learn(GroupKind::new("", "Pod"), GroupKind::new("x", "A"));
        children.learn(GroupKind::new("x", "A"), GroupKind::new("", "Pod"));
        let all = children.closure(&[GroupKind::new("apps", "Deployment")].into());
        let names: Vec<&str> = all.iter().map(|kind| kind.kind.as_str()).collect();
        assert_eq!(names, ["Pod", "Deployment", "ReplicaSet", "A"]);
    }
}
