//! What is registered: nothing that opens anything is told.

use super::super::document::{credentials, nothing, repository, repository_or_url};
use super::super::operation::{Kind, Operation, Parameter, of};
use super::super::route::Route;
use super::parameters::{APP_PROJECT, ID_TYPE, NAME, UPSERT, text};
use crate::handlers::repositories::Shelf;
use crate::handlers::trust::KeyRequest;
use crate::registered::certificates::CertificateRequest;
use crate::registered::cluster::ClusterRequest;

pub(super) const ALL: &[Operation] = &[
    Operation::get("/api/v1/clusters", Route::Clusters, "The clusters that the caller may see.")
        .query(&[text("server", "Only the cluster of this URL"), NAME]),
    Operation::post(
        "/api/v1/clusters",
        Route::CreateCluster,
        "Registers a cluster, or with `upsert` changes the one that is there.",
    )
    .query(&[UPSERT])
    .takes(of::<ClusterRequest>),
    Operation::get("/api/v1/clusters/{id}", Route::Cluster, "One cluster.").query(&[ID_TYPE]),
    Operation::put("/api/v1/clusters/{id}", Route::UpdateCluster, "Changes a cluster; its URL stays.")
        .query(&[
            ID_TYPE,
            Parameter {
                name: "updatedFields",
                about: "Only these fields; all by default",
                kind: Kind::Texts,
            },
        ])
        .takes(of::<ClusterRequest>),
    Operation::delete(
        "/api/v1/clusters/{id}",
        Route::DeleteCluster,
        "Gives up a cluster; nothing in it changes.",
    )
    .query(&[ID_TYPE])
    .answers(nothing),
    Operation::post(
        "/api/v1/clusters/{id}/invalidate-cache",
        Route::ForgetCluster,
        "Has this server read a cluster anew.",
    )
    .query(&[ID_TYPE]),
    // === repositories, and credentials for them ===
    listed("/api/v1/repositories", Shelf::Repository, "The repositories that the caller may see."),
    created(
        "/api/v1/repositories",
        Shelf::Repository,
        "Registers a repository, or with `upsert` changes it.",
    ),
    shown("/api/v1/repositories/{repo}", Shelf::Repository, "One repository."),
    updated("/api/v1/repositories/{repo}", Shelf::Repository, "Changes a repository."),
    deleted("/api/v1/repositories/{repo}", Shelf::Repository, "Gives up a repository."),
    Operation::get(
        "/api/v1/repositories/{repo}/refs",
        Route::References,
        "The branches and tags of a git repository that is registered, or that the caller may register.",
    )
    .query(&[APP_PROJECT]),
    Operation::post(
        "/api/v1/repositories/{repo}/validate",
        Route::Validate,
        "Whether a git repository can be read, with what the body says opens it or else with what is registered.",
    )
    .query(&[text("project", "The project it would be registered for")])
    .takes(repository_or_url)
    .answers(nothing),
    listed(
        "/api/v1/repocreds",
        Shelf::Credentials,
        "For which URLs credentials are registered, as far as the caller may see.",
    ),
    created("/api/v1/repocreds", Shelf::Credentials, "Registers credentials, or with `upsert` changes them."),
    updated("/api/v1/repocreds/{url}", Shelf::Credentials, "Changes credentials."),
    deleted("/api/v1/repocreds/{url}", Shelf::Credentials, "Gives up credentials."),
    listed(
        "/api/v1/write-repositories",
        Shelf::WriteRepository,
        "The repositories that manifests are written to.",
    ),
    created(
        "/api/v1/write-repositories",
        Shelf::WriteRepository,
        "Registers a repository that manifests are written to.",
    ),
    shown("/api/v1/write-repositories/{repo}", Shelf::WriteRepository, "One of them."),
    updated("/api/v1/write-repositories/{repo}", Shelf::WriteRepository, "Changes one of them."),
    deleted("/api/v1/write-repositories/{repo}", Shelf::WriteRepository, "Gives up one of them."),
    listed(
        "/api/v1/write-repocreds",
        Shelf::WriteCredentials,
        "For which URLs credentials for writing are registered.",
    ),
    created("/api/v1/write-repocreds", Shelf::WriteCredentials, "Registers credentials for writing."),
    updated("/api/v1/write-repocreds/{url}", Shelf::WriteCredentials, "Changes credentials for writing."),
    deleted("/api/v1/write-repocreds/{url}", Shelf::WriteCredentials, "Gives up credentials for writing."),
    // === whom sources are believed to come from ===
    Operation::get("/api/v1/certificates", Route::Certificates, "Certificates and keys of hosts.").query(&[
        text("hostNamePattern", "Only hosts with this in their name"),
        CERTIFICATE_TYPE,
        text("certSubType", "Only of this algorithm"),
    ]),
    Operation::post(
        "/api/v1/certificates",
        Route::CreateCertificates,
        "Adds certificates and keys of hosts.",
    )
    .query(&[UPSERT])
    .takes(of::<CertificateRequest>),
    Operation::delete(
        "/api/v1/certificates",
        Route::DeleteCertificates,
        "Takes away certificates and keys of hosts, and tells which.",
    )
    .query(&[
        text("hostNamePattern", "Of the hosts that this glob means"),
        CERTIFICATE_TYPE,
        text("certSubType", "Only of this algorithm"),
    ]),
    Operation::get("/api/v1/gpgkeys", Route::Keys, "The keys that sign commits.")
        .query(&[text("keyID", "Only the key of this id")]),
    Operation::post("/api/v1/gpgkeys", Route::CreateKeys, "Makes keys known that sign commits.")
        .query(&[UPSERT])
        .takes(of::<KeyRequest>),
    Operation::delete("/api/v1/gpgkeys", Route::DeleteKey, "Has a key known no longer.")
        .query(&[text("keyID", "The id of the key")])
        .answers(nothing),
    Operation::get("/api/v1/gpgkeys/{keyID}", Route::Key, "One key that signs commits."),
];

