//! Argo CD's own: texts made fit for names.

use super::dicts::conversion;
use super::letters::lower_case;
use super::{Outcome, fixed, str_of, variadic};
use crate::function::Function;
use crate::function::Param::{Any, Str};
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("normalize", &[Str], |args| Ok(normalize(str_of(&args[0])).into())),
    variadic("slugify", &[], Any, slugify),
];

/// A DNS subdomain made of any text: what may not stand in one becomes a dash.
pub fn normalize(text: &str) -> String {
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.');
    let lower = lower_case(text);
    let clean: String = lower.chars().map(|c| if allowed(c) { c } else { '-' }).take(253).collect();
    clean.trim_matches(['-', '.']).to_owned()
}

/// `slugify [max] [smart] name`; whatever stands between these and the name is ignored.
fn slugify(args: &[Value]) -> Outcome {
    let Some((name, options)) = args.split_last() else {
        return Ok("".into());
    };
    let max = match options.first() {
        None => 50,
        Some(Value::Int(max)) => *max,
        Some(other) => return Err(conversion(other, "int")),
    };
    let smart = match options.get(1) {
        None => true,
        Some(Value::Bool(smart)) => *smart,
        Some(other) => return Err(conversion(other, "bool")),
    };
    let Value::Str(name) = name else {
        return Err(conversion(name, "string"));
    };
    if max < 0 && !smart {
        return Err(format!("a text cannot be cut to {max} bytes"));
    }
    Ok(slug(&normalize(name), usize::try_from(max).unwrap_or(0), smart).into())
}

/// The text is ASCII: `normalize` made it so. A smart maximum of nothing is none.
fn slug(text: &str, max: usize, smart: bool) -> String {
    let text = if smart { text } else { &text[..text.len().min(max)] };
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '-' };
        if c != '-' || !clean.ends_with('-') {
            clean.push(c);
        }
    }
    let clean = clean.trim_matches('-');
    if clean.len() <= max || !smart || max == 0 {
        return clean.to_owned();
    }
    let end = clean[..=max].rfind('-').unwrap_or(max);
    clean[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalize_keeps_what_a_name_may_hold() {
        for (text, expected) in [
            ("My_App", "my-app"),
            ("a.b-c", "a.b-c"),
            ("..x/y--", "x-y"),
            ("Grüße", "gr--e"),
            ("", ""),
            ("___", ""),
        ] {
            assert_eq!(normalize(text), expected);
        }
        assert_eq!(normalize(&"a".repeat(300)).len(), 253);
    }

    #[test]
    fn slugs_are_cut_at_a_dash_when_smart() {
        for (text, max, smart, expected) in [
            ("feat/a_really+awesome.feature", 23, true, "feat-a-really-awesome"),
            ("feat/a_really+awesome.feature", 23, false, "feat-a-really-awesome-f"),
            ("abcdefghij", 4, true, "abcd"),
            ("ab--cd", 50, true, "ab-cd"),
            ("ab-cd", 3, false, "ab"),
        ] {
            assert_eq!(slug(&normalize(text), max, smart), expected, "{text} {max} {smart}");
        }
    }
}
