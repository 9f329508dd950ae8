//! What containers write: lines read within bounds, chosen, and put in the order of their times.

use std::time::Duration;

use futures::future::{join_all, select_all};
use futures::stream::BoxStream;
use futures::{AsyncBufRead, AsyncBufReadExt as _, FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Longest line that is told whole.
const LONGEST: usize = 64 << 10;
/// How long a line waits for older ones of other Pods.
const FLUSH: Duration = Duration::from_millis(100);

/// A line of a container, with the time that the cluster gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    /// As the cluster writes the time.
    pub(crate) time: String,
    pub(crate) pod: String,
    pub(crate) content: String,
}

/// Which lines are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    text: String,
    without: bool,
    case: bool,
    until: Option<Timestamp>,
}

/// The lines of several Pods as one, in the order of their times as far as that can be known.
pub(crate) struct Merged(Vec<Source>);

struct Source {
    lines: BoxStream<'static, Entry>,
    head: Option<Entry>,
    ended: bool,
    /// Whether it had nothing to say when it was last waited for.
    quiet: bool,
}

// === impl Entry ===

impl Entry {
    /// Reads a line that begins with its time. One without was written by nobody's clock and is as old as the last.
    pub(crate) fn read(pod: &str, line: &str, before: Timestamp) -> Entry {
        let (time, content) = line.split_once(' ').unwrap_or((line, ""));
        match time.parse::<Timestamp>() {
            Ok(at) => Entry { at, time: time.to_owned(), pod: pod.to_owned(), content: content.to_owned() },
            Err(_) => {
                Entry { at: before, time: before.to_string(), pod: pod.to_owned(), content: line.to_owned() }
            }
        }
    }

    /// As Argo CD tells it.
    pub(crate) fn told(&self) -> Value {
        json!({"result": {
            "content": self.content, "timeStamp": self.at, "timeStampStr": self.time, "last": false,
            "podName": self.pod,
        }})
    }
}

/// What is told after the last line.
pub(crate) fn last(now: Timestamp) -> Value {
    json!({"result": {
        "content": "", "timeStamp": now, "timeStampStr": now.to_string(), "last": true, "podName": "",
    }})
}

// === impl Choice ===

impl Choice {
    /// Lines that hold a text, or with a `!` before it those that do not; until a time.
    pub(crate) fn new(filter: &str, case: bool, until: Option<Timestamp>) -> Choice {
        let (without, text) = match filter.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, filter),
        };
        let text = if case { text.to_owned() } else { text.to_lowercase() };
        Choice { text, without, case, until }
    }

    pub(crate) fn wants(&self, entry: &Entry) -> bool {
        if self.text.is_empty() {
            return true;
        }
        let holds = match self.case {
            true => entry.content.contains(&self.text),
            false => entry.content.to_lowercase().contains(&self.text),
        };
        holds != self.without
    }

    /// Whether what is wanted ends before a line.
    pub(crate) fn ends_before(&self, entry: &Entry) -> bool {
        self.until.is_some_and(|until| entry.at > until)
    }
}

// === impl Merged ===

impl Merged {
    pub(crate) fn new(sources: Vec<BoxStream<'static, Entry>>) -> Merged {
        Merged(
            sources
                .into_iter()
                .map(|lines| Source { lines, head: None, ended: false, quiet: false })
                .collect(),
        )
    }

    /// The next line; none once all have ended. What was read is kept where the caller does not wait for it.
    pub(crate) async fn next(&mut self) -> Option<Entry> {
        loop {
            self.look().await;
            let heads = self.0.iter().enumerate().filter_map(|(at, one)| Some((one.head.as_ref()?.at, at)));
            if let Some((_, at)) = heads.min() {
                return self.0[at].head.take();
            }
            let open = self.0.iter_mut().filter(|source| !source.ended);
            let first: Vec<_> = open.map(|source| source.fill().boxed()).collect();
            if first.is_empty() {
                return None;
            }
            select_all(first).await;
        }
    }

    /// Reads ahead where there is something to read. Who was quiet a moment ago is not waited for again.
    async fn look(&mut self) {
        let lively = self.0.iter().any(|one| one.head.is_none() && !one.ended && !one.quiet);
        let all = join_all(self.0.iter_mut().map(Source::fill));
        match lively {
            true => drop(tokio::time::timeout(FLUSH, all).await),
            false => drop(all.now_or_never()),
        }
        for source in &mut self.0 {
            source.quiet = source.head.is_none();
        }
    }
}

