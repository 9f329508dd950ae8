//! Where the issuer sends the browser back to: a page on this machine that is there for one sign-in.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::get;
use reqwest::Url;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::http;

const PATH: &str = "/auth/callback";

/// A port of this machine that listens.
pub(super) struct Listener {
    listener: TcpListener,
    port: u16,
}

/// What the browser brought.
#[derive(Debug, PartialEq, Eq)]
enum Brought {
    Code(String),
    /// The issuer's word for why there is none.
    Refusal(String),
}

// === impl Listener ===

impl Listener {
    pub(super) async fn open(port: u16) -> Result<Listener, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::failed(format!(
                "cannot listen on port {port} of this machine: {error}; choose another that the issuer sends people back \
                 to with --sso-port"
            ))
        };
        let listener =
            TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        Ok(Listener { listener, port })
    }

    /// What the issuer knows this page as.
    pub(super) fn address(&self) -> String {
        format!("http://localhost:{}{PATH}", self.port)
    }

    /// Waits for the code of the sign-in that has this state. What else comes is not listened to.
    pub(super) async fn code(self, state: &str) -> Result<String, Failure> {
        let (told, mut heard) = mpsc::channel(1);
        let router = Router::new().route(PATH, get(arrive)).with_state(Arc::new((state.to_owned(), told)));
        let brought = tokio::select! {
            brought = heard.recv() => brought,
            never = http::serve(self.listener, router) => match never {},
        };
        // The page is on its way while this goes on; what is asked of the issuer next takes longer.
        match brought {
            Some(Brought::Code(code)) => Ok(code),
            Some(Brought::Refusal(why)) => Err(Failure::api(format!("the issuer lets nobody in: {why}"))),
            None => Err(Failure::failed("the listener ended")),
        }
    }
}

async fn arrive(
    State(known): State<Arc<(String, mpsc::Sender<Brought>)>>,
    uri: Uri,
) -> impl IntoResponse + use<> {
    let (state, told) = &*known;
    let (status, words) = match brought(uri.query().unwrap_or_default(), state) {
        None => {
            (StatusCode::BAD_REQUEST, "This is not the sign-in that was begun. Begin again with baton login.")
        }
        Some(brought) => {
            let words = match brought {
                Brought::Code(_) => "You can close this page and go back to the terminal.",
                Brought::Refusal(_) => "The issuer has not let you in; the terminal says why.",
            };
            let _ = told.try_send(brought);
            (StatusCode::OK, words)
        }
    };
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>baton</title><p>{words}</p>");
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONNECTION, "close")], page)
}

/// What a query brings for a sign-in; nothing where it belongs to another.
fn brought(query: &str, state: &str) -> Option<Brought> {
    let url = Url::parse(&format!("http://localhost/?{query}")).ok()?;
    let value =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if value("state").as_deref() != Some(state) {
        return None;
    }
    match (value("error"), value("code")) {
        (Some(error), _) => {
            let about = value("error_description").map(|about| format!(" ({about})")).unwrap_or_default();
            Some(Brought::Refusal(
                crate::screen::clean(&format!("{error}{about}")).chars().take(300).collect(),
            ))
        }
        (None, Some(code)) if !code.is_empty() => Some(Brought::Code(code)),
        (None, _) => Some(Brought::Refusal("it has sent no code".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_the_sign_in_is_listened_to() {
        assert_eq!(brought("code=x%2Fy&state=s", "s"), Some(Brought::Code("x/y".to_owned())));
        assert_eq!(brought("code=x&state=other", "s"), None);
        assert_eq!(brought("code=x", "s"), None);
        assert_eq!(brought("", "s"), None);
        let refused = brought("error=access_denied&error_description=not+you%0A&state=s", "s");
        assert_eq!(refused, Some(Brought::Refusal("access_denied (not you )".to_owned())));
        assert_eq!(brought("state=s", "s"), Some(Brought::Refusal("it has sent no code".to_owned())));
    }
}
