//! Kind 2: what a player does, the last frames of it.

use zerocopy::little_endian::{F32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, Kind};
use super::ids::{Cookie, InputSequence};
use super::layout::{self, Layout};
use crate::{EmitError, ErrorKind, ParseError, emit};

/// Frames in one packet, at most. There is at least one.
pub const MAX_FRAMES: usize = 6;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 10 | header |
/// | 10 | 8 | session |
/// | 18 | 1 | count |
/// | 19 | 22 each | frames |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    session: U64,
    count: u8,
}

const HEAD: usize = 19;
const COUNT_AT: usize = 18;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Input";
    const KIND: Kind = Kind::INPUT;
}

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | sequence |
/// | 4 | 4 | move_x |
/// | 8 | 4 | move_y |
/// | 12 | 4 | yaw |
/// | 16 | 4 | pitch |
/// | 20 | 2 | buttons |
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawFrame {
    sequence: U32,
    move_x: F32,
    move_y: F32,
    yaw: F32,
    pitch: F32,
    buttons: U16,
}

const _: () = assert!(size_of::<RawFrame>() == InputFrame::LEN);

impl RawFrame {
    const FLOATS_AT: usize = 4;

    const fn floats(&self) -> [F32; 4] {
        [self.move_x, self.move_y, self.yaw, self.pitch]
    }
}

/// What a player does in one step of its input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InputFrame {
    /// Its number; each is used once.
    pub sequence: InputSequence,
    /// Wished movement to the side, finite.
    pub move_x: f32,
    /// Wished movement ahead, finite.
    pub move_y: f32,
    /// Where the player looks, around the vertical, finite.
    pub yaw: f32,
    /// Where the player looks, up and down, finite.
    pub pitch: f32,
    /// A bit for each button.
    pub buttons: u16,
}

impl InputFrame {
    /// Bytes of every frame.
    pub const LEN: usize = 22;

    /// Nothing is pressed and nobody moves.
    pub const fn neutral(sequence: InputSequence) -> Self {
        Self { sequence, move_x: 0.0, move_y: 0.0, yaw: 0.0, pitch: 0.0, buttons: 0 }
    }

    /// Whether all its numbers are finite, as the wire asks for.
    pub const fn is_finite(&self) -> bool {
        self.move_x.is_finite()
            && self.move_y.is_finite()
            && self.yaw.is_finite()
            && self.pitch.is_finite()
    }
}

impl From<InputFrame> for RawFrame {
    fn from(frame: InputFrame) -> Self {
        Self {
            sequence: frame.sequence.get().into(),
            move_x: frame.move_x.into(),
            move_y: frame.move_y.into(),
            yaw: frame.yaw.into(),
            pitch: frame.pitch.into(),
            buttons: frame.buttons.into(),
        }
    }
}

impl From<&RawFrame> for InputFrame {
    fn from(raw: &RawFrame) -> Self {
        Self {
            sequence: InputSequence::new(raw.sequence.get()),
            move_x: raw.move_x.get(),
            move_y: raw.move_y.get(),
            yaw: raw.yaw.get(),
            pitch: raw.pitch.get(),
            buttons: raw.buttons.get(),
        }
    }
}

/// An Input to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input<'a> {
    /// The session.
    pub session: Cookie,
    /// One to six frames; each has the number after the one before it.
    pub frames: &'a [InputFrame],
}

impl Input<'_> {
    /// Bytes of the longest Input.
    pub const MAX_LEN: usize = HEAD + MAX_FRAMES * InputFrame::LEN;

    /// Bytes that [`Input::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.frames.len() * InputFrame::LEN
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the frames are none, more than six, not consecutive, or not finite.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        emit::limit(Raw::NAME, "frames", self.frames.len(), MAX_FRAMES)?;
        if self.frames.is_empty() {
            return Err(layout::invalid::<Raw>("frames", ErrorKind::Range));
        }
        if self.frames.windows(2).any(|pair| pair[1].sequence != pair[0].sequence.next()) {
            return Err(layout::invalid::<Raw>("frames", ErrorKind::Sequence));
        }
        if !self.frames.iter().all(InputFrame::is_finite) {
            return Err(layout::invalid::<Raw>("frames", ErrorKind::NonFinite));
        }
        let mut frames = [RawFrame::default(); MAX_FRAMES];
        for (raw, frame) in frames.iter_mut().zip(self.frames) {
            *raw = (*frame).into();
        }
        let raw = Raw {
            header: Header::new(Raw::KIND),
            session: self.session.get().into(),
            count: self.frames.len() as u8,
        };
        layout::put(&raw, frames[..self.frames.len()].as_bytes(), buf)
    }
}

/// An Input in a datagram.
#[derive(Clone, Copy)]
pub struct InputView<'a> {
    session: Cookie,
    frames: &'a [RawFrame],
}

