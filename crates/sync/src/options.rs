//! Sync options: of a resource, by annotation, and of an operation, by list.
//!
//! An option is one exact word such as `Replace=true`; case counts and unknown words are ignored.

use baton_api::names::resource::SYNC_OPTIONS;
use baton_api::object::Object;
use serde_json::Value;

/// Options in the order they are written, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options<'a>(Vec<&'a str>);

/// What may happen to an object that is to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Removal {
    /// It is deleted.
    #[default]
    Allowed,
    /// It is kept: `=false`.
    Kept,
    /// It is deleted once a person agreed: `=confirm`.
    Confirm,
}

/// Values for objects that do not state their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Defaults<'a> {
    /// Value of `Prune=`.
    pub prune: Option<&'a str>,
    /// Value of `Delete=`.
    pub delete: Option<&'a str>,
}

/// The items of a comma separated text: trimmed, each once, none empty.
pub fn items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    for item in text.split(',').map(str::trim) {
        if !item.is_empty() && !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

/// What `Prune=` makes of an object: its own word, whatever it is, before the default.
pub fn prune(object: &Value, defaults: &Defaults<'_>) -> Removal {
    Removal::of(Options::of(object).value("Prune").or(defaults.prune))
}

/// What `Delete=` makes of an object, likewise.
pub fn delete(object: &Value, defaults: &Defaults<'_>) -> Removal {
    Removal::of(Options::of(object).value("Delete").or(defaults.delete))
}

// === impl Options ===

impl<'a> Options<'a> {
    /// The options of a resource.
    pub fn of(object: &'a Value) -> Options<'a> {
        Options(object.annotation(SYNC_OPTIONS).map(items).unwrap_or_default())
    }

    /// The options of an operation or of a sync policy.
    pub fn list(options: &'a [String]) -> Options<'a> {
        Options(options.iter().map(String::as_str).collect())
    }

    /// Whether an option is set, word for word.
    pub fn has(&self, option: &str) -> bool {
        self.0.contains(&option)
    }

    /// The value of the first option of this name.
    pub fn value(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find_map(|item| item.strip_prefix(name)?.strip_prefix('='))
    }
}

// === impl Removal ===

impl Removal {
    fn of(value: Option<&str>) -> Removal {
        match value {
            Some("false") => Removal::Kept,
            Some("confirm") => Removal::Confirm,
            _ => Removal::Allowed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(options: &str) -> Value {
        json!({"metadata": {"annotations": {SYNC_OPTIONS: options}}})
    }

    #[test]
    fn items_are_trimmed_and_stand_once() {
        assert_eq!(items(" a=1 ,b,,a=1, c "), ["a=1", "b", "c"]);
        assert!(items("").is_empty());
    }

    #[test]
    fn an_option_is_one_exact_word() {
        let object = object("Validate=false, Replace=True");
        let options = Options::of(&object);
        assert!(options.has("Validate=false"));
        assert!(!options.has("Replace=true"));
        assert!(!options.has("Validate"));
    }

    #[test]
    fn the_first_value_of_a_name_counts() {
        assert_eq!(Options::of(&object("Prune=confirm,Prune=false")).value("Prune"), Some("confirm"));
        assert_eq!(Options::of(&object("PruneLast=true")).value("Prune"), None);
    }

    #[test]
    fn an_object_overrides_the_default_even_with_nonsense() {
        let defaults = Defaults { prune: Some("confirm"), delete: Some("false") };
        assert_eq!(prune(&object(""), &defaults), Removal::Confirm);
        assert_eq!(prune(&object("Prune=true"), &defaults), Removal::Allowed);
        assert_eq!(prune(&object("Prune=whatever"), &defaults), Removal::Allowed);
        assert_eq!(prune(&object("Prune=false"), &defaults), Removal::Kept);
        assert_eq!(delete(&object("Prune=false"), &defaults), Removal::Kept);
        assert_eq!(delete(&object("Delete=confirm"), &defaults), Removal::Confirm);
    }
}
