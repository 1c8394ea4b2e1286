//! From a frame to its UDP payload.

use std::net::SocketAddr;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use super::Found;
use crate::datagram::{Datagram, Ends};

/// What a frame begins with: a number of libpcap's list of link types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkType(u32);

impl LinkType {
    const NULL: Self = Self(0);
    const ETHERNET: Self = Self(1);
    /// Raw IP under the three numbers that it goes by.
    const RAW: [Self; 3] = [Self(101), Self(12), Self(14)];
    const LOOP: Self = Self(108);
    const LINUX_SLL: Self = Self(113);
    const IPV4: Self = Self(228);
    const IPV6: Self = Self(229);
    const LINUX_SLL2: Self = Self(276);

    /// The upper half of the field tells of check sequences, not of the type.
    pub(super) const fn new(number: u32) -> Self {
        Self(number & 0xFFFF)
    }
}

/// Bytes of a header of Linux cooked captures, and where its EtherType stands.
const SLL: (usize, usize) = (16, 14);
const SLL2: (usize, usize) = (20, 0);
/// A UDP header.
const UDP_HEADER: usize = 8;

/// Puts the payload of a frame and its two ends into `place`.
pub(super) fn read(link: LinkType, frame: &[u8], place: &mut Datagram) -> Found {
    let packet = match link {
        LinkType::ETHERNET => LaxSlicedPacket::from_ethernet(frame).map_err(|e| e.to_string()),
        LinkType::NULL | LinkType::LOOP => ip(frame.get(4..).unwrap_or_default()),
        LinkType::LINUX_SLL => cooked(SLL, frame),
        LinkType::LINUX_SLL2 => cooked(SLL2, frame),
        LinkType::IPV4 | LinkType::IPV6 => ip(frame),
        raw if LinkType::RAW.contains(&raw) => ip(frame),
        LinkType(other) => Err(format!("link type {other} is not known here")),
    };
    match packet {
        Ok(packet) => payload(&packet, place),
        Err(why) => Found::Broken(why),
    }
}

fn ip(bytes: &[u8]) -> Result<LaxSlicedPacket<'_>, String> {
    LaxSlicedPacket::from_ip(bytes).map_err(|error| error.to_string())
}

fn cooked((len, at): (usize, usize), frame: &[u8]) -> Result<LaxSlicedPacket<'_>, String> {
    let Some((head, rest)) = frame.split_at_checked(len) else {
        return Err(format!("a cooked header of {len} bytes in {}", frame.len()));
    };
    let number = u16::from_be_bytes([head[at], head[at + 1]]);
    Ok(LaxSlicedPacket::from_ether_type(EtherType(number), rest))
}

fn payload(packet: &LaxSlicedPacket<'_>, place: &mut Datagram) -> Found {
    let (from, to) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        _ => return broken_or_other(packet),
    };
    if packet.ip_payload().is_some_and(|payload| payload.fragmented) {
        return Found::Broken("a fragment of an IP packet".to_owned());
    }
    let Some(TransportSlice::Udp(udp)) = &packet.transport else { return broken_or_other(packet) };
    let bytes = udp.payload();
    let announced = usize::from(udp.length()).saturating_sub(UDP_HEADER);
    place.ends = Ends::Addrs {
        from: SocketAddr::new(from, udp.source_port()),
        to: SocketAddr::new(to, udp.destination_port()),
    };
    place.lost = false;
    place.cut = announced.saturating_sub(bytes.len());
    place.bytes.clear();
    place.bytes.extend_from_slice(bytes);
    Found::Datagram
}

/// What stopped the reading, if anything did.
fn broken_or_other(packet: &LaxSlicedPacket<'_>) -> Found {
    match &packet.stop_err {
        Some((error, layer)) => Found::Broken(format!("{layer}: {error}")),
        None => Found::Other,
    }
}
