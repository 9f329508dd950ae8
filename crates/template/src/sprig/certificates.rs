//! Private keys and certificates.
//!
//! Keys take long to make, so each costs a good part of what an execution may use.

mod der;
mod keys;
mod pem;
mod primes;
mod x509;

use self::keys::Key;
use self::x509::Request;
use super::encodings::base64_bytes;
use super::{Outcome, int_of, metered, str_of};
use crate::function::Param::{Int, List as Items, Object as Typed, Str};
use crate::function::{Context, Function, Param};
use crate::object::{Member, Object, Thing};
use crate::value::Value;

const TYPE: &str = "sprig.certificate";
const CERTIFICATE: Param = Typed(TYPE);

/// An execution may make five keys of 2048 bits.
const RSA_2048_STEPS: u64 = 200_000;
const RSA_4096_STEPS: u64 = 500_000;
const DSA_STEPS: u64 = 500_000;
const SIGNATURE_STEPS: u64 = 4_000;
const READING_STEPS: u64 = 200;

pub(super) static FUNCTIONS: &[Function] = &[
    metered("genPrivateKey", &[Str], None, |context, args| private_key(context, str_of(&args[0]))),
    metered("genCA", &[Str, Int], None, |context, args| {
        let key = new_key(context)?;
        authority(context, args, key)
    }),
    metered("genCAWithKey", &[Str, Int, Str], None, |context, args| {
        let key = given_key(context, &args[2])?;
        authority(context, args, key)
    }),
    metered("genSelfSignedCert", &[Str, Items, Items, Int], None, |context, args| {
        let request = request(args)?;
        let key = new_key(context)?;
        issued(context, &request, key, None)
    }),
    metered("genSelfSignedCertWithKey", &[Str, Items, Items, Int, Str], None, |context, args| {
        let key = given_key(context, &args[4])?;
        issued(context, &request(args)?, key, None)
    }),
    metered("genSignedCert", &[Str, Items, Items, Int, CERTIFICATE], None, |context, args| {
        let (request, issuer) = (request(args), issuer(context, &args[4])?);
        let request = request?;
        let key = new_key(context)?;
        issued(context, &request, key, Some(issuer))
    }),
    metered("genSignedCertWithKey", &[Str, Items, Items, Int, CERTIFICATE, Str], None, |context, args| {
        let key = given_key(context, &args[5])?;
        let issuer = issuer(context, &args[4])?;
        issued(context, &request(args)?, key, Some(issuer))
    }),
    metered("buildCustomCert", &[Str, Str], None, |context, args| {
        context.budget.pay(READING_STEPS)?;
        custom(str_of(&args[0]), str_of(&args[1]))
    }),
];

/// A key of the kind asked for; what goes wrong is told in its place, as sprig has it.
fn private_key(context: &mut Context<'_>, kind: &str) -> Outcome {
    let key = match kind {
        "" | "rsa" => {
            context.budget.pay(RSA_4096_STEPS)?;
            Key::new_rsa(seed(context)?, 4096)
        }
        "dsa" => {
            context.budget.pay(DSA_STEPS)?;
            Key::new_dsa(seed(context)?)
        }
        "ecdsa" => {
            context.budget.pay(SIGNATURE_STEPS)?;
            // Not used, but who gives no randomness wants none.
            seed(context)?;
            Key::new_ec()
        }
        "ed25519" => {
            context.budget.pay(SIGNATURE_STEPS)?;
            Key::new_ed25519(seed(context)?)
        }
        kind => return Ok(format!("Unknown type {kind}").into()),
    };
    Ok(match key {
        Ok(key) => key.pem().into(),
        Err(error) => format!("failed to generate private key: {error}").into(),
    })
}

fn seed(context: &Context<'_>) -> Result<[u8; 32], String> {
    let mut seed = [0; 32];
    context.fill(&mut seed)?;
    Ok(seed)
}

fn new_key(context: &mut Context<'_>) -> Result<Key, String> {
    context.budget.pay(RSA_2048_STEPS)?;
    Key::new_rsa(seed(context)?, 2048).map_err(|error| format!("error generating rsa key: {error}"))
}

fn given_key(context: &mut Context<'_>, text: &Value) -> Result<Key, String> {
    context.budget.pay(READING_STEPS)?;
    Key::parse(str_of(text)).map_err(|error| format!("parsing private key: {error}"))
}

