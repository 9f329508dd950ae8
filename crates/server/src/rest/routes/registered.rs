//! Calls about what is registered: clusters, repositories, certificates and keys.

use super::super::Incoming;
use super::super::answer::Answer;
use super::super::route::Route;
use crate::error::Error;
use crate::handlers::cluster_changes::ClusterId;
use crate::handlers::clusters::ClusterQuery;
use crate::registered::certificates::CertificateQuery;

pub(super) async fn cluster(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, query, .. } = &request;
    if route == Route::Clusters {
        let query = ClusterQuery { server: query.text("server"), name: query.text("name") };
        return Answer::json(server.clusters(context, &query).await?);
    }
    if route == Route::CreateCluster {
        let upsert = query.is_on("upsert")?;
        return Answer::json(server.create_cluster(context, &request.body()?, upsert).await?);
    }
    let (id, kind) = (names.text("id"), query.text("id.type"));
    let which = ClusterId::read(id, &kind)?;
    match route {
        Route::UpdateCluster => {
            let fields = query.all(&["updatedFields"]);
            Answer::json(server.update_cluster(context, which, &request.body()?, &fields).await?)
        }
        Route::DeleteCluster => Answer::json(server.delete_cluster(context, which).await?),
        Route::ForgetCluster => Answer::json(server.forget_cluster(context, which).await?),
        _ => Answer::json(server.cluster(context, id, &kind).await?),
    }
}

pub(super) async fn repository(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, query, .. } = &request;
    match route {
        Route::Create(shelf) => {
            let upsert = query.is_on("upsert")?;
            Answer::json(server.create_repository(context, shelf, &request.body()?, upsert).await?)
        }
        Route::Show(shelf) => {
            let project = query.text("appProject");
            Answer::json(server.repository(context, shelf, names.text(shelf.url()), &project).await?)
        }
        Route::Update(shelf) => {
            let url = names.text(shelf.url());
            Answer::json(server.update_repository(context, shelf, url, &request.body()?).await?)
        }
        Route::Delete(shelf) => {
            let project = if shelf.url() == "repo" { query.text("appProject") } else { String::new() };
            Answer::json(server.delete_repository(context, shelf, names.text(shelf.url()), &project).await?)
        }
        Route::List(shelf) => {
            let project = if shelf.url() == "repo" { query.text("appProject") } else { String::new() };
            Answer::json(server.shelved(context, shelf, &query.text(shelf.url()), &project).await?)
        }
        Route::References => {
            let project = query.text("appProject");
            Answer::json(server.references(context, names.text("repo"), &project).await?)
        }
        Route::Validate => {
            let (url, project) = (names.text("repo"), query.text("project"));
            Answer::json(server.validate_repository(context, url, &project, &request.body()?).await?)
        }
        _ => Err(Error::internal("no call about repositories")),
    }
}

pub(super) async fn trust(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, query, .. } = &request;
    let meant = || CertificateQuery {
        host: query.text("hostNamePattern"),
        kind: query.text("certType"),
        algorithm: query.text("certSubType"),
    };
    match route {
        Route::CreateCertificates => {
            let upsert = query.is_on("upsert")?;
            Answer::json(server.create_certificates(context, &request.body()?, upsert).await?)
        }
        Route::DeleteCertificates => Answer::json(server.delete_certificates(context, &meant()).await?),
        Route::Keys => Answer::json(server.keys(context, &query.text("keyID")).await?),
        Route::Key => Answer::json(server.key(context, names.text("keyID")).await?),
        Route::CreateKeys => {
            let upsert = query.is_on("upsert")?;
            Answer::json(server.create_keys(context, &request.body()?, upsert).await?)
        }
        Route::DeleteKey => Answer::json(server.delete_key(context, &query.text("keyID")).await?),
        _ => Answer::json(server.certificates(context, &meant()).await?),
    }
}