// === impl Source ===

impl Source {
    /// Reads ahead by one line. Whoever stops waiting loses nothing.
    async fn fill(&mut self) {
        if self.head.is_none() && !self.ended {
            self.head = self.lines.next().await;
            self.ended = self.head.is_none();
        }
    }
}

/// The lines of a Pod as they come. What is too long is cut off; what breaks ends it.
pub(crate) fn lines(
    pod: String,
    from: impl AsyncBufRead + Send + 'static,
    since: Timestamp,
) -> BoxStream<'static, Entry> {
    let state = (Box::pin(from), since, pod);
    futures::stream::unfold(state, |(mut from, before, pod)| async move {
        let line = line(&mut from).await?;
        let entry = Entry::read(&pod, &line, before);
        let at = entry.at;
        Some((entry, (from, at, pod)))
    })
    .boxed()
}

/// The next line without its break, as far as there is room for it.
async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let (mut kept, mut any) = (Vec::new(), false);
    loop {
        let read = from.fill_buf().await.ok()?;
        if read.is_empty() {
            break;
        }
        any = true;
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        kept.extend_from_slice(&part[..part.len().min(LONGEST - kept.len())]);
        let used = end.map_or(read.len(), |end| end + 1);
        from.consume_unpin(used);
        if end.is_some() {
            break;
        }
    }
    any.then(|| String::from_utf8_lossy(kept.strip_suffix(b"\r").unwrap_or(&kept)).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a second")
    }

    fn of(pod: &str, text: &str) -> BoxStream<'static, Entry> {
        lines(pod.to_owned(), futures::io::Cursor::new(text.as_bytes().to_vec()), at(0))
    }

    async fn read(mut merged: Merged) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(entry) = merged.next().await {
            told.push(format!("{}:{}", entry.pod, entry.content));
        }
        told
    }

    #[tokio::test]
    async fn lines_of_several_pods_come_in_the_order_of_their_times() {
        let one = of("a", "1970-01-01T00:00:01Z one\n1970-01-01T00:00:04Z four\nodd\n");
        let two = of("b", "1970-01-01T00:00:02.5Z two and a half\r\n1970-01-01T00:00:03Z three");
        let told = read(Merged::new(vec![one, two, of("c", "")])).await;
        assert_eq!(told, ["a:one", "b:two and a half", "b:three", "a:four", "a:odd"]);
        assert!(read(Merged::new(Vec::new())).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_pod_holds_up_no_other() {
        let quiet = futures::stream::pending().boxed();
        let mut merged = Merged::new(vec![quiet, of("a", "1970-01-01T00:00:01Z one\n")]);
        assert_eq!(merged.next().await.map(|entry| entry.content).as_deref(), Some("one"));
        let waited = tokio::time::timeout(Duration::from_secs(60), merged.next()).await;
        assert!(waited.is_err(), "the quiet one may still write");
    }

    #[tokio::test]
    async fn a_line_without_end_takes_no_more_than_its_room() {
        let long = format!("1970-01-01T00:00:01Z {}\n1970-01-01T00:00:02Z next\n", "x".repeat(3 * LONGEST));
        let told = read(Merged::new(vec![of("a", &long)])).await;
        assert_eq!((told[0].len() < LONGEST, told[1].as_str()), (true, "a:next"));
    }

    #[test]
    fn lines_are_chosen_by_what_they_hold() {
        let entry = Entry::read("a", "1970-01-01T00:00:01Z An Error", at(0));
        for (filter, case, wanted) in [
            ("", false, true),
            ("error", false, true),
            ("error", true, false),
            ("Error", true, true),
            ("!error", false, false),
            ("!other", false, true),
        ] {
            assert_eq!(Choice::new(filter, case, None).wants(&entry), wanted, "{filter} {case}");
        }
        assert!(Choice::new("", false, Some(at(0))).ends_before(&entry));
        assert!(!Choice::new("", false, Some(at(1))).ends_before(&entry));
    }

    #[test]
    fn a_line_is_told_as_argo_cd_tells_it() {
        let entry = Entry::read("web-1", "2026-01-01T00:00:01.5Z hello  there", at(0));
        assert_eq!(
            entry.told(),
            json!({"result": {"content": "hello  there", "timeStamp": "2026-01-01T00:00:01.5Z",
                "timeStampStr": "2026-01-01T00:00:01.5Z", "last": false, "podName": "web-1"}})
        );
        assert_eq!(last(at(0))["result"]["last"], true);
    }
}
