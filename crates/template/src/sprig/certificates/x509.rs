//! Certificates.

use std::net::IpAddr;

use baton_grammar::duration::Duration;
use sha2::{Digest, Sha256};

use super::super::dates::in_utc;
use super::der::{self, Reader};
use super::keys::Key;
use crate::function::Context;
use crate::quote::quoted;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const KEY_USAGE: u8 = 15;
const ALTERNATIVE_NAMES: u8 = 17;
const BASIC_CONSTRAINTS: u8 = 19;
const SUBJECT_KEY: u8 = 14;
const AUTHORITY_KEY: u8 = 35;
const EXTENDED_USAGE: u8 = 37;
const SERVER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// What a certificate is asked to say.
pub(super) struct Request {
    pub(super) name: String,
    pub(super) days: i64,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) hosts: Vec<String>,
    pub(super) is_authority: bool,
}

/// A certificate for the key, signed by the issuer's key, or by its own where there is no issuer.
pub(super) fn issue(
    context: &Context<'_>,
    request: &Request,
    key: &Key,
    issuer: Option<&(Vec<u8>, Key)>,
) -> Result<Vec<u8>, String> {
    let failed = |error: String| format!("error creating certificate: {error}");
    let signer = issuer.map_or(key, |(_, signer)| signer);
    let algorithm = signer.signature_algorithm().map_err(failed)?;
    let subject = name(&request.name);
    let parent = issuer.map(|(certificate, _)| parse(certificate)).transpose()?;
    let issuer_name = parent.as_ref().map_or(subject.as_slice(), |parent| parent.subject);
    let authority_key = parent.as_ref().and_then(|parent| parent.subject_key);
    let authority_key = authority_key.filter(|_| issuer_name != subject);
    let (public, bits) = key.public().map_err(failed)?;
    let extensions = extensions(request, &bits, authority_key).map_err(failed)?;
    let validity = validity(context, request.days).map_err(failed)?;
    let mut serial = [0; 16];
    context.fill(&mut serial)?;
    let to_sign = der::sequence(&[
        &der::explicit(0, &der::integer(&[2])),
        &der::integer(&serial),
        &algorithm,
        issuer_name,
        &validity,
        &subject,
        &public,
        &der::explicit(3, &der::element(der::SEQUENCE, &extensions.concat())),
    ]);
    let signed = signer.sign(&to_sign).map_err(failed)?;
    Ok(der::sequence(&[&to_sign, &algorithm, &der::bit_string(&signed)]))
}

/// A name that is a common name only, or nothing.
fn name(common: &str) -> Vec<u8> {
    if common.is_empty() {
        return der::sequence(&[]);
    }
    let attribute = der::sequence(&[&der::oid(COMMON_NAME), &der::text(common)]);
    der::sequence(&[&der::element(der::SET, &attribute)])
}

fn validity(context: &Context<'_>, days: i64) -> Result<Vec<u8>, String> {
    let mut times = Vec::new();
    for span in [0, DAY.wrapping_mul(days)] {
        let time = in_utc(context, Duration::from_nanoseconds(span), "20060102150405Z")?;
        if time.len() != 15 || time.starts_with('-') {
            return Err("cannot represent time as GeneralizedTime".to_owned());
        }
        // Years of two digits stand for those from 1950 to 2049.
        let short = ("1950".."2050").contains(&&time[..4]);
        times.extend(if short {
            der::element(0x17, &time.as_bytes()[2..])
        } else {
            der::element(0x18, time.as_bytes())
        });
    }
    Ok(der::element(der::SEQUENCE, &times))
}

fn extensions(
    request: &Request,
    public_bits: &[u8],
    authority_key: Option<&[u8]>,
) -> Result<Vec<Vec<u8>>, String> {
    let extension = |number: u8, critical: bool, content: &[u8]| {
        let critical: &[u8] = if critical { &der::TRUE } else { &[] };
        der::sequence(&[&der::oid(&[0x55, 0x1d, number]), critical, &der::octet_string(content)])
    };
    // Signing and encipherment of keys; for an authority, signing of certificates too. The first byte of each tells
    // how many bits of the last are none.
    let usage: &[u8] = if request.is_authority { &[2, 0b1010_0100] } else { &[5, 0b1010_0000] };
    let constraints: &[u8] = if request.is_authority { &der::TRUE } else { &[] };
    let mut extensions = vec![
        extension(KEY_USAGE, true, &der::element(der::BIT_STRING, usage)),
        extension(EXTENDED_USAGE, false, &der::sequence(&[&der::oid(SERVER), &der::oid(CLIENT)])),
        extension(BASIC_CONSTRAINTS, true, &der::sequence(&[constraints])),
    ];
    if request.is_authority {
        let digest = Sha256::digest(public_bits);
        extensions.push(extension(SUBJECT_KEY, false, &der::octet_string(&digest[..20])));
    }
    if let Some(key) = authority_key {
        extensions.push(extension(AUTHORITY_KEY, false, &der::sequence(&[&der::element(0x80, key)])));
    }
    let mut names = Vec::new();
    for host in &request.hosts {
        if !host.is_ascii() {
            return Err(format!("x509: {} cannot be encoded as an IA5String", quoted(host)));
        }
        names.extend(der::element(0x82, host.as_bytes()));
    }
    for address in &request.addresses {
        names.extend(match address {
            IpAddr::V4(address) => der::element(0x87, &address.octets()),
            IpAddr::V6(address) => der::element(0x87, &address.octets()),
        });
    }
    if !names.is_empty() {
        let critical = request.name.is_empty();
        extensions.push(extension(ALTERNATIVE_NAMES, critical, &der::element(der::SEQUENCE, &names)));
    }
    Ok(extensions)
}

/// What an issuer's certificate tells about it.
struct Issuer<'a> {
    subject: &'a [u8],
    subject_key: Option<&'a [u8]>,
}

/// Refuses what has not the shape of a certificate.
pub(super) fn check(certificate: &[u8]) -> Result<(), String> {
    parse(certificate).map(|_| ())
}

fn parse(certificate: &[u8]) -> Result<Issuer<'_>, String> {
    read(certificate).ok_or_else(|| "x509: malformed certificate".to_owned())
}

fn read(certificate: &[u8]) -> Option<Issuer<'_>> {
    let mut whole = Reader(certificate).sequence()?;
    let mut parts = whole.sequence()?;
    whole.sequence()?;
    whole.expect(der::BIT_STRING)?;
    parts.optional(0xa0);
    parts.expect(der::INTEGER)?;
    parts.sequence()?;
    parts.sequence()?;
    parts.sequence()?;
    let (_, _, subject) = parts.next().filter(|(tag, _, _)| *tag == der::SEQUENCE)?;
    parts.sequence()?;
    let mut subject_key = None;
    while let Some((tag, content, _)) = parts.next() {
        if tag == 0xa3 {
            let mut extensions = Reader(content).sequence()?;
            while let Some(mut extension) = extensions.sequence() {
                let number = extension.expect(der::OID)?;
                extension.optional(0x01);
                let content = extension.expect(der::OCTET_STRING)?;
                if number == [0x55, 0x1d, SUBJECT_KEY] {
                    subject_key = Reader(content).expect(der::OCTET_STRING);
                }
            }
        }
    }
    Some(Issuer { subject, subject_key })
}
