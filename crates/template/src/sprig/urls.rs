//! URLs taken apart and put together, as Go's `net/url` does it.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Outcome, fixed, str_of};
use crate::function::Function;
use crate::function::Param::{Map as Dict, Str};
use crate::quote::quoted;
use crate::value::{Map, Value};

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("urlParse", &[Str], |args| parsed(str_of(&args[0]))),
    fixed("urlJoin", &[Dict], |args| joined(&args[0])),
];

/// The parts of a URL, texts without their escapes but for query and opaque.
#[derive(Debug, Default)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<User>,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

#[derive(Debug)]
struct User {
    name: String,
    password: Option<String>,
}

fn parsed(text: &str) -> Outcome {
    let url = parse(text).map_err(|error| format!("unable to parse url: {error}"))?;
    let hostname = hostname(&url.host).to_owned();
    let user = url.user.map(|user| user.to_string()).unwrap_or_default();
    let parts = [
        ("fragment", url.fragment),
        ("host", url.host),
        ("hostname", hostname),
        ("opaque", url.opaque),
        ("path", url.path),
        ("query", url.query),
        ("scheme", url.scheme),
        ("userinfo", user),
    ];
    Ok(Value::Map(Map::new(parts.map(|(name, part)| (Arc::from(name), part.into())))))
}

fn joined(parts: &Value) -> Outcome {
    let part = |name: &str| match parts {
        Value::Map(map) => match map.get(name) {
            None => Ok(String::new()),
            Some(Value::Str(text)) => Ok(text.to_string()),
            Some(Value::Nil) => {
                Err("runtime error: invalid memory address or nil pointer dereference".to_owned())
            }
            Some(other) => Err(format!(
                "unable to parse {name} key, must be of type string, but {} found",
                other.kind_name()
            )),
        },
        _ => Ok(String::new()),
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        user: None,
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let within = parse(&format!("proto://{user}@host"));
        url.user = within.map_err(|error| format!("unable to parse userinfo in dict: {error}"))?.user;
    }
    Ok(url.to_string().into())
}

fn parse(text: &str) -> Result<Url, String> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let fault = |what: String| format!("parse {}: {what}", quoted(text));
    let mut url = before_fragment(rest).map_err(|what| format!("parse {}: {what}", quoted(rest)))?;
    url.fragment = unescaped(fragment, Part::Fragment).map_err(fault)?;
    Ok(url)
}

fn before_fragment(text: &str) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = "*".to_owned();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    if (!url.scheme.is_empty() || !rest.starts_with("///"))
        && let Some(authority) = rest.strip_prefix("//")
    {
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        (url.user, url.host) = self::authority(&url.scheme, authority)?;
        rest = path;
    }
    url.path = unescaped(rest, Part::Path)?;
    Ok(url)
}

/// The scheme of a URL that has one, and the text after it.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn authority(scheme: &str, text: &str) -> Result<(Option<User>, String), String> {
    let Some((user, host)) = text.rsplit_once('@') else {
        return Ok((None, host_of(scheme, text)?));
    };
    let host = host_of(scheme, host)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(plain) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(unescaped(password, Part::User)?)),
        None => (user, None),
    };
    // The name's fault is told before the password's.
    let name = unescaped(name, Part::User)?;
    Ok((Some(User { name, password }), host))
}

fn host_of(scheme: &str, text: &str) -> Result<String, String> {
    let address = match text.rfind('[') {
        None => None,
        Some(0) => Some(&text[1..text.rfind(']').ok_or("missing ']' in host")?]),
        Some(_) => return Err("invalid IP-literal".to_owned()),
    };
    let port = match address {
        Some(address) => &text[address.len() + 2..],
        // Lists of hosts with ports are names of databases, but of no web server.
        None if matches!(scheme, "http" | "https") => text.find(':').map_or("", |colon| &text[colon..]),
        None => text.rfind(':').map_or("", |colon| &text[colon..]),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    if (!port.is_empty() && !port.starts_with(':')) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    let host = unescaped(text, Part::Host)?;
    if let Some(address) = address {
        let address = address.split_once("%25").map_or(address, |(address, _)| address);
        match address.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => {}
            Ok(IpAddr::V4(_)) => return Err("invalid IP-literal".to_owned()),
            Err(_) => {
                return Err(format!("invalid host: ParseAddr({}): unable to parse IP", quoted(address)));
            }
        }
    }
    Ok(host)
}

