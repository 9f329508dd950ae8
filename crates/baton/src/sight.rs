//! One object of a cluster as it changes.

use futures::stream::{BoxStream, StreamExt as _};
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object};

use crate::failure::Failure;
use crate::session::{Interruption, Sight};

/// Follows one object for as long as somebody listens. A watch that breaks is begun anew.
pub(crate) fn of(api: Api<DynamicObject>, name: &str) -> BoxStream<'static, Sight> {
    watch_object(api, name)
        .default_backoff()
        .map(|seen| match seen {
            Ok(None) => Ok(None),
            Ok(Some(object)) => serde_json::to_value(object)
                .map(Some)
                .map_err(|error| Interruption::Refused(Failure::failed(error.to_string()))),
            Err(error) => Err(match refusal(&error) {
                Some(why) => Interruption::Refused(Failure::api(why)),
                None => Interruption::Lost(error.to_string()),
            }),
        })
        .boxed()
}

/// What the API says when trying again would not help.
fn refusal(error: &watcher::Error) -> Option<String> {
    use watcher::Error;
    let (Error::InitialListFailed(cause) | Error::WatchStartFailed(cause)) = error else { return None };
    match cause {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => Some(status.message.clone()),
        _ => None,
    }
}
