//! What an operator allows although it leads inward, and where hosts are by the operator's word.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::address::{Inward, judge, unwrapped};

/// Hosts and networks that may be called although they lead inward (`--hooks-allow`).
///
/// An entry is a host name, `*.` and a domain, an address, or a network such as `10.1.0.0/16`. A name allows
/// loopback, private and carrier-grade addresses only; the rest must be allowed by address. Where machines hand out
/// credentials (metadata, and all that is link-local), a network is not enough: such an address needs an entry of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    everything: bool,
    hosts: Vec<HostPattern>,
    networks: Vec<Network>,
}

/// Where hosts are by the operator's word (`--hooks-resolve HOST=ADDR`), instead of by DNS.
///
/// An address found here is judged like any other: who names a private one allows it too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    places: BTreeMap<String, Vec<Place>>,
}

/// Why a setting is no good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// An entry of the allow-list.
    #[error("{0:?} is neither a host name, nor an address, nor a network such as 10.1.0.0/16")]
    Allow(String),
    /// A network of addresses that are allowed one by one.
    #[error(
        "{0:?} is where credentials are handed out: such an address is allowed by itself, as 169.254.169.254"
    )]
    OneByOne(String),
    /// A place.
    #[error("{0:?} is not HOST=ADDRESS or HOST=ADDRESS:PORT")]
    Resolve(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Exactly(String),
    /// Every name below it, not itself; with the leading dot.
    Below(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) port: Option<u16>,
}

// === impl AllowList ===

impl AllowList {
    /// Reads entries.
    ///
    /// # Errors
    /// An entry that is none of the forms.
    pub fn parse<'e>(entries: impl IntoIterator<Item = &'e str>) -> Result<AllowList, SettingError> {
        let mut list = AllowList::default();
        for entry in entries.into_iter().flat_map(|entry| entry.split(',')).map(str::trim) {
            if entry.is_empty() {
                continue;
            }
            if let Some(network) = Network::parse(entry) {
                let own = judge(network.address).is_some_and(Inward::needs_its_own_entry);
                if own && !network.is_one_address() {
                    return Err(SettingError::OneByOne(entry.to_owned()));
                }
                list.networks.push(network);
            } else if let Some(domain) = entry.strip_prefix("*.").and_then(host_name) {
                list.hosts.push(HostPattern::Below(format!(".{domain}")));
            } else if let Some(host) = host_name(entry) {
                list.hosts.push(HostPattern::Exactly(host));
            } else {
                return Err(SettingError::Allow(entry.to_owned()));
            }
        }
        Ok(list)
    }

    /// Every address there is: for what an operator has written.
    pub fn everything() -> AllowList {
        AllowList { everything: true, ..AllowList::default() }
    }

    /// Whether a host, found at this address, may be called; if not, why.
    pub(crate) fn check(&self, host: &str, address: IpAddr) -> Result<(), Inward> {
        let Some(inward) = judge(address) else { return Ok(()) };
        let plain = unwrapped(address);
        let counts = |network: &&Network| !inward.needs_its_own_entry() || network.is_one_address();
        let by_address = self.networks.iter().filter(counts).any(|network| network.contains(plain));
        let by_name = inward.may_be_allowed_by_name() && self.hosts.iter().any(|pattern| pattern.fits(host));
        if self.everything || by_address || by_name { Ok(()) } else { Err(inward) }
    }
}

// === impl HostPattern ===

impl HostPattern {
    fn fits(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        match self {
            HostPattern::Exactly(name) => host.eq_ignore_ascii_case(name),
            HostPattern::Below(domain) => host.to_ascii_lowercase().ends_with(domain.as_str()),
        }
    }
}

/// A host name in lower case, if it is one. What looks like a number is a mistyped address.
fn host_name(text: &str) -> Option<String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let text = text.strip_suffix('.').unwrap_or(text);
    let numeric = text.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    (text.len() <= 253 && !numeric && text.split('.').all(label)).then(|| text.to_ascii_lowercase())
}

// === impl Network ===

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u8>().ok()?)),
            None => (text.trim_start_matches('[').trim_end_matches(']'), None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(most);
        (prefix <= most).then_some(Network { address, prefix })
    }

    fn is_one_address(&self) -> bool {
        self.prefix == if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn contains(&self, address: IpAddr) -> bool {
        let bits =
            |address: u128, width: u32| address.checked_shr(width - u32::from(self.prefix)).unwrap_or(0);
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                bits(u128::from(a.to_bits()), 32) == bits(u128::from(b.to_bits()), 32)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => bits(a.to_bits(), 128) == bits(b.to_bits(), 128),
            _ => false,
        }
    }
}

// === impl Places ===

