//! Calls about Applications and their resources.

use jiff::Timestamp;

use super::super::Incoming;
use super::super::answer::Answer;
use super::super::route::Route;
use crate::error::Error;
use crate::handlers::actions::RunAction;
use crate::handlers::applications::{Deletion, PatchRequest};
use crate::handlers::logs::LogQuery;
use crate::handlers::operations::{RollbackRequest, SyncRequest};
use crate::handlers::revisions::RevisionQuery;
use crate::handlers::watching::Watch;

pub(super) async fn application(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, query, .. } = &request;
    let at = || request.named();
    match route {
        Route::Application => Answer::json(server.application(context, &at(), &query.text("refresh")).await?),
        Route::UpdateApplication => {
            Answer::json(server.update_application(context, &at(), request.body()?).await?)
        }
        Route::UpdateSpec => Answer::json(server.update_spec(context, &at(), request.body()?).await?),
        Route::PatchApplication => {
            let patch = request.body::<PatchRequest>()?;
            let at = request.named_with(&patch.app_namespace, &patch.project)?;
            Answer::json(server.patch_application(context, &at, &patch).await?)
        }
        Route::DeleteApplication => {
            let keep_resources = query.flag("cascade")? == Some(false);
            let how = Deletion { keep_resources, propagation: query.text("propagationPolicy") };
            Answer::json(server.delete_application(context, &at(), &how).await?)
        }
        Route::Sync => {
            let asked = request.body::<SyncRequest>()?;
            let at = request.named_with(&asked.app_namespace, &asked.project)?;
            Answer::json(server.sync(context, &at, asked).await?)
        }
        Route::Rollback => {
            let asked = request.body::<RollbackRequest>()?;
            let at = request.named_with(&asked.app_namespace, &asked.project)?;
            Answer::json(server.rollback(context, &at, asked).await?)
        }
        Route::Terminate => Answer::json(server.terminate(context, &at()).await?),
        Route::CreateApplication => {
            Answer::json(server.create_application(context, request.body()?, query.is_on("upsert")?).await?)
        }
        Route::ApplicationWindows => Answer::json(server.application_windows(context, &at()).await?),
        Route::ApplicationLinks => Answer::json(server.application_links(context, &at()).await?),
        Route::RevisionMetadata => {
            Answer::json(server.revision_metadata(context, &at(), &revision(&request)?).await?)
        }
        Route::ChartDetails => {
            Answer::json(server.chart_details(context, &at(), &revision(&request)?).await?)
        }
        Route::ApplicationEvents => Answer::json(server.application_events(context, &at()).await?),
        Route::WatchApplications => {
            let watch = Watch {
                filter: request.filter("appNamespace"),
                since: query.text("resourceVersion"),
                fields: query.text("fields"),
            };
            Ok(Answer::stream(server.watch_applications(context, watch).await?))
        }
        _ => {
            let list = server.applications(context, &request.filter("appNamespace")).await?;
            Answer::json(list)?.only(&query.text("fields"))
        }
    }
}

pub(super) async fn resource(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, query, .. } = &request;
    let (at, which) = (request.named(), || request.resource("resourceName"));
    match route {
        Route::ResourceTree => Answer::json(server.resource_tree(context, &at).await?),
        Route::Manifests => Answer::json(server.manifests(context, &at, &query.text("revision")).await?),
        Route::ManagedResources => {
            let answer = server.managed_resources(context, &at, &request.resource("name")).await?;
            Answer::json(answer)?.only(&query.text("fields"))
        }
        Route::PatchResource => {
            let (patch, kind) = (request.body::<String>()?, query.text("patchType"));
            Answer::json(server.patch_resource(context, &at, &which(), &kind, &patch).await?)
        }
        Route::DeleteResource => {
            Answer::json(server.delete_resource(context, &at, &which(), query.is_on("orphan")?).await?)
        }
        Route::ResourceLinks => Answer::json(server.resource_links(context, &at, &which()).await?),
        Route::ResourceActions => Answer::json(server.actions(context, &at, &which()).await?),
        Route::RunAction => {
            let action = request.body::<String>()?;
            Answer::json(server.run_action(context, &at, &RunAction::of(which(), action)).await?)
        }
        Route::RunActionV2 => {
            let run = request.body::<RunAction>()?;
            let at = request.named_with(&run.app_namespace, &run.project)?;
            Answer::json(server.run_action(context, &at, &run).await?)
        }
        _ => Answer::json(server.resource(context, &at, &which()).await?),
    }
}

pub(super) async fn logs(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, query, .. } = &request;
    let pod = match route {
        Route::PodLogs => names.text("podName").to_owned(),
        _ => query.text("podName"),
    };
    let since = match query.text("sinceTime.seconds").as_str() {
        "" => time("sinceTime", &query.text("sinceTime"))?,
        seconds => Some(second("sinceTime.seconds", seconds)?),
    };
    let asked = LogQuery {
        pod: pod.clone(),
        container: query.text("container"),
        within: request.resource("resourceName"),
        follow: query.is_on("follow")?,
        previous: query.is_on("previous")?,
        tail: query.number("tailLines")?,
        since_seconds: query.number("sinceSeconds")?,
        since,
        until: time("untilTime", &query.text("untilTime"))?,
        filter: query.text("filter"),
        match_case: query.is_on("matchCase")?,
    };
    let updates = server.pod_logs(context, &request.named(), &asked).await?;
    if !query.is_on("download")? {
        return Ok(Answer::stream(updates));
    }
    let parts = ["log", &asked.within.namespace, &pod, &asked.container];
    let name: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Ok(Answer::download(updates, name.join("-")))
}

fn revision(request: &Incoming) -> Result<RevisionQuery, Error> {
    let Incoming { names, query, .. } = request;
    let place = query.number("sourceIndex")?.map(usize::try_from).transpose();
    Ok(RevisionQuery {
        revision: names.text("revision").to_owned(),
        source: place.map_err(|_| Error::invalid("sourceIndex: it is counted from 0"))?,
        version: query.number("versionId")?,
    })
}

fn time(name: &str, text: &str) -> Result<Option<Timestamp>, Error> {
    match text {
        "" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| Error::invalid(format!("{name}: it is to be an RFC 3339 time"))),
    }
}

fn second(name: &str, text: &str) -> Result<Timestamp, Error> {
    let second = text.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
    second.ok_or_else(|| Error::invalid(format!("{name}: it is to be a number of seconds")))
}
