//! The cookie a browser keeps its token in, split where it is too long for one.

use super::token::LONGEST;

/// Name of the cookie.
pub const NAME: &str = "argocd.token";
/// Name of the cookie that holds, encrypted, what a sign-in by an issuer is prolonged with.
pub const COMPANION: &str = "argocd.oidc";
/// What of a token fits into one cookie, with its name and flags.
const CHUNK: usize = 3800;
/// Most cookies a token is split into.
const MOST: usize = 20;

/// The `Set-Cookie` lines that make a browser keep the token. `stale` are cookies it holds of an older, longer one.
pub fn kept(token: &str, secure: bool, stale: usize) -> Vec<String> {
    kept_as(NAME, token, secure, stale)
}

/// The same, of another cookie.
pub(crate) fn kept_as(name: &str, token: &str, secure: bool, stale: usize) -> Vec<String> {
    let flags = flags(secure);
    // A token of ours is ASCII; of anything else nothing is kept.
    let parts: Vec<&str> = match token.is_ascii() && token.len() <= CHUNK * MOST {
        true => token.as_bytes().chunks(CHUNK).filter_map(|part| std::str::from_utf8(part).ok()).collect(),
        false => Vec::new(),
    };
    let mut lines = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        lines.push(match (place, parts.len()) {
            (0, 1) => format!("{name}={part}; {flags}"),
            (0, count) => format!("{name}={count}:{part}; {flags}"),
            (place, _) => format!("{name}-{place}={part}; {flags}"),
        });
    }
    lines.extend((parts.len().max(1)..stale.min(MOST)).map(|place| gone(&format!("{name}-{place}"), &flags)));
    lines
}

/// The `Set-Cookie` lines that make a browser forget the token, of so many cookies.
pub fn forgotten(secure: bool, held: usize) -> Vec<String> {
    forgotten_as(NAME, secure, held)
}

/// The same, of another cookie.
pub(crate) fn forgotten_as(name: &str, secure: bool, held: usize) -> Vec<String> {
    let flags = flags(secure);
    let first = std::iter::once(gone(name, &flags));
    first.chain((1..held.min(MOST)).map(|place| gone(&format!("{name}-{place}"), &flags))).collect()
}

/// The token in the `Cookie` lines of a request, and in how many cookies it came.
pub fn read<'h>(lines: impl IntoIterator<Item = &'h str>) -> Option<(String, usize)> {
    read_as(NAME, lines)
}

/// The same, of another cookie.
pub(crate) fn read_as<'h>(own: &str, lines: impl IntoIterator<Item = &'h str>) -> Option<(String, usize)> {
    let pairs: Vec<(&str, &str)> = lines
        .into_iter()
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| name.starts_with(own))
        .collect();
    let value = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let first = value(own).filter(|first| !first.is_empty())?;
    let Some((count, part)) = first.split_once(':') else { return Some((first.to_owned(), 1)) };
    let count = count.parse::<usize>().ok().filter(|count| (1..=MOST).contains(count))?;
    let mut token = part.to_owned();
    for place in 1..count {
        token.push_str(value(&format!("{own}-{place}"))?);
    }
    (token.len() <= LONGEST).then_some((token, count))
}

fn flags(secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("Path=/; SameSite=Strict; HttpOnly{secure}")
}

fn gone(name: &str, flags: &str) -> String {
    format!("{name}=; {flags}; Max-Age=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_back(lines: &[String]) -> String {
        lines.iter().filter_map(|line| line.split(';').next()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_short_token_is_one_cookie() {
        let lines = kept("abc.def.ghi", true, 1);
        assert_eq!(lines, ["argocd.token=abc.def.ghi; Path=/; SameSite=Strict; HttpOnly; Secure"]);
        assert_eq!(read([sent_back(&lines).as_str()]), Some(("abc.def.ghi".to_owned(), 1)));
    }

    #[test]
    fn a_long_token_is_split_and_put_together() {
        let token = "x".repeat(CHUNK * 2 + 17);
        let lines = kept(&token, false, 0);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("argocd.token=3:x") && lines[2].starts_with("argocd.token-2="));
        assert!(lines.iter().all(|line| line.len() < 4096));
        assert_eq!(read(["other=1", sent_back(&lines).as_str()]), Some((token, 3)));
    }

    #[test]
    fn what_is_left_of_a_longer_one_goes() {
        let lines = kept("short", false, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("argocd.token-1=;") && lines[2].contains("Max-Age=0"));
        assert_eq!(forgotten(true, 3).len(), 3);
    }

    #[test]
    fn broken_cookies_are_none() {
        for line in
            ["", "argocd.token=", "argocd.token=9:a", "argocd.token=99:a", "argocd.token=x:a", "a;b;=;"]
        {
            assert_eq!(read([line]), None, "{line}");
        }
    }
}
