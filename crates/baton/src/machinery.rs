//! What the controllers work with, put together from their settings.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use baton_controllers::webhook::{self, Refresh, webhooks};
use baton_controllers::{ApplicationController, Controller, NotificationController, RunError, Settings};
use baton_generators::Generators;
use baton_manifests::Manifests;
use baton_scm::{Hosts, Proxy};
use baton_source::Repositories;

use crate::failure::Failure;

/// Generators as the settings want them.
pub(crate) fn generators(settings: &Settings, repositories: Repositories) -> Result<Generators, Failure> {
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
    Ok(Generators::new(repositories, hosts, wanted))
}

/// The endpoint of webhooks, and the work its events cause.
pub(crate) fn webhook_endpoint(refresh: impl Refresh, workers: usize) -> (Router, impl Future<Output = ()>) {
    let settings = webhook::Settings { workers, ..webhook::Settings::default() };
    let (router, work) = webhooks(Arc::new(refresh), &settings);
    (router, work.run())
}

/// The controllers that run, each if it is wanted.
pub(crate) struct Controllers {
    pub(crate) sets: Option<Controller>,
    pub(crate) applications: Option<ApplicationController>,
    pub(crate) notifications: Option<NotificationController>,
}

impl Controllers {
    /// Runs them until `shutdown` is done, or until one of them fails.
    pub(crate) async fn run(&self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let (stop, _) = tokio::sync::watch::channel(false);
        let stopped = || {
            let mut told = stop.subscribe();
            async move { drop(told.wait_for(|told| *told).await) }
        };
        let sets = async {
            match &self.sets {
                Some(controller) => controller.run(stopped()).await,
                None => Ok(()),
            }
        };
        let applications = async {
            match &self.applications {
                Some(controller) => controller.run(stopped()).await,
                None => Ok(()),
            }
        };
        let notifications = async {
            match &self.notifications {
                Some(controller) => controller.run(stopped()).await,
                None => Ok(()),
            }
        };
        let all = async { tokio::try_join!(sets, applications, notifications).map(|_| ()) };
        let mut all = std::pin::pin!(all);
        tokio::select! {
            ended = &mut all => return ended,
            () = shutdown => {}
        }
        let _ = stop.send(true);
        all.await
    }

    /// `/metrics`, `/healthz` and `/readyz` of all.
    pub(crate) fn router(&self) -> Router {
        baton_controllers::observability(
            self.sets.as_ref(),
            self.applications.as_ref(),
            self.notifications.as_ref(),
        )
    }
}

/// What renders manifests, with its temporary files under `work_dir`.
pub(crate) fn manifests(repositories: Repositories, work_dir: PathBuf) -> Manifests {
    Manifests::new(
        repositories,
        baton_manifests::Settings { work_dir, ..baton_manifests::Settings::default() },
    )
}