/// `genCA name days`.
fn authority(context: &mut Context<'_>, args: &[Value], key: Key) -> Outcome {
    let request = Request {
        name: str_of(&args[0]).to_owned(),
        days: int_of(&args[1]),
        addresses: Vec::new(),
        hosts: Vec::new(),
        is_authority: true,
    };
    issued(context, &request, key, None)
}

/// `genSelfSignedCert name addresses hosts days`.
fn request(args: &[Value]) -> Result<Request, String> {
    let mut addresses = Vec::new();
    for address in items(&args[1]) {
        let Value::Str(text) = address else {
            return Err(format!("error parsing ip: {address} is not a string"));
        };
        let address: std::net::IpAddr = text.parse().map_err(|_| format!("error parsing ip: {text}"))?;
        addresses.push(address.to_canonical());
    }
    let mut hosts = Vec::new();
    for host in items(&args[2]) {
        let Value::Str(text) = host else {
            return Err(format!("error processing alternate dns name: {host} is not a string"));
        };
        hosts.push(text.to_string());
    }
    let name = str_of(&args[0]).to_owned();
    Ok(Request { name, days: int_of(&args[3]), addresses, hosts, is_authority: false })
}

fn items(list: &Value) -> &[Value] {
    if let Value::List(list) = list { list.items() } else { &[] }
}

/// The certificate and the key of an authority.
fn issuer(context: &mut Context<'_>, value: &Value) -> Result<(Vec<u8>, Key), String> {
    context.budget.pay(READING_STEPS)?;
    let authority = match value {
        Value::Object(object) => object.downcast::<Certificate>(),
        _ => None,
    };
    let authority = authority.ok_or("not a certificate")?;
    let (_, certificate) = pem::decode(&authority.cert).ok_or("unable to decode certificate")?;
    x509::check(&certificate)
        .map_err(|error| format!("error parsing certificate: decodedSignerCert.Bytes: {error}"))?;
    let key = Key::parse(&authority.key).map_err(|error| format!("error parsing private key: {error}"))?;
    Ok((certificate, key))
}

fn issued(context: &mut Context<'_>, request: &Request, key: Key, issuer: Option<(Vec<u8>, Key)>) -> Outcome {
    context.budget.pay(SIGNATURE_STEPS)?;
    let certificate = x509::issue(context, request, &key, issuer.as_ref())?;
    Ok(value(pem::encode("CERTIFICATE", &certificate), key.pem()))
}

/// `buildCustomCert`: a certificate and a key made elsewhere, both checked.
fn custom(certificate: &str, key: &str) -> Outcome {
    let text = |encoded: &str, what: &str| {
        let bytes = base64_bytes(encoded).map_err(|_| format!("unable to decode base64 {what}"))?;
        Ok::<String, String>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (certificate, key) = (text(certificate, "certificate")?, text(key, "private key")?);
    let (_, bytes) = pem::decode(&certificate).ok_or("unable to decode certificate")?;
    x509::check(&bytes).map_err(|error| format!("error parsing certificate: decodedCert.Bytes: {error}"))?;
    Key::parse(&key).map_err(|error| format!("error parsing private key: {error}"))?;
    Ok(value(certificate, key))
}

fn value(cert: String, key: String) -> Value {
    Value::Object(Object::new(Certificate { cert, key }))
}

/// A certificate and its key, both as PEM.
struct Certificate {
    cert: String,
    key: String,
}

impl Thing for Certificate {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn kind_name(&self) -> &'static str {
        "struct"
    }

    fn shown(&self) -> String {
        format!("{{{} {}}}", self.cert, self.key)
    }

    fn member(&self, name: &str) -> Option<Member> {
        match name {
            "Cert" => Some(Member::Field(self.cert.as_str().into())),
            "Key" => Some(Member::Field(self.key.as_str().into())),
            _ => None,
        }
    }

    fn equals(&self, other: &Object) -> bool {
        let other = other.downcast::<Certificate>();
        other.is_some_and(|other| (&self.cert, &self.key) == (&other.cert, &other.key))
    }

    fn json(&self) -> Result<String, String> {
        // PEM holds nothing JSON escapes but ends of lines; other texts came with `buildCustomCert`.
        let text = |text: &str| serde_json::Value::from(text).to_string();
        Ok(format!("{{\"Cert\":{},\"Key\":{}}}", text(&self.cert), text(&self.key)))
    }
}
