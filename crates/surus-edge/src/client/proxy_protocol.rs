//! The PROXY protocol, versions 1 and 2: a load balancer sends the address of its client before the first byte of HTTP.
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>
//!
//! The crate ppp is not used: 2.3.0 refuses a line that is split after the space before its last port, waits forever
//! for the rest of `PROXY TCP4\r\n`, accepts `+1` as a port, and refuses LOCAL without addresses whose family is not 0.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The longest header of version 1, its end included.
const LONGEST_LINE: usize = 107;

/// The longest header of version 2, including extensions, which are skipped. The protocol allows longer ones, but none
/// exist in practice.
const LONGEST_BLOCK: usize = 2048;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// More bytes are needed.
    Incomplete,
    Invalid,
    /// The length in bytes, and the addresses of client and server, unless the proxy has connected for itself or the
    /// transport is not TCP.
    Complete {
        length: usize,
        addresses: Option<(SocketAddr, SocketAddr)>,
    },
}

pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    let common = bytes.len().min(SIGNATURE.len());
    if bytes[..common] == SIGNATURE[..common] {
        return if common < SIGNATURE.len() {
            Parsed::Incomplete
        } else {
            parse_block(bytes)
        };
    }
    parse_line(bytes)
}

fn parse_line(bytes: &[u8]) -> Parsed {
    const START: &[u8] = b"PROXY ";
    let common = bytes.len().min(START.len());
    if bytes[..common] != START[..common] {
        return Parsed::Invalid;
    }
    let seen = &bytes[..bytes.len().min(LONGEST_LINE)];
    let Some(end) = seen.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < LONGEST_LINE {
            Parsed::Incomplete
        } else {
            Parsed::Invalid
        };
    };
    let Ok(line) = std::str::from_utf8(&seen[common..end]) else {
        return Parsed::Invalid;
    };
    let complete = |addresses| Parsed::Complete {
        length: end + 2,
        addresses,
    };
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["UNKNOWN", ..] => complete(None),
        [family @ ("TCP4" | "TCP6"), client, server, client_port, server_port] => {
            let address = |ip: &str, port: &str| {
                let ip: IpAddr = ip.parse().ok()?;
                let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
                let right = ip.is_ipv4() == (*family == "TCP4") && digits;
                right.then_some(SocketAddr::new(ip, port.parse().ok()?))
            };
            match (address(client, client_port), address(server, server_port)) {
                (Some(client), Some(server)) => complete(Some((client, server))),
                _ => Parsed::Invalid,
            }
        }
        _ => Parsed::Invalid,
    }
}

fn parse_block(bytes: &[u8]) -> Parsed {
    let Some(&[command, family, high, low]) = bytes.get(12..16) else {
        return Parsed::Incomplete;
    };
    let size = usize::from(u16::from_be_bytes([high, low]));
    if command >> 4 != 2 || size > LONGEST_BLOCK {
        return Parsed::Invalid;
    }
    let Some(block) = bytes.get(16..16 + size) else {
        return Parsed::Incomplete;
    };
    let addresses = match (command & 15, family) {
        // LOCAL: a health check by the proxy itself.
        (0, _) => None,
        (1, 0x11) => match block.first_chunk::<12>() {
            Some(&[a, b, c, d, e, f, g, h, p, q, r, s]) => Some((
                SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([p, q])),
                SocketAddr::new(Ipv4Addr::new(e, f, g, h).into(), u16::from_be_bytes([r, s])),
            )),
            None => return Parsed::Invalid,
        },
        (1, 0x21) => {
            let Some((client, rest)) = block.split_first_chunk::<16>() else {
                return Parsed::Invalid;
            };
            let Some((server, rest)) = rest.split_first_chunk::<16>() else {
                return Parsed::Invalid;
            };
            let Some(&[p, q, r, s]) = rest.first_chunk::<4>() else {
                return Parsed::Invalid;
            };
            Some((
                SocketAddr::new(Ipv6Addr::from(*client).into(), u16::from_be_bytes([p, q])),
                SocketAddr::new(Ipv6Addr::from(*server).into(), u16::from_be_bytes([r, s])),
            ))
        }
        (1, _) => None,
        _ => return Parsed::Invalid,
    };
    Parsed::Complete {
        length: 16 + size,
        addresses,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(client: &str, server: &str) -> Option<(SocketAddr, SocketAddr)> {
        Some((client.parse().unwrap(), server.parse().unwrap()))
    }

    fn block(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn version_1() {
        let line = b"PROXY TCP4 192.0.2.1 198.51.100.1 4711 443\r\nGET /";
        let expected = Parsed::Complete {
            length: line.len() - 5,
            addresses: addresses("192.0.2.1:4711", "198.51.100.1:443"),
        };
        assert_eq!(parse(line), expected);
        for end in 0..line.len() - 5 {
            assert_eq!(parse(&line[..end]), Parsed::Incomplete, "{end}");
        }
        let unknown = Parsed::Complete {
            length: 20,
            addresses: None,
        };
        assert_eq!(parse(b"PROXY UNKNOWN a b \r\n"), unknown);
        for wrong in [
            "GET / HTTP/1.1\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 70000\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            "PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4\r\n",
            "PROXY\rTCP4 1.2.3.4 1.2.3.4 1 2\r\n",
        ] {
            assert_eq!(parse(wrong.as_bytes()), Parsed::Invalid, "{wrong}");
        }
        let endless = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
        assert_eq!(parse(&endless), Parsed::Invalid);
    }

    #[test]
    fn version_2() {
        let mut body = vec![192, 0, 2, 1, 198, 51, 100, 1, 0x12, 0x67, 0x01, 0xBB];
        body.extend(b"extensions");
        let bytes = block(0x21, 0x11, &body);
        let expected = Parsed::Complete {
            length: bytes.len(),
            addresses: addresses("192.0.2.1:4711", "198.51.100.1:443"),
        };
        assert_eq!(parse(&bytes), expected);
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), Parsed::Incomplete, "{end}");
        }
        let mut body = [0; 36];
        (body[15], body[31], body[33], body[35]) = (1, 2, 3, 4);
        let expected = Parsed::Complete {
            length: 52,
            addresses: addresses("[::1]:3", "[::2]:4"),
        };
        assert_eq!(parse(&block(0x21, 0x21, &body)), expected);
        let local = Parsed::Complete {
            length: 16,
            addresses: None,
        };
        for family in [0, 0x11] {
            assert_eq!(parse(&block(0x20, family, &[])), local);
        }
        for wrong in [
            block(0x31, 0x11, &[0; 12]),
            block(0x22, 0x11, &[0; 12]),
            block(0x21, 0x11, &[0; 11]),
            block(0x21, 0x21, &[0; 35]),
            block(0x21, 0x11, &[0; 3000]),
        ] {
            assert_eq!(parse(&wrong), Parsed::Invalid);
        }
    }

    /// Any input gives a result, and a header is never longer than the input.
    #[test]
    fn any_bytes() {
        let mut state = 7u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let starts: [&[u8]; 4] = [b"", b"PROXY TCP4 ", SIGNATURE, b"PROXY TCP6 ::1 ::1 "];
        for _ in 0..50_000 {
            let mut bytes = starts[(random() % 4) as usize].to_vec();
            for _ in 0..random() % 64 {
                bytes.push(if random() % 2 == 0 {
                    (random() % 256) as u8
                } else {
                    b"0123456789.: \r\n"[(random() % 15) as usize]
                });
            }
            if let Parsed::Complete { length, .. } = parse(&bytes) {
                assert!(length <= bytes.len());
            }
        }
    }
}
