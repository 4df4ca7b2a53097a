//! Addresses to listen on, as people write them: `127.0.0.1:1338`, `[::1]:1338`, `localhost:1338`, `:1338`, `1338`.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// An address and a port; a text, or only the port as a number, in TOML.
///
/// Without an address, and with the name `localhost`, it is the loopback address 127.0.0.1: a listener is open to the
/// network only if its address says so.
///
/// ```
/// use forewarn_types::TcpAddress;
/// for text in ["1338", ":1338", "localhost:1338", "127.0.0.1:1338"] {
///     assert_eq!(text.parse::<TcpAddress>()?.to_string(), "127.0.0.1:1338");
/// }
/// assert_eq!("0.0.0.0:1338".parse::<TcpAddress>()?.to_string(), "0.0.0.0:1338");
/// # Ok::<_, forewarn_types::NotATcpAddress>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpAddress(pub SocketAddr);

/// A text that is not an address with a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an address with a port: {0:?}\n  hint: write 127.0.0.1:1338, localhost:1338, or :1338 for loopback; 0.0.0.0:1338 for \
     all IPv4 addresses, [::]:1338 for IPv6"
)]
pub struct NotATcpAddress(String);

impl FromStr for TcpAddress {
    type Err = NotATcpAddress;

    fn from_str(text: &str) -> Result<Self, NotATcpAddress> {
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let port = match text.rsplit_once(':') {
            None => text,
            Some((host, port)) if host.is_empty() || host.eq_ignore_ascii_case("localhost") => port,
            Some(_) => return Err(NotATcpAddress(text.to_owned())),
        };
        // The standard library accepts a sign.
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse::<u16>().ok().filter(|_| is_number);
        port.map(Self::on_loopback).ok_or_else(|| NotATcpAddress(text.to_owned()))
    }
}

impl TcpAddress {
    fn on_loopback(port: u16) -> Self {
        Self(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }
}

impl fmt::Display for TcpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for TcpAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrPort)
    }
}

/// A text, or a port as a number.
struct TextOrPort;

impl Visitor<'_> for TextOrPort {
    type Value = TcpAddress;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address with a port, such as \"127.0.0.1:1338\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TcpAddress, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<TcpAddress, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<TcpAddress, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_loopback() {
        let shown = |text: &str| text.parse::<TcpAddress>().map(|address| address.to_string());
        for text in ["1338", ":1338", "localhost:1338", "LOCALHOST:1338", "127.0.0.1:1338"] {
            assert_eq!(shown(text).as_deref(), Ok("127.0.0.1:1338"), "{text}");
        }
        for text in ["0.0.0.0:0", "[::1]:80", "[::]:1", "10.0.0.1:65535", "[fe80::1%2]:80"] {
            assert_eq!(shown(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            ":",
            "localhost",
            "127.0.0.1",
            "::1",
            "::1:80",
            "65536",
            ":+80",
            "+80",
            "-1",
            "host:80",
            "1 ",
            "[::1]",
            "http",
        ] {
            let error = shown(text).expect_err(text).to_string();
            assert!(error.contains(&format!("{text:?}\n  hint: write 127.0.0.1:1338")), "{error}");
        }
    }

    #[test]
    fn a_file_may_have_the_port_as_a_number() {
        let read = |json: &str| serde_json::from_str::<TcpAddress>(json).map(|address| address.to_string());
        assert_eq!(read("1338").unwrap(), "127.0.0.1:1338");
        assert_eq!(read("\":1338\"").unwrap(), "127.0.0.1:1338");
        for wrong in ["-1", "70000", "true", "\"here\""] {
            assert!(read(wrong).unwrap_err().to_string().contains("127.0.0.1:1338"), "{wrong}");
        }
    }
}