/// The host without port and brackets.
fn hostname(host: &str) -> &str {
    if let Some(bracketed) = host.strip_prefix('[')
        && let Some(end) = bracketed.find(']')
    {
        return &bracketed[..end];
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Path,
    Fragment,
}

impl Part {
    /// Whether the character stands for itself there.
    fn admits(self, byte: u8) -> bool {
        match byte {
            b'-' | b'_' | b'.' | b'~' => true,
            byte if byte.is_ascii_alphanumeric() => true,
            byte => match self {
                Part::Host => b"!$&'()*+,;=:[]<>\"".contains(&byte),
                Part::User => b"$&+,;=".contains(&byte),
                Part::Path => b"$&+,/:;=@".contains(&byte),
                Part::Fragment => b"$&+,/:;=?@!()*".contains(&byte),
            },
        }
    }
}

fn escaped(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if part.admits(byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            write!(out, "%{byte:02X}").unwrap_or_default();
        }
    }
    out
}

fn unescaped(text: &str, part: Part) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let code = code.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
            let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            // A host may hide neither dots nor slashes; only what no ASCII text could say, and the percent sign.
            match code.filter(|code| part != Part::Host || *code >= 0x80 || *code == b'%') {
                Some(code) => out.push(code),
                None => {
                    return Err(format!("invalid URL escape {}", quoted_bytes(&rest[..rest.len().min(3)])));
                }
            }
            rest = &after[2..];
            continue;
        }
        if part == Part::Host && byte.is_ascii() && !part.admits(*byte) {
            let shown = char::from(*byte).to_string();
            return Err(format!("invalid character {} in host name", quoted(&shown)));
        }
        out.push(*byte);
        rest = after;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Bytes in quotes; a character may be cut at the end.
fn quoted_bytes(bytes: &[u8]) -> String {
    let whole = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mut out = quoted(whole);
    out.pop();
    bytes[whole.len()..].iter().for_each(|byte| write!(out, "\\x{byte:02x}").unwrap_or_default());
    out + "\""
}

impl std::fmt::Display for User {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&escaped(&self.name, Part::User))?;
        match &self.password {
            Some(password) => write!(formatter, ":{}", escaped(password, Part::User)),
            None => Ok(()),
        }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.scheme.is_empty() {
            write!(formatter, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            formatter.write_str(&self.opaque)?;
        } else {
            self.write_hierarchy(formatter)?;
        }
        if !self.query.is_empty() {
            write!(formatter, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(formatter, "#{}", escaped(&self.fragment, Part::Fragment))?;
        }
        Ok(())
    }
}

impl Url {
    /// Authority and path.
    fn write_hierarchy(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_authority = !self.host.is_empty() || self.user.is_some();
        if has_authority || (!self.scheme.is_empty() && !self.path.is_empty()) {
            formatter.write_str("//")?;
        }
        if let Some(user) = &self.user {
            write!(formatter, "{user}@")?;
        }
        formatter.write_str(&escaped(&self.host, Part::Host))?;
        let path = if self.path == "*" { "*".to_owned() } else { escaped(&self.path, Part::Path) };
        if !self.host.is_empty() && !path.is_empty() && !path.starts_with('/') {
            formatter.write_str("/")?;
        }
        let is_bare = self.scheme.is_empty() && !has_authority;
        if is_bare && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
            // Else the first segment would read as a scheme.
            formatter.write_str("./")?;
        }
        formatter.write_str(&path)
    }
}
