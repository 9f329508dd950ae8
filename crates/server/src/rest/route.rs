//! Which call a request is, by its method and the raw segments of its path.

use http::Method;
use percent_encoding::percent_decode_str;

use super::operation::{Names, Operation, Verb};
use super::table;
use crate::error::{Code, Error};
use crate::handlers::repositories::Shelf;

/// Longest path.
const LONGEST: usize = 8 << 10;

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Route {
    Health,
    Document,
    Version,
    Settings,
    SignIn,
    SignOut,
    UserInfo,
    Badge,
    Webhook,
    BeginSignOn,
    EndSignOn,
    SignOff,
    CanI,
    Accounts,
    Account,
    Password,
    CreateAccountToken,
    DeleteAccountToken,
    CreateApplication,
    Applications,
    Application,
    UpdateApplication,
    PatchApplication,
    DeleteApplication,
    UpdateSpec,
    Sync,
    Rollback,
    Terminate,
    ResourceTree,
    ManagedResources,
    Manifests,
    Resource,
    PatchResource,
    DeleteResource,
    ResourceActions,
    RunAction,
    RunActionV2,
    ApplicationEvents,
    ApplicationWindows,
    WatchApplications,
    Logs,
    PodLogs,
    RevisionMetadata,
    ChartDetails,
    ApplicationLinks,
    ResourceLinks,
    Sets,
    Set,
    CreateSet,
    DeleteSet,
    Generate,
    SetTree,
    SetEvents,
    WatchSets,
    Projects,
    Project,
    CreateProject,
    UpdateProject,
    DeleteProject,
    DetailedProject,
    ProjectEvents,
    ProjectWindows,
    ProjectLinks,
    GlobalProjects,
    CreateProjectToken,
    DeleteProjectToken,
    Clusters,
    Cluster,
    CreateCluster,
    UpdateCluster,
    DeleteCluster,
    ForgetCluster,
    References,
    Validate,
    List(Shelf),
    Show(Shelf),
    Create(Shelf),
    Update(Shelf),
    Delete(Shelf),
    Certificates,
    CreateCertificates,
    DeleteCertificates,
    Keys,
    Key,
    CreateKeys,
    DeleteKey,
    Rollouts,
    Rollout,
    Plan,
    Phases,
    Act,
    WatchRollouts,
    Approvals,
    Approve,
    Reject,
    WatchApprovals,
    Audit,
}

/// The decoded segments of a raw path: a `%2F` is a part of its segment.
///
/// # Errors
/// The path is no text, or has segments that mean other places.
pub(super) fn segments(path: &str) -> Result<Vec<String>, Error> {
    if path.len() > LONGEST {
        return Err(Error::invalid("the path is too long"));
    }
    let raw = path.strip_prefix('/').unwrap_or(path);
    let decode = |segment: &str| {
        let text = percent_decode_str(segment).decode_utf8();
        let text = text.map_err(|_| Error::invalid("the path is no text"))?.into_owned();
        match matches!(text.as_str(), "." | "..") || text.contains('\0') {
            true => Err(Error::invalid("the path names no object")),
            false => Ok(text),
        }
    };
    raw.split('/').map(decode).collect()
}

/// The operation that a request is, with what stands in its path.
///
/// # Errors
/// There is none of that path, or none of that method.
pub(super) fn find(method: &Method, segments: &[&str]) -> Result<(&'static Operation, Names), Error> {
    let of = |verb: &str| {
        let mut all = table::ALL.iter().filter(move |operation| operation.verb.as_str() == verb);
        all.find_map(|operation| Some((operation, operation.matches(segments)?)))
    };
    if let Some(found) = of(method.as_str()) {
        return Ok(found);
    }
    match Verb::ALL.iter().any(|verb| of(verb.as_str()).is_some()) {
        true => Err(Error::new(Code::Unimplemented, "Method Not Allowed")),
        false => Err(Error::not_found("Not Found")),
    }
}

