//! The server itself, and who asks it.

use super::super::document::{nothing, token};
use super::super::operation::{Kind, Operation, Parameter, any, of};
use super::super::route::Route;
use super::parameters::{flag, number, text};
use crate::handlers::accounts::{NewPassword, NewToken};
use crate::handlers::sessions::SignIn;

pub(super) const ALL: &[Operation] = &[
    Operation::get("/healthz", Route::Health, "Whether the server answers.").text().open(),
    Operation::get("/swagger.json", Route::Document, "This document.").open(),
    Operation::get("/api/version", Route::Version, "The version of the server.").open(),
    Operation::get("/api/v1/openapi.json", Route::Document, "This document.").open(),
    Operation::get("/api/v1/settings", Route::Settings, "What a client has to know of the server.").open(),
    Operation::get("/api/v1/session/userinfo", Route::UserInfo, "Who asks.").open(),
    Operation::post("/api/v1/session", Route::SignIn, "Signs in by name and password.")
        .takes(of::<SignIn>)
        .answers(token)
        .open(),
    Operation::delete("/api/v1/session", Route::SignOut, "Signs out.").answers(nothing).open(),
    Operation::get(
        "/api/badge",
        Route::Badge,
        "How an Application fares, as a picture; where badges are on.",
    )
    .query(&[
        text("name", "The Application"),
        text("namespace", "Its namespace; the control plane's by default"),
        Parameter { name: "project", about: "All Applications of these projects instead", kind: Kind::Texts },
        flag("revision", "Whether the revision is told"),
        flag("keepFullRevision", "Whether all of it"),
        flag("showAppName", "Whether the name is told"),
        number("width", "How wide it is at least, in pixels"),
    ])
    .picture()
    .open(),
    Operation::post(
        "/api/webhook",
        Route::Webhook,
        "Takes what a source code host tells of pushes and pull requests, signed as its secret says.",
    )
    .takes(any)
    .text()
    .open(),
    // === issuers ===
    Operation::get(
        "/auth/login",
        Route::BeginSignOn,
        "Sends a browser to the issuer that people sign in at.",
    )
    .query(&[text("return_url", "The page of ours to go to afterwards")])
    .elsewhere()
    .open(),
    Operation::get("/auth/callback", Route::EndSignOn, "Where the issuer sends a browser back to.")
        .query(&[
            text("state", "Which sign-in it is"),
            text("code", "What the token is given for"),
            text("error", "Why there is none"),
        ])
        .elsewhere()
        .open(),
    Operation::get("/auth/logout", Route::SignOff, "Signs a browser out.").elsewhere().open(),
    // === accounts ===
    Operation::get("/api/v1/account", Route::Accounts, "The accounts that the caller may see."),
    Operation::get(
        "/api/v1/account/can-i/{resource}/{action}/{object...}",
        Route::CanI,
        "Whether the caller may, in the words of policies. Action and object may have slashes.",
    ),
    Operation::get("/api/v1/account/{name}", Route::Account, "One account."),
    Operation::put("/api/v1/account/password", Route::Password, "Changes a password.")
        .takes(of::<NewPassword>)
        .answers(nothing),
    Operation::post(
        "/api/v1/account/{name}/token",
        Route::CreateAccountToken,
        "Makes a token of an account.",
    )
    .takes(of::<NewToken>)
    .answers(token),
    Operation::delete(
        "/api/v1/account/{name}/token/{id}",
        Route::DeleteAccountToken,
        "Revokes a token of an account.",
    )
    .answers(nothing),
];
