//! AES, and passwords derived from a master password.

use aes::Aes256;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cbc::cipher::block_padding::{NoPadding, Pkcs7};
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use scrypt::Params;
use sha2::{Digest, Sha256};

use super::encodings::base64_bytes;
use super::{Outcome, metered, str_of};
use crate::function::Param::{Str, Uint32};
use crate::function::{Context, Function};
use crate::value::Value;

/// What deriving a key is worth in steps; it takes some 32 MB too.
const SCRYPT_STEPS: u64 = 100_000;

const BLOCK: usize = 16;

pub(super) static FUNCTIONS: &[Function] = &[
    metered("encryptAES", &[Str, Str], None, encrypt),
    metered("decryptAES", &[Str, Str], None, |_, args| decrypt(str_of(&args[0]), str_of(&args[1]))),
    metered("derivePassword", &[Uint32, Str, Str, Str, Str], None, derive),
];

/// The password's first 32 bytes, zeros after a shorter one.
fn key(password: &str) -> [u8; 32] {
    let mut key = [0; 32];
    key.iter_mut().zip(password.bytes()).for_each(|(slot, byte)| *slot = byte);
    key
}

fn encrypt(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let (password, text) = (str_of(&args[0]), str_of(&args[1]));
    if text.is_empty() {
        return Ok("".into());
    }
    let mut start = [0; BLOCK];
    context.fill(&mut start)?;
    let cipher = cbc::Encryptor::<Aes256>::new(&key(password).into(), &start.into());
    let encrypted = cipher.encrypt_padded_vec::<Pkcs7>(text.as_bytes());
    Ok(STANDARD.encode([&start[..], &encrypted].concat()).into())
}

/// Text that is not what [`encrypt`] makes ends in Go's message of a panic, or in garbage, as it does there.
fn decrypt(password: &str, text: &str) -> Outcome {
    if text.is_empty() {
        return Ok("".into());
    }
    let bytes = base64_bytes(text)?;
    let Some((start, encrypted)) = bytes.split_first_chunk::<BLOCK>() else {
        return Err(format!(
            "runtime error: slice bounds out of range [:{BLOCK}] with length {}",
            bytes.len()
        ));
    };
    if encrypted.len() % BLOCK != 0 {
        return Err("crypto/cipher: input not full blocks".to_owned());
    }
    let cipher = cbc::Decryptor::<Aes256>::new(&key(password).into(), start.into());
    let decrypted = cipher.decrypt_padded_vec::<NoPadding>(encrypted).map_err(|error| error.to_string())?;
    let Some(padding) = decrypted.last() else {
        return Err("runtime error: index out of range [-1]".to_owned());
    };
    let Some(length) = decrypted.len().checked_sub(usize::from(*padding)) else {
        let missing = usize::from(*padding) - decrypted.len();
        return Err(format!("runtime error: slice bounds out of range [:-{missing}]"));
    };
    Ok(String::from_utf8_lossy(&decrypted[..length]).into_owned().into())
}

/// The Master Password algorithm: what is derived depends on its every constant.
fn derive(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    const SEED: &str = "com.lyndir.masterpassword";
    let Value::Int64(counter) = args[0] else {
        return Err("the counter is no number".to_owned());
    };
    let [kind, password, user, site] = [1, 2, 3, 4].map(|index| str_of(&args[index]));
    let Some(templates) = templates(kind) else {
        return Ok(format!("cannot find password template {kind}").into());
    };
    context.budget.pay(SCRYPT_STEPS)?;
    let prefixed =
        |text: &str| [SEED.as_bytes(), &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    let params = Params::new(15, 8, 2).map_err(|error| error.to_string())?;
    let mut key = [0; 64];
    scrypt::scrypt(password.as_bytes(), &prefixed(user), &params, &mut key)
        .map_err(|error| error.to_string())?;
    let seed = hmac(&key, &[prefixed(site), (counter as u32).to_be_bytes().to_vec()].concat());
    let template = templates[usize::from(seed[0]) % templates.len()];
    let derived = template.bytes().zip(&seed[1..]).map(|(class, byte)| {
        let characters = characters(class);
        char::from(characters[usize::from(*byte) % characters.len()])
    });
    Ok(derived.collect::<String>().into())
}

/// HMAC with a key of just one block.
fn hmac(key: &[u8; 64], message: &[u8]) -> [u8; 32] {
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

fn templates(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}
