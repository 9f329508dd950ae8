//! Which addresses may be called.
//!
//! An address is judged after names are resolved, and every form that leads to an IPv4 address is judged by that one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address may not be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inward {
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// The network segment; among others cloud providers' metadata.
    LinkLocal,
    /// A cloud provider's metadata outside the link-local range.
    Metadata,
    /// Addresses shared behind a carrier's translation; clusters use them too.
    CarrierGrade,
    /// Many receivers.
    Multicast,
    /// No address, or one that is set aside: for documentation, tests, protocols, later use.
    Reserved,
    /// An IPv4 address wrapped in a way that no longer leads anywhere but past a guard.
    Wrapped,
}

/// Whether an address leads inward, and how; none if it is public.
pub fn judge(address: IpAddr) -> Option<Inward> {
    match address {
        IpAddr::V4(address) => judge_v4(address),
        IpAddr::V6(address) => judge_v6(address),
    }
}

fn judge_v4(address: Ipv4Addr) -> Option<Inward> {
    match address.octets() {
        // Azure's, which hands out credentials from a public address; Alibaba's; Oracle's.
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => Some(Inward::Metadata),
        [127, ..] => Some(Inward::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(Inward::Private),
        [169, 254, ..] => Some(Inward::LinkLocal),
        [100, 64..=127, ..] => Some(Inward::CarrierGrade),
        [224..=239, ..] => Some(Inward::Multicast),
        [0 | 240..=255, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Some(Inward::Reserved),
        _ => None,
    }
}

fn judge_v6(address: Ipv6Addr) -> Option<Inward> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Inward::Loopback),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Inward::Reserved),
        // Mapped (::ffff:a.b.c.d) and NAT64 (64:ff9b::a.b.c.d) reach the IPv4 address; the latter is what a resolver
        // gives for public hosts on an IPv6-only network.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            judge_v4(embedded(high, low))
        }
        // Compatible (::a.b.c.d), translated (::ffff:0:a.b.c.d), 6to4, Teredo and a site's own NAT64 have no use
        // for a hook.
        [0, 0, 0, 0, 0, 0, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 1, ..]
        | [0x2002, ..]
        | [0x2001, 0, ..] => Some(Inward::Wrapped),
        // ISATAP: an IPv4 address behind 5efe in any prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => judge_v4(embedded(high, low)).map(|_| Inward::Wrapped),
        // Services of the machine's own cloud over IPv6: AWS (metadata, and identities of pods), Google, Linode, Scaleway.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, _]
        | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
        | [0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1]
        | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42] => Some(Inward::Metadata),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some(Inward::Private),
        [0xfe80..=0xfebf, ..] => Some(Inward::LinkLocal),
        [0xff00..=0xffff, ..] => Some(Inward::Multicast),
        // Protocol assignments (2001::/23) and documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some(Inward::Reserved),
        [0x2000..=0x3fff, ..] => None,
        // Nothing else is given out for general use.
        _ => Some(Inward::Reserved),
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

/// The address itself, out of the two wrappings that reach it. Networks of an allow-list are written plainly.
pub(crate) fn unwrapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            IpAddr::V4(embedded(high, low))
        }
        _ => address,
    }
}

// === impl Inward ===

