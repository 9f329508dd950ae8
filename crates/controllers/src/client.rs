//! Kubernetes clients that do not wait for ever, and whose requests are counted.
//!
//! kube's watcher times out when an open watch falls silent, but not when the answer to its request never begins. So
//! every request gets a limit for the time until the head of its answer is there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use baton_clusters::{ClusterAccess, Connect};
use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower::{BoxError, Layer, Service};

/// Time until the head of an answer must be there.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// An answer that did not begin in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the Kubernetes API did not begin to answer within {} s", .0.as_secs())]
pub struct HeadTimedOut(pub Duration);

/// Adds the limit to a service.
#[derive(Debug, Clone, Copy)]
pub struct HeadTimeoutLayer(pub Duration);

/// A service whose answers begin in time or fail.
#[derive(Debug, Clone)]
pub struct HeadTimeout<S> {
    inner: S,
    limit: Duration,
}

/// How the cluster that a controller lives with is called among those it asks.
const HOME: &str = "kubernetes.default.svc";

/// How many requests were made, under the name that Kubernetes' own clients count them by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    made: Family<RequestLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    host: String,
    method: String,
    code: String,
}

/// Makes clients whose requests are counted.
struct Counted {
    connect: Arc<dyn Connect>,
    requests: Requests,
}

/// A client of the cluster that `config` names.
///
/// # Errors
/// If the configuration cannot be used, for example for its certificates.
pub fn connect(config: Config) -> Result<Client, kube::Error> {
    Ok(bounded(Client::try_from(config)?))
}

/// The same client with the limit. A client that has it already is as good as before.
pub fn bounded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(HeadTimeoutLayer(HEAD_TIMEOUT).layer(send), namespace)
}

// === impl Requests ===

impl Requests {
    pub(crate) fn registered(&self, registry: &mut Registry) {
        let help = "Requests to Kubernetes APIs, by host, method and code of the answer";
        registry.register("rest_client_requests", help, self.made.clone());
    }

    /// The same client of the cluster that the controller lives with, bounded and counted.
    pub(crate) fn of_home(&self, client: Client) -> Client {
        self.counted(bounded(client), HOME)
    }

    /// The same way to other clusters, counted.
    pub(crate) fn of_others(&self, connect: Arc<dyn Connect>) -> Arc<dyn Connect> {
        Arc::new(Counted { connect, requests: self.clone() })
    }

    fn counted(&self, client: Client, host: &str) -> Client {
        let namespace = client.default_namespace().to_owned();
        let (made, host) = (self.made.clone(), Arc::<str>::from(host));
        let send = tower::service_fn(move |request: Request<Body>| {
            let (client, made, host) = (client.clone(), made.clone(), host.clone());
            let method = request.method().to_string();
            async move {
                let answer = client.send(request).await;
                // What Kubernetes' own clients write where there was no answer.
                let code = answer
                    .as_ref()
                    .map_or("<error>".to_owned(), |answer| answer.status().as_str().to_owned());
                made.get_or_create(&RequestLabels { host: host.to_string(), method, code }).inc();
                answer
            }
        });
        Client::new(send, namespace)
    }
}

// === impl Counted ===

impl Connect for Counted {
    fn connect(&self, cluster: &ClusterAccess) -> Result<Client, String> {
        let host = cluster.server.split_once("://").map_or(&*cluster.server, |(_, host)| host);
        Ok(self.requests.counted(self.connect.connect(cluster)?, host))
    }
}

// === impl HeadTimeoutLayer ===

impl<S> Layer<S> for HeadTimeoutLayer {
    type Service = HeadTimeout<S>;

    fn layer(&self, inner: S) -> HeadTimeout<S> {
        HeadTimeout { inner, limit: self.0 }
    }
}

// === impl HeadTimeout ===

impl<S, B> Service<Request<Body>> for HeadTimeout<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (limit, answer) = (self.limit, self.inner.call(request));
        Box::pin(async move {
            match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err(HeadTimedOut(limit).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_begins_is_an_error() {
        let silent = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, std::convert::Infallible>>()
        });
        let client = bounded(Client::new(silent, "default"));
        let answer = Api::<ConfigMap>::namespaced(client, "default").get("any").await;
        let error = answer.expect_err("no answer");
        let mut causes =
            std::iter::successors(Some(&error as &dyn std::error::Error), |cause| cause.source());
        assert!(causes.any(|cause| cause.to_string().contains("within 30 s")), "{error:?}");
    }

    #[tokio::test]
    async fn requests_are_counted_by_what_was_answered() {
        let answers = tower::service_fn(async |request: Request<Body>| match request.uri().path() {
            path if path.ends_with("/lost") => Err("nobody answers"),
            _ => {
                let mut answer = Response::new(Body::from(b"{}".to_vec()));
                *answer.status_mut() = http::StatusCode::NOT_FOUND;
                Ok(answer)
            }
        });
        let (requests, mut registry) = (Requests::default(), Registry::default());
        requests.registered(&mut registry);
        let api: Api<ConfigMap> =
            Api::namespaced(requests.of_home(Client::new(answers, "default")), "default");
        for name in ["a", "b", "lost"] {
            api.get(name).await.expect_err("neither is there");
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for line in [
            r#"rest_client_requests_total{host="kubernetes.default.svc",method="GET",code="404"} 2"#,
            r#"rest_client_requests_total{host="kubernetes.default.svc",method="GET",code="<error>"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }
}
