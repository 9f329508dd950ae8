//! Keys and certificates made by templates, checked by a library that had no part in making them.
//!
//! `golden/keys.json` holds keys made by Go's crypto packages.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_template::{Execution, Limits, SeededEntropy, Template, Value};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

/// When the templates are executed: 2026-11-15T08:00:00Z.
const NOW: u64 = 1_794_729_600;

const DAY: u64 = 86_400;

fn execute(text: &str, entropy: &SeededEntropy) -> Result<String, String> {
    let now = "2026-11-15T09:00:00[Europe/Berlin]".parse().expect("a time");
    let execution = Execution { now: Some(&now), entropy: Some(entropy), ..Execution::default() };
    let template = Template::parse("t", text).expect("a template");
    template.execute_in(&Value::Nil, &execution).map_err(|error| error.to_string())
}

/// The certificate of an authority and one signed by it, in this order, and whether the second is good then.
fn verified(chain: &str, name: &str, at: u64) -> Result<(), webpki::Error> {
    let certificates: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(chain.as_bytes())
        .collect::<Result<_, _>>()
        .expect("the chain holds certificates");
    let [authority, leaf] = certificates.as_slice() else {
        panic!("there are two certificates: {chain}");
    };
    let anchor = webpki::anchor_from_trusted_cert(authority)?;
    let leaf = EndEntityCert::try_from(leaf)?;
    leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &[anchor],
        &[],
        UnixTime::since_unix_epoch(Duration::from_secs(at)),
        KeyUsage::server_auth(),
        None,
        None,
    )?;
    leaf.verify_is_valid_for_subject_name(&ServerName::try_from(name).expect("a name"))
}

fn keys() -> BTreeMap<String, String> {
    serde_json::from_str(include_str!("golden/keys.json")).expect("the keys are in JSON")
}

#[test]
fn a_certificate_is_signed_by_its_authority() {
    let chain = execute(
        r#"{{$ca := genCA "an authority" 365}}{{$cert := genSignedCert "föö" (list "10.0.0.1" "::1") (list "a.example" "*.b.example") 30 $ca}}{{$ca.Cert}}{{$cert.Cert}}"#,
        &SeededEntropy::new(1),
    )
    .expect("the certificates are made");
    for name in ["a.example", "x.b.example", "10.0.0.1", "::1"] {
        assert_eq!(verified(&chain, name, NOW + DAY), Ok(()), "{name}");
    }
    assert!(verified(&chain, "c.example", NOW + DAY).is_err());
    assert_eq!(verified(&chain, "a.example", NOW), Ok(()));
    assert!(verified(&chain, "a.example", NOW - 1).is_err(), "not valid yet");
    assert_eq!(verified(&chain, "a.example", NOW + 30 * DAY), Ok(()));
    assert!(verified(&chain, "a.example", NOW + 30 * DAY + 1).is_err(), "not valid any more");
}

#[test]
fn a_self_signed_certificate_is_signed_by_its_own_key() {
    let made = |seed| {
        let text = r#"{{(genSelfSignedCert "x" nil (list "a.example") 30).Cert}}"#;
        execute(text, &SeededEntropy::new(seed)).expect("the certificate is made")
    };
    let (one, other) = (made(1), made(2));
    assert_eq!(verified(&format!("{one}{one}"), "a.example", NOW), Ok(()));
    assert!(
        verified(&format!("{other}{one}"), "a.example", NOW).is_err(),
        "signed by another key of the same name"
    );
}

#[test]
fn keys_of_every_kind_made_by_go_sign() {
    for (kind, key) in keys() {
        let text = format!(
            r#"{{{{$ca := genCAWithKey "ca" 9 `{key}`}}}}{{{{$cert := genSignedCertWithKey "x" nil (list "a.example") 9 $ca `{key}`}}}}{{{{$ca.Cert}}}}{{{{$cert.Cert}}}}"#
        );
        let chain = execute(&text, &SeededEntropy::new(3));
        if kind.starts_with("P-521") {
            assert!(chain.is_err_and(|error| error.contains("not a key of a kind known here")), "{kind}");
            continue;
        }
        assert_eq!(verified(&chain.expect("the certificates are made"), "a.example", NOW), Ok(()), "{kind}");
    }
}