impl Inward {
    /// In words, to follow an address.
    pub fn describe(self) -> &'static str {
        match self {
            Inward::Loopback => "is this machine (loopback)",
            Inward::Private => "is in a private network",
            Inward::LinkLocal => "is link-local, where cloud metadata is served",
            Inward::Metadata => "is a cloud provider's metadata service",
            Inward::CarrierGrade => "is in the carrier-grade NAT range",
            Inward::Multicast => "is a multicast address",
            Inward::Reserved => "is set aside and no public address",
            Inward::Wrapped => "wraps an IPv4 address in IPv6",
        }
    }

    /// Whether it is allowed by its own address alone, and not by a network that holds it among others: credentials are
    /// handed out there to whoever asks.
    pub(crate) fn needs_its_own_entry(self) -> bool {
        matches!(self, Inward::LinkLocal | Inward::Metadata)
    }

    /// Whether naming a host in the allow-list is enough. Metadata and the like must be allowed by their address: a
    /// name may resolve to them without its owner's doing.
    pub(crate) fn may_be_allowed_by_name(self) -> bool {
        matches!(self, Inward::Loopback | Inward::Private | Inward::CarrierGrade)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_inward_is_known() {
        for (address, expected) in [
            ("127.0.0.1", Some(Inward::Loopback)),
            ("127.255.255.254", Some(Inward::Loopback)),
            ("::1", Some(Inward::Loopback)),
            ("::ffff:127.0.0.1", Some(Inward::Loopback)),
            ("64:ff9b::127.0.0.1", Some(Inward::Loopback)),
            ("10.0.0.1", Some(Inward::Private)),
            ("172.16.0.1", Some(Inward::Private)),
            ("172.31.255.255", Some(Inward::Private)),
            ("192.168.1.1", Some(Inward::Private)),
            ("::ffff:10.1.2.3", Some(Inward::Private)),
            ("64:ff9b::10.1.2.3", Some(Inward::Private)),
            ("fc00::1", Some(Inward::Private)),
            ("fd12:3456::1", Some(Inward::Private)),
            ("fec0::1", Some(Inward::Private)),
            ("169.254.169.254", Some(Inward::LinkLocal)),
            ("169.254.170.2", Some(Inward::LinkLocal)),
            ("::ffff:169.254.169.254", Some(Inward::LinkLocal)),
            ("64:ff9b::169.254.169.254", Some(Inward::LinkLocal)),
            ("fe80::1", Some(Inward::LinkLocal)),
            ("fd00:ec2::254", Some(Inward::Metadata)),
            ("100.100.100.200", Some(Inward::Metadata)),
            ("192.0.0.192", Some(Inward::Metadata)),
            ("::ffff:100.100.100.200", Some(Inward::Metadata)),
            ("168.63.129.16", Some(Inward::Metadata)),
            ("::ffff:168.63.129.16", Some(Inward::Metadata)),
            ("64:ff9b::168.63.129.16", Some(Inward::Metadata)),
            ("64:ff9b::192.0.0.192", Some(Inward::Metadata)),
            ("::ffff:192.0.0.192", Some(Inward::Metadata)),
            ("64:ff9b::100.100.100.200", Some(Inward::Metadata)),
            ("fd00:ec2::23", Some(Inward::Metadata)),
            ("fd20:ce::254", Some(Inward::Metadata)),
            ("fd00:a9fe:a9fe::1", Some(Inward::Metadata)),
            ("fd00:42::42", Some(Inward::Metadata)),
            ("2a00::5efe:168.63.129.16", Some(Inward::Wrapped)),
            ("2002:a83f:8110::1", Some(Inward::Wrapped)),
            ("168.63.129.17", None),
            ("100.64.0.1", Some(Inward::CarrierGrade)),
            ("100.127.255.255", Some(Inward::CarrierGrade)),
            ("224.0.0.1", Some(Inward::Multicast)),
            ("ff02::1", Some(Inward::Multicast)),
            ("0.0.0.0", Some(Inward::Reserved)),
            ("0.1.2.3", Some(Inward::Reserved)),
            ("::", Some(Inward::Reserved)),
            ("192.0.2.1", Some(Inward::Reserved)),
            ("198.18.0.1", Some(Inward::Reserved)),
            ("198.51.100.7", Some(Inward::Reserved)),
            ("203.0.113.9", Some(Inward::Reserved)),
            ("192.88.99.1", Some(Inward::Reserved)),
            ("240.0.0.1", Some(Inward::Reserved)),
            ("255.255.255.255", Some(Inward::Reserved)),
            ("2001:db8::1", Some(Inward::Reserved)),
            ("3fff:123::1", Some(Inward::Reserved)),
            ("100::1", Some(Inward::Reserved)),
            ("2001:20::1", Some(Inward::Reserved)),
            ("5f00::1", Some(Inward::Reserved)),
            ("::127.0.0.1", Some(Inward::Wrapped)),
            ("::8.8.8.8", Some(Inward::Wrapped)),
            ("::ffff:0:127.0.0.1", Some(Inward::Wrapped)),
            ("2002:7f00:1::", Some(Inward::Wrapped)),
            ("2002:808:808::1", Some(Inward::Wrapped)),
            ("2001:0:7f00:1::", Some(Inward::Wrapped)),
            ("64:ff9b:1::a00:1", Some(Inward::Wrapped)),
            ("2a00::5efe:10.0.0.1", Some(Inward::Wrapped)),
            ("8.8.8.8", None),
            ("100.63.255.255", None),
            ("172.32.0.1", None),
            ("192.0.1.1", None),
            ("::ffff:8.8.8.8", None),
            ("64:ff9b::8.8.8.8", None),
            ("2a00:1450:4001::1", None),
            ("2606:4700::1111", None),
        ] {
            assert_eq!(judge(address.parse().expect("an address")), expected, "{address}");
        }
    }
}
