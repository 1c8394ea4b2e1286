//! Any bytes to [`Packet::parse`] of blank, and back.

use caves_wire::ParseError;
use caves_wire::blank::{
    Header, HeaderView, Join, JoinView, Login, LoginView, MAX_DATAGRAM, Name, NewestJoinView,
    Packet,
};

/// Parses, looks at every field, prints, writes again. Exactly one view accepts what [`Packet::parse`]
/// accepts; what was written is the same as what was read, as far as that was whole.
pub fn blank_packet(data: &[u8]) {
    let cut = &data[..data.len().min(500)];
    assert_eq!(MAX_DATAGRAM, 500);
    let packet = match Packet::parse(data) {
        Err(error) => {
            refused(error, cut);
            return;
        }
        Ok(packet) => packet,
    };
    let line = format!("{packet}");
    assert!(!line.is_empty() && !line.contains(char::is_control), "one line: {line:?}");
    assert_eq!(format!("{packet:?}"), line);
    let views = usize::from(LoginView::parse(data).is_ok())
        + usize::from(JoinView::parse(data).is_ok())
        + usize::from(NewestJoinView::parse(data).is_ok());
    assert_eq!(views, usize::from(matches!(cut[12], 1 | 2)), "{line}");
    header(packet.header(), cut);
    // A datagram that was cut is the same as the longer one.
    assert_eq!(format!("{}", Packet::parse(cut).expect("it was read")), line);
    let mut buf = [0xEE; MAX_DATAGRAM + 1];
    let len = emit(packet, &mut buf);
    assert_eq!(buf[..len], whole(cut)[..], "{line}");
    assert!(buf[len..].iter().all(|byte| *byte == 0xEE), "{line} writes past its end");
}

/// The place named lies in the datagram, what was needed was not there, and there is a reason.
fn refused(error: ParseError, cut: &[u8]) {
    assert!(error.offset <= cut.len(), "{error} of {} bytes", cut.len());
    assert_ne!(error.needed, error.got, "{error}");
    let tagged = cut.len() >= 16 && cut[..4] == [0xAF, 0xB1, 0x1A, 0xFB];
    let floats: &[usize] = match cut.len() {
        94 => &[38, 42, 46],
        _ => &[32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80],
    };
    // Infinite or none: all eight bits of the exponent are set.
    let odd = |at: &usize| cut[at + 3] & 0x7F == 0x7F && cut[at + 2] & 0x80 != 0;
    let bad_join = tagged && cut[12] == 2 && (cut.len() < 84 || floats.iter().any(odd));
    assert!(!tagged || bad_join, "{error}");
}

fn header(view: HeaderView<'_>, cut: &[u8]) {
    let numbers = view.numbers();
    assert_eq!((numbers.seq.get() as u16).to_le_bytes(), cut[4..6]);
    assert_eq!((numbers.ack.latest().get() as u16).to_le_bytes(), cut[6..8]);
    assert_eq!((numbers.ack.before() as u32).to_le_bytes(), cut[8..12]);
    assert_eq!((view.packet_type().0, view.padding()), (cut[12], [cut[13], cut[14], cut[15]]));
    assert_eq!(view.payload(), &cut[16..]);
}

fn emit(packet: Packet<'_>, buf: &mut [u8]) -> usize {
    let numbers = packet.header().numbers();
    let written = match packet {
        Packet::Ping(_) => Header::ping(numbers).emit(&[], buf),
        Packet::Part(_) => Header::part(numbers).emit(&[], buf),
        Packet::Login(login) => Login { numbers, name: login.name() }.emit(buf),
        Packet::Join(join) => Join { numbers, spawn: join.spawn(), world: join.world() }.emit(buf),
        Packet::NewestJoin(join) => join.to_join().emit(buf),
        Packet::Unknown(header) => {
            Header { numbers, packet_type: header.packet_type() }.emit(header.payload(), buf)
        }
        other => panic!("{other}"),
    };
    written.expect("it was read")
}

/// The datagram as a whole one: no padding, nothing behind the end, the name's field full.
fn whole(cut: &[u8]) -> Vec<u8> {
    let mut bytes = cut.to_vec();
    bytes[13..16].fill(0);
    let name = match (cut[12], cut.len()) {
        (0 | 3, _) => {
            bytes.truncate(16);
            return bytes;
        }
        (1, _) => 16,
        (2, 94) => 62,
        (2, _) => 84,
        _ => return bytes,
    };
    let field: Vec<u8> =
        cut[name..].iter().copied().take(32).take_while(|byte| *byte != 0).collect();
    assert_eq!(Name::from_field(&cut[name..]).as_bytes(), field);
    bytes.truncate(name);
    bytes.extend(field);
    bytes.resize(name + 32, 0);
    bytes
}