const CERTIFICATE_TYPE: Parameter =
    Parameter { name: "certType", about: "Only of this kind", kind: Kind::Words(&["ssh", "https"]) };

const fn listed(path: &'static str, shelf: Shelf, about: &'static str) -> Operation {
    let operation = Operation::get(path, Route::List(shelf), about);
    match shelf {
        Shelf::Repository | Shelf::WriteRepository => {
            operation.query(const { &[text("repo", "Only the repository of this URL"), APP_PROJECT] })
        }
        Shelf::Credentials | Shelf::WriteCredentials => {
            operation.query(const { &[text("url", "Only those for this URL")] })
        }
    }
}

const fn shown(path: &'static str, shelf: Shelf, about: &'static str) -> Operation {
    Operation::get(path, Route::Show(shelf), about).query(&[APP_PROJECT])
}

const fn created(path: &'static str, shelf: Shelf, about: &'static str) -> Operation {
    let operation = Operation::post(path, Route::Create(shelf), about).query(&[UPSERT]);
    match shelf {
        Shelf::Repository | Shelf::WriteRepository => operation.takes(repository).answers(repository),
        Shelf::Credentials | Shelf::WriteCredentials => operation.takes(credentials).answers(credentials),
    }
}

const fn updated(path: &'static str, shelf: Shelf, about: &'static str) -> Operation {
    let operation = Operation::put(path, Route::Update(shelf), about);
    match shelf {
        Shelf::Repository | Shelf::WriteRepository => operation.takes(repository).answers(repository),
        Shelf::Credentials | Shelf::WriteCredentials => operation.takes(credentials).answers(credentials),
    }
}

const fn deleted(path: &'static str, shelf: Shelf, about: &'static str) -> Operation {
    let operation = Operation::delete(path, Route::Delete(shelf), about).answers(nothing);
    match shelf {
        Shelf::Repository | Shelf::WriteRepository => operation.query(&[APP_PROJECT]),
        Shelf::Credentials | Shelf::WriteCredentials => operation,
    }
}
