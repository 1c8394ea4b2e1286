//! `HOST:PORT` as people write it.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

/// Where servers listen unless told otherwise.
const PORT: u16 = 21068;

/// A server as the player named it. It may have several addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Reads `host`, `host:port`, `1.2.3.4:port`, `::1`, `[::1]` or `[::1]:port`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.parse::<Ipv6Addr>().is_ok() {
            return Some(Self { host: text.to_owned(), port: PORT });
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { PORT } else { port(rest.strip_prefix(':')?)? };
            host.parse::<Ipv6Addr>().ok()?;
            return Some(Self { host: host.to_owned(), port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, digits)) => (host, port(digits)?),
            None => (text, PORT),
        };
        let fits = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '/');
        fits.then(|| Self { host: host.to_owned(), port })
    }

    /// Its addresses, without repetition, in the order in which they are to be tried.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let mut addrs = Vec::new();
        for addr in (self.host.as_str(), self.port).to_socket_addrs()? {
            if !addrs.contains(&addr) {
                addrs.push(addr);
            }
        }
        if addrs.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(addrs)
    }
}

fn port(digits: &str) -> Option<u16> {
    digits.parse().ok().filter(|port| *port != 0)
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        Address::parse(text).map(|address| address.to_string())
    }

    #[test]
    fn hosts_have_a_port_given_or_not() {
        assert_eq!(shown("caves.example").as_deref(), Some("caves.example:21068"));
        assert_eq!(shown("caves.example:7").as_deref(), Some("caves.example:7"));
        assert_eq!(shown("127.0.0.1:7").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(shown("::1").as_deref(), Some("[::1]:21068"));
        assert_eq!(shown("[::1]").as_deref(), Some("[::1]:21068"));
        assert_eq!(shown("[fe80::2]:7").as_deref(), Some("[fe80::2]:7"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["", ":7", "a:", "a:0", "a:65536", "a:b", "a b", "[::1", "[::1]7", "[a]:7", "udp://a"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_resolve_to_themselves() {
        let addrs = Address::parse("[::1]:9").unwrap().resolve().unwrap();
        assert_eq!(addrs, ["[::1]:9".parse().unwrap()]);
        let addrs = Address::parse("127.0.0.1").unwrap().resolve().unwrap();
        assert_eq!(addrs, ["127.0.0.1:21068".parse().unwrap()]);
    }
}
