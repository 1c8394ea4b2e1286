//! TLV blocks, read and written.

use caves_wire::EmitError;
use caves_wire::tlv::{CUT, MAX_VALUE, TlvBlock, TlvWriter, long_len};

use super::script::Script;

/// The most that a writer is given: no block on the wire is longer.
const ROOM: usize = 1200;

/// Reads the bytes as a block, and as a script for a writer that is compared with a naive one.
pub fn tlv(data: &[u8]) {
    match TlvBlock::parse("Fuzz", 7, data) {
        Ok(block) => same_again(block),
        Err(error) => {
            let at = error.offset - 7;
            assert!(error.needed > error.got && error.got == data.len() - at, "{error}");
            let before = TlvBlock::parse("Fuzz", 7, &data[..at]);
            same_again(before.expect("what stands before the fault is whole"));
        }
    }
    write(&mut Script::new(data));
}

/// What the fields say, written again, gives the block.
fn same_again(block: TlvBlock<'_>) {
    let bytes = block.as_bytes();
    let mut buf = vec![0; bytes.len()];
    let mut writer = TlvWriter::new(&mut buf);
    for field in block.fields() {
        writer.put(field.tag, field.value).expect("it was there");
        let number = |len| (field.value.len() == len).then(|| little_endian(field.value));
        if block.first(field.tag) == Some(field.value) {
            assert_eq!(block.u16(field.tag).map(u64::from), number(2));
            assert_eq!(block.u32(field.tag).map(u64::from), number(4));
            assert_eq!(block.u64(field.tag), number(8));
        }
    }
    assert_eq!(writer.finish(), bytes);
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn write(script: &mut Script<'_>) {
    let room = usize::from(script.u16()) % (ROOM + 1);
    let mut buf = vec![0; room];
    let mut writer = TlvWriter::new(&mut buf);
    let mut model = Vec::new();
    while let Some(tag) = script.step() {
        let (long, len) = (script.byte() & 1 == 1, usize::from(script.u16() % 1024));
        let value = script.bytes(len);
        let outcome = if long { writer.put_long(tag, value) } else { writer.put(tag, value) };
        let fields = if long { naive_long(tag, value) } else { naive(tag, value) };
        match outcome {
            Ok(()) => model.extend(fields.expect("a value that fits one field")),
            Err(EmitError::Field { limit, got, .. }) => {
                assert_eq!((limit, got), (MAX_VALUE, value.len()));
                assert_eq!(fields, None);
            }
            Err(EmitError::Buffer { needed, got, .. }) => {
                let fields = fields.expect("a value that fits one field");
                assert_eq!((needed, got), (model.len() + fields.len(), room));
                assert!(needed > room);
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!((writer.len(), writer.is_empty()), (model.len(), model.is_empty()));
    }
    let block = TlvBlock::parse("Fuzz", 0, writer.finish()).expect("whole fields");
    assert_eq!(block.as_bytes(), model);
}

/// One field; `None` where its length has no byte.
fn naive(tag: u8, value: &[u8]) -> Option<Vec<u8>> {
    let len = u8::try_from(value.len()).ok()?;
    Some([&[tag, len], value].concat())
}

fn naive_long(tag: u8, value: &[u8]) -> Option<Vec<u8>> {
    let fields: Vec<u8> = value.chunks(252).filter_map(|part| naive(tag, part)).flatten().collect();
    assert_eq!((CUT, long_len(value.len())), (252, fields.len()));
    Some(fields)
}
