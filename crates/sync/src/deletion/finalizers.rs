//! Finalizers of an Application: which stages of its deletion are left.

use baton_api::Application;
use baton_api::names::finalizer::{
    POST_DELETE, PRE_DELETE, RESOURCES, RESOURCES_BACKGROUND, RESOURCES_FOREGROUND,
};

use crate::action::Propagation;
use crate::hooks::HookType;

const CLEANUP: &str = "/cleanup";

/// The finalizer of a kind of hook: that they run, or that they are cleaned up.
pub(super) fn of_hooks(hooks: HookType, cleanup: bool) -> String {
    let base = if hooks == HookType::PreDelete { PRE_DELETE } else { POST_DELETE };
    if cleanup { format!("{base}{CLEANUP}") } else { base.to_owned() }
}

fn all(application: &Application) -> &[String] {
    application.metadata.finalizers.as_deref().unwrap_or_default()
}

pub(super) fn has(application: &Application, finalizer: &str) -> bool {
    all(application).iter().any(|own| own == finalizer)
}

/// The finalizers without some of them.
pub(super) fn without(application: &Application, goes: impl Fn(&str) -> bool) -> Vec<String> {
    all(application).iter().filter(|finalizer| !goes(finalizer)).cloned().collect()
}

pub(super) fn is_cascade(finalizer: &str) -> bool {
    matches!(finalizer, RESOURCES | RESOURCES_FOREGROUND | RESOURCES_BACKGROUND)
}

/// Whether a finalizer is one that a deletion of ours works off.
pub(super) fn is_ours(finalizer: &str) -> bool {
    is_cascade(finalizer) || finalizer.starts_with(PRE_DELETE) || finalizer.starts_with(POST_DELETE)
}

/// Whether deleting the Application deletes its resources.
pub fn cascades(application: &Application) -> bool {
    all(application).iter().any(|finalizer| is_cascade(finalizer))
}

/// What becomes of the dependants of its resources: the first finalizer that says so decides.
pub fn propagation(application: &Application) -> Propagation {
    match all(application).iter().find(|finalizer| is_cascade(finalizer)) {
        Some(finalizer) if finalizer == RESOURCES_BACKGROUND => Propagation::Background,
        _ => Propagation::Foreground,
    }
}

/// The finalizers an Application is to have for the delete hooks in its source, where it has others.
///
/// They are written before the status that shows the hooks: whoever sees it may delete the Application.
pub fn for_hooks(application: &Application, pre_delete: bool, post_delete: bool) -> Option<Vec<String>> {
    if application.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut finalizers = all(application).to_vec();
    for (hooks, wanted) in [(HookType::PreDelete, pre_delete), (HookType::PostDelete, post_delete)] {
        for finalizer in [of_hooks(hooks, false), of_hooks(hooks, true)] {
            let present = finalizers.contains(&finalizer);
            if wanted && !present {
                finalizers.push(finalizer);
            } else if !wanted && present {
                finalizers.retain(|own| *own != finalizer);
            }
        }
    }
    (finalizers != all(application)).then_some(finalizers)
}
