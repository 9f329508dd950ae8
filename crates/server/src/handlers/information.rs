//! What everybody may know of the server.

use serde_json::{Value, json};

use crate::server::{Context, Server};

impl Server {
    /// The version. Only who is known learns more than its number.
    pub fn version(&self, context: &Context) -> Value {
        let version = format!("v{}", baton_api::names::ARGO_CD_VERSION);
        match context.caller.is_known() {
            true => json!({
                "Version": version,
                "Platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
                "ExtraBuildInfo": format!("baton {}", env!("CARGO_PKG_VERSION")),
            }),
            false => json!({"Version": version}),
        }
    }

    /// The settings a client needs: a list of its own, so that no setting is told because it exists.
    pub fn public_settings(&self, context: &Context) -> Value {
        let configuration = &context.configuration;
        let text = |key: &str| configuration.setting(key).unwrap_or_default();
        let admin = configuration.accounts.get(crate::auth::accounts::ADMIN);
        let nobody = configuration.accounts.iter().all(|account| !(account.enabled && account.login));
        let mut settings = json!({
            "url": text("url"),
            "statusBadgeEnabled": configuration.is_on("statusbadge.enabled"),
            "googleAnalytics": {"anonymizeUsers": true},
            "help": {"chatUrl": text("help.chatUrl"), "chatText": text("help.chatText")},
            "userLoginsDisabled": nobody,
            "adminEnabled": admin.is_some_and(|admin| admin.enabled),
            "appsInAnyNamespaceEnabled": self.0.settings.other_namespaces.is_some(),
            "execEnabled": false,
            "syncWithReplaceAllowed": true,
            "resourceViewEnabled": false,
        });
        if let Some(Ok(provider)) = &configuration.provider {
            settings["oidcConfig"] = json!({
                "name": provider.name, "issuer": provider.issuer, "clientID": provider.client,
                "cliClientID": provider.cli_client, "scopes": provider.scopes, "enablePKCEAuthentication": true,
            });
        }
        if context.caller.is_known() {
            settings["controllerNamespace"] = self.0.settings.namespace.as_str().into();
            settings["appLabelKey"] = match text("application.instanceLabelKey") {
                "" => "app.kubernetes.io/instance".into(),
                key => key.into(),
            };
            settings["trackingMethod"] = text("application.resourceTrackingMethod").into();
            settings["uiBannerContent"] = text("ui.bannercontent").into();
            settings["passwordPattern"] = text("passwordPattern").into();
        }
        settings
    }
}
