//! What is told about ApplicationSets: rollouts, phases, and what waits for a person.

use super::template::{Mood, Template};
use super::{Condition, Trigger};

const LINK: &str = "/rollouts/{{ $.appset.metadata.namespace }}/{{ $.appset.metadata.name }}";
const LINK_NAME: &str = "Open the rollout";

/// Once for every run.
const ONCE_PER_RUN: &str = "appset.metadata.uid + '/' + string(appset.status?.rollout?.run)";

const RUN: (&str, &str) = ("Run", r#"dig "status" "rollout" "run" "" .appset"#);
const STEP: (&str, &str) = ("Step", r#"dig "status" "rollout" "step" "" .appset"#);

pub(super) const TRIGGERS: &[Trigger] = &[
    Trigger {
        name: "on-rollout-started",
        conditions: &[Condition {
            when: "appset.status?.rollout?.state in ['Arming', 'Progressing']",
            once_per: ONCE_PER_RUN,
            send: "appset-rollout-started",
            description: "A rollout has begun; once for every run",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-rollout-step",
        conditions: &[Condition {
            when: "appset.status?.rollout?.state == 'Progressing' and (appset.status?.rollout?.step ?? 0) > 0",
            once_per: "appset.metadata.uid + '/' + string(appset.status.rollout.run) + '/' + \
                       string(appset.status.rollout.step)",
            send: "appset-rollout-step",
            description: "A step of a rollout has opened; once for every step of a run",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-rollout-completed",
        conditions: &[Condition {
            when: "appset.status?.rollout?.state == 'Complete' and (appset.status?.rollout?.run ?? 0) > 0",
            once_per: ONCE_PER_RUN,
            send: "appset-rollout-completed",
            description: "A rollout is done; once for every run",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-phase-failed",
        conditions: &[Condition {
            when: "any(appset.status?.phases ?? [], {.state in ['Failed', 'RollingBack', 'RolledBack']})",
            // Another generator that fails, or a later phase, is another occasion; putting back is not.
            once_per: "appset.metadata.uid + '/' + \
                       join(map(filter(appset.status.phases, {.state in ['Failed', 'RollingBack', 'RolledBack']}), \
                       {string(.generator) + '.' + string(.rolloutID) + '.' + string(.currentPhase)}), ',')",
            send: "appset-phase-failed",
            description: "A phase has failed",
            until_delivered: false,
        }],
    },
    Trigger {
        name: "on-rollout-waiting-approval",
        conditions: &[
            Condition {
                when: "any(appset.status?.conditions ?? [], {.type == 'DeletionHeld' and .status == 'True'})",
                once_per: "",
                send: "appset-deletion-held",
                description: "The fuse against mass deletion holds until a person approves",
                until_delivered: true,
            },
            Condition {
                when: "any(appset.status?.rollout?.blockers ?? [], {.reason == 'ApprovalRequired'}) or \
                       any(appset.status?.rollout?.deletion?.blockers ?? [], {.reason == 'ApprovalRequired'})",
                once_per: "",
                send: "appset-rollout-waiting-approval",
                description: "A rollout waits until a person approves a deletion",
                until_delivered: true,
            },
        ],
    },
];

pub(super) const TEMPLATES: &[Template] = &[
    Template {
        name: "appset-rollout-started",
        title: "A rollout of ApplicationSet {{ .appset.metadata.name }} has begun.",
        detail: r#"{{ dig "status" "rollout" "message" "" .appset }}"#,
        facts: &[RUN],
        mood: Mood::Underway,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "appset-rollout-step",
        title: "ApplicationSet {{ .appset.metadata.name }} has opened step {{ .appset.status.rollout.step }}.",
        detail: "{{ range (dig \"status\" \"rollout\" \"steps\" list .appset) }}\
                 Step {{ .step }}: {{ .state }}, {{ .done | default 0 }} of {{ .total | default 0 }} done\
                 {{ with .failed }}, {{ . }} failed{{ end }}\n{{ end }}",
        facts: &[RUN, STEP],
        mood: Mood::Underway,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "appset-rollout-completed",
        title: "A rollout of ApplicationSet {{ .appset.metadata.name }} is done.",
        detail: r#"It ended at {{ dig "status" "rollout" "finishedAt" "" .appset }}."#,
        facts: &[RUN],
        mood: Mood::Good,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "appset-phase-failed",
        title: "A phase of ApplicationSet {{ .appset.metadata.name }} has failed.",
        detail: "{{ range .appset.status.phases }}{{ range .phases }}{{ with .failure }}\
                 {{ .reason }}: {{ .message }}{{ with .remedy }} {{ . }}{{ end }}\n{{ end }}{{ end }}{{ end }}",
        facts: &[RUN],
        mood: Mood::Bad,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
    Template {
        name: "appset-deletion-held",
        title: "ApplicationSet {{ .appset.metadata.name }} waits for approval to delete Applications.",
        detail: "{{ range .appset.status.conditions }}{{ if eq .type \"DeletionHeld\" }}{{ .message }}\n\
                 {{ end }}{{ end }}",
        facts: &[],
        mood: Mood::Urgent,
        link: "/approvals?appset={{ $.appset.metadata.namespace }}/{{ $.appset.metadata.name }}",
        link_name: "Look at what waits",
        webhook: "",
    },
    Template {
        name: "appset-rollout-waiting-approval",
        title: "The rollout of ApplicationSet {{ .appset.metadata.name }} waits for an approval.",
        detail: "{{ range (dig \"status\" \"rollout\" \"blockers\" list .appset) }}\
                 {{ if eq .reason \"ApprovalRequired\" }}{{ .object }}: {{ .message }} {{ .remedy }}\n\
                 {{ end }}{{ end }}\
                 {{ range (dig \"status\" \"rollout\" \"deletion\" \"blockers\" list .appset) }}\
                 {{ if eq .reason \"ApprovalRequired\" }}{{ .object }}: {{ .message }} {{ .remedy }}\n\
                 {{ end }}{{ end }}",
        facts: &[RUN],
        mood: Mood::Urgent,
        link: LINK,
        link_name: LINK_NAME,
        webhook: "",
    },
];
