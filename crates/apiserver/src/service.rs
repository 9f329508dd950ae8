//! A cluster as a tower service, so that a `kube::Client` reaches it without a socket.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tower::Service;

use crate::cluster::Cluster;
use crate::rest::Body;

/// Answers requests in the caller's own task. The caller is trusted.
#[derive(Clone)]
pub struct ClusterService(Cluster);

impl Cluster {
    /// The cluster as a service for `kube::Client::new`.
    pub fn service(&self) -> ClusterService {
        ClusterService(self.clone())
    }
}

impl<B> Service<Request<B>> for ClusterService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let cluster = self.0.clone();
        Box::pin(async move { Ok(cluster.handle(request).await) })
    }
}
