use std::time::Duration;

use super::*;
use crate::subject::Kind;
use crate::subscription::Destination;

fn read(data: &[(&str, &str)], secrets: &[(&str, &str)]) -> (Config, Vec<String>) {
    let data = data.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let secrets = secrets.iter().map(|(key, text)| ((*key).to_owned(), Secret::new(*text))).collect();
    let (config, findings) = Config::read(&data, &secrets);
    (config, findings.iter().map(ToString::to_string).collect())
}

#[test]
fn a_whole_configuration_is_read() {
    let (config, findings) = read(
        &[
            (
                "service.webhook.ops",
                "url: https://ops.example/$path\nheaders:\n- name: X-Token\n  value: $token\nbasicAuth:\n  username: me\n  password: $token\nretryMax: 2\nretryWaitMin: 2s\nretryWaitMax: 60000000000",
            ),
            ("service.slack", "{token: $token, username: baton, icon: ':robot:'}"),
            (
                "service.email.gmail",
                "{host: smtp.example, port: 465, from: a@example.com, username: me, password: $token}",
            ),
            ("service.teams-workflows", "{recipientUrls: {ops: 'https://flow.example/$path'}}"),
            (
                "template.t",
                "message: Hi {{ .app.metadata.name }}\nslack:\n  blocks: '[]'\nwebhook:\n  ops: {method: POST, body: b}",
            ),
            (
                "trigger.on-x",
                "- when: app.status?.x == 1\n  oncePer: app.metadata.uid\n  send: [t]\n- when: appset.x == 1\n  send: [t]\n  untilDelivered: true",
            ),
            ("defaultTriggers", "[on-x]"),
            ("defaultTriggers.slack", "- on-x"),
            (
                "subscriptions",
                "- recipients: ['slack:ops', 'webhook:https://a:1/']\n  selector: env=prod,!skip\n- recipients: [ops]\n  triggers: [on-x]",
            ),
            ("context", "argocdUrl: https://cd.example"),
        ],
        &[("token", "s3cr3t-value"), ("path", "very/secret/path")],
    );
    assert_eq!(findings, Vec::<String>::new());
    let ServiceKind::Webhook(webhook) = &config.services["ops"].kind else { panic!("a webhook") };
    assert_eq!(webhook.url.expose(), "https://ops.example/very/secret/path");
    assert_eq!(webhook.headers[0].1.expose(), "s3cr3t-value");
    let patience = config.services["ops"].patience;
    assert_eq!((patience.first, patience.longest), (Duration::from_secs(2), Duration::from_secs(60)));
    assert_eq!(patience.attempts, Some(3));
    let ServiceKind::Email(email) = &config.services["gmail"].kind else { panic!("e-mail") };
    assert_eq!((email.security, email.port), (Security::Tls, 465));
    let kinds: Vec<Kind> = config.triggers["on-x"].iter().map(|condition| condition.kind).collect();
    assert_eq!(kinds, [Kind::Application, Kind::ApplicationSet]);
    assert!(config.triggers["on-x"][1].until_delivered);
    let to =
        |service: &str, recipient: &str| Destination { service: service.into(), recipient: recipient.into() };
    assert_eq!(config.subscriptions[0].recipients, [to("slack", "ops"), to("webhook", "https://a:1/")]);
    assert_eq!(config.subscriptions[1].recipients, [to("ops", "")]);
    for shown in [format!("{config:?}"), format!("{:?}", config.services)] {
        assert!(!shown.contains("s3cr3t") && !shown.contains("very/secret"), "{shown}");
    }
}

/// The key of Argo CD's annotation holds the hash of the text as it is written.
#[test]
fn a_condition_is_known_by_place_and_text() {
    let (config, _) =
        read(&[("trigger.t", "- when: 'true'\n- when: app.status.sync.status == 'Unknown'")], &[]);
    let keys: Vec<&str> = config.triggers["t"].iter().map(|condition| condition.key.as_str()).collect();
    assert_eq!(keys, ["[0].X_5TO4MPCKAyY0ipFgr6_IraRNs", "[1].6SzWb05EK-0v90hwjyytTbN7S6A"]);
}

