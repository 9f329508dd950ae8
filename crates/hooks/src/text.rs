//! Templates in the texts of hooks and checks.
//!
//! The language is the set's. In both of them a name that is not known is an error: a half-filled URL or body is
//! never sent. Under `{{param}}` substitution a leading dot is accepted, so that the proposal's `{{.appset.name}}`
//! works in either.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_template::{Execution, Limits, Map, MissingKey, SystemEntropy, Template, Value};
use jiff::Zoned;

use crate::call::SetName;
use crate::secret::Secret;

/// Most bytes that one text may grow to: the largest body, with room for what filling adds.
const LONGEST: usize = 1 << 20;

/// Characters of an unknown name that are shown.
const MOST_SHOWN: usize = 60;

/// The Secrets a call may use: by the name its text knows them by, then by key.
pub type Secrets = BTreeMap<String, BTreeMap<String, Secret>>;

/// The template language of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `{{param}}` substitution.
    Params,
    /// Go templates (`goTemplate: true`).
    Go,
}

/// What texts are filled in with.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) set: &'a SetName,
    pub(crate) phase: &'a str,
    /// The target's parameters, in the form the language wants: nested for Go, dotted keys for params.
    pub(crate) params: &'a Map,
    /// None where a text may not use any.
    pub(crate) secrets: Option<&'a Secrets>,
    pub(crate) now: &'a Zoned,
}

/// Whether a text holds template text.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// Why a text is no template, or cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Complaint {
    /// A tag has no end.
    #[error("a \"{{{{\" has no \"}}}}\"")]
    Unclosed,
    /// There is nothing of this name.
    #[error("{{{{{0}}}}} is not known")]
    Unknown(String),
    /// It would be too long.
    #[error("it grows over {LONGEST} bytes")]
    TooLong,
    /// What the engine of Go templates says. A template can be made to say values, in any form.
    #[error("{words}")]
    Engine {
        /// Its words.
        words: String,
        /// Line and column, where they are known.
        place: Option<(usize, usize)>,
    },
}

/// Reads a text as a template, without filling it in.
///
/// # Errors
/// What is wrong with it. It quotes the text and nothing else.
pub(crate) fn read(language: Language, text: &str) -> Result<(), Complaint> {
    match language {
        Language::Params => tags(text).map(drop),
        Language::Go if is_template(text) => parsed(text).map(drop),
        Language::Go => Ok(()),
    }
}

/// Fills in a text.
///
/// # Errors
/// Why it cannot be filled in. What the engine says may hold a secret.
pub(crate) fn fill(language: Language, text: &str, values: &Values<'_>) -> Result<String, Complaint> {
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    match language {
        Language::Params => substitute(text, values),
        Language::Go => {
            let execution = Execution {
                missing_key: MissingKey::Error,
                limits: Limits { output: LONGEST, ..Limits::default() },
                now: Some(values.now),
                entropy: Some(&SystemEntropy),
            };
            let filled = parsed(text)?.execute_in(&Value::Map(roots(values)), &execution);
            filled.map_err(|fault| Complaint::Engine { words: fault.to_string(), place: fault.place() })
        }
    }
}

fn parsed(text: &str) -> Result<Template, Complaint> {
    let template = Template::parse("hook", text);
    template.map_err(|fault| Complaint::Engine { words: fault.to_string(), place: None })
}

/// The names of the Secrets a text uses as `secrets.<name>.<key>`.
pub(crate) fn secrets_used(text: &str) -> Vec<&str> {
    let mut used = Vec::new();
    for tag in text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or(rest)) {
        for (at, _) in tag.match_indices("secrets.") {
            let before = tag[..at].chars().next_back();
            if before.is_some_and(|char| char.is_alphanumeric() || char == '_') {
                continue;
            }
            let rest = &tag[at + "secrets.".len()..];
            let end = rest.find(|char: char| !(char.is_alphanumeric() || "_-".contains(char)));
            used.push(&rest[..end.unwrap_or(rest.len())]);
        }
    }
    used.retain(|name| !name.is_empty());
    used.sort_unstable();
    used.dedup();
    used
}

/// Whether a text mentions secrets in a tag at all, however.
pub(crate) fn mentions_secrets(text: &str) -> bool {
    let mut tags = text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or(rest));
    tags.any(|tag| tag.contains("secrets"))
}

