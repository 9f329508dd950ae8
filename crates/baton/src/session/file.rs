//! The file in which Argo CD's command line keeps servers, contexts and tokens. It is shared with it: whatever this version
//! does not know stays as it is.

use std::path::{Path, PathBuf};

use baton_apiserver::write_private;
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Variable that names the directory of the file.
const DIRECTORY: &str = "ARGOCD_CONFIG_DIR";
/// More than this is no such file.
const MOST_BYTES: u64 = 4 << 20;

/// The file as it was read.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    fields: Map<String, Value>,
}

/// A server, and who one is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) name: String,
    /// Host and port.
    pub(crate) server: String,
    pub(crate) user: String,
    /// Whether it is spoken to without TLS.
    pub(crate) plain: bool,
    /// Whether its certificate is not looked at.
    pub(crate) insecure: bool,
    /// The only certificates that are trusted: PEM in base64, as Argo CD writes it; none leaves it to the machine.
    pub(crate) authority: Option<String>,
    /// Path that stands before every other on the server.
    pub(crate) root: String,
    /// Whether there is no server: a kubeconfig's own rights count.
    pub(crate) core: bool,
}

/// Where the file is unless somebody names another.
pub(crate) fn usual_path(variable: impl Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
    if let Some(directory) = variable(DIRECTORY).filter(|directory| !directory.is_empty()) {
        return Ok(PathBuf::from(directory).join("config"));
    }
    let home = variable("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or_else(|| {
        Failure::usage(format!(
            "there is no home directory to keep sessions in: set {DIRECTORY}, or name a file with --config"
        ))
    })?;
    let home = PathBuf::from(home);
    let legacy = home.join(".argocd/config");
    Ok(if legacy.exists() { legacy } else { home.join(".config/argocd/config") })
}

// === impl ConfigFile ===