impl<'a> InputView<'a> {
    /// Reads a datagram of 19 bytes and the announced frames.
    ///
    /// # Errors
    /// Another length, magic, version or kind; no session; not one to six frames; numbers that are
    /// not consecutive, or not finite.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, tail) = layout::head::<Raw>(datagram)?;
        let session = layout::cookie::<Raw>(raw.session, layout::SESSION_AT)?;
        let count = usize::from(raw.count);
        if count == 0 || count > MAX_FRAMES {
            let needed = count.clamp(1, MAX_FRAMES);
            return Err(layout::wrong::<Raw>(ErrorKind::Range, COUNT_AT, needed, count));
        }
        let bytes = layout::counted::<Raw>(datagram, tail, count * InputFrame::LEN)?;
        let frames = <[RawFrame]>::ref_from_bytes(bytes)
            .map_err(|_| layout::too_short(Raw::NAME, HEAD, datagram.len()))?;
        let mut expected: Option<InputSequence> = None;
        for (place, frame) in frames.iter().enumerate() {
            let at = HEAD + place * InputFrame::LEN;
            let sequence = InputSequence::new(frame.sequence.get());
            if let Some(expected) = expected.filter(|expected| *expected != sequence) {
                let (needed, got) = (expected.get() as usize, sequence.get() as usize);
                return Err(layout::wrong::<Raw>(ErrorKind::Sequence, at, needed, got));
            }
            layout::finite::<Raw>(frame.floats(), at + RawFrame::FLOATS_AT)?;
            expected = Some(sequence.next());
        }
        Ok(Self { session, frames })
    }

    /// The session.
    pub const fn session(self) -> Cookie {
        self.session
    }

    /// One to six frames, the oldest first; each has the number after the one before it.
    pub fn frames(self) -> impl ExactSizeIterator<Item = InputFrame> + DoubleEndedIterator + 'a {
        self.frames.iter().map(InputFrame::from)
    }

    /// The number of the newest frame.
    pub fn newest(self) -> InputSequence {
        let last = self.frames.last().map_or(0, |frame| frame.sequence.get());
        InputSequence::new(last)
    }
}

impl core::fmt::Display for InputView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Input newest={} frames={}", self.newest(), self.frames.len())?;
        match self.frames().last() {
            Some(last) => write!(
                f,
                " move={},{} yaw={} pitch={} buttons={:04x}",
                last.move_x, last.move_y, last.yaw, last.pitch, last.buttons
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn frames(first: u32, count: u32) -> Vec<InputFrame> {
        let first = InputSequence::new(first);
        (0..count).map(|n| InputFrame::neutral(first.advance(n))).collect()
    }

    fn written(frames: &[InputFrame]) -> Vec<u8> {
        let input = Input { session: Cookie::new(5).unwrap(), frames };
        let mut buf = std::vec![0; input.len()];
        assert_eq!(input.emit(&mut buf), Ok(buf.len()));
        buf
    }

    #[test]
    fn bytes_stand_where_the_page_says() {
        let frame = InputFrame {
            sequence: InputSequence::new(0x0403_0201),
            move_x: 1.0,
            move_y: -2.0,
            yaw: 0.5,
            pitch: -0.0,
            buttons: 0x0605,
        };
        let bytes = written(&[frame]);
        let expected = [
            b"FERRAVEX\x02\x02\x05\0\0\0\0\0\0\0\x01".as_slice(),
            &[1, 2, 3, 4],
            &[0, 0, 0x80, 0x3F],
            &[0, 0, 0, 0xC0],
            &[0, 0, 0, 0x3F],
            &[0, 0, 0, 0x80],
            &[5, 6],
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(bytes.len(), 41);
        let view = InputView::parse(&bytes).unwrap();
        assert!(view.frames().eq([frame]));
    }

    #[test]
    fn numbers_go_over_the_end_of_their_bits_and_nowhere_else() {
        let six = frames(u32::MAX - 2, 6);
        let mut bytes = written(&six);
        assert_eq!(bytes.len(), 151);
        assert_eq!(InputView::parse(&bytes).unwrap().newest().get(), 2);
        // The fourth frame is number 0; any other does not follow 2^32 - 1.
        assert_eq!(bytes[19 + 66..][..4], [0; 4]);
        for wrong in [1, 255] {
            bytes[19 + 66] = wrong;
            let error = InputView::parse(&bytes).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::Sequence, 85));
            assert_eq!((error.needed, error.got), (0, wrong.into()));
        }
        let twice = [six[0], six[0]];
        let input = Input { session: Cookie::new(1).unwrap(), frames: &twice };
        let refused = input.emit(&mut [0; 200]).unwrap_err();
        assert_eq!(refused, layout::invalid::<Raw>("frames", ErrorKind::Sequence));
    }

    #[test]
    fn a_reader_and_a_writer_agree_on_what_is_refused() {
        let session = Cookie::new(1).unwrap();
        let mut buf = [0; 200];
        for count in [0, 7] {
            assert!(Input { session, frames: &frames(0, count) }.emit(&mut buf).is_err());
            let mut bytes = written(&frames(0, 1));
            bytes[18] = count as u8;
            let error = InputView::parse(&bytes).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::Range, 18));
        }
        for (place, value) in [(0, f32::NAN), (1, f32::INFINITY), (2, f32::NEG_INFINITY)] {
            let mut two = frames(9, 2);
            match place {
                0 => two[1].move_x = value,
                1 => two[1].yaw = value,
                _ => two[1].pitch = value,
            }
            assert!(Input { session, frames: &two }.emit(&mut buf).is_err());
            let mut bytes = written(&frames(9, 2));
            let at = 19 + 22 + 4 + [0, 8, 12][place];
            bytes[at..at + 4].copy_from_slice(&value.to_bits().to_le_bytes());
            let error = InputView::parse(&bytes).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::NonFinite, at));
        }
    }
}
