//! Check sums, and hashes of passwords.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::{Outcome, fixed, metered, str_of};
use crate::function::Param::Str;
use crate::function::{Context, Function};

/// What a hash at bcrypt's default cost is worth in steps: some twenty of them are a whole execution.
const BCRYPT_STEPS: u64 = 50_000;

const BCRYPT_COST: u32 = 10;

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("sha1sum", &[Str], |args| Ok(hex(&Sha1::digest(str_of(&args[0]))).into())),
    fixed("sha256sum", &[Str], |args| Ok(hex(&Sha256::digest(str_of(&args[0]))).into())),
    fixed("sha512sum", &[Str], |args| Ok(hex(&Sha512::digest(str_of(&args[0]))).into())),
    fixed("adler32sum", &[Str], |args| {
        Ok(adler2::adler32_slice(str_of(&args[0]).as_bytes()).to_string().into())
    }),
    metered("bcrypt", &[Str], None, |context, args| Ok(bcrypted(context, str_of(&args[0]))?.into())),
    metered("htpasswd", &[Str, Str], None, htpasswd),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A hash with a salt of its own; for a password too long the complaint takes its place, as sprig has it.
fn bcrypted(context: &mut Context<'_>, password: &str) -> Result<String, String> {
    if password.len() > 72 {
        let complaint = "bcrypt: password length exceeds 72 bytes";
        return Ok(format!("failed to encrypt string with bcrypt: {complaint}"));
    }
    context.budget.pay(BCRYPT_STEPS)?;
    let mut salt = [0; 16];
    context.fill(&mut salt)?;
    match bcrypt::hash_with_salt(password, BCRYPT_COST, salt) {
        Ok(hash) => Ok(hash.format_for_version(bcrypt::Version::TwoA)),
        Err(error) => Ok(format!("failed to encrypt string with bcrypt: {error}")),
    }
}

fn htpasswd(context: &mut Context<'_>, args: &[crate::value::Value]) -> Outcome {
    let user = str_of(&args[0]);
    if user.contains(':') {
        return Ok(format!("invalid username: {user}").into());
    }
    Ok(format!("{user}:{}", bcrypted(context, str_of(&args[1]))?).into())
}