impl ConfigFile {
    /// Reads it; one that is not there is empty.
    pub(crate) fn read(path: &Path) -> Result<ConfigFile, Failure> {
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::usage(format!(
                "cannot read {}: {why}; mend it, or name another file with --config",
                path.display()
            ))
        };
        let empty = || ConfigFile { path: path.to_owned(), fields: Map::new() };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(empty()),
            Err(error) => return Err(wrong(&error)),
            Ok(about) if about.len() > MOST_BYTES => return Err(wrong(&"it is far too large")),
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        if text.trim().is_empty() {
            return Ok(empty());
        }
        match baton_grammar::yaml::first(&text).map_err(|error| wrong(&error))? {
            Value::Object(fields) => Ok(ConfigFile { path: path.to_owned(), fields }),
            _ => Err(wrong(&"it is not a configuration of Argo CD's command line")),
        }
    }

    /// Writes it, for its owner alone.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("cannot write {}: {error}", self.path.display()))
        };
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| cannot(&error))?;
        }
        let text = serde_saphyr::to_string(&self.fields).map_err(|error| cannot(&error))?;
        write_private(&self.path, &text).map_err(|error| cannot(&error))
    }

    /// The name of the context that is used.
    pub(crate) fn current(&self) -> Option<&str> {
        self.fields.get("current-context").and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// Every context, in the order of the file.
    pub(crate) fn contexts(&self) -> Vec<Context> {
        self.list("contexts").filter_map(|entry| self.resolve(entry)).collect()
    }

    /// A context by its name.
    pub(crate) fn context(&self, name: &str) -> Option<Context> {
        self.contexts().into_iter().find(|context| context.name == name)
    }

    /// The token of a user.
    pub(crate) fn token(&self, user: &str) -> Option<&str> {
        let entry = self.list("users").find(|entry| entry["name"] == user)?;
        entry["auth-token"].as_str().filter(|token| !token.is_empty())
    }

    /// What a new token of a user is given for.
    pub(crate) fn refresh_token(&self, user: &str) -> Option<&str> {
        let entry = self.list("users").find(|entry| entry["name"] == user)?;
        entry["refresh-token"].as_str().filter(|token| !token.is_empty())
    }

    /// Puts new tokens in the place of a user's; without a new one for renewal the old one stays.
    pub(crate) fn renew(&mut self, user: &str, token: &str, refresh: Option<&str>) {
        let user = self.entry("users", "name", user);
        set(user, "auth-token", Some(json!(token)));
        if let Some(refresh) = refresh {
            set(user, "refresh-token", Some(json!(refresh)));
        }
    }

    /// Keeps a context with its tokens, and uses it from now on.
    pub(crate) fn keep(&mut self, context: &Context, token: &str, refresh: Option<&str>) {
        let server = self.entry("servers", "server", &context.server);
        set(server, "plain-text", context.plain.then_some(json!(true)));
        set(server, "insecure", context.insecure.then_some(json!(true)));
        set(server, "certificate-authority-data", context.authority.as_ref().map(|pem| json!(pem)));
        set(server, "grpc-web-root-path", Some(json!(context.root)));
        set(server, "core", context.core.then_some(json!(true)));
        let user = self.entry("users", "name", &context.user);
        set(user, "auth-token", Some(json!(token)).filter(|_| !token.is_empty()));
        set(user, "refresh-token", refresh.map(|token| json!(token)));
        let kept = self.entry("contexts", "name", &context.name);
        set(kept, "server", Some(json!(context.server)));
        set(kept, "user", Some(json!(context.user)));
        self.fields.insert("current-context".to_owned(), json!(context.name));
    }

    /// Uses a context from now on.
    pub(crate) fn switch(&mut self, name: &str) {
        self.fields.insert("current-context".to_owned(), json!(name));
    }

    /// Forgets a token, and nothing else of its user.
    pub(crate) fn forget_token(&mut self, user: &str) {
        let user = self.entry("users", "name", user);
        set(user, "auth-token", None);
        set(user, "refresh-token", None);
    }

    /// Forgets a context, and its server and user where no other context has them.
    pub(crate) fn forget(&mut self, context: &Context) {
        self.remove("contexts", "name", &context.name);
        let rest = self.contexts();
        if !rest.iter().any(|other| other.server == context.server) {
            self.remove("servers", "server", &context.server);
        }
        if !rest.iter().any(|other| other.user == context.user) {
            self.remove("users", "name", &context.user);
        }
        if self.current() == Some(&context.name) {
            self.fields.insert("current-context".to_owned(), json!(""));
        }
    }

    fn resolve(&self, entry: &Value) -> Option<Context> {
        let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
        let named = text(entry, "server");
        let server = self.list("servers").find(|server| server["server"] == named.as_str())?;
        Some(Context {
            name: entry["name"].as_str()?.to_owned(),
            server: named.clone(),
            user: text(entry, "user"),
            plain: server["plain-text"].as_bool().unwrap_or_default(),
            insecure: server["insecure"].as_bool().unwrap_or_default(),
            authority: server["certificate-authority-data"].as_str().map(str::to_owned),
            root: text(server, "grpc-web-root-path"),
            core: server["core"].as_bool().unwrap_or_default(),
        })
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.fields.get(name).and_then(Value::as_array).into_iter().flatten()
    }

    /// The entry of a list that has this name, made where there is none.
    fn entry(&mut self, list: &str, field: &str, name: &str) -> &mut Value {
        let entries = self.fields.entry(list).or_insert_with(|| json!([]));
        if !entries.is_array() {
            *entries = json!([]);
        }
        let entries = entries.as_array_mut().expect("made a list just above");
        let place = entries.iter().position(|entry| entry[field] == name).unwrap_or_else(|| {
            entries.push(json!({field: name}));
            entries.len() - 1
        });
        &mut entries[place]
    }

    fn remove(&mut self, list: &str, field: &str, name: &str) {
        if let Some(entries) = self.fields.get_mut(list).and_then(Value::as_array_mut) {
            entries.retain(|entry| entry[field] != name);
        }
    }
}