/// Whether a text is filled in with something of a target, and not only of the set, the phase and Secrets.
///
/// # Caveats
/// A Go template that takes the whole of what it sees, as in `{{ toJson . }}`, names nothing.
pub(crate) fn names_target(language: Language, text: &str) -> bool {
    let of_others = |root: &str| matches!(root, "appset" | "phase" | "secrets");
    match language {
        Language::Params => tags(text).is_ok_and(|pieces| {
            pieces.iter().any(|piece| match piece {
                Piece::Name(name) => !of_others(name.split('.').next().unwrap_or(name)),
                Piece::Text(_) => false,
            })
        }),
        Language::Go => Template::parse("hook", text)
            .is_ok_and(|template| template.root_fields().iter().any(|root| !of_others(root))),
    }
}

/// The parameters of its target that a text cannot be filled in without, under their dotted paths, as far as that is
/// certain: in Go templates what is printed whatever happens.
pub(crate) fn parameters(language: Language, text: &str) -> Vec<String> {
    if !is_template(text) {
        return Vec::new();
    }
    let of_target = |name: &str| match language {
        // Nothing else in these roots can be told from a parameter.
        Language::Params => {
            !name.starts_with("secrets.")
                && !matches!(name, "appset.name" | "appset.namespace" | "phase.name")
        }
        Language::Go => {
            !matches!(name.split('.').next(), Some("appset" | "phase" | "secrets")) && name != "target"
        }
    };
    let mut names: Vec<String> = named(language, text).into_iter().filter(|name| of_target(name)).collect();
    for name in &mut names {
        if let Some(parameter) = name.strip_prefix("target.") {
            *name = parameter.to_owned();
        }
    }
    names
}

/// Names that no call has, whatever its target: other fields of the set and the phase than there are.
pub(crate) fn unknown(language: Language, text: &str) -> Vec<String> {
    let known = ["appset.name", "appset.namespace", "appset", "phase.name", "phase"];
    let of_roots = |name: &String| {
        matches!(name.split('.').next(), Some("appset" | "phase")) && !known.contains(&name.as_str())
    };
    match language {
        Language::Go if is_template(text) => named(language, text).into_iter().filter(of_roots).collect(),
        // A parameter may be called so.
        Language::Go | Language::Params => Vec::new(),
    }
}

/// The keys of Secrets that a text surely uses, each with its Secret.
pub(crate) fn keys_used(language: Language, text: &str) -> Vec<(String, String)> {
    let names = if is_template(text) { named(language, text) } else { Vec::new() };
    let pair = |name: String| {
        let (secret, key) = name.strip_prefix("secrets.")?.split_once('.')?;
        Some((secret.to_owned(), key.to_owned()))
    };
    names.into_iter().filter_map(pair).collect()
}

/// Every name in a text that is surely looked up.
fn named(language: Language, text: &str) -> Vec<String> {
    match language {
        Language::Params => {
            let pieces = tags(text).unwrap_or_default().into_iter();
            let names = pieces.filter_map(|piece| match piece {
                Piece::Name(name) => Some(name.to_owned()),
                Piece::Text(_) => None,
            });
            names.collect()
        }
        Language::Go => {
            let template = parsed(text).ok();
            let chains = template.map(|template| template.printed_fields()).unwrap_or_default();
            chains.iter().map(|chain| chain.join(".")).collect()
        }
    }
}

/// The text with every tag replaced by a letter, to judge what stands around them.
pub(crate) fn outline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        out.push('x');
        let after = &rest[start + 2..];
        rest = after.find("}}").map_or("", |end| &after[end + 2..]);
    }
    out.push_str(rest);
    out
}

/// A piece of a text: what stands there, or the name in a tag.
enum Piece<'t> {
    Text(&'t str),
    Name(&'t str),
}

fn tags(text: &str) -> Result<Vec<Piece<'_>>, Complaint> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        pieces.push(Piece::Text(&rest[..start]));
        let after = &rest[start + 2..];
        let end = after.find("}}").ok_or(Complaint::Unclosed)?;
        let name = after[..end].trim();
        pieces.push(Piece::Name(name.strip_prefix('.').unwrap_or(name)));
        rest = &after[end + 2..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn substitute(text: &str, values: &Values<'_>) -> Result<String, Complaint> {
    let mut out = String::with_capacity(text.len());
    for piece in tags(text)? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Name(name) => {
                out.push_str(&value(name, values).ok_or_else(|| Complaint::unknown(name))?);
            }
        }
        if out.len() > LONGEST {
            return Err(Complaint::TooLong);
        }
    }
    Ok(out)
}

fn value(name: &str, values: &Values<'_>) -> Option<Arc<str>> {
    if let Some(path) = name.strip_prefix("secrets.") {
        let (secret, key) = path.split_once('.')?;
        return Some(values.secrets?.get(secret)?.get(key)?.expose().into());
    }
    match name {
        "appset.name" => Some(values.set.name.as_str().into()),
        "appset.namespace" => Some(values.set.namespace.as_str().into()),
        "phase.name" => Some(values.phase.into()),
        _ => match values.params.get(name.strip_prefix("target.").unwrap_or(name))? {
            Value::Str(text) => Some(text),
            _ => None,
        },
    }
}

