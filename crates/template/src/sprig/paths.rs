//! Slash-separated paths.

use super::{fixed, str_of};
use crate::function::Function;
use crate::function::Param::Str;
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("base", &[Str], |args| Ok(base(str_of(&args[0])).into())),
    fixed("dir", &[Str], |args| Ok(dir(str_of(&args[0])).into())),
    fixed("clean", &[Str], |args| Ok(clean(str_of(&args[0])).into())),
    fixed("ext", &[Str], |args| Ok(ext(str_of(&args[0])).into())),
    fixed("isAbs", &[Str], |args| Ok(Value::Bool(str_of(&args[0]).starts_with('/')))),
    // The paths of files, which on the systems Argo CD runs on are the same.
    fixed("osBase", &[Str], |args| Ok(base(str_of(&args[0])).into())),
    fixed("osDir", &[Str], |args| Ok(dir(str_of(&args[0])).into())),
    fixed("osClean", &[Str], |args| Ok(clean(str_of(&args[0])).into())),
    fixed("osExt", &[Str], |args| Ok(ext(str_of(&args[0])).into())),
    fixed("osIsAbs", &[Str], |args| Ok(Value::Bool(str_of(&args[0]).starts_with('/')))),
];

fn dir(path: &str) -> String {
    clean(&path[..path.rfind('/').map_or(0, |slash| slash + 1)])
}

fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    match path.trim_end_matches('/') {
        "" => "/",
        trimmed => trimmed.rsplit('/').next().unwrap_or(trimmed),
    }
}

fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rfind('.').map_or("", |dot| &name[dot..])
}

/// The shortest path that means the same.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}
