//! Lists that come in pages.

use reqwest::Url;
use serde::de::DeserializeOwned;

use super::{Answer, Api};
use crate::error::{Kind, ScmError};
use crate::settings::Settings;

/// How much of a list is read before it is taken for endless.
pub(crate) struct Budget {
    pages: usize,
    items: usize,
}

impl Budget {
    pub(crate) fn new(settings: &Settings) -> Budget {
        Budget { pages: settings.max_pages, items: settings.max_items }
    }

    /// Counts a page with so many items.
    pub(crate) fn page(&mut self, items: usize) -> Result<(), ScmError> {
        let left = (self.pages.checked_sub(1), self.items.checked_sub(items));
        let (Some(pages), Some(items)) = left else {
            return Err(ScmError::new(Kind::Limit, "the list is longer than what is read of a list"));
        };
        (self.pages, self.items) = (pages, items);
        Ok(())
    }

    /// Counts an item of a result that is put together from many lists.
    pub(crate) fn item(&mut self) -> Result<(), ScmError> {
        self.pages = self.pages.saturating_add(1);
        self.page(1)
    }
}

/// Reads a list whose pages are numbered from 1. `next` tells the number of the page after the one it is given,
/// with the items read so far.
pub(crate) async fn numbered<T: DeserializeOwned>(
    api: &Api<'_>,
    path: &str,
    query: &[(&str, &str)],
    next: fn(&Answer, NumberedPage) -> Result<Option<u64>, ScmError>,
) -> Result<Vec<T>, ScmError> {
    let mut budget = Budget::new(api.settings());
    let (mut items, mut number) = (Vec::new(), 1);
    loop {
        let page = number.to_string();
        let mut query = query.to_vec();
        // The first page goes unnumbered, as clients commonly ask for it: one ETag serves all of them.
        if number > 1 {
            query.push(("page", &page));
        }
        let answer = api.get(api.url(path, &query)).await?;
        let list: Vec<T> = answer.json()?;
        budget.page(list.len())?;
        let items_here = list.len();
        items.extend(list);
        match next(&answer, NumberedPage { number, items_here, items_so_far: items.len() })? {
            None => return Ok(items),
            Some(next) if next > number => number = next,
            Some(_) => return Err(answer.wrong("its next page is not a later one")),
        }
    }
}

/// What was read when the question for the next page comes up.
#[derive(Clone, Copy)]
pub(crate) struct NumberedPage {
    /// Number of the page.
    pub(crate) number: u64,
    /// Items on it.
    pub(crate) items_here: usize,
    /// Items on it and on those before.
    pub(crate) items_so_far: usize,
}

/// The number of the next page in a Link header. Only the number is taken: the request goes to the API we know,
/// whatever host the link names.
pub(crate) fn link_page(answer: &Answer, _page: NumberedPage) -> Result<Option<u64>, ScmError> {
    let Some(links) = answer.text_header("link") else { return Ok(None) };
    for link in links.split(',') {
        let mut parts = link.split(';').map(str::trim);
        let target = parts.next().and_then(|part| part.strip_prefix('<')?.strip_suffix('>'));
        let is_next = parts.any(|part| matches!(part, "rel=\"next\"" | "rel=next"));
        if !is_next {
            continue;
        }
        let url = target.and_then(|target| Url::parse(target).ok());
        let number = url.as_ref().and_then(|url| url.query_pairs().find(|(key, _)| key == "page"));
        return match number.and_then(|(_, number)| number.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(answer.wrong("its link to the next page has no number")),
        };
    }
    Ok(None)
}
