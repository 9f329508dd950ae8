//! `metadata.managedFields`: who owns which fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::Set;

/// Most entries made by updates; beyond it the oldest are merged.
const MOST_UPDATERS: usize = 10;

/// Who owns the fields of merged old entries.
const ANCIENT: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    /// As `managedFields` writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// What makes two entries the same manager's. Appliers keep theirs when they move to another version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    /// Empty for appliers.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Identity {
    pub(crate) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Identity {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// What a manager owns, in which version it last said so, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) api_version: String,
    pub(crate) fields: Set,
    pub(crate) time: Option<String>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managers {
    pub(crate) all: BTreeMap<Identity, Owned>,
}

impl Managers {
    /// Reads an object's `managedFields`; absent is empty.
    pub(crate) fn read(entries: Option<&Value>) -> Result<Managers, String> {
        let entries = match entries {
            None | Some(Value::Null) => return Ok(Managers::default()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err("managedFields is not a list".into()),
        };
        let mut managers = Managers::default();
        for (place, entry) in entries.iter().enumerate() {
            let (identity, owned) = read_entry(entry, place)?;
            managers.all.insert(identity, owned);
        }
        Ok(managers)
    }

    /// The entries in the order upstream writes them: appliers first, then by age, then by name.
    pub(crate) fn written(self) -> Option<Value> {
        if self.all.is_empty() {
            return None;
        }
        let mut entries: Vec<(Identity, Owned)> = self.all.into_iter().collect();
        entries.sort_by(|(a, owned_a), (b, owned_b)| {
            let time = |owned: &Owned| owned.time.as_deref().map_or(0, seconds);
            a.operation
                .cmp(&b.operation)
                .then_with(|| time(owned_a).cmp(&time(owned_b)))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| owned_a.api_version.cmp(&owned_b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        Some(entries.into_iter().map(|(identity, owned)| write_entry(identity, owned)).collect())
    }

    /// Takes paths away from every manager, and forgets managers left with nothing.
    pub(crate) fn dispossess(&mut self, lost: &[&Set]) {
        for owned in self.all.values_mut() {
            for lost in lost {
                owned.fields = std::mem::take(&mut owned.fields).without(lost);
            }
        }
        self.all.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Merges the oldest updaters, version by version, until few enough are left.
    pub(crate) fn cap_updaters(&mut self) {
        let mut updaters: Vec<(i64, Identity)> = self
            .all
            .iter()
            .filter(|(identity, _)| identity.operation == Operation::Update)
            .map(|(identity, owned)| (owned.time.as_deref().map_or(0, seconds), identity.clone()))
            .collect();
        let mut surplus = updaters.len().saturating_sub(MOST_UPDATERS);
        if surplus == 0 {
            return;
        }
        updaters.sort();
        let mut oldest: BTreeMap<String, Identity> = BTreeMap::new();
        for (_, identity) in updaters {
            if surplus == 0 {
                break;
            }
            let version = identity.api_version.clone();
            let Some(first) = oldest.get(&version).cloned() else {
                oldest.insert(version, identity);
                continue;
            };
            let bucket = Identity::new(ANCIENT, Operation::Update, &version, "");
            if identity == bucket {
                continue;
            }
            if !self.all.contains_key(&bucket)
                && let Some(owned) = self.all.remove(&first)
            {
                self.all.insert(bucket.clone(), owned);
            }
            let merging = self.all.remove(&identity);
            if let (Some(owned), Some(merging)) = (self.all.get_mut(&bucket), merging) {
                owned.fields = std::mem::take(&mut owned.fields).union(merging.fields);
                // The entry being merged is the younger of the two.
                owned.time = merging.time;
                surplus -= 1;
            }
        }
    }
}

fn read_entry(entry: &Value, place: usize) -> Result<(Identity, Owned), String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {place}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {place}")),
    }
    let identity = Identity {
        manager: text("manager").to_owned(),
        operation,
        api_version: if operation == Operation::Apply { String::new() } else { api_version.to_owned() },
        subresource: text("subresource").to_owned(),
    };
    let fields = Set::read(entry.get("fieldsV1").unwrap_or(&Value::Null))?;
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((identity, Owned { api_version: api_version.to_owned(), fields, time }))
}

fn write_entry(identity: Identity, owned: Owned) -> Value {
    let mut entry = Map::new();
    if !identity.manager.is_empty() {
        entry.insert("manager".into(), identity.manager.into());
    }
    entry.insert("operation".into(), identity.operation.as_str().into());
    entry.insert("apiVersion".into(), owned.api_version.into());
    if let Some(time) = owned.time {
        entry.insert("time".into(), time.into());
    }
    entry.insert("fieldsType".into(), "FieldsV1".into());
    entry.insert("fieldsV1".into(), owned.fields.written());
    if !identity.subresource.is_empty() {
        entry.insert("subresource".into(), identity.subresource.into());
    }
    Value::Object(entry)
}

/// Whether the client asks to forget all managers: an empty list, or a list of one empty entry.
pub(crate) fn asks_for_reset(entries: Option<&Value>) -> bool {
    match entries {
        Some(Value::Array(entries)) => match entries.as_slice() {
            [] => true,
            [Value::Object(only)] => only.values().all(|value| value.is_null() || value == ""),
            _ => false,
        },
        _ => false,
    }
}

/// Seconds since the epoch of an RFC 3339 time, to order entries by; zero for what cannot be read.
fn seconds(time: &str) -> i64 {
    parse_seconds(time).unwrap_or(0)
}

fn parse_seconds(time: &str) -> Option<i64> {
    let number = |from: usize, to: usize| time.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let clock = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    // Days from civil, with years that start in March so that leap days come last.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9).rem_euclid(12);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    let zone = time.get(19..)?.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    let offset = match zone.split_at_checked(1) {
        Some((sign @ ("+" | "-"), rest)) => {
            let minutes = rest.get(0..2)?.parse::<i64>().ok()? * 60 + rest.get(3..5)?.parse::<i64>().ok()?;
            if sign == "+" { minutes * 60 } else { -minutes * 60 }
        }
        _ => 0,
    };
    Some(days * 86_400 + clock - offset)
}
