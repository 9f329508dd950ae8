//! Lists that come in pages.

use std::collections::HashSet;

use reqwest::Url;
use serde::de::DeserializeOwned;

use super::{Answer, Api};
use crate::error::{Kind, ScmError};
use crate::settings::Settings;

/// An item of a list.
pub(crate) trait Item: DeserializeOwned + Send {
    /// What tells it from the other items of the list.
    fn identity(&self) -> String;
}

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

/// Reads a whole list. `read` takes a page apart, knowing its URL and how many items came before: its items, and
/// where the next page is.
///
/// Pages are cut from a list that lives on. When an item goes away between two requests, another moves from the
/// page about to be read to one already read, and would be missed. So all pages but the last are looked at once
/// more, which costs little where the host can say that nothing has changed. What moved the other way, and so came
/// twice, is taken once.
pub(crate) async fn list<T: Item>(
    api: &Api<'_>,
    first: Url,
    read: impl Fn(&Answer, &Url, usize) -> Result<Page<T>, ScmError> + Sync,
) -> Result<Vec<T>, ScmError> {
    let mut budget = Budget::new(api.settings());
    let mut found = Found { items: Vec::new(), seen: HashSet::new() };
    let (mut done, mut count) = (Vec::new(), 0);
    let mut url = first;
    loop {
        let answer = api.get(url.clone()).await?;
        let page = read(&answer, &url, count)?;
        budget.page(page.items.len())?;
        count += page.items.len();
        found.take(page.items);
        match page.next {
            None => break,
            Some(next) if next == url => return Err(answer.wrong("its next page is itself")),
            Some(next) => done.push(std::mem::replace(&mut url, next)),
        }
    }
    for url in done {
        let page = read(&api.get(url.clone()).await?, &url, 0)?;
        found.take(page.items);
    }
    Ok(found.items)
}

/// One page of a list.
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<Url>,
}

struct Found<T> {
    items: Vec<T>,
    seen: HashSet<String>,
}

impl<T: Item> Found<T> {
    fn take(&mut self, items: Vec<T>) {
        let new = items.into_iter().filter(|item| self.seen.insert(item.identity()));
        self.items.extend(new);
    }
}

/// Reads a list whose pages are numbered from 1 and are plain JSON lists. `next` tells the number of the next page.
pub(crate) async fn numbered<T: Item>(
    api: &Api<'_>,
    path: &str,
    query: &[(&str, &str)],
    next: fn(&Answer, NumberedPage) -> Result<Option<u64>, ScmError>,
) -> Result<Vec<T>, ScmError> {
    // The first page goes unnumbered, as clients commonly ask for it.
    let first = api.url(path, query);
    let size = query.iter().find(|(key, _)| matches!(*key, "per_page" | "limit"));
    let size = size.and_then(|(_, size)| size.parse().ok()).unwrap_or(1);
    let read = |answer: &Answer, url: &Url, items_before: usize| {
        let items: Vec<T> = answer.json()?;
        let number = page_number(url).unwrap_or(1);
        let items_so_far = items_before + items.len();
        let next = match next(answer, NumberedPage { number, items_here: items.len(), items_so_far })? {
            Some(next) if next <= number => return Err(answer.wrong("its next page is not a later one")),
            Some(next) => {
                let mut query = query.to_vec();
                let next = next.to_string();
                query.push(("page", &next));
                Some(api.url(path, &query))
            }
            None => None,
        };
        // A page that is full and the last may get a successor without changing itself, and "not changed" would
        // hide it.
        if next.is_none() && items.len() >= size {
            api.forget(url);
        }
        Ok(Page { items, next })
    };
    list(api, first, read).await
}

/// What is known when the question for the next page comes up.
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
        if is_next {
            let url = target.and_then(|target| Url::parse(target).ok());
            let number = url.as_ref().and_then(page_number);
            return number.map(Some).ok_or_else(|| answer.wrong("its link to the next page has no number"));
        }
    }
    Ok(None)
}

fn page_number(url: &Url) -> Option<u64> {
    url.query_pairs().find(|(key, _)| key == "page")?.1.parse().ok()
}