impl Places {
    /// Reads `HOST=ADDRESS` and `HOST=ADDRESS:PORT`; a host may come several times.
    ///
    /// # Errors
    /// An entry of another form.
    pub fn parse<'e>(entries: impl IntoIterator<Item = &'e str>) -> Result<Places, SettingError> {
        let mut places = Places::default();
        for entry in entries.into_iter().flat_map(|entry| entry.split(',')).map(str::trim) {
            if entry.is_empty() {
                continue;
            }
            let wrong = || SettingError::Resolve(entry.to_owned());
            let (host, place) = entry.split_once('=').ok_or_else(wrong)?;
            let host = host_name(host).ok_or_else(wrong)?;
            places.places.entry(host).or_default().push(place.parse().map_err(|()| wrong())?);
        }
        Ok(places)
    }

    pub(crate) fn of(&self, host: &str) -> Option<&[Place]> {
        self.places.get(&host.trim_end_matches('.').to_ascii_lowercase()).map(Vec::as_slice)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse() {
            return Ok(Place { address, port: None });
        }
        let socket: SocketAddr = text.parse().map_err(|_| ())?;
        Ok(Place { address: socket.ip(), port: Some(socket.port()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_by_name_and_by_address() {
        let list =
            AllowList::parse(["receiver.internal,*.corp.example", "10.1.0.0/16", "::1", "192.168.7.7"]);
        let list = list.expect("good entries");
        for (host, address, allowed) in [
            ("receiver.internal", "10.9.9.9", true),
            ("Receiver.Internal.", "127.0.0.1", true),
            ("receiver.internal", "169.254.169.254", false),
            ("receiver.internal", "fe80::1", false),
            ("receiver.internal", "100.100.100.200", false),
            ("a.corp.example", "192.168.0.1", true),
            ("corp.example", "192.168.0.1", false),
            ("evilcorp.example", "192.168.0.1", false),
            ("anything.example", "10.1.2.3", true),
            ("anything.example", "::ffff:10.1.2.3", true),
            ("anything.example", "10.2.0.1", false),
            ("anything.example", "::1", true),
            ("anything.example", "192.168.7.7", true),
            ("anything.example", "192.168.7.8", false),
            ("anything.example", "8.8.8.8", true),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(list.check(host, address).is_ok(), allowed, "{host} at {address}");
        }
    }

    #[test]
    fn metadata_needs_an_entry_of_its_own() {
        for (entry, address, allowed) in [
            ("0.0.0.0/0", "10.0.0.1", true),
            ("0.0.0.0/0", "169.254.169.254", false),
            ("169.254.169.254", "169.254.169.254", true),
            ("169.254.169.254/32", "::ffff:169.254.169.254", true),
            ("169.254.169.254", "169.254.170.2", false),
            ("168.63.0.0/16", "168.63.129.16", false),
            ("168.63.129.16", "168.63.129.16", true),
            ("::/0", "fd12::1", true),
            ("::/0", "fd00:ec2::254", false),
            ("fd00:ec2::254", "fd00:ec2::254", true),
            ("::/0", "fe80::1", false),
        ] {
            let list = AllowList::parse([entry]).expect("a good entry");
            let address = address.parse().expect("an address");
            assert_eq!(list.check("host.example", address).is_ok(), allowed, "{entry} and {address}");
        }
        for network in ["169.254.0.0/16", "fe80::/10", "fd00:ec2::254/64"] {
            let error = AllowList::parse([network]).expect_err(network).to_string();
            assert!(error.contains("allowed by itself"), "{error}");
        }
        let metadata = "169.254.169.254".parse().expect("an address");
        assert!(AllowList::everything().check("host.example", metadata).is_ok(), "the operator's own word");
    }

    #[test]
    fn networks_of_every_length_are_compared_right() {
        for (network, address, contains) in [
            ("0.0.0.0/0", "10.0.0.1", true),
            ("::/0", "fe80::1", true),
            ("::/0", "10.0.0.1", false),
            ("169.254.169.254/32", "169.254.169.254", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
        ] {
            let network = Network::parse(network).expect("a network");
            assert_eq!(
                network.contains(address.parse().expect("an address")),
                contains,
                "{network:?} {address}"
            );
        }
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for entry in ["10.0.0.0/33", "10.0.0", "http://host", "host:80", "a b", "*.", "fd00::/129", "-/8"] {
            assert_eq!(AllowList::parse([entry]), Err(SettingError::Allow(entry.to_owned())), "{entry}");
        }
        for entry in ["host", "=1.2.3.4", "host=", "host=name", "host=1.2.3.4:99999"] {
            assert_eq!(Places::parse([entry]), Err(SettingError::Resolve(entry.to_owned())), "{entry}");
        }
    }

    #[test]
    fn places_may_have_ports() {
        let places = Places::parse(["a.example=10.0.0.1:8443", "a.example=[::1]", "B.example=::1"]);
        let places = places.expect("good entries");
        let place = |address: &str, port| Place { address: address.parse().expect("an address"), port };
        let first = [place("10.0.0.1", Some(8443)), place("::1", None)];
        assert_eq!(places.of("A.example."), Some(&first[..]));
        assert_eq!(places.of("b.example"), Some(&[place("::1", None)][..]));
        assert_eq!(places.of("c.example"), None);
    }
}