/// What a Go template sees as its dot: the target's parameters, and beside them the roots, which win.
fn roots(values: &Values<'_>) -> Map {
    let dot = values.params.detached();
    dot.insert("target", Value::Map(values.params.detached()));
    let set = [("name", values.set.name.as_str()), ("namespace", values.set.namespace.as_str())];
    dot.insert("appset", Value::Map(Map::strings(set)));
    dot.insert("phase", Value::Map(Map::strings([("name", values.phase)])));
    dot.remove("secrets");
    if let Some(secrets) = values.secrets {
        let secret = |keys: &BTreeMap<String, Secret>| {
            Value::Map(Map::strings(keys.iter().map(|(key, value)| (key.as_str(), value.expose()))))
        };
        let secrets = secrets.iter().map(|(name, keys)| (Arc::from(name.as_str()), secret(keys)));
        dot.insert("secrets", Value::Map(Map::new(secrets)));
    }
    dot
}

// === impl Complaint ===

impl Complaint {
    fn unknown(name: &str) -> Complaint {
        Complaint::Unknown(name.chars().take(MOST_SHOWN).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(language: Language, text: &str, with_secrets: bool) -> Result<String, Complaint> {
        let set = SetName { namespace: "argocd".into(), name: "web".into() };
        let params = match language {
            Language::Params => Map::strings([("name", "eu-1"), ("metadata.labels.env", "prod")]),
            Language::Go => Map::new([
                (Arc::from("name"), Value::from("eu-1")),
                (Arc::from("metadata"), Value::from(&serde_json::json!({"labels": {"env": "prod"}}))),
            ]),
        };
        let token = BTreeMap::from([("token".to_owned(), Secret::new("hunter2"))]);
        let secrets = Secrets::from([("servicenow".to_owned(), token)]);
        let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
        let secrets = with_secrets.then_some(&secrets);
        fill(language, text, &Values { set: &set, phase: "canary", params: &params, secrets, now: &now })
    }

    #[test]
    fn both_languages_know_the_set_the_phase_the_target_and_secrets() {
        for language in [Language::Params, Language::Go] {
            let text = "{{.appset.namespace}}/{{ .appset.name }} {{.phase.name}} {{.name}} {{.target.name}} \
                        {{.metadata.labels.env}} {{.secrets.servicenow.token}}";
            let expected = "argocd/web canary eu-1 eu-1 prod hunter2";
            assert_eq!(filled(language, text, true), Ok(expected.to_owned()), "{language:?}");
        }
        assert_eq!(filled(Language::Params, "{{name}} {{ appset.name }}", true), Ok("eu-1 web".to_owned()));
    }

    #[test]
    fn what_is_not_known_is_an_error_and_never_sent() {
        for text in
            ["{{.nome}}", "{{.secrets.other.token}}", "{{.secrets.servicenow.other}}", "{{.appset.uid}}"]
        {
            for language in [Language::Params, Language::Go] {
                assert!(filled(language, text, true).is_err(), "{language:?} {text}");
            }
        }
        for language in [Language::Params, Language::Go] {
            assert!(filled(language, "{{.secrets.servicenow.token}}", false).is_err(), "{language:?}");
        }
        assert!(filled(Language::Params, "{{name", true).is_err());
    }

    #[test]
    fn a_text_names_its_target_by_any_other_root_than_set_phase_and_secrets() {
        for language in [Language::Params, Language::Go] {
            for (text, expected) in [
                ("https://{{.name}}.example.com", true),
                ("{{.target.name}}", true),
                ("{{.metadata.labels.env}} of {{.appset.name}}", true),
                ("{{ .appset.name }} {{.phase.name}} {{.secrets.a.b}}", false),
                ("{{.appsets}}", true),
                ("plain", false),
            ] {
                assert_eq!(names_target(language, text), expected, "{language:?} {text}");
            }
        }
        assert!(names_target(Language::Params, "{{name}}") && names_target(Language::Go, "{{$.name}}"));
    }

    #[test]
    fn what_a_text_uses_is_found() {
        let text = "Bearer {{.secrets.servicenow.token}} {{ secrets.other.key | quote }} {{.mysecrets.x}} \
                    .secrets.outside";
        assert_eq!(secrets_used(text), ["other", "servicenow"]);
        assert!(
            mentions_secrets("{{ index .secrets \"a-b\" \"c\" }}") && !mentions_secrets("secrets {{name}}")
        );
        assert_eq!(outline("https://{{name}}.example.com/{{.a}}"), "https://x.example.com/x");
    }
}