/// Action and object of `can-i`, both of which may have slashes of their own.
///
/// # Errors
/// The action is not whole.
pub(super) fn asked(action: &str, rest: &str) -> Result<(String, String), Error> {
    let rest: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let longer = match action {
        "action" => 3,
        "update" | "delete" if rest.len() > 4 => 4,
        _ => 0,
    };
    let split = rest.split_at_checked(longer);
    let (own, object) = split.ok_or_else(|| Error::invalid("name the group, the kind and the action"))?;
    let action = std::iter::once(&action).chain(own).copied().collect::<Vec<_>>().join("/");
    let object = if object.is_empty() { "*".to_owned() } else { object.join("/") };
    Ok((action, object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, path: &str) -> Result<(Route, Names), Error> {
        let segments = segments(path)?;
        let found = find(&method, &segments.iter().map(String::as_str).collect::<Vec<_>>());
        found.map(|(operation, names)| (operation.route, names))
    }

    /// The call of a path and what stands for a name in it.
    fn named(path: &str, name: &str) -> Option<(Route, String)> {
        route(Method::GET, path).ok().map(|(route, names)| (route, names.text(name).to_owned()))
    }

    #[test]
    fn a_slash_that_is_written_out_stays_in_its_segment() {
        let application = |name: &str| Some((Route::Application, name.to_owned()));
        assert_eq!(named("/api/v1/applications/a%2Fb", "name"), application("a/b"));
        let found = named("/api/v1/projects/https%3A%2F%2Fgit.example.com", "name");
        assert_eq!(found, Some((Route::Project, "https://git.example.com".to_owned())));
        assert!(route(Method::GET, "/api/v1%2Fapplications").is_err());
        assert_eq!(named("/api/v1/applications/x%2Fresource-tree", "name"), application("x/resource-tree"));
    }

    #[test]
    fn tricks_with_paths_lead_nowhere() {
        for path in [
            "/api/v1/applications/..",
            "/api/v1/applications/%2e%2e",
            "/api/v1/applications/../projects",
            "/api/v1/applications/",
            "/api/v1//applications",
            "//api/v1/applications",
            "/api/v1/applications/%00",
            "/api/v1/applications/%ff",
            "/",
            "",
            "/api",
            "/api/v2/applications",
            &format!("/api/v1/applications/{}", "x".repeat(10_000)),
        ] {
            assert!(route(Method::GET, path).is_err(), "{path:.60}");
        }
    }

    #[test]
    fn a_path_of_another_method_is_told_from_none() {
        let refused = |method: Method, path: &str| route(method, path).expect_err("no call").code;
        assert_eq!(refused(Method::PUT, "/api/v1/approvals/approve"), Code::Unimplemented);
        assert_eq!(
            refused(Method::GET, "/api/v1/approvals/approve"),
            Code::Unimplemented,
            "no link approves anything"
        );
        assert_eq!(refused(Method::GET, "/api/v1/nothing"), Code::NotFound);
    }

    #[test]
    fn can_i_takes_actions_with_slashes() {
        let ask = |path: &str| {
            let (route, names) = route(Method::GET, path).expect("a call");
            assert_eq!(route, Route::CanI, "{path}");
            let (action, object) = asked(names.text("action"), names.text("object")).expect("an action");
            format!("{}|{action}|{object}", names.text("resource"))
        };
        assert_eq!(ask("/api/v1/account/can-i/applications/sync/shop/*"), "applications|sync|shop/*");
        assert_eq!(ask("/api/v1/account/can-i/applications/get"), "applications|get|*");
        assert_eq!(
            ask("/api/v1/account/can-i/applicationsets/action/argoproj.io/ApplicationSet/pause/shop/web"),
            "applicationsets|action/argoproj.io/ApplicationSet/pause|shop/web"
        );
        assert_eq!(
            ask(
                "/api/v1/account/can-i/applicationsets/action%2Fargoproj.io%2FApplicationSet%2Fpause/shop%2Fweb"
            ),
            "applicationsets|action/argoproj.io/ApplicationSet/pause|shop/web"
        );
    }

    #[test]
    fn an_action_that_is_not_whole_is_none() {
        assert!(asked("action", "apps/Deployment").is_err());
    }

    #[test]
    fn every_operation_is_found_by_its_own_path() {
        for operation in table::ALL.iter() {
            let path = operation.path.replace("...}", "}").replace('{', "a-").replace('}', "");
            let method: Method = operation.verb.as_str().parse().expect("a method");
            let (found, names) = route(method, &path).expect("an operation");
            assert_eq!(found, operation.route, "{path}");
            operation.names().for_each(|name| assert_eq!(names.text(name), format!("a-{name}")));
        }
    }
}
