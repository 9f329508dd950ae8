//! Who may not come in: requests without credentials, or with wrong ones.

use crate::target::{self, Target};
use http::Request;
use kube::{Client, client::Body};

#[test]
fn a_stranger_is_turned_away_over_tls() {
    target::runtime().block_on(async {
        let target = Target::tls().await;
        let stranger = target.stranger().expect("there is a wire");
        for (path, authorization) in [
            ("/api/v1/namespaces", None),
            ("/apis", None),
            ("/api/v1/namespaces/default/secrets?watch=true", None),
            ("/api/v1/namespaces", Some("Bearer wrong")),
            ("/api/v1/namespaces", Some("Basic YTpi")),
        ] {
            let (code, status) = ask(&stranger, path, authorization).await;
            assert_eq!((code, &status["reason"]), (401, &serde_json::json!("Unauthorized")), "{path}");
            assert_eq!(status["message"], "Unauthorized");
        }
    });
}

#[test]
fn a_certificate_of_another_cluster_opens_nothing_but_does_not_spoil_a_token() {
    target::runtime().block_on(async {
        let (ours, theirs) = (Target::tls().await, Target::tls().await);
        let impostor = ours.impostor(&theirs).expect("there is a wire");
        let (code, status) = ask(&impostor, "/api/v1/namespaces", None).await;
        assert_eq!((code, &status["reason"]), (401, &serde_json::json!("Unauthorized")));
        let token = format!("Bearer {}", ours.token().expect("we made the server"));
        let (code, _) = ask(&impostor, "/api/v1/namespaces", Some(&token)).await;
        assert_eq!(code, 200);
    });
}

#[test]
fn a_stranger_is_turned_away_by_the_cluster_named_by_the_environment() {
    target::runtime().block_on(async {
        let Some(target) = Target::from_environment().await else { return };
        let stranger = target.stranger().expect("there is a wire");
        let (code, status) = ask(&stranger, "/api/v1/namespaces", Some("Bearer wrong")).await;
        assert_eq!((code, &status["reason"]), (401, &serde_json::json!("Unauthorized")));
        // A cluster may know anonymous users, and then it forbids rather than asks who they are.
        let (code, _) = ask(&stranger, "/api/v1/namespaces", None).await;
        assert!(matches!(code, 401 | 403), "{code}");
    });
}

async fn ask(client: &Client, path: &str, authorization: Option<&str>) -> (u16, serde_json::Value) {
    let mut request = Request::builder().uri(path);
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    let request = request.body(Body::empty()).expect("a valid request");
    let response = client.send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.expect("the answer's body");
    (code, serde_json::from_slice(&body).expect("a Status"))
}
