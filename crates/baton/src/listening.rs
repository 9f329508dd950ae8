//! Where a process listens, written as Go programs write it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::terminal;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// `0`, which is Argo CD's word for not at all.
    Nowhere,
    /// `:8080`, on every interface.
    Everywhere(u16),
    /// `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`.
    At(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let unreadable = || "write it as ADDRESS:PORT or :PORT, or as 0 for none".to_owned();
        if text == "0" {
            return Ok(Address::Nowhere);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(unreadable)?;
        let port: u16 = port.parse().map_err(|_| unreadable())?;
        // Colons without brackets would be read in two ways.
        let is_name =
            |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        match host {
            "" => Ok(Address::Everywhere(port)),
            host if is_name(host) || text.parse::<SocketAddr>().is_ok() => Ok(Address::At(text.to_owned())),
            _ => Err(unreadable()),
        }
    }
}

/// Listens, if there is an address, and says where.
pub(crate) async fn listen(address: Option<&Address>) -> Result<Option<TcpListener>, Failure> {
    let (bound, wanted) = match address {
        None | Some(Address::Nowhere) => return Ok(None),
        Some(Address::Everywhere(port)) => {
            // What listens on IPv6 has IPv4 too. A machine may have no IPv6.
            let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).await;
            let bound = match both {
                Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).await,
                both => both,
            };
            (bound, format!(":{port}"))
        }
        Some(Address::At(address)) => (TcpListener::bind(address.as_str()).await, address.clone()),
    };
    let cannot = |error| Failure::failed(format!("cannot listen on {wanted}: {error}"));
    let listener = bound.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    terminal::remark(&format!("Listening on http://{address}"));
    Ok(Some(listener))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let at = |text: &str| Ok(Address::At(text.to_owned()));
        for (text, read) in [
            ("0", Ok(Address::Nowhere)),
            (":8080", Ok(Address::Everywhere(8080))),
            ("127.0.0.1:0", at("127.0.0.1:0")),
            ("[::1]:8080", at("[::1]:8080")),
            ("localhost:8080", at("localhost:8080")),
            ("::1:8080", Err(())),
            ("localhost", Err(())),
            (":http", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(text.parse::<Address>().map_err(drop), read, "{text}");
        }
    }

    #[tokio::test]
    async fn a_port_alone_is_that_port_of_both_families() {
        let listener = listen(Some(&Address::Everywhere(0))).await.expect("it listens").expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("by IPv4");
        // Where the machine has it.
        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.expect("by IPv6");
        }
        assert!(listen(None).await.expect("nothing to do").is_none());
        assert!(listen(Some(&Address::Nowhere)).await.expect("nothing to do").is_none());
    }
}
