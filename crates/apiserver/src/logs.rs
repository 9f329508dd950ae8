//! `pods/log`: what the containers of simulated Pods have written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_store::Key;
use baton_workloads::{Log, LogLine, NoLog, containers, log};
use bytes::Bytes;
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::catalog::Resource;
use crate::cluster::Core;
use crate::failure::Failure;
use crate::object;
use crate::rest::{Answer, Call};

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The annotation that says which container is meant where none is named.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Which lines are wanted, and how they are written.
#[derive(Debug, Clone)]
struct Wish {
    container: String,
    previous: bool,
    timestamps: bool,
    since: Timestamp,
    tail: Option<usize>,
    bytes: usize,
}

pub(crate) fn answer(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Answer, Failure> {
    let record = call.core.get(resource, namespace, name, &call.query)?;
    let pod = object::read(&record);
    let wish = Wish::read(call, &pod)?;
    let told = log(&pod, &wish.container, wish.previous).map_err(|why| wish.refused(&pod, &why))?;
    let mut lines = told.lines.clone();
    lines.retain(|line| line.at >= wish.since);
    let from = wish.tail.map_or(0, |tail| lines.len().saturating_sub(tail));
    let waiting: VecDeque<Bytes> = lines.drain(from..).map(|line| wish.written(&line)).collect();
    if !call.query.flag("follow") || told.ended || wish.previous {
        let mut text: Vec<u8> = waiting.into_iter().flatten().collect();
        text.truncate(wish.bytes);
        return Ok(Answer::text(String::from_utf8_lossy(&text).into_owned()).typed("text/plain"));
    }
    let key = crate::write::key(resource, namespace, name);
    let uid = object::meta_text(&pod, "uid").to_owned();
    let told = told.lines.len();
    let follower = Follower { core: call.core.clone(), key, uid, wish, told, waiting, sent: 0 };
    let stream = futures::stream::unfold(follower, |mut follower| async {
        let next = follower.next().await?;
        Some((next, follower))
    });
    Ok(Answer::stream(stream.boxed()).typed("text/plain"))
}

/// Somebody who keeps reading.
struct Follower {
    core: Arc<Core>,
    key: Key,
    uid: String,
    wish: Wish,
    /// How many lines of the log were seen.
    told: usize,
    waiting: VecDeque<Bytes>,
    sent: usize,
}

// === impl Follower ===

impl Follower {
    /// The next line; none once the container has ended or its Pod is gone.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                let room = self.wish.bytes.checked_sub(self.sent).filter(|room| *room > 0)?;
                self.sent += line.len();
                return Some(line.slice(..line.len().min(room)));
            }
            let Log { lines, ended } = self.look()?;
            let new = lines.get(self.told..).unwrap_or_default();
            self.waiting.extend(new.iter().map(|line| self.wish.written(line)));
            self.told = self.told.max(lines.len());
            if self.waiting.is_empty() {
                if ended {
                    return None;
                }
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    fn look(&self) -> Option<Log> {
        let pod = object::read(&*self.core.store.get(&self.key)?);
        let same = object::meta_text(&pod, "uid") == self.uid;
        log(&pod, &self.wish.container, false).ok().filter(|_| same)
    }
}

// === impl Wish ===

impl Wish {
    fn read(call: &Call, pod: &Value) -> Result<Wish, Failure> {
        let query = &call.query;
        let positive = |name: &str, least: i64| match query.number::<i64>(name)? {
            Some(number) if number < least => Err(Failure::bad_request(format!(
                "{name}: Invalid value: {number}: must be at least {least}"
            ))),
            number => Ok(number),
        };
        let since_seconds = positive("sinceSeconds", 1)?.map(|seconds| {
            let long = SignedDuration::from_secs(seconds);
            call.core.clock.now().saturating_sub(long).unwrap_or(Timestamp::MIN)
        });
        let since_time = query.get("sinceTime").map(str::parse::<Timestamp>).transpose();
        let since_time = since_time
            .map_err(|_| Failure::bad_request("sinceTime: Invalid value: must be an RFC 3339 time"))?;
        if since_seconds.is_some() && since_time.is_some() {
            return Err(Failure::bad_request(
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            ));
        }
        Ok(Wish {
            container: container(query.get("container"), pod)?,
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since: since_seconds.or(since_time).unwrap_or(Timestamp::MIN),
            tail: positive("tailLines", 0)?.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX)),
            bytes: positive("limitBytes", 1)?
                .map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        })
    }

    fn written(&self, line: &LogLine) -> Bytes {
        match self.timestamps {
            true => format!("{} {}\n", line.at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ"), line.text).into(),
            false => format!("{}\n", line.text).into(),
        }
    }

    fn refused(&self, pod: &Value, why: &NoLog) -> Failure {
        let (container, name) = (&self.container, object::name(pod));
        Failure::bad_request(match why {
            NoLog::Unknown => format!("container {container} is not valid for pod {name}"),
            NoLog::Waiting(reason) => {
                format!("container {container:?} in pod {name:?} is waiting to start: {reason}")
            }
            NoLog::NoPrevious => {
                format!("previous terminated container {container:?} in pod {name:?} not found")
            }
        })
    }
}

/// The container that is meant: the one that is named, or the only one there is.
fn container(named: Option<&str>, pod: &Value) -> Result<String, Failure> {
    if let Some(name) = named {
        return Ok(name.to_owned());
    }
    let (init, main) = containers(pod);
    let usual = pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str();
    if let Some(usual) = usual.filter(|usual| main.contains(usual)) {
        return Ok(usual.to_owned());
    }
    match main.as_slice() {
        [only] => Ok((*only).to_owned()),
        many => {
            let name = object::name(pod);
            let others = match init.is_empty() {
                true => String::new(),
                false => format!(" or one of the init containers: [{}]", init.join(" ")),
            };
            Err(Failure::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]{others}",
                many.join(" ")
            )))
        }
    }
}
