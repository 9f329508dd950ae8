//! Each call with what a request says of it.

mod applications;
mod incoming;
mod registered;

use serde_json::json;

use super::Incoming;
use super::answer::Answer;
use super::document::DOCUMENT;
use super::route::{Route, asked};
use crate::auth::cookie::{self, COMPANION};
use crate::auth::oidc::handshake::{self, Brought};
use crate::error::{Code, Error};
use crate::handlers::accounts::{NewPassword, NewToken};
use crate::handlers::approvals::Verdict;
use crate::handlers::extras::BadgeQuery;
use crate::handlers::rollouts::Act;
use crate::handlers::sessions::SignIn;
use crate::handlers::sets::Generation;
use crate::handlers::watching::Watch;

/// The page of a sign-in by an issuer that has not succeeded.
const FAILED: &str = "/login?has_sso_error=true";

/// Makes the call.
pub(super) async fn call(route: Route, request: Incoming) -> Result<Answer, Error> {
    match route {
        Route::Health => Ok(Answer::text("ok")),
        Route::Document => Ok(Answer::document(&DOCUMENT)),
        Route::Version => Answer::json(request.server.version(&request.context)),
        Route::Settings => Answer::json(request.server.public_settings(&request.context)),
        Route::Badge => badge(&request),
        Route::Webhook => Err(Error::new(Code::Unimplemented, "this server takes no webhooks")),
        Route::SignIn | Route::SignOut | Route::UserInfo => session(route, request).await,
        Route::BeginSignOn | Route::EndSignOn | Route::SignOff => sign_on(route, request).await,
        Route::CanI
        | Route::Accounts
        | Route::Account
        | Route::Password
        | Route::CreateAccountToken
        | Route::DeleteAccountToken => account(route, request).await,
        Route::Sets
        | Route::Set
        | Route::CreateSet
        | Route::DeleteSet
        | Route::Generate
        | Route::SetTree
        | Route::SetEvents
        | Route::WatchSets => set(route, request).await,
        Route::Projects
        | Route::Project
        | Route::CreateProject
        | Route::UpdateProject
        | Route::DeleteProject
        | Route::DetailedProject
        | Route::ProjectEvents
        | Route::ProjectWindows
        | Route::ProjectLinks
        | Route::GlobalProjects
        | Route::CreateProjectToken
        | Route::DeleteProjectToken => project(route, request).await,
        Route::Clusters
        | Route::Cluster
        | Route::CreateCluster
        | Route::UpdateCluster
        | Route::DeleteCluster
        | Route::ForgetCluster => registered::cluster(route, request).await,
        Route::References
        | Route::Validate
        | Route::List(_)
        | Route::Show(_)
        | Route::Create(_)
        | Route::Update(_)
        | Route::Delete(_) => registered::repository(route, request).await,
        Route::Certificates
        | Route::CreateCertificates
        | Route::DeleteCertificates
        | Route::Keys
        | Route::Key
        | Route::CreateKeys
        | Route::DeleteKey => registered::trust(route, request).await,
        Route::Rollouts
        | Route::Rollout
        | Route::Plan
        | Route::Phases
        | Route::Act
        | Route::WatchRollouts => rollout(route, request).await,
        Route::Approvals | Route::Approve | Route::Reject | Route::WatchApprovals | Route::Audit => {
            approval(route, request).await
        }
        Route::Resource
        | Route::PatchResource
        | Route::DeleteResource
        | Route::ResourceActions
        | Route::RunAction
        | Route::RunActionV2
        | Route::ResourceTree
        | Route::ManagedResources
        | Route::Manifests
        | Route::ResourceLinks => applications::resource(route, request).await,
        Route::Logs | Route::PodLogs => applications::logs(route, request).await,
        other => applications::application(other, request).await,
    }
}

fn badge(request: &Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, query, .. } = request;
    let asked = BadgeQuery {
        name: query.text("name"),
        namespace: query.text("namespace"),
        projects: query.all(&["project"]),
        revision: query.is_on("revision")?,
        whole_revision: query.is_on("keepFullRevision")?,
        named: query.is_on("showAppName")?,
        width: query.text("width").parse().ok(),
    };
    Ok(Answer::picture(server.badge(context, &asked)))
}