#[test]
fn what_is_wrong_is_told_with_key_and_line_and_the_rest_counts() {
    for (key, text, expected) in [
        (
            "trigger.bad",
            "- when: 'true'\n- when: app ==\n",
            "trigger.bad, line 2, column 3: when: column 7: the expression ends too soon",
        ),
        (
            "trigger.bad",
            "- when: x\n  oncePer: (",
            "trigger.bad, line 2, column 3: oncePer: column 2: the expression ends too soon",
        ),
        ("trigger.bad", "when: x", "trigger.bad, line 1, column 1: a list of conditions is wanted"),
        ("trigger.bad", "- [x]", "trigger.bad, line 1, column 3: a condition is a map with when and send"),
        (
            "trigger.bad",
            "- when: x\n  send: t",
            "trigger.bad, line 2, column 3: send must be a list of texts",
        ),
        ("trigger.bad", "a: [", "trigger.bad, line "),
        ("template.bad", "message: '{{ .x'", "template.bad, line 1, column 1: template: message:1"),
        (
            "template.bad",
            "email:\n  subject: '{{ nope }}'",
            "template.bad, line 2, column 3: template: email.subject:1: function \"nope\" not defined",
        ),
        ("template.bad", "slack: text", "template.bad, line 1, column 1: slack must be a map"),
        (
            "template.bad",
            "slack:\n  groupingKey: x",
            "template.bad, line 2, column 3: slack.groupingKey has no effect",
        ),
        (
            "service.pigeon",
            "{}",
            "service.pigeon, line 1, column 1: services of the type pigeon are not known",
        ),
        ("service.webhook.a.b", "{}", "service.webhook.a.b, line 1, column 1: the key must be"),
        ("service.webhook", "url: ftp://host", "service.webhook, line 1, column 1: url must begin with http"),
        (
            "service.webhook",
            "\nurl: https://u:hunter2@host",
            "service.webhook, line 2, column 1: url must not hold a user or a password",
        ),
        ("service.webhook", "{}", "service.webhook, line 1, column 1: url is missing"),
        (
            "service.webhook",
            "url: https://h\nheaders:\n- name: Host\n  value: x",
            "service.webhook, line 3, column 3: the header host is set by the call itself",
        ),
        (
            "service.webhook",
            "url: https://h\nheaders:\n- name: A\n  value: \"x\\ny\"",
            "service.webhook, line 3, column 3: the value of the header a holds characters it may not",
        ),
        (
            "service.webhook",
            "url: https://h\nretryMax: many",
            "service.webhook, line 2, column 1: retryMax must be a whole number",
        ),
        ("service.slack", "{}", "service.slack, line 1, column 1: token is missing"),
        (
            "service.slack",
            "token: $nothing",
            "service.slack, line 1, column 1: $nothing is not in the Secret argocd-notifications-secret",
        ),
        (
            "service.email",
            "{host: h, port: 99999, from: a@b.c}",
            "service.email, line 1, column 11: port must be a number from 1 to 65535",
        ),
        (
            "service.email",
            "{host: 'a b', from: a@b.c}",
            "service.email, line 1, column 2: host must be the name or address of a mail server",
        ),
        (
            "service.email",
            "{host: h, from: nobody}",
            "service.email, line 1, column 11: from must be an e-mail address",
        ),
        (
            "service.email",
            "{host: h, from: a@b.c, security: much}",
            "service.email, line 1, column 24: security must be tls, starttls or plain",
        ),
        ("service.teams", "{}", "service.teams, line 1, column 1: recipientUrls must be a map"),
        (
            "subscriptions",
            "- recipients: [a]\n  selector: 'a in'",
            "subscriptions, line 2, column 3: selector: ",
        ),
        ("defaultTriggers", "on-x", "defaultTriggers, line 1, column 1: a list of texts is wanted"),
        ("defaultTriggers", "[nope]", "defaultTriggers, line 1, column 1: there is no trigger nope"),
        (
            "trigger.other",
            "- when: x\n  send: [nope]",
            "trigger.other, line 1, column 1: there is no template nope",
        ),
        ("context", "[]", "context, line 1, column 1: a map is wanted"),
    ] {
        let (config, findings) = read(&[("trigger.good", "- when: 'true'"), (key, text)], &[]);
        let expected = format!("argocd-notifications-cm: {expected}");
        assert!(
            findings.iter().any(|finding| finding.starts_with(&expected)),
            "{text:?}: {findings:?}\n{expected}"
        );
        assert!(config.triggers.contains_key("good"), "{text:?}");
        assert!(!findings.concat().contains("hunter2"), "{findings:?}");
    }
}
