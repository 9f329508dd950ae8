//! What the controllers work with, put together from their settings.

use std::sync::Arc;

use axum::Router;
use baton_controllers::webhook::{self, webhooks};
use baton_controllers::{Controller, Settings};
use baton_generators::Generators;
use baton_scm::{Hosts, Proxy};
use baton_source::Repositories;

use crate::failure::Failure;

/// Generators as the settings want them.
pub(crate) fn generators(
    settings: &Settings,
    repositories: baton_source::Settings,
) -> Result<Generators, Failure> {
    let proxy = match settings.scm_proxy_url.as_str() {
        "" => Proxy::Environment,
        url => Proxy::Url { url: url.to_owned(), no_proxy: settings.scm_no_proxy.clone() },
    };
    let hosts = baton_scm::Settings {
        enabled: settings.scm_providers,
        allowed_apis: settings.allowed_scm_providers.clone(),
        root_ca: settings.scm_root_ca.clone(),
        strict_token_refs: settings.token_ref_strict_mode,
        github_metrics: settings.github_api_metrics,
        proxy,
        ..baton_scm::Settings::default()
    };
    let hosts = Hosts::new(hosts).map_err(|error| Failure::usage(error.to_string()))?;
    let wanted = baton_generators::Settings {
        argocd_namespace: settings.namespace.clone(),
        new_git_file_globbing: settings.new_git_file_globbing,
        default_requeue: settings.requeue_after,
        ..baton_generators::Settings::default()
    };
    Ok(Generators::new(Repositories::new(repositories), hosts, wanted))
}

/// The endpoint of webhooks, and the work its events cause.
pub(crate) fn webhook_endpoint(
    controller: &Controller,
    workers: usize,
) -> (Router, impl Future<Output = ()> + use<>) {
    let settings = webhook::Settings { workers, ..webhook::Settings::default() };
    let (router, work) = webhooks(Arc::new(controller.clone()), &settings);
    (router, work.run())
}