async fn session(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, .. } = &request;
    match route {
        Route::SignIn => {
            let token = server.sign_in(request.body::<SignIn>()?, &context.request).await?;
            let mut answer = Answer::json(json!({"token": token.expose()}))?;
            answer.cookies = cookie::kept(token.expose(), server.0.settings.secure, 1);
            Ok(answer)
        }
        Route::SignOut => {
            server.sign_out(context).await?;
            let mut answer = Answer::json(json!({}))?;
            answer.forgets = true;
            Ok(answer)
        }
        _ => Answer::json(server.user_info(context)),
    }
}

async fn sign_on(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, query, cookies, .. } = &request;
    let secure = server.0.settings.secure;
    match route {
        Route::BeginSignOn => {
            let sent = server.begin_sign_on(context, &query.text("return_url")).await?;
            Ok(Answer::elsewhere(sent.location, vec![sent.cookie]))
        }
        Route::EndSignOn => {
            let [state, code, error] = ["state", "code", "error"].map(|name| query.text(name));
            let brought = Brought { state: &state, code: &code, error: &error };
            let mut kept = vec![handshake::forgotten(secure)];
            match server.end_sign_on(context, cookies, &brought).await {
                Ok(arrived) => {
                    kept.extend(cookie::kept(arrived.token.expose(), secure, 1));
                    let companion = arrived.companion.iter();
                    kept.extend(companion.flat_map(|text| cookie::kept_as(COMPANION, text, secure, 1)));
                    Ok(Answer::elsewhere(arrived.back, kept))
                }
                Err(error) => {
                    // A person sees a page, and the operator why.
                    tracing::warn!(request = context.request, %error, "nobody was signed in by the issuer");
                    Ok(Answer::elsewhere(FAILED.to_owned(), kept))
                }
            }
        }
        _ => {
            server.sign_out(context).await?;
            let mut answer = Answer::elsewhere(server.after_sign_off(context), Vec::new());
            answer.forgets = true;
            Ok(answer)
        }
    }
}

async fn account(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, .. } = &request;
    match route {
        Route::CanI => {
            let (action, object) = asked(names.text("action"), names.text("object"))?;
            Answer::json(server.can_i(context, names.text("resource"), &action, &object)?)
        }
        Route::Account => Answer::json(server.account(context, names.text("name"))?),
        Route::Password => {
            Answer::json(server.change_password(context, request.body::<NewPassword>()?).await?)
        }
        Route::CreateAccountToken => {
            let token = request.body::<NewToken>()?;
            Answer::json(server.create_account_token(context, names.text("name"), token).await?)
        }
        Route::DeleteAccountToken => {
            let (name, id) = (names.text("name"), names.text("id"));
            Answer::json(server.delete_account_token(context, name, id).await?)
        }
        _ => Answer::json(server.accounts(context)),
    }
}

async fn set(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, query, .. } = &request;
    let at = || (query.text("appsetNamespace"), names.text("name"));
    match route {
        Route::Set => {
            let (namespace, name) = at();
            Answer::json(server.set(context, &namespace, name).await?)
        }
        Route::CreateSet => {
            let (upsert, dry_run) = (query.is_on("upsert")?, query.is_on("dryRun")?);
            Answer::json(server.create_set(context, request.body()?, upsert, dry_run).await?)
        }
        Route::DeleteSet => {
            let (namespace, name) = at();
            Answer::json(server.delete_set(context, &namespace, name).await?)
        }
        Route::Generate => {
            let Generation { application_set } = request.body()?;
            Answer::json(server.generate(context, application_set).await?)
        }
        Route::SetTree => {
            let (namespace, name) = at();
            Answer::json(server.set_tree(context, &namespace, name).await?)
        }
        Route::SetEvents => {
            let (namespace, name) = at();
            Answer::json(server.set_events(context, &namespace, name).await?)
        }
        Route::WatchSets => {
            // Argo CD spells the parameter otherwise here.
            let namespaces = query.all(&["appSetNamespace", "appsetNamespace"]);
            let mut filter = request.filter("appsetNamespace");
            filter.namespace = namespaces.into_iter().next().unwrap_or_default();
            let watch = Watch { filter, since: query.text("resourceVersion"), fields: query.text("fields") };
            Ok(Answer::stream(server.watch_sets(context, watch).await?))
        }
        _ => {
            let list = server.sets(context, &request.filter("appsetNamespace")).await?;
            Answer::json(list)?.only(&query.text("fields"))
        }
    }
}

