//! Export and import.

use std::fs;

use super::super::{export, import};
use super::*;

fn exported(path: &Path) -> String {
    let mut out = Vec::new();
    export(path, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn what_is_exported_and_imported_is_the_same() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let before = fs::read(folder.store()).unwrap();
    let text = exported(&folder.store());
    assert_eq!(fs::read(folder.store()).unwrap(), before, "exporting changes nothing");
    // A head, names, two players, two bans, 60 chunks, an end.
    assert_eq!(text.lines().count(), 67);
    let other = folder.0.join("other.redb");
    assert_eq!(import(&mut text.as_bytes(), &other).unwrap(), 67);
    assert_eq!(exported(&other), text);
    let (mut keeper, opened) = running(&other);
    assert_eq!((opened.world, opened.was_clean), (Some(WORLD), true));
    assert_eq!(opened.players, sample().players);
    for (pos, record) in sample().chunks {
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    keeper.close(PATIENCE).unwrap();
}

#[test]
fn a_line_that_is_wrong_is_named_and_no_store_is_made() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let text = exported(&folder.store());
    let other = folder.0.join("other.redb");
    let line = text.lines().position(|line| line.contains("core:crystal_vein\"]],\"rows")).unwrap();
    let wrong: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(n, text)| {
            if n == line {
                text.replace("core:crystal_vein", "core:jelly")
            } else {
                text.to_owned()
            }
        })
        .collect();
    let refused = import(&mut wrong.join("\n").as_bytes(), &other).unwrap_err().to_string();
    let says =
        format!("nothing was imported: line {}: there is no tile called \"core:jelly\"", line + 1);
    assert_eq!(refused, says);
    let short = text.lines().take(30).collect::<Vec<_>>().join("\n");
    let refused = import(&mut short.as_bytes(), &other).unwrap_err().to_string();
    assert_eq!(refused, "nothing was imported: line 31: the end is missing: the file is not whole");
    assert!(import(&mut &b"\xff\xfe"[..], &other).unwrap_err().to_string().contains("line 1"));
    assert_eq!(folder.files(), ["caves.redb"]);
}

#[test]
fn a_store_that_is_there_is_not_written_over() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let text = exported(&folder.store());
    let before = fs::read(folder.store()).unwrap();
    let refused = import(&mut text.as_bytes(), &folder.store()).unwrap_err().to_string();
    assert!(refused.ends_with("exists already: move it away first"), "{refused}");
    assert_eq!(fs::read(folder.store()).unwrap(), before);
}

#[test]
fn what_is_in_use_or_empty_is_not_exported() {
    let folder = Folder::new();
    let (keeper, _) = open(&folder.store()).unwrap();
    let refused = export(&folder.store(), &mut Vec::new()).unwrap_err().to_string();
    assert!(refused.ends_with("is in use by another process"), "{refused}");
    drop(keeper);
    let refused = export(&folder.store(), &mut Vec::new()).unwrap_err().to_string();
    assert!(refused.ends_with("holds no world yet"), "{refused}");
}

#[test]
fn an_output_that_takes_no_more_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no room there"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = Folder::new();
    sample_store(&folder.store());
    let refused = export(&folder.store(), &mut Full).unwrap_err().to_string();
    assert_eq!(refused, "not exported: no room there");
}
