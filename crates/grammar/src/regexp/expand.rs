//! Replacement texts with `$1`, `$name` and `${name}` in them.

/// A part of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Text(&'t str),
    /// The first of these groups that took part in the match. Names may repeat; no group at all is no text.
    Groups(Vec<usize>),
}

/// The parts of a template. `$$` is a dollar sign, as is one with no name after it.
pub(super) fn pieces<'t>(template: &'t str, names: &[Option<String>]) -> Vec<Piece<'t>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(dollar) = rest.find('$') {
        pieces.push(Piece::Text(&rest[..dollar]));
        let after = &rest[dollar + 1..];
        rest = if let Some(after) = after.strip_prefix('$') {
            pieces.push(Piece::Text("$"));
            after
        } else if let Some((name, after)) = name(after) {
            pieces.push(Piece::Groups(groups(name, names)));
            after
        } else {
            pieces.push(Piece::Text("$"));
            after
        };
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// The longest name a text starts with, braces around it taken off.
fn name(text: &str) -> Option<(&str, &str)> {
    let (braced, body) = match text.strip_prefix('{') {
        Some(body) => (true, body),
        None => (false, text),
    };
    let end = body.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(body.len());
    let (name, rest) = body.split_at(end);
    if name.is_empty() {
        return None;
    }
    if braced { rest.strip_prefix('}').map(|rest| (name, rest)) } else { Some((name, rest)) }
}

/// A name of digits only, without a leading zero, is the number of a group.
fn groups(name: &str, names: &[Option<String>]) -> Vec<usize> {
    let numeric = name.bytes().all(|byte| byte.is_ascii_digit());
    if numeric && (name == "0" || !name.starts_with('0')) {
        return name.parse().ok().filter(|group| *group < names.len()).into_iter().collect();
    }
    let named = |known: &Option<String>| known.as_deref() == Some(name);
    names.iter().enumerate().filter(|(_, known)| named(known)).map(|(group, _)| group).collect()
}
