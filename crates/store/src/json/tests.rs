use std::ops::ControlFlow;

use caves_world::Content;

use super::*;
use crate::backend::{Backend, Batch, Memory, Table};
use crate::codec::{ContentNames, Meta, content, meta};

const HEAD: &str = r#"{"format":"forgotten-caves-world","version":1,"seed":7,"generator":1,"tick":90,"last_id":12}"#;
const NAMES: &str = r#"{"content":{"tiles":[],"kinds":[]}}"#;
const ADA: &str =
    r#"{"player":{"name":"Ada","x":-3,"y":5,"hp":20,"elo":1000,"inventory":[["core:torch",3]]}}"#;
const END: &str = r#"{"end":{}}"#;

fn import(lines: &[&str]) -> Result<Memory, String> {
    let content = Content::core();
    let mut importer = Importer::new(&content, |name| name.to_lowercase().into_bytes());
    let mut batch = Batch::default();
    for line in lines {
        importer.line(line, &mut batch).map_err(|error| error.to_string())?;
    }
    importer.finish(&mut batch).map_err(|error| error.to_string())?;
    let mut store = Memory::default();
    let Ok(()) = store.commit(&batch);
    Ok(store)
}

fn exported(store: &Memory) -> Vec<String> {
    let mut lines = Vec::new();
    export(store, &mut |line| {
        lines.push(line.to_owned());
        true
    })
    .unwrap();
    lines
}

fn chunk_with(tiles: &str, things: &str) -> String {
    format!(
        r#"{{"chunk":{{"x":-1,"y":0,"generator":1,"edited":{tiles},"residents":[],"things":[{things}]}}}}"#
    )
}

