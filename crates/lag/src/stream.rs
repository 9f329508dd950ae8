//! A watch whose events come late and in order, and that may be cut.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::Instant;

use crate::answer::{Body, BoxError};
use crate::fate::{Cut, Fate};

/// Most events of a stream that wait here. While so many do, the cluster is not listened to: it holds them.
const EVENTS: usize = 1000;
/// Most bytes of a stream that wait here, but for what one read brings.
const BYTES: usize = 8 * 1024 * 1024;
/// Largest event. What Kubernetes stores is far smaller.
const EVENT: usize = 16 * 1024 * 1024;

/// How events are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One a line.
    Lines,
    /// Each after its length, in four bytes.
    Lengths,
    /// Unknown: as they are read.
    Reads,
}

impl Framing {
    /// That of a form of watch.
    pub(crate) fn of(content_type: &str) -> Framing {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json" => Framing::Lines,
            "application/vnd.kubernetes.protobuf" => Framing::Lengths,
            _ => Framing::Reads,
        }
    }

    /// Takes the first whole event out of what was read.
    fn split(self, read: &mut BytesMut) -> Option<Bytes> {
        let end = match self {
            Framing::Lines => read.iter().position(|byte| *byte == b'\n')? + 1,
            Framing::Lengths => {
                let length = read.get(..4)?.get_u32();
                usize::try_from(length).ok()?.checked_add(4)?
            }
            Framing::Reads => read.len(),
        };
        (end > 0 && end <= read.len()).then(|| read.split_to(end).freeze())
    }
}

/// What happened to a stream, told while it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// An event was delivered, so long after it had come.
    Delivered { late: bool, after: Duration },
    /// It was cut, with so many events under way.
    Cut { lost: usize },
}

