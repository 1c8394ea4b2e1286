//! What is wrong with some bytes, and where.

/// A datagram that does not decode: which layout, what is wrong, and where.
///
/// ```
/// use caves_wire::{ErrorKind, caves::StateView};
///
/// let error = StateView::parse(&[0x4C, 0x52, 1, 0, 0, 0]).unwrap_err();
/// assert_eq!(error.kind, ErrorKind::TooShort);
/// assert_eq!((error.needed, error.got), (72, 6));
/// assert_eq!(error.to_string(), "State: too short at byte 6: needed 72, got 6");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{packet}: {kind} at byte {offset}: needed {needed}, got {got}")]
pub struct ParseError {
    /// The layout that was being read.
    pub packet: &'static str,
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where, in bytes from the start of the datagram.
    pub offset: usize,
    /// The length, bound or value that was needed.
    pub needed: usize,
    /// The length or value that was there.
    pub got: usize,
}

/// The kinds of fault that bytes can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fewer bytes than the layout has (R26).
    #[error("too short")]
    TooShort,
    /// Bytes behind the end of the layout, or a datagram over 1200 bytes (R26).
    #[error("too long")]
    TooLong,
    /// The first two bytes are not `4C 52` (R2).
    #[error("wrong magic")]
    Magic,
    /// A version other than 1, where this layout is of version 1 only (R1).
    #[error("wrong version")]
    Version,
    /// The packet type is another one than this layout's.
    #[error("wrong packet type")]
    PacketType,
    /// An action number above 13 (section 4).
    #[error("unknown action")]
    Action,
    /// A direction outside 1 to 4 (section 4).
    #[error("bad direction")]
    Direction,
    /// A palette of no or more than 64 entries (R27).
    #[error("bad palette count")]
    PaletteCount,
    /// A tile index that the palette does not have (R27).
    #[error("tile index outside the palette")]
    PaletteIndex,
    /// A TLV field that runs past the end of its block (R24).
    #[error("TLV field runs past its block")]
    TlvOverrun,
    /// A known TLV tag with a length it cannot have (R24).
    #[error("bad TLV length")]
    TlvLength,
    /// Text that is not UTF-8 (R32).
    #[error("not UTF-8")]
    Utf8,
    /// A text, count or rate outside its range.
    #[error("value out of range")]
    Range,
    // Only layouts of the siblings have the faults below.
    /// Bytes behind the end of a layout, where that is told from a datagram that is too long.
    #[error("bytes behind the end")]
    Trailing,
    /// A payload over its cap.
    #[error("payload over its cap")]
    Cap,
    /// A floating-point number that is infinite or none.
    #[error("not a finite number")]
    NonFinite,
    /// A number that must not be zero.
    #[error("zero")]
    Zero,
    /// A text without its terminator.
    #[error("text without an end")]
    Terminator,
    /// A variable-length integer that ends early.
    #[error("integer without an end")]
    Integer,
    /// Compressed bytes that decode to more than may be.
    #[error("bad compression")]
    Compression,
    /// Flags that do not go together.
    #[error("flags that do not go together")]
    Flags,
    /// A number that does not follow the one before it.
    #[error("out of sequence")]
    Sequence,
    /// A number that is there twice where each is there once.
    #[error("there twice")]
    Twice,
}

/// A plain struct that cannot be written as asked. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The caller's buffer is smaller than the packet.
    #[error("{packet}: buffer has {got} bytes, the packet needs {needed}")]
    Buffer {
        /// The layout that was being written.
        packet: &'static str,
        /// Bytes that the packet has.
        needed: usize,
        /// Bytes that the buffer has.
        got: usize,
    },
    /// A field is longer or larger than its place on the wire.
    #[error("{packet}: {field} is {got}, at most {limit} fit")]
    Field {
        /// The layout that was being written.
        packet: &'static str,
        /// The field that does not fit.
        field: &'static str,
        /// The largest value or length that fits.
        limit: usize,
        /// The value or length it has.
        got: usize,
    },
    /// A field breaks a rule of its layout: no reader would take the packet.
    #[error("{packet}: {field}: {kind}")]
    Invalid {
        /// The layout that was being written.
        packet: &'static str,
        /// The field that breaks a rule.
        field: &'static str,
        /// Which rule.
        kind: ErrorKind,
    },
}
