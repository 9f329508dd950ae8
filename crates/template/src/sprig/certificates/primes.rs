//! The numbers of RSA and DSA keys.

use std::convert::Infallible;

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::rand_core::{TryCryptoRng, TryRng};
use crypto_bigint::{BoxedUint, NonZero, RandomBits, RandomMod, Resize};
use crypto_primes::hazmat::{SetBits, SmallFactorsSieveFactory};
use crypto_primes::{Flavor, is_prime, sieve_and_find};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use super::der;

/// The public exponent of every key made here.
const EXPONENT: u32 = 65_537;

/// A stream of randomness grown from a seed of the caller's.
pub(super) struct Stream(StdRng);

impl Stream {
    pub(super) fn new(seed: [u8; 32]) -> Stream {
        Stream(StdRng::from_seed(seed))
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

/// The generator behind it is one for secrets.
impl TryCryptoRng for Stream {}

/// A new RSA key of so many bits, in the form of PKCS#1.
pub(super) fn rsa(stream: &mut Stream, bits: u32) -> Result<Vec<u8>, String> {
    loop {
        let (p, q) = (prime(stream, bits / 2)?, prime(stream, bits / 2)?);
        // Primes so close that one is found from the other do not happen by chance; equal ones are no key.
        if p == q {
            continue;
        }
        if let Some(key) = rsa_of(p, q, bits) {
            return Ok(key);
        }
    }
}

fn prime(stream: &mut Stream, bits: u32) -> Result<BoxedUint, String> {
    let factory = SmallFactorsSieveFactory::new(Flavor::Any, bits, SetBits::TwoMsb);
    let factory = factory.map_err(|error| error.to_string())?;
    let found = sieve_and_find(stream, factory, |_, candidate| is_prime(Flavor::Any, candidate));
    found.map_err(|error| error.to_string())?.ok_or_else(|| "no prime was found".to_owned())
}

/// The key of two primes; none if they do not go with the exponent.
fn rsa_of(p: BoxedUint, q: BoxedUint, bits: u32) -> Option<Vec<u8>> {
    let (p, q) = if p > q { (p, q) } else { (q, p) };
    let one = BoxedUint::one_with_precision(bits);
    let (wide_p, wide_q) = ((&p).resize(bits), (&q).resize(bits));
    let n = wide_p.wrapping_mul(&wide_q);
    let (p1, q1) = (wide_p.wrapping_sub(&one), wide_q.wrapping_sub(&one));
    let phi = Option::<NonZero<BoxedUint>>::from(p1.wrapping_mul(&q1).into_nz())?;
    let e = BoxedUint::from(EXPONENT).resize(bits);
    let d = Option::<BoxedUint>::from(e.invert_mod(&phi))?;
    let p1 = Option::<NonZero<BoxedUint>>::from(p1.into_nz())?;
    let q1 = Option::<NonZero<BoxedUint>>::from(q1.into_nz())?;
    let (d_p, d_q) = (d.rem(&p1), d.rem(&q1));
    let odd_p = Option::from(p.clone().into_odd())?;
    let inverse = Option::<BoxedUint>::from(q.invert_odd_mod(&odd_p))?;
    let numbers = [&n, &e, &d, &p, &q, &d_p, &d_q, &inverse].map(number);
    Some(der::element(der::SEQUENCE, &[der::integer(&[]), numbers.concat()].concat()))
}

fn number(number: &BoxedUint) -> Vec<u8> {
    der::integer(&number.to_be_bytes())
}

/// A new DSA key with a modulus of 2048 bits and a subgroup of 256, in the form sprig writes it.
pub(super) fn dsa(stream: &mut Stream) -> Result<Vec<u8>, String> {
    const BITS: u32 = 2048;
    let q = prime(stream, 256)?.resize(BITS);
    let one = BoxedUint::one_with_precision(BITS);
    let twice = q.wrapping_add(&q);
    let twice = Option::<NonZero<BoxedUint>>::from(twice.into_nz()).ok_or("no prime was found")?;
    let p = loop {
        let mut candidate = BoxedUint::random_bits(stream, BITS);
        candidate |= BoxedUint::one_with_precision(BITS).wrapping_shl(BITS - 1);
        let over = candidate.rem(&twice).resize(BITS);
        let candidate = candidate.wrapping_sub(&over).wrapping_add(&one);
        if candidate.bits() == BITS && !has_small_factor(&candidate) && is_prime(Flavor::Any, &candidate) {
            break candidate;
        }
    };
    let odd_p = Option::from(p.clone().into_odd()).ok_or("no prime was found")?;
    let params = BoxedMontyParams::new(odd_p);
    let subgroup = Option::<NonZero<BoxedUint>>::from(q.clone().into_nz()).ok_or("no prime was found")?;
    let (cofactor, _) = p.wrapping_sub(&one).div_rem(&subgroup);
    let power = |base: &BoxedUint, exponent: &BoxedUint| {
        BoxedMontyForm::new(base.clone(), &params).pow(exponent).retrieve()
    };
    let mut base = one.wrapping_add(&one);
    let g = loop {
        let g = power(&base, &cofactor);
        if g != one {
            break g;
        }
        base = base.wrapping_add(&one);
    };
    let x = loop {
        let x = BoxedUint::random_mod_vartime(stream, &subgroup);
        if !bool::from(x.is_zero()) {
            break x;
        }
    };
    let y = power(&g, &x);
    let numbers = [&p, &q, &g, &y, &x].map(number);
    Ok(der::element(der::SEQUENCE, &[der::integer(&[]), numbers.concat()].concat()))
}

/// Weeds out most numbers before the tests that take long.
fn has_small_factor(candidate: &BoxedUint) -> bool {
    (3..2_000u32).step_by(2).any(|factor| {
        let limb = NonZero::<crypto_bigint::Limb>::new(crypto_bigint::Limb::from(factor));
        Option::from(limb).is_some_and(|factor| candidate.rem_limb(factor) == crypto_bigint::Limb::ZERO)
    })
}