fn tiles(palette: &str, row: &str) -> String {
    let rows = vec![format!("\"{row}\""); 32].join(",");
    format!(r#"{{"version":2,"palette":{palette},"rows":[{rows}]}}"#)
}

const CHEST: &str = r#"{"id":9,"kind":"core:chest","x":-3,"y":5,"chest":[["core:coin",2]]}"#;

#[test]
fn lines_that_were_imported_are_exported_the_same() {
    let picture =
        tiles(r##"[["#","core:rock"],[".","core:floor"],["a","core:moss"]]"##, &"#..a".repeat(8));
    let lived_in = chunk_with(&picture, CHEST).replace(
        r#""residents":[]"#,
        r#""residents":[{"kind":"core:ghoul","x":-32,"y":31,"elo":1150,"dead_until":77}]"#,
    );
    let ban = r#"{"ban":{"target":"::/0","is_name":false,"reason":"all","until_unix_s":4,"set_unix_s":3}}"#;
    let lines = [HEAD, NAMES, ADA, ban, &lived_in, END];
    let exported = exported(&import(&lines).unwrap());
    assert_eq!(exported[0], HEAD);
    assert!(exported[1].starts_with(r#"{"content":{"tiles":[[0,"core:unknown"],[1,"core:rock"],"#));
    assert_eq!(exported[2..], lines[2..]);
}

#[test]
fn symbols_are_the_editors_own_choice() {
    let theirs = tiles(r#"[["é","core:rock"],[" ","core:floor"]]"#, &"é ".repeat(16));
    let lines = exported(&import(&[HEAD, NAMES, &chunk_with(&theirs, ""), END]).unwrap());
    let ours = tiles(r##"[["#","core:rock"],[".","core:floor"]]"##, &"#.".repeat(16));
    assert_eq!(lines[2], chunk_with(&ours, ""));
}

#[test]
fn a_palette_of_64_kinds_has_a_symbol_for_each() {
    // More kinds than this program has: the names are the store's.
    let kinds = (0..64).map(|n| (n, format!("test:{n}"))).collect();
    let names = ContentNames { tiles: kinds, kinds: vec![] };
    let mut tiles = caves_world::Chunk::filled(caves_world::TileId(0));
    for n in 1..64 {
        tiles.set(n, caves_world::TileId(n as u16)).unwrap();
    }
    let pos = caves_world::ChunkPos { x: 0, y: 0 };
    let record = caves_world::ChunkRecord {
        generator: 1,
        edited: Some(tiles),
        residents: vec![],
        things: vec![],
    };
    let mut store = import(&[HEAD, NAMES, END]).unwrap();
    let mut batch = Batch::default();
    batch.put(Table::Meta, content::KEY.to_vec(), content::encode(&names).unwrap());
    batch.put(
        Table::Chunks,
        crate::chunk::key(pos).to_vec(),
        crate::chunk::encode(pos, &record).unwrap(),
    );
    let Ok(()) = store.commit(&batch);
    let line: serde_json::Value = serde_json::from_str(&exported(&store)[2]).unwrap();
    let rows = &line["chunk"]["edited"]["rows"];
    let first: Vec<char> =
        [&rows[0], &rows[1]].iter().flat_map(|row| row.as_str().unwrap().chars()).collect();
    let mut distinct = first.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((first.len(), distinct.len()), (64, 64));
}

#[test]
fn a_number_without_a_name_is_not_exported() {
    let mut store = import(&[HEAD, NAMES, ADA, END]).unwrap();
    let mut batch = Batch::default();
    batch.delete(Table::Meta, content::KEY.to_vec());
    let Ok(()) = store.commit(&batch);
    let error = export(&store, &mut |_| true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "player \"Ada\" has the kind number 6, which has no name in this store"
    );
}

#[test]
fn an_empty_store_and_a_damaged_one_are_not_exported() {
    let refused = export(&Memory::default(), &mut |_| true).unwrap_err();
    assert_eq!(refused, ExportError::Empty);
    let mut store = import(&[HEAD, NAMES, ADA, END]).unwrap();
    let mut batch = Batch::default();
    batch.put(Table::Players, b"eve".to_vec(), vec![1; 30]);
    let Ok(()) = store.commit(&batch);
    let refused = export(&store, &mut |_| true).unwrap_err().to_string();
    assert!(refused.starts_with("\"eve\", a player's record: the checksum"), "{refused}");
    let mut seen = 0;
    let stopped = export(&store, &mut |_| {
        seen += 1;
        seen < 2
    });
    assert_eq!((stopped, seen), (Err(ExportError::Stopped), 2));
}

#[test]
fn a_store_that_was_imported_has_this_programs_numbers_and_is_clean() {
    let store = import(&[HEAD, NAMES, "", ADA, "  ", END]).unwrap();
    let names = store.get(Table::Meta, content::KEY).unwrap().unwrap();
    assert_eq!(content::decode(&names), Ok(ContentNames::of(&Content::core())));
    let world = caves_world::WorldRecord { seed: 7, generator: 1, tick: 90, last_id: 12 };
    let bytes = store.get(Table::Meta, meta::KEY).unwrap().unwrap();
    assert_eq!(meta::decode(&bytes), Ok(Meta { format: crate::FORMAT, world, clean: true }));
    let mut keys = Vec::new();
    let Ok(()) = store.walk(Table::Players, &mut |key, _| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    });
    assert_eq!(keys, [b"ada"]);
}

/// What is said of `line` as the third.
fn refused(line: &str) -> String {
    let said = import(&[HEAD, NAMES, line, END]).unwrap_err();
    said.strip_prefix("line 3: ").unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn lines_that_are_wrong_are_named() {
    let floor = r#"[[".","core:floor"]]"#;
    let row = ".".repeat(32);
    assert_eq!(refused(&ADA.replace("torch", "torhc")), "there is no kind called \"core:torhc\"");
    assert!(refused(&ADA.replace("\"hp\":20", "\"hp\":0")).contains("no hit points"));
    assert!(refused(&ADA.replace("\"hp\"", "\"hitpoints\"")).contains("unknown field `hitpoints`"));
    assert!(
        refused(&ADA.replace("[\"core:torch\",3]", "[\"core:torch\",3],[\"core:torch\",1]"))
            .contains("a second time")
    );
    assert!(refused(&ADA.replace("3]", "0]")).contains("at least 1 of each"));
    assert!(refused("{\"chunk\":{").contains("EOF"));
    assert!(refused(NAMES).contains("content a second time"));
    let tile = tiles(&floor.replace("floor", "lava"), &row);
    assert_eq!(refused(&chunk_with(&tile, "")), "there is no tile called \"core:lava\"");
    let short = tiles(floor, &row[1..]);
    assert_eq!(refused(&chunk_with(&short, "")), "row 1 has 31 symbols, not 32");
    let fewer = tiles(floor, &row).replacen(&format!("\"{row}\","), "", 1);
    assert_eq!(refused(&chunk_with(&fewer, "")), "31 rows, a chunk has 32");
    let other = tiles(floor, &row).replacen('.', "x", 2).replacen('x', ".", 1);
    assert_eq!(
        refused(&chunk_with(&other, "")),
        "row 1 has the symbol 'x', which the palette has not"
    );
    let twice = tiles(r#"[[".","core:floor"],[".","core:rock"]]"#, &row);
    assert!(refused(&chunk_with(&twice, "")).contains("a symbol of the palette a second time"));
    let same = tiles(r##"[[".","core:floor"],["#","core:floor"]]"##, &row);
    assert!(refused(&chunk_with(&same, "")).contains("each once"));
    let outside = CHEST.replace("-3", "3");
    assert!(refused(&chunk_with("null", &outside)).contains("lies outside"));
    let late = CHEST.replace("\"id\":9", "\"id\":13");
    assert_eq!(
        refused(&chunk_with("null", &late)),
        "the id 13 is above the last one, 12, which the first line says"
    );
    let both = CHEST.replace("\"chest\"", "\"item\":1,\"chest\"");
    assert!(refused(&chunk_with("null", &both)).contains("one of \"chest\""));
    let newer = chunk_with("null", "").replace("\"generator\":1", "\"generator\":50");
    assert_eq!(refused(&newer), "generator 50 is unknown, this program knows 1 to 1");
}

#[test]
fn an_id_a_chunk_and_a_player_come_once() {
    let here = chunk_with("null", CHEST);
    let there = here.replace("\"x\":-1,", "\"x\":-2,").replace("\"x\":-3,", "\"x\":-40,");
    let said = import(&[HEAD, NAMES, &here, &there, END]).unwrap_err();
    assert_eq!(said, "line 4: the id 9 a second time");
    let said = import(&[HEAD, NAMES, &chunk_with("null", ""), &here, END]).unwrap_err();
    assert_eq!(said, "line 4: chunk (-1,0) a second time");
    let said = import(&[HEAD, NAMES, ADA, &ADA.replace("Ada", "ADA"), END]).unwrap_err();
    assert_eq!(said, "line 4: player \"ADA\" a second time");
}

#[test]
fn files_that_are_something_else_or_not_whole_are_refused() {
    let something_else = "line 1: this is no exported world, whose first line says \
                          \"format\":\"forgotten-caves-world\"";
    assert_eq!(import(&["[world]"]).unwrap_err(), something_else);
    assert_eq!(import(&[r#"{"format":"x","version":1}"#]).unwrap_err(), something_else);
    assert_eq!(import(&[]).unwrap_err(), something_else);
    let newer = r#"{"format":"forgotten-caves-world","version":2,"planets":[]}"#;
    assert!(import(&[newer]).unwrap_err().contains("the file has version 2"));
    assert_eq!(import(&[HEAD, ADA]).unwrap_err(), "line 2: the second line is the content's");
    let said = import(&[HEAD, NAMES, ADA]).unwrap_err();
    assert_eq!(said, "line 4: the end is missing: the file is not whole");
    assert_eq!(import(&[HEAD, NAMES, END, ADA]).unwrap_err(), "line 4: it comes after the end");
}
