//! pcap and pcapng.

use std::io::{Cursor, Read};

use anyhow::{Context, anyhow, bail};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{PcapError, TsResolution};

use super::frame::{self, LinkType};
use super::{Found, Input};
use crate::datagram::Datagram;

/// The most interfaces of one section; each keeps some bytes for as long as the section lasts.
const MAX_INTERFACES: usize = 1024;
/// The greatest length of a packet's record that is believed. libpcap's own bound.
const LONGEST_PACKET: usize = 262_144;

/// The two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Pcap,
    PcapNg,
}

/// What was taken for a look at the format, and then the rest.
type Whole = std::io::Chain<Cursor<Vec<u8>>, Input>;

/// A packet recording.
pub(super) struct Packets {
    reader: Reader,
    /// The bytes of the present packet's record.
    frame: Vec<u8>,
    first: Option<u64>,
    packets: u64,
}

enum Reader {
    Pcap { reader: PcapReader<Whole>, link: LinkType, unit: u64 },
    PcapNg(PcapNgReader<Whole>),
}

/// What a packet's record says beside its bytes.
struct Record {
    link: LinkType,
    nanos: Option<u64>,
}

impl Packets {
    /// Tells a format by its first four bytes.
    pub(super) fn recognise(start: &[u8]) -> Option<Format> {
        Some(match start {
            // Microseconds and nanoseconds, of either byte order.
            [0xD4, 0xC3, 0xB2, 0xA1]
            | [0xA1, 0xB2, 0xC3, 0xD4]
            | [0x4D, 0x3C, 0xB2, 0xA1]
            | [0xA1, 0xB2, 0x3C, 0x4D] => Format::Pcap,
            [0x0A, 0x0D, 0x0D, 0x0A] => Format::PcapNg,
            _ => return None,
        })
    }

    pub(super) fn open(format: Format, input: Input, start: &[u8]) -> anyhow::Result<Self> {
        let input = Cursor::new(start.to_vec()).chain(input);
        let broken = |error| reason(error).context("the recording's head");
        let reader = match format {
            Format::Pcap => {
                let reader = PcapReader::new(input).map_err(broken)?;
                let header = reader.header();
                let unit = match header.ts_resolution {
                    TsResolution::MicroSecond => 1000,
                    TsResolution::NanoSecond => 1,
                };
                Reader::Pcap { reader, link: LinkType::new(header.datalink.into()), unit }
            }
            Format::PcapNg => Reader::PcapNg(PcapNgReader::new(input).map_err(broken)?),
        };
        Ok(Self { reader, frame: Vec::new(), first: None, packets: 0 })
    }

    pub(super) fn next(&mut self, place: &mut Datagram) -> anyhow::Result<Option<Found>> {
        let number = self.packets + 1;
        let record = match &mut self.reader {
            Reader::Pcap { reader, link, unit } => {
                pcap_record(reader, *link, *unit, &mut self.frame)
            }
            Reader::PcapNg(reader) => pcapng_record(reader, &mut self.frame),
        };
        let Some(record) = record.with_context(|| format!("at packet {number}"))? else {
            return Ok(None);
        };
        self.packets = number;
        let found = frame::read(record.link, &self.frame, place);
        place.micros = record.nanos.map(|nanos| {
            let micros = nanos / 1000;
            micros.saturating_sub(*self.first.get_or_insert(micros))
        });
        Ok(Some(match found {
            Found::Broken(why) => Found::Broken(format!("packet {number}: {why}")),
            found => found,
        }))
    }
}

fn pcap_record(
    reader: &mut PcapReader<Whole>,
    link: LinkType,
    unit: u64,
    frame: &mut Vec<u8>,
) -> anyhow::Result<Option<Record>> {
    // The raw form: the other one refuses packets that the recording has cut.
    let Some(packet) = reader.next_raw_packet() else { return Ok(None) };
    let packet = packet.map_err(reason)?;
    fill(frame, &packet.data)?;
    let nanos = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * unit;
    Ok(Some(Record { link, nanos: Some(nanos) }))
}

/// The next packet's block; all other blocks are passed over.
fn pcapng_record(
    reader: &mut PcapNgReader<Whole>,
    frame: &mut Vec<u8>,
) -> anyhow::Result<Option<Record>> {
    loop {
        let Some(block) = reader.next_block() else { return Ok(None) };
        let packet = match block.map_err(reason)? {
            Block::EnhancedPacket(packet) => {
                fill(frame, &packet.data)?;
                // The crate takes the count for nanoseconds; it is in units of the interface.
                Some((packet.interface_id, Some(packet.timestamp.as_nanos())))
            }
            Block::SimplePacket(packet) => {
                fill(frame, &packet.data)?;
                Some((0, None))
            }
            _ => None,
        };
        if reader.interfaces().len() > MAX_INTERFACES {
            bail!("more than {MAX_INTERFACES} interfaces");
        }
        let Some((interface, units)) = packet else { continue };
        let interface = usize::try_from(interface).ok().and_then(|at| reader.interfaces().get(at));
        let interface = interface.context("a packet of an interface that was not described")?;
        let resolution = interface.options.iter().find_map(|option| match option {
            InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
            _ => None,
        });
        let nanos = units.map(|units| nanoseconds(units, resolution.unwrap_or(6)));
        return Ok(Some(Record { link: LinkType::new(interface.linktype.into()), nanos }));
    }
}

fn fill(frame: &mut Vec<u8>, bytes: &[u8]) -> anyhow::Result<()> {
    if bytes.len() > LONGEST_PACKET {
        bail!("a packet of {} bytes", bytes.len());
    }
    frame.clear();
    frame.extend_from_slice(bytes);
    Ok(())
}

/// A count in units of 10^-n seconds, or of 2^-n where the top bit is set (pcapng, if_tsresol).
fn nanoseconds(units: u128, resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7F);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    let a_second = base.checked_pow(exponent).unwrap_or(u128::MAX);
    // The count has 64 bits, so the product fits.
    u64::try_from(units * 1_000_000_000 / a_second).unwrap_or(u64::MAX)
}

/// What is wrong with a recording, in words.
fn reason(error: PcapError) -> anyhow::Error {
    match error {
        PcapError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            anyhow!("the recording breaks off")
        }
        PcapError::IoError(error) => error.into(),
        other => anyhow!("the recording is broken: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_in_units_of_its_interface() {
        assert_eq!(nanoseconds(1_500_000, 6), 1_500_000_000);
        assert_eq!(nanoseconds(1_500_000, 9), 1_500_000);
        assert_eq!(nanoseconds(3, 0), 3_000_000_000);
        assert_eq!(nanoseconds(1 << 20, 0x80 | 20), 1_000_000_000);
        assert_eq!(nanoseconds(u64::MAX.into(), 0), u64::MAX, "not wrapped");
        assert_eq!(nanoseconds(u64::MAX.into(), 0x7F), 0);
    }
}
