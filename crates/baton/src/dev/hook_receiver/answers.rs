//! What is answered to whom.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::StatusCode;

use crate::apiserver::duration;

/// `--answer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Any, if empty.
    host: String,
    path: String,
    status: StatusCode,
    after: Duration,
    times: Option<u32>,
}

/// All of them, and how often each was given.
pub(super) struct Answers {
    answers: Vec<(Answer, AtomicU32)>,
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(text: &str) -> Result<Answer, String> {
        let form = "write it as [HOST]/PATH=STATUS[,after=DURATION][,times=N]";
        // A path may hold an `=`; what comes after the last before the options does not.
        let (target, options) = text.split_once(',').unwrap_or((text, ""));
        let (place, status) = target.rsplit_once('=').ok_or(form)?;
        let (host, path) = place.split_at(place.find('/').ok_or(form)?);
        let status: u16 = status.parse().map_err(|_| form)?;
        let status = StatusCode::from_u16(status)
            .ok()
            .filter(|status| (200..600).contains(&status.as_u16()))
            .ok_or_else(|| format!("{status} is no status to end with"))?;
        let mut answer = Answer {
            host: host.to_ascii_lowercase(),
            path: path.to_owned(),
            status,
            after: Duration::ZERO,
            times: None,
        };
        for option in options.split(',').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("after", value)) => answer.after = duration(value)?,
                Some(("times", value)) => answer.times = Some(value.parse().map_err(|_| form)?),
                _ => return Err(form.to_owned()),
            }
        }
        Ok(answer)
    }
}

impl Answer {
    fn is_for(&self, host: &str, path: &str) -> bool {
        let place = match self.path.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == self.path,
        };
        place && (self.host.is_empty() || self.host == host)
    }
}

impl Answers {
    pub(super) fn new(answers: Vec<Answer>) -> Answers {
        Answers { answers: answers.into_iter().map(|answer| (answer, AtomicU32::new(0))).collect() }
    }

    /// What a call is answered, and after how long.
    pub(super) fn to(&self, host: &str, path: &str) -> (StatusCode, Duration) {
        for (answer, given) in self.answers.iter().filter(|(answer, _)| answer.is_for(host, path)) {
            let before = given.fetch_add(1, Ordering::Relaxed);
            if answer.times.is_none_or(|times| before < times) {
                return (answer.status, answer.after);
            }
        }
        (StatusCode::OK, Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(texts: &[&str]) -> Answers {
        Answers::new(texts.iter().map(|text| text.parse().expect("an answer")).collect())
    }

    #[test]
    fn the_first_that_fits_counts_as_often_as_it_says() {
        let answers = answers(&[
            "a.example/open=201,after=2s",
            "/health*=503,times=2",
            "/health/deep=500",
            "/q?a=b=404",
        ]);
        let second = Duration::from_secs(1);
        assert_eq!(answers.to("a.example", "/open"), (StatusCode::CREATED, 2 * second));
        assert_eq!(answers.to("b.example", "/open").0, StatusCode::OK);
        assert_eq!(answers.to("b.example", "/q?a=b").0, StatusCode::NOT_FOUND);
        let health: Vec<u16> = ["/health", "/health/deep", "/health/deep", "/health"]
            .map(|path| answers.to("c", path).0.as_u16())
            .into();
        assert_eq!(health, [503, 503, 500, 200]);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for text in ["", "/a", "a=200", "/a=ok", "/a=99", "/a=100", "/a=200,x=1", "/a=200,after=soon"] {
            assert!(text.parse::<Answer>().is_err(), "{text}");
        }
    }
}