async fn project(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, query, .. } = &request;
    match route {
        Route::Project => Answer::json(server.project(context, names.text("name")).await?),
        Route::CreateProject => Answer::json(server.create_project(context, request.body()?).await?),
        Route::UpdateProject => {
            Answer::json(server.update_project(context, names.text("name"), request.body()?).await?)
        }
        Route::DeleteProject => Answer::json(server.delete_project(context, names.text("name")).await?),
        Route::DetailedProject => Answer::json(server.detailed_project(context, names.text("name")).await?),
        Route::ProjectEvents => Answer::json(server.project_events(context, names.text("name")).await?),
        Route::ProjectLinks => Answer::json(server.project_links(context, names.text("name")).await?),
        Route::GlobalProjects => Answer::json(server.global_projects(context, names.text("name")).await?),
        Route::ProjectWindows => Answer::json(server.project_windows(context, names.text("name"))?),
        Route::CreateProjectToken => {
            let (project, role) = (names.text("project"), names.text("role"));
            let token = request.body::<NewToken>()?;
            Answer::json(server.create_project_token(context, project, role, token).await?)
        }
        Route::DeleteProjectToken => {
            let (project, role) = (names.text("project"), names.text("role"));
            let iat = names.text("iat").parse();
            let iat = iat.map_err(|_| Error::invalid("iat is a number of seconds"))?;
            let id = query.text("id");
            Answer::json(server.delete_project_token(context, project, role, iat, &id).await?)
        }
        _ => Answer::json(server.projects(context, &query.text("name")).await?)?.only(&query.text("fields")),
    }
}

async fn rollout(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, names, query, .. } = &request;
    if route == Route::Rollouts {
        return Answer::json(server.rollouts(context).await?);
    }
    let namespace = query.text("appsetNamespace");
    match route {
        Route::Plan => Answer::json(server.plan(context, &namespace, names.text("name")).await?),
        Route::Phases => Answer::json(server.phases(context, &namespace, names.text("name")).await?),
        Route::Act => {
            let (name, act) = (names.text("name"), request.body::<Act>()?);
            match act.dry_run {
                true => Answer::json(server.preview(context, &namespace, name, &act).await?),
                false => Answer::json(server.act(context, &namespace, name, &act).await?),
            }
        }
        Route::WatchRollouts => {
            let (name, brief) = (query.text("name"), query.is_on("summary")?);
            Ok(Answer::stream(server.watch_rollouts(context, &namespace, &name, brief).await?))
        }
        _ => Answer::json(server.rollout(context, &namespace, names.text("name")).await?),
    }
}

async fn approval(route: Route, request: Incoming) -> Result<Answer, Error> {
    let Incoming { server, context, query, .. } = &request;
    match route {
        Route::Approve => Answer::json(server.approve(context, &request.body::<Verdict>()?).await?),
        Route::Reject => Answer::json(server.reject(context, &request.body::<Verdict>()?).await?),
        Route::WatchApprovals => Ok(Answer::stream(server.watch_approvals(context).await?)),
        Route::Audit => {
            let limit = query.text("limit");
            let limit = match limit.as_str() {
                "" => None,
                text => Some(text.parse().map_err(|_| Error::invalid("limit is a number"))?),
            };
            Answer::json(server.deeds(context, limit).await?)
        }
        _ => Answer::json(server.approvals(context).await?),
    }
}