#[test]
fn keys_are_written_as_they_were_read() {
    for (kind, key) in keys() {
        let text = format!(r#"{{{{(genSelfSignedCertWithKey "x" nil nil 1 `{key}`).Key}}}}"#);
        let plain = !kind.starts_with("P-521") && (!kind.ends_with("PKCS#8") || kind == "Ed25519");
        if plain {
            assert_eq!(execute(&text, &SeededEntropy::new(4)).as_deref(), Ok(key.as_str()), "{kind}");
        } else if let Ok(written) = execute(&text, &SeededEntropy::new(4)) {
            let first = kind.split(' ').next().unwrap_or_default();
            let header =
                if first == "rsa" { "-----BEGIN RSA PRIVATE KEY" } else { "-----BEGIN EC PRIVATE KEY" };
            assert!(written.starts_with(header), "{kind}: {written:.40}");
        }
    }
}

#[test]
fn every_kind_of_key_is_made_and_can_be_used() {
    for (kind, header) in [
        ("rsa", "RSA PRIVATE KEY"),
        ("ecdsa", "EC PRIVATE KEY"),
        ("ed25519", "PRIVATE KEY"),
        ("", "RSA PRIVATE KEY"),
    ] {
        let text = format!(
            r#"{{{{$key := genPrivateKey "{kind}"}}}}{{{{$ca := genCAWithKey "ca" 9 $key}}}}{{{{$cert := genSignedCertWithKey "x" nil (list "a.example") 9 $ca $key}}}}{{{{$ca.Cert}}}}{{{{$cert.Cert}}}}{{{{$key}}}}"#
        );
        let made = execute(&text, &SeededEntropy::new(5)).expect("the key is made");
        assert!(made.ends_with(&format!("-----END {header}-----\n")), "{kind}");
        assert_eq!(verified(&made, "a.example", NOW), Ok(()), "{kind}");
    }
    let dsa = execute(r#"{{genPrivateKey "dsa"}}"#, &SeededEntropy::new(6)).expect("the key is made");
    assert!(dsa.starts_with("-----BEGIN DSA PRIVATE KEY-----\n") && dsa.len() > 1_000, "{dsa}");
}

#[test]
fn the_same_seed_makes_the_same_certificate() {
    let make = |seed| execute(r#"{{with genCA "ca" 1}}{{.Cert}}{{.Key}}{{end}}"#, &SeededEntropy::new(seed));
    let once = make(7);
    assert!(once.is_ok());
    assert_eq!(once, make(7));
    assert_ne!(once, make(8));
}

#[test]
fn years_beyond_a_certificate_are_refused() {
    let key = &keys()["Ed25519"];
    let valid = |days: i64| {
        execute(&format!("{{{{(genCAWithKey `ca` {days} `{key}`).Cert}}}}"), &SeededEntropy::new(9))
    };
    assert!(valid(30_000).is_ok(), "after 2050");
    assert!(valid(-30).is_ok(), "over already, as sprig has it");
    let mut far = "2026-11-15T09:00:00Z[UTC]".parse::<jiff::Zoned>().expect("a time");
    far = far.with().year(9999).build().expect("a year");
    let execution =
        Execution { now: Some(&far), entropy: Some(&SeededEntropy::new(9)), ..Execution::default() };
    let template =
        Template::parse("t", &format!("{{{{genCAWithKey `ca` 90 `{key}`}}}}")).expect("a template");
    let error = template.execute_in(&Value::Nil, &execution).expect_err("the year 10000").to_string();
    assert!(error.ends_with("cannot represent time as GeneralizedTime"), "{error}");
}

#[test]
fn costly_functions_use_up_an_execution() {
    for (call, most) in [
        ("genCA `x` 1", 5),
        ("genPrivateKey `rsa`", 2),
        ("bcrypt `x`", 20),
        ("derivePassword 1 `pin` `a` `b` `c`", 10),
    ] {
        // Enough steps for one call less than would run: it must fail before the work, not after it.
        let limits = Limits { steps: Limits::default().steps / most / 2, ..Limits::default() };
        let now = "2026-11-15T09:00:00Z[UTC]".parse().expect("a time");
        let entropy = SeededEntropy::new(1);
        let execution =
            Execution { now: Some(&now), entropy: Some(&entropy), limits, ..Execution::default() };
        let template = Template::parse("t", &format!("{{{{{call}}}}}")).expect("a template");
        let error = template.execute_in(&Value::Nil, &execution).expect_err("too costly").to_string();
        assert!(error.contains("took more than"), "{call}: {error}");
    }
}
