//! What a token says of itself. Whether it is true is for the server to judge.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

/// A token that ends this soon, in seconds, is not worth sending.
const SOON: i64 = 10;

/// The claims of a token, unproven.
pub(super) fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, body, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
    claims.is_object().then_some(claims)
}

/// Whether a token says that it is over.
pub(crate) fn is_over(token: &str, now: Timestamp) -> bool {
    let end = claims(token).and_then(|claims| claims["exp"].as_f64());
    end.is_some_and(|end| end as i64 <= now.as_second().saturating_add(SOON))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn a_token_that_says_so_is_over() {
        let now = Timestamp::from_second(1000).expect("a time");
        for (claims, over) in [
            (json!({"exp": 999}), true),
            (json!({"exp": 1005}), true),
            (json!({"exp": 1011}), false),
            (json!({"exp": 1e300}), false),
            (json!({}), false),
            (json!([1]), false),
        ] {
            assert_eq!(is_over(&token(&claims), now), over, "{claims}");
        }
        for odd in ["", "a.b", "a.b.c", "..", "opaque"] {
            assert!(!is_over(odd, now), "{odd:?} is left to the server");
        }
    }
}