/// Sets a field, or takes it away.
fn set(entry: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = entry.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN_BY_OTHERS: &str = "contexts:
- name: prod
  server: cd.example.com
  user: prod
current-context: prod
prompts-enabled: false
servers:
- server: cd.example.com
  grpc-web-root-path: \"\"
  core: false
users:
- name: prod
  auth-token: a.b.c
  refresh-token: r
";

    fn file(text: &str) -> (tempfile::TempDir, ConfigFile) {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("deep/config");
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(&path, text).expect("a file");
        let file = ConfigFile::read(&path).expect("a configuration");
        (home, file)
    }

    fn local() -> Context {
        Context {
            name: "local".into(),
            server: "127.0.0.1:8080".into(),
            user: "local".into(),
            plain: true,
            ..Context::default()
        }
    }

    #[test]
    fn what_argo_cd_wrote_is_read_and_what_is_not_known_stays() {
        let (_home, mut file) = file(WRITTEN_BY_OTHERS);
        assert_eq!((file.current(), file.token("prod")), (Some("prod"), Some("a.b.c")));
        file.keep(&local(), "x.y.z", None);
        file.write().expect("written");
        let again = ConfigFile::read(&file.path).expect("a configuration");
        assert_eq!(again.fields["prompts-enabled"], json!(false));
        assert_eq!(again.fields["servers"][0]["core"], json!(false));
        assert_eq!(again.fields["users"][0]["refresh-token"], "r");
        assert_eq!((again.current(), again.token("local")), (Some("local"), Some("x.y.z")));
        assert_eq!(again.context("local"), Some(local()));
        assert_eq!(again.context("prod").map(|context| context.server), Some("cd.example.com".to_owned()));
    }

    #[test]
    fn a_renewed_token_keeps_what_it_is_renewed_by() {
        let (_home, mut file) = file(WRITTEN_BY_OTHERS);
        file.renew("prod", "new", None);
        assert_eq!((file.token("prod"), file.refresh_token("prod")), (Some("new"), Some("r")));
        file.renew("prod", "newer", Some("s"));
        assert_eq!((file.token("prod"), file.refresh_token("prod")), (Some("newer"), Some("s")));
        file.forget_token("prod");
        assert_eq!((file.token("prod"), file.refresh_token("prod")), (None, None));
    }

    #[test]
    fn it_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_home, mut file) = file("");
        file.keep(&local(), "x.y.z", None);
        file.write().expect("written");
        let mode = std::fs::metadata(&file.path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn logging_out_keeps_the_context_and_forgetting_it_keeps_what_others_use() {
        let (_home, mut file) = file(WRITTEN_BY_OTHERS);
        let twin = Context { name: "twin".into(), ..file.context("prod").expect("a context") };
        file.keep(&twin, "d.e.f", None);
        file.forget_token("prod");
        assert_eq!((file.token("prod"), file.contexts().len()), (None, 2));
        file.forget(&twin);
        assert_eq!((file.current(), file.contexts().len()), (None, 1));
        let last = file.context("prod").expect("its server is kept");
        file.forget(&last);
        assert_eq!((&file.fields["servers"], &file.fields["users"]), (&json!([]), &json!([])));
    }

    #[test]
    fn what_is_no_configuration_is_refused_and_left_as_it_is() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("config");
        for text in ["- a\n- b\n", "a: [", "word"] {
            std::fs::write(&path, text).expect("a file");
            let error = ConfigFile::read(&path).expect_err("it is refused").to_string();
            assert!(error.contains("mend it"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
        }
        let odd = "contexts: word\nservers: {a: 1}\nusers: [1, null]\n";
        std::fs::write(&path, odd).expect("a file");
        let mut file = ConfigFile::read(&path).expect("lists that are none are empty");
        assert_eq!(file.contexts(), []);
        file.keep(&local(), "t", None);
        assert_eq!(file.context("local"), Some(local()));
    }

    #[test]
    fn where_it_is() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            usual_path(move |name| {
                pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            })
        };
        let named = of(&[("ARGOCD_CONFIG_DIR", "/etc/cd"), ("HOME", "/nowhere")]).expect("a path");
        assert_eq!(named, Path::new("/etc/cd/config"));
        assert_eq!(of(&[("HOME", "/nowhere")]).expect("a path"), Path::new("/nowhere/.config/argocd/config"));
        assert!(of(&[]).is_err());
    }
}
