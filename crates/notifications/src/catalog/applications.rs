//! What is told about Applications.

use super::template::{Mood, Template};
use super::{Condition, Trigger};

const LINK: &str = "/applications/{{ $.app.metadata.namespace }}/{{ $.app.metadata.name }}";
const LINK_NAME: &str = "Open the Application";

const PROJECT: (&str, &str) = ("Project", r#"dig "spec" "project" "" .app"#);
const SYNC: (&str, &str) = ("Sync", r#"dig "status" "sync" "status" "Unknown" .app"#);
const HEALTH: (&str, &str) = ("Health", r#"dig "status" "health" "status" "Unknown" .app"#);
const REVISION: (&str, &str) =
    ("Revision", r#"dig "status" "operationState" "syncResult" "revision" "" .app"#);

/// Once for every revision that is synced.
const ONCE_PER_REVISION: &str = "app.status?.operationState?.syncResult?.revision";

/// Once for every operation.
const ONCE_PER_OPERATION: &str = "app.status?.operationState?.startedAt";

pub(super) const TRIGGERS: &[Trigger] = &[
    Trigger {
        name: "on-created",
        conditions: &[Condition {
            when: "true",
            once_per: "app.metadata.uid",
            send: "app-created",
            description: "The Application is there",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-deleted",
        conditions: &[Condition {
            when: "app.metadata.deletionTimestamp != nil",
            once_per: "app.metadata.uid",
            send: "app-deleted",
            description: "The Application is being deleted",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-deployed",
        conditions: &[Condition {
            when: "app.status?.operationState?.phase == 'Succeeded' and app.status?.health?.status == 'Healthy' \
                   and (app.status.health.lastTransitionTime == nil or app.status.operationState.finishedAt == nil \
                   or !time.Parse(app.status.health.lastTransitionTime)\
                   .Before(time.Parse(app.status.operationState.finishedAt)))",
            once_per: ONCE_PER_REVISION,
            send: "app-deployed",
            description: "The Application is synced and healthy; once for every revision",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-health-degraded",
        conditions: &[Condition {
            when: "app.status?.health?.status == 'Degraded'",
            once_per: "",
            send: "app-health-degraded",
            description: "The Application is degraded",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-sync-failed",
        conditions: &[Condition {
            when: "app.status?.operationState?.phase in ['Failed', 'Error']",
            once_per: ONCE_PER_OPERATION,
            send: "app-sync-failed",
            description: "A sync has failed",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-sync-running",
        conditions: &[Condition {
            when: "app.status?.operationState?.phase == 'Running'",
            once_per: ONCE_PER_OPERATION,
            send: "app-sync-running",
            description: "A sync has begun",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-sync-status-unknown",
        conditions: &[Condition {
            when: "app.status?.sync?.status == 'Unknown'",
            once_per: "",
            send: "app-sync-status-unknown",
            description: "Source and cluster cannot be compared",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-sync-succeeded",
        conditions: &[Condition {
            when: "app.status?.operationState?.phase == 'Succeeded'",
            once_per: ONCE_PER_REVISION,
            send: "app-sync-succeeded",
            description: "A sync has succeeded; once for every revision",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-deletion-approval-required",
        conditions: &[Condition {
            // The condition says that something waits now; rows are marked already where the next sync will wait.
            when: "any(app.status?.conditions ?? [], {.type == 'DeletionApprovalRequiredInfo'})",
            // A sync that waits is another wait than the deletion that comes after it.
            once_per: "app.metadata.uid + '/' + (app.status?.operationState?.phase == 'Running' \
                       ? app.status.operationState.startedAt : app.metadata.deletionTimestamp ?? '')",
            send: "app-deletion-approval-required",
            description: "A person must approve the deletion of resources",
            until_delivered: true,
        }],
    },
];

/// Exactly the resources that wait, one a line. An Application that was never compared has no list of its resources, and
/// an API with Argo CD's definitions does not store which of them wait; then the condition names them.
const WAITING: &str = "Nothing is deleted until a person approves:\
    {{ $listed := false }}\
    {{ range (dig \"status\" \"resources\" list .app) }}{{ if .requiresDeletionApproval }}{{ $listed = true }}\n\
    - {{ .kind }}{{ with .group }}.{{ . }}{{ end }} {{ with .namespace }}{{ . }}/{{ end }}{{ .name }}\
    {{ end }}{{ end }}\
    {{ if not $listed }}{{ range .app.status.conditions }}{{ if eq .type \"DeletionApprovalRequiredInfo\" }}\n\
    {{ .message }}{{ end }}{{ end }}{{ end }}\n\
    Approve with: baton app confirm-deletion {{ .app.metadata.name }}";

const WAITING_JSON: &str = r#"{"type": "deletion-approval-required", "app": {{ toJson .app.metadata.name }}, "namespace": {{ toJson .app.metadata.namespace }}, "project": {{ dig "spec" "project" "" .app | toJson }}, "cluster": {{ dig "spec" "destination" "server" (dig "spec" "destination" "name" "" .app) .app | toJson }}, "requestedAt": {{ if eq (dig "status" "operationState" "phase" "" .app) "Running" }}{{ toJson .app.status.operationState.startedAt }}{{ else }}{{ dig "metadata" "deletionTimestamp" "" .app | toJson }}{{ end }}, "message": {{ $said := "" }}{{ range .app.status.conditions }}{{ if eq .type "DeletionApprovalRequiredInfo" }}{{ $said = .message }}{{ end }}{{ end }}{{ toJson $said }}, "resources": [{{ $first := true }}{{ range (dig "status" "resources" list .app) }}{{ if .requiresDeletionApproval }}{{ if not $first }}, {{ end }}{{ $first = false }}{"group": {{ .group | default "" | toJson }}, "kind": {{ toJson .kind }}, "namespace": {{ .namespace | default "" | toJson }}, "name": {{ toJson .name }}}{{ end }}{{ end }}]{{ with .context.argocdUrl }}, "approveUrl": {{ printf "%s/approvals?app=%s/%s" . $.app.metadata.namespace $.app.metadata.name | toJson }}{{ end }}}"#;

pub(super) const TEMPLATES: &[Template] = &[
    Template {
        name: "app-created",
        title: "Application {{ .app.metadata.name }} was created.",
        detail: "",
        facts: &[PROJECT],
        mood: Mood::Good,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-deleted",
        title: "Application {{ .app.metadata.name }} is being deleted.",
        detail: "",
        facts: &[PROJECT],
        mood: Mood::Bad,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-deployed",
        title: "Application {{ .app.metadata.name }} runs a new revision.",
        detail: r#"It is synced to {{ dig "status" "operationState" "syncResult" "revision" "" .app }} and healthy."#,
        facts: &[SYNC, HEALTH, REVISION],
        mood: Mood::Good,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-health-degraded",
        title: "Application {{ .app.metadata.name }} is degraded.",
        detail: r#"{{ dig "status" "health" "message" "" .app }}"#,
        facts: &[SYNC, HEALTH],
        mood: Mood::Bad,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-sync-failed",
        title: "A sync of Application {{ .app.metadata.name }} failed.",
        detail: r#"{{ dig "status" "operationState" "message" "" .app }}"#,
        facts: &[SYNC, HEALTH, REVISION],
        mood: Mood::Bad,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-sync-running",
        title: "A sync of Application {{ .app.metadata.name }} has begun.",
        detail: r#"It began at {{ dig "status" "operationState" "startedAt" "" .app }}."#,
        facts: &[SYNC, HEALTH],
        mood: Mood::Underway,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-sync-status-unknown",
        title: "Application {{ .app.metadata.name }} cannot be compared with its source.",
        detail: "{{ range (dig \"status\" \"conditions\" list .app) }}{{ .type }}: {{ .message }}\n{{ end }}",
        facts: &[SYNC, HEALTH],
        mood: Mood::Bad,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-sync-succeeded",
        title: "A sync of Application {{ .app.metadata.name }} succeeded.",
        detail: r#"It ended at {{ dig "status" "operationState" "finishedAt" "" .app }}."#,
        facts: &[SYNC, HEALTH, REVISION],
        mood: Mood::Good,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "app-deletion-approval-required",
        title: "Application {{ .app.metadata.name }} waits for approval to delete.",
        detail: WAITING,
        facts: &[PROJECT],
        mood: Mood::Urgent,
        link: "/approvals?app={{ $.app.metadata.namespace }}/{{ $.app.metadata.name }}",
        link_name: "Look at what waits",
        webhook: WAITING_JSON,
    },
];