/// The same watch, later.
pub(crate) fn late(
    body: Body,
    framing: Framing,
    fate: Fate,
    tell: impl FnMut(Happened) + Send + 'static,
) -> Body {
    let now = Instant::now();
    let late = Late {
        body: Some(body),
        framing,
        cut: fate.cut.and_then(|(life, how)| Some((now.checked_add(life)?, how))),
        fate,
        read: BytesMut::new(),
        searched: 0,
        events: 0,
        waiting: VecDeque::new(),
        bytes: 0,
        failure: None,
        tell,
    };
    let frames = futures::stream::unfold(Some(late), |late| async move {
        let mut late = late?;
        match late.next().await? {
            Ok(data) => Some((Ok(Frame::data(data)), Some(late))),
            Err(error) => Some((Err(error), None)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

struct Late<T> {
    /// `None` once it has ended.
    body: Option<Body>,
    framing: Framing,
    fate: Fate,
    cut: Option<(Instant, Cut)>,
    /// Not yet a whole event.
    read: BytesMut,
    /// How much of that was looked through for the end of a line.
    searched: usize,
    events: u64,
    waiting: VecDeque<Event>,
    bytes: usize,
    /// How the cluster's stream ended, if not well.
    failure: Option<BoxError>,
    tell: T,
}

struct Event {
    data: Bytes,
    came: Instant,
    due: Instant,
}

impl<T: FnMut(Happened)> Late<T> {
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            let due = self.waiting.front().map(|event| event.due);
            if due.is_none() && self.body.is_none() {
                return self.failure.take().map(Err);
            }
            let has_room = self.waiting.len() < EVENTS && self.bytes < BYTES;
            let cut = self.cut;
            tokio::select! {
                biased;
                how = is_cut(cut) => return self.end(how),
                () = is_due(due) => {
                    if let Some(event) = self.waiting.pop_front() {
                        self.bytes -= event.data.len();
                        (self.tell)(Happened::Delivered { late: event.due > event.came, after: event.came.elapsed() });
                        return Some(Ok(event.data));
                    }
                }
                frame = read(&mut self.body), if has_room && self.body.is_some() => self.take(frame),
            }
        }
    }

    /// Takes in what the cluster sent.
    fn take(&mut self, frame: Option<Result<Frame<Bytes>, BoxError>>) {
        match frame {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.read.extend_from_slice(&data);
                    self.split();
                }
            }
            Some(Err(error)) => {
                self.body = None;
                self.failure = Some(error);
            }
            None => {
                self.body = None;
                let rest = self.read.split().freeze();
                if !rest.is_empty() {
                    self.wait(rest);
                }
            }
        }
    }

    fn split(&mut self) {
        // A long line comes in many reads; its beginning is not looked through again.
        let fresh = &self.read[self.searched..];
        if self.framing == Framing::Lines && !fresh.contains(&b'\n') {
            self.searched = self.read.len();
        } else {
            self.searched = 0;
            while let Some(data) = self.framing.split(&mut self.read) {
                self.wait(data);
            }
        }
        if self.read.len() > EVENT {
            self.body = None;
            self.failure = Some("an event is too large".into());
        }
    }

    fn wait(&mut self, data: Bytes) {
        let came = Instant::now();
        let due = came + self.fate.delay_of(self.events);
        // Never before the one before it.
        let due = self.waiting.back().map_or(due, |last| due.max(last.due));
        self.events += 1;
        self.bytes += data.len();
        self.waiting.push_back(Event { data, came, due });
    }

    /// The end before its time.
    fn end(&mut self, how: Cut) -> Option<Result<Bytes, BoxError>> {
        self.body = None;
        self.cut = None;
        (self.tell)(Happened::Cut { lost: self.waiting.len() });
        let next = self.waiting.pop_front();
        self.waiting.clear();
        self.bytes = 0;
        match (how, next) {
            (Cut::Ends, _) => None,
            (Cut::Breaks, next) => {
                self.failure = Some("the lagging proxy cut the watch".into());
                match next {
                    Some(event) => Some(Ok(event.data.slice(..event.data.len() / 2))),
                    None => self.failure.take().map(Err),
                }
            }
        }
    }
}

async fn is_cut(cut: Option<(Instant, Cut)>) -> Cut {
    match cut {
        Some((at, how)) => {
            tokio::time::sleep_until(at).await;
            how
        }
        None => std::future::pending().await,
    }
}

async fn is_due(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn read(body: &mut Option<Body>) -> Option<Result<Frame<Bytes>, BoxError>> {
    match body {
        Some(body) => body.frame().await,
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::channel::mpsc::{UnboundedSender, unbounded};
    use parking_lot::Mutex;

    use super::*;
    use crate::fate::Faults;

    const SECOND: Duration = Duration::from_secs(1);

    /// A stream as the cluster sends it, the same as the client gets it, and what was told of it.
    struct Line {
        cluster: UnboundedSender<Result<Frame<Bytes>, BoxError>>,
        client: Body,
        told: Arc<Mutex<Vec<Happened>>>,
    }

    impl Line {
        fn new(framing: Framing, fate: Fate) -> Line {
            let (cluster, receive) = unbounded();
            let told = Arc::new(Mutex::new(Vec::new()));
            let tell = told.clone();
            let body = StreamBody::new(receive).boxed_unsync();
            let client = late(body, framing, fate, move |happened| tell.lock().push(happened));
            Line { cluster, client, told }
        }

        fn send(&self, text: &str) {
            let frame = Frame::data(Bytes::copy_from_slice(text.as_bytes()));
            self.cluster.unbounded_send(Ok(frame)).expect("somebody listens");
        }

        async fn next(&mut self) -> Option<Result<String, String>> {
            let frame = self.client.frame().await?;
            Some(match frame {
                Ok(frame) => {
                    let data = frame.into_data().unwrap_or_default();
                    Ok(String::from_utf8_lossy(&data).into_owned())
                }
                Err(error) => Err(error.to_string()),
            })
        }
    }

    /// A fate with a delay between these, and cut as told.
    fn fate(least: Duration, most: Duration, cut: Option<(Duration, Cut)>) -> Fate {
        let faults = Faults {
            seed: 1,
            delay: most,
            cut: None,
            gone: 0,
            stale_lists: 0,
            stale_consistent_lists: false,
        };
        let fits = |fate: &Fate| fate.delay_of(0) >= least;
        let mut found =
            (0..).map(|nth| faults.watch("pods", nth)).find(fits).expect("one of so many is late enough");
        found.cut = cut;
        found
    }

    fn prompt() -> Fate {
        fate(Duration::ZERO, Duration::ZERO, None)
    }

    #[tokio::test(start_paused = true)]
    async fn events_come_late_each_on_its_own_and_in_their_order() {
        let mut line = Line::new(Framing::Lines, fate(SECOND, 5 * SECOND, None));
        let began = Instant::now();
        line.send("1\n2\n3");
        assert_eq!(line.next().await, Some(Ok("1\n".into())));
        let first = began.elapsed();
        assert!((SECOND..=5 * SECOND).contains(&first), "{first:?}");
        assert_eq!(line.next().await, Some(Ok("2\n".into())));
        let again = Instant::now();
        line.send("3\n");
        assert_eq!(line.next().await, Some(Ok("33\n".into())), "a line may come in parts");
        assert!(again.elapsed() >= SECOND, "each is late from when it came: {:?}", again.elapsed());
        line.send("end");
        line.cluster.close_channel();
        assert_eq!(line.next().await, Some(Ok("end".into())), "what is under way at the end still comes");
        assert_eq!(line.next().await, None);
        let told = line.told.lock();
        assert_eq!(told.len(), 4);
        assert!(told.iter().all(
            |happened| matches!(happened, Happened::Delivered { late: true, after } if *after >= SECOND)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn thousands_of_events_with_delays_of_their_own_keep_their_order() {
        let mut line = Line::new(Framing::Lines, fate(SECOND, 5 * SECOND, None));
        let texts: Vec<String> = (0..5000).map(|number| format!("{number}\n")).collect();
        line.send(&texts.concat());
        line.cluster.close_channel();
        for text in texts {
            assert_eq!(line.next().await, Some(Ok(text)));
        }
        assert_eq!(line.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_prompt_stream_waits_for_nothing() {
        let mut line = Line::new(Framing::Lines, prompt());
        let began = Instant::now();
        line.send("1\n");
        assert_eq!(line.next().await, Some(Ok("1\n".into())));
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(*line.told.lock(), [Happened::Delivered { late: false, after: Duration::ZERO }]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_loses_what_is_under_way() {
        let mut line = Line::new(Framing::Lines, fate(3 * SECOND, 5 * SECOND, Some((SECOND, Cut::Ends))));
        let began = Instant::now();
        line.send("1\n2\n");
        assert_eq!(line.next().await, None);
        assert_eq!(began.elapsed(), SECOND);
        assert_eq!(*line.told.lock(), [Happened::Cut { lost: 2 }]);
        assert!(line.cluster.is_closed(), "the cluster is no longer listened to");

        let mut line = Line::new(Framing::Lines, fate(3 * SECOND, 5 * SECOND, Some((SECOND, Cut::Breaks))));
        line.send("12345\n");
        assert_eq!(line.next().await, Some(Ok("123".into())), "it breaks within an event");
        assert_eq!(line.next().await, Some(Err("the lagging proxy cut the watch".into())));
        assert_eq!(line.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_break_of_the_cluster_comes_after_what_came_before_it() {
        let mut line = Line::new(Framing::Lines, fate(SECOND, 5 * SECOND, None));
        line.send("1\n");
        line.cluster.unbounded_send(Err("it broke".into())).expect("somebody listens");
        assert_eq!(line.next().await, Some(Ok("1\n".into())));
        assert_eq!(line.next().await, Some(Err("it broke".into())));
        assert_eq!(line.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_events_wait_than_there_is_room_for() {
        let mut line = Line::new(Framing::Lines, fate(SECOND, 5 * SECOND, None));
        let sent = EVENTS + 500;
        for number in 0..sent {
            line.send(&format!("{number}\n"));
        }
        line.cluster.close_channel();
        // All that is read at once waits at once; what is beyond comes a whole delay later.
        let began = Instant::now();
        let mut times = Vec::new();
        while let Some(Ok(_)) = line.next().await {
            times.push(began.elapsed());
        }
        assert_eq!(times.len(), sent);
        assert!(times[EVENTS + 1] >= times[0] + SECOND, "{:?} and {:?}", times[0], times[EVENTS + 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_never_ends_is_a_failure_and_not_a_full_memory() {
        let mut line = Line::new(Framing::Lines, prompt());
        for _ in 0..=EVENT / (1024 * 1024) {
            line.send(&"x".repeat(1024 * 1024));
        }
        assert_eq!(line.next().await, Some(Err("an event is too large".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn events_in_protobuf_are_told_apart_by_their_lengths() {
        let mut line = Line::new(Framing::Lengths, fate(SECOND, 5 * SECOND, Some((10 * SECOND, Cut::Ends))));
        line.send("\0\0\0\u{3}a\nb\0\0\0\u{1}");
        line.send("c\0\0");
        assert_eq!(line.next().await, Some(Ok("\0\0\0\u{3}a\nb".into())));
        assert_eq!(line.next().await, Some(Ok("\0\0\0\u{1}c".into())));
        assert_eq!(line.next().await, None);
    }

    #[test]
    fn the_form_of_a_watch_tells_how_its_events_are_told_apart() {
        for (form, framing) in [
            ("application/json", Framing::Lines),
            ("application/json;stream=watch", Framing::Lines),
            ("application/vnd.kubernetes.protobuf;stream=watch", Framing::Lengths),
            ("application/cbor-seq", Framing::Reads),
            ("", Framing::Reads),
        ] {
            assert_eq!(Framing::of(form), framing, "{form}");
        }
    }
}
