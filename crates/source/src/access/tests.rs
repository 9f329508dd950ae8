use super::*;

const URL: &str = "https://git.example.com/team/repo";

fn secret(kind: &str, name: &str, data: &[(&str, &str)]) -> RepositorySecret {
    let labels = BTreeMap::from([(SECRET_TYPE.to_owned(), kind.to_owned())]);
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    RepositorySecret::read(&labels, &data, name).expect("the label is one of those read")
}

fn password(access: &Access) -> &str {
    match &access.credentials {
        Credentials::Basic { password, .. } => password.expose(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn secrets_about_other_things_are_none() {
    let data = BTreeMap::new();
    for labels in [
        BTreeMap::new(),
        BTreeMap::from([(SECRET_TYPE.to_owned(), "cluster".to_owned())]),
        BTreeMap::from([(SECRET_TYPE.to_owned(), "repository-write".to_owned())]),
    ] {
        assert!(RepositorySecret::read(&labels, &data, "x").is_none());
    }
}

#[test]
fn the_project_s_own_secret_comes_before_the_global_one() {
    let secrets = [
        secret("repository", "b", &[("url", URL), ("username", "u"), ("password", "global")]),
        secret("repository", "a", &[("url", URL), ("project", "blue"), ("password", "blue")]),
        secret("repository", "c", &[("url", URL), ("project", "red"), ("password", "red")]),
    ];
    let of = |project| access(URL, project, &secrets).expect("a Secret fits");
    assert_eq!(password(&of("blue")), "blue");
    assert_eq!(password(&of("green")), "global");
    assert_eq!(password(&of("")), "global");
    let scoped_only = &secrets[1..];
    assert_eq!(access(URL, "", scoped_only).expect("none fits"), Access::anonymous());
}

#[test]
fn the_longest_template_completes_a_secret_without_credentials() {
    let secrets = [
        secret("repository", "own", &[("url", URL), ("insecure", "true"), ("proxy", "http://p:1")]),
        secret("repo-creds", "short", &[("url", "https://git.example.com"), ("password", "short")]),
        secret(
            "repo-creds",
            "long",
            &[("url", "https://git.example.com/team"), ("password", "long"), ("proxy", "http://q:1")],
        ),
        secret("repo-creds", "other", &[("url", "https://git.example.com.evil.org"), ("password", "no")]),
    ];
    let chosen = access(URL, "any", &secrets).expect("a template fits");
    assert_eq!(password(&chosen), "long");
    assert!(chosen.insecure);
    assert_eq!(chosen.proxy.as_ref().map(|proxy| proxy.url.expose()), Some("http://p:1"));
    assert_eq!(password(&access("https://git.example.com/x", "", &secrets).expect("one fits")), "short");
    assert_eq!(access("https://elsewhere.org/x", "", &secrets).expect("none fits"), Access::anonymous());
}

#[test]
fn each_kind_of_credentials_is_read() {
    let of = |data: &[(&str, &str)]| {
        let mut all = vec![("url", URL)];
        all.extend(data);
        access(URL, "", &[secret("repository", "s", &all)]).expect("the Secret is sound")
    };
    let token = of(&[("password", "tok")]);
    assert!(
        matches!(&token.credentials, Credentials::Basic { username, unasked: false, .. } if username == "x-access-token")
    );
    let forced = of(&[("password", "p"), ("bearerToken", "b"), ("forceHttpBasicAuth", "true")]);
    assert!(matches!(forced.credentials, Credentials::Basic { unasked: true, .. }));
    assert!(matches!(of(&[("password", "p"), ("bearerToken", "b")]).credentials, Credentials::Bearer(_)));
    assert!(matches!(of(&[("sshPrivateKey", "k\nk")]).credentials, Credentials::Ssh(_)));
    let app = of(&[
        ("githubAppPrivateKey", "k"),
        ("githubAppID", "7"),
        ("githubAppInstallationID", "9"),
        ("githubAppEnterpriseBaseUrl", "https://ghe/api/v3"),
    ]);
    assert!(matches!(&app.credentials, Credentials::GitHubApp(app) if app.app == 7 && app.installation == 9));
    let certificate = of(&[("tlsClientCertData", "c"), ("tlsClientCertKey", "k")]);
    assert!(certificate.client_certificate.is_some());
}

#[test]
fn a_faulty_secret_fails_only_the_repository_it_is_for() {
    let faulty = [
        ("insecure", "perhaps"),
        ("insecure", ""),
        ("githubAppID", "seven"),
        ("password", "a\nhost=evil.org"),
        ("gcpServiceAccountKey", "{}"),
        ("useAzureWorkloadIdentity", "true"),
    ];
    for field in faulty {
        let secrets = [secret("repository", "faulty", &[("url", URL), field])];
        let fault = access(URL, "", &secrets).expect_err(field.0).to_string();
        assert!(fault.contains("faulty") && !fault.contains("evil.org"), "{fault}");
        assert!(access("https://other.org/x", "", &secrets).is_ok(), "{field:?}");
    }
}

#[test]
fn nothing_secret_is_ever_shown() {
    let canary = "CANARY";
    let secrets = [secret(
        "repository",
        "s",
        &[
            ("url", "https://CANARY@git.example.com/team/repo"),
            ("password", canary),
            ("bearerToken", canary),
            ("sshPrivateKey", canary),
            ("tlsClientCertData", canary),
            ("tlsClientCertKey", canary),
            ("githubAppPrivateKey", canary),
            ("proxy", "http://u:CANARY@proxy"),
        ],
    )];
    let chosen =
        access("https://CANARY@git.example.com/team/repo", "", &secrets).expect("the Secret is sound");
    assert!(!format!("{secrets:?} {chosen:?}").contains(canary));
}

#[test]
fn different_credentials_have_different_identities() {
    let basic = |username: &str, password: &str| Access {
        credentials: Credentials::Basic {
            username: username.into(),
            password: Secret::new(password),
            unasked: false,
        },
        ..Access::default()
    };
    assert_ne!(basic("ab", "c").identity(), basic("a", "bc").identity());
    assert_ne!(basic("a", "b").identity(), Access::anonymous().identity());
    let bearer = Access { credentials: Credentials::Bearer(Secret::new("t")), ..Access::default() };
    let ssh = Access { credentials: Credentials::Ssh(Secret::new("t")), ..Access::default() };
    assert_ne!(bearer.identity(), ssh.identity());
}

#[test]
fn trust_is_looked_up_by_host_name() {
    let known = BTreeMap::from([("ssh_known_hosts".to_owned(), "x.org ssh-ed25519 AAAA".to_owned())]);
    let certificates = BTreeMap::from([
        ("git.example.com".to_owned(), "-----BEGIN CERTIFICATE-----".to_owned()),
        ("broken.org".to_owned(), "nonsense".to_owned()),
    ]);
    let trust = Trust::read(Some(&known), Some(&certificates));
    let of = |url: &str| Access::anonymous().trusting(url, &trust);
    assert!(of("https://u@git.example.com:8443/x").authorities.is_some());
    assert!(of("https://broken.org/x").authorities.is_none());
    assert!(of("git@git.example.com:x").authorities.is_none());
    assert!(of("git@x.org:y").known_hosts.contains("ssh-ed25519"));
}
