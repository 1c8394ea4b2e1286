//! The records of a store.

use std::ops::ControlFlow;

use caves_store::json::{Importer, export};
use caves_store::{Backend, Batch, Memory, Table, ban, check, chunk, content, meta, player};
use caves_world::Content;

/// Any bytes as a table, a key and a record, as they are and behind a checksum that is right. What is
/// read is written again as a record that gives the same, and a store of it goes through its lines.
pub fn store_records(data: &[u8]) {
    let Some((&[table, len], rest)) = data.split_first_chunk() else { return };
    let table = Table::ALL[usize::from(table) % Table::ALL.len()];
    let (key, bytes) = rest.split_at(usize::from(len).min(rest.len()));
    record(table, key, bytes);
    record(table, key, &sealed(table, key, bytes));
}

fn sealed(table: Table, key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let sum = crc(&[table.name().as_bytes(), key, bytes].concat());
    [bytes, &sum.to_le_bytes()].concat()
}

/// The CRC-32 of Ethernet, a bit at a time.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum: u32, _| {
            if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 }
        })
    })
}

fn record(table: Table, key: &[u8], bytes: &[u8]) {
    if let Err(error) = check(table, key, bytes) {
        assert!(!error.to_string().contains('\n'), "an error is one line");
        return;
    }
    let again = rewritten(table, key, bytes);
    assert_eq!(check(table, key, &again), Ok(()), "what is written is read");
    assert_eq!(rewritten(table, key, &again), again, "and written as the same");
    lines(table, key, again);
}

fn rewritten(table: Table, key: &[u8], bytes: &[u8]) -> Vec<u8> {
    match table {
        Table::Meta if key == meta::KEY => {
            let record = meta::decode(bytes).expect("checked");
            assert_eq!(meta::format_of(bytes), Ok(record.format));
            meta::encode(&record)
        }
        Table::Meta => content::encode(&content::decode(bytes).expect("checked")),
        Table::Chunks => {
            let pos = chunk::pos_of(key).expect("checked");
            assert_eq!(chunk::key(pos), key);
            chunk::encode(pos, &chunk::decode(pos, bytes).expect("checked"))
        }
        Table::Players => player::encode(key, &player::decode(key, bytes).expect("checked")),
        Table::Bans => {
            let record = ban::decode(key, bytes).expect("checked");
            assert_eq!(ban::key(&record), key);
            ban::encode(&record)
        }
    }
    .expect("what is read can be written")
}

/// A store with the record in it, as lines and back. Content that this program has not is refused on the
/// way out or in, and nothing else is changed.
fn lines(table: Table, key: &[u8], bytes: Vec<u8>) {
    if table == Table::Meta {
        return;
    }
    let content = Content::core();
    let head = r#"{"format":"forgotten-caves-world","version":1,"seed":7,"generator":1,"tick":9,"last_id":4294967295}"#;
    let empty =
        [head, r#"{"content":{"tiles":[],"kinds":[]}}"#, r#"{"end":{}}"#].map(str::to_owned);
    let Some(mut store) = imported(&content, &empty) else { panic!("an empty world is imported") };
    let mut batch = Batch::default();
    batch.put(table, key.to_vec(), bytes.clone());
    let Ok(()) = store.commit(&batch);
    let mut out = Vec::new();
    let exported = export(&store, &mut |line| {
        out.push(line.to_owned());
        true
    });
    if exported.is_err() {
        return;
    }
    let Some(back) = imported(&content, &out) else { return };
    let mut found = Vec::new();
    let Ok(()) = back.walk(table, &mut |_, value| {
        found.push(value.to_vec());
        ControlFlow::Continue(())
    });
    // A player's key is the importer's own, and part of the checksum.
    let body = |bytes: &[u8]| bytes[..bytes.len() - 4].to_vec();
    assert_eq!(found.iter().map(|value| body(value)).collect::<Vec<_>>(), [body(&bytes)]);
}

fn imported(content: &Content, lines: &[String]) -> Option<Memory> {
    let mut importer = Importer::new(content, |name| name.as_bytes().to_vec());
    let mut batch = Batch::default();
    for line in lines {
        importer.line(line, &mut batch).ok()?;
    }
    importer.finish(&mut batch).ok()?;
    let mut store = Memory::default();
    let Ok(()) = store.commit(&batch);
    Some(store)
}
