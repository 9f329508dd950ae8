//! The accounts that `argocd-cm` declares and `argocd-secret` holds the passwords and tokens of.

use std::collections::BTreeMap;

use baton_hooks::Secret;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The account that is always there.
pub const ADMIN: &str = "admin";

/// Every account, by name.
#[derive(Debug, Clone, Default)]
pub struct Accounts(BTreeMap<String, Account>);

/// Somebody who can be known without an issuer.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Whether it may be used.
    pub enabled: bool,
    /// Whether it may sign in with its password.
    pub login: bool,
    /// Whether it may have tokens.
    pub api_key: bool,
    /// Hash of its password, in bcrypt's form.
    pub password: Option<Secret>,
    /// When the password was changed last: older sessions do not count.
    pub password_changed: Option<Timestamp>,
    /// Its tokens.
    pub tokens: Vec<AccountToken>,
}

/// A token of an account, as far as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountToken {
    /// Its name.
    pub id: String,
    /// When it was issued, in seconds since 1970.
    pub iat: i64,
    /// When it ends; 0 is never.
    #[serde(default, skip_serializing_if = "is_never")]
    pub exp: i64,
}

fn is_never(exp: &i64) -> bool {
    *exp == 0
}

/// Under which key of `argocd-secret` something of an account is kept.
pub fn secret_key(account: &str, what: &str) -> String {
    match account {
        ADMIN => format!("admin.{what}"),
        name => format!("accounts.{name}.{what}"),
    }
}

// === impl Accounts ===

impl Accounts {
    /// Reads them. What cannot be read is as if it were not there: an account without a password cannot sign in.
    pub fn read(config: &BTreeMap<String, String>, secret: &BTreeMap<String, Vec<u8>>) -> Accounts {
        let mut accounts = BTreeMap::from([(ADMIN.to_owned(), Account::new(ADMIN))]);
        for (key, value) in config {
            let Some(name) = key.strip_prefix("accounts.").filter(|name| !name.contains('.')) else {
                continue;
            };
            let account = accounts.entry(name.to_owned()).or_insert_with(|| Account::new(name));
            for word in value.split(',').map(str::trim) {
                account.login |= word == "login";
                account.api_key |= word == "apiKey";
            }
        }
        for (name, account) in &mut accounts {
            let enabled = match name.as_str() {
                ADMIN => config.get("admin.enabled"),
                name => config.get(&format!("accounts.{name}.enabled")),
            };
            account.enabled = enabled.is_none_or(|word| word.trim() != "false");
            let text = |what: &str| {
                let bytes = secret.get(&secret_key(name, what))?;
                std::str::from_utf8(bytes).ok().map(str::trim).filter(|text| !text.is_empty())
            };
            account.password = text("password").map(Secret::new);
            account.password_changed = text("passwordMtime").and_then(|time| time.parse().ok());
            account.tokens =
                text("tokens").and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default();
        }
        Accounts(accounts)
    }

    /// The account of a name.
    pub fn get(&self, name: &str) -> Option<&Account> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.0.values()
    }
}

// === impl Account ===

impl Account {
    fn new(name: &str) -> Account {
        Account {
            name: name.to_owned(),
            enabled: true,
            login: name == ADMIN,
            api_key: false,
            password: None,
            password_changed: None,
            tokens: Vec::new(),
        }
    }

    /// What it may do, in Argo CD's words.
    pub fn capabilities(&self) -> Vec<&'static str> {
        let all = [(self.login, "login"), (self.api_key, "apiKey")];
        all.into_iter().filter(|(has, _)| *has).map(|(_, word)| word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn accounts_are_declared_in_one_place_and_kept_in_another() {
        let config = texts(&[
            ("accounts.ci", "apiKey"),
            ("accounts.alice", "login, apiKey"),
            ("accounts.bob", "login"),
            ("accounts.bob.enabled", "false"),
            ("url", "https://cd.example.com"),
        ]);
        let secret = texts(&[
            ("admin.password", "$2a$10$hash"),
            ("accounts.alice.password", "$2a$10$other"),
            ("accounts.alice.passwordMtime", "2026-01-01T00:00:00Z"),
            ("accounts.ci.tokens", r#"[{"id":"one","iat":100},{"id":"two","iat":1,"exp":9}]"#),
            ("accounts.bob.tokens", "not JSON"),
        ]);
        let secret = secret.into_iter().map(|(key, value)| (key, value.into_bytes())).collect();
        let accounts = Accounts::read(&config, &secret);
        let names: Vec<&str> = accounts.iter().map(|account| account.name.as_str()).collect();
        assert_eq!(names, ["admin", "alice", "bob", "ci"]);
        let admin = accounts.get("admin").expect("an account");
        assert!(admin.enabled && admin.login && !admin.api_key && admin.password.is_some());
        let alice = accounts.get("alice").expect("an account");
        assert_eq!(alice.capabilities(), ["login", "apiKey"]);
        assert_eq!(alice.password_changed, Some("2026-01-01T00:00:00Z".parse().expect("a time")));
        assert!(!accounts.get("bob").expect("an account").enabled);
        assert_eq!(accounts.get("ci").expect("an account").tokens.len(), 2);
        assert!(!format!("{accounts:?}").contains("hash"), "no hash is printed");
    }

    #[test]
    fn admin_can_be_switched_off() {
        let accounts = Accounts::read(&texts(&[("admin.enabled", "false")]), &BTreeMap::new());
        assert!(!accounts.get("admin").expect("an account").enabled);
    }
}
