//! The password of `admin`: in a file for people, as a hash for the server.

use baton_apiserver::Cluster;
use baton_hooks::Secret;
use baton_server::auth::setup::{self, Admin};
use jiff::Timestamp;

use super::{Home, MANAGER, NAMESPACE, objects};
use crate::failure::Failure;

const FILE: &str = "admin-password";

/// Makes the password once, and has the server know it. The file is written last: with it, the password counts. Where it
/// is gone, another one is made; where it is there, a password that somebody has changed since stays changed.
pub(super) async fn ensure(home: &Home<'_>, control: &Cluster) -> Result<(), Failure> {
    let kept = std::fs::read_to_string(home.directory.join(FILE)).unwrap_or_default();
    let kept = Some(kept.trim()).filter(|text| !text.is_empty());
    let password = kept.map_or_else(objects::random_password, str::to_owned);
    let admin = match kept {
        Some(_) => Admin::Usually(Secret::new(password.as_str())),
        None => Admin::Always(Secret::new(password.as_str())),
    };
    let client = kube::Client::new(control.service(), NAMESPACE);
    setup::ensure_with(&client, NAMESPACE, Timestamp::now(), &admin).await.map_err(|error| {
        Failure::failed(format!("the password in {} cannot be used: {error}", home.shown(FILE)))
    })?;
    control.apply(MANAGER, &objects::admin_secret(&password)).await?;
    if kept.is_none() {
        home.write(FILE, &format!("{password}\n"))?;
    }
    Ok(())
}
