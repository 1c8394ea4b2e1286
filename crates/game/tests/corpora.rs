//! Replays the committed fuzz corpora through the functions that the fuzzer calls.
//!
//! `notes/fuzzing.md` tells where they come from. A panic names the file.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/src/targets/mod.rs"]
#[expect(unreachable_pub, reason = "the fuzz package, whose module this is, shows them")]
mod targets;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_committed_input_keeps_the_promises() {
    let mut failed = Vec::new();
    for (name, target) in targets::TARGETS {
        let corpus = fuzz().join("corpus").join(name);
        let files = names_in(&corpus);
        assert!(!files.is_empty(), "{corpus:?} is empty");
        for file in files {
            let input = fs::read(corpus.join(&file)).unwrap();
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                failed.push(format!("fuzz/corpus/{name}/{file}"));
            }
        }
    }
    assert!(failed.is_empty(), "{} inputs fail: {failed:#?}", failed.len());
}

#[test]
fn every_target_has_a_corpus_and_a_fuzzer() {
    let targets: BTreeSet<String> =
        targets::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), targets::TARGETS.len());
    assert_eq!(names_in(&fuzz().join("corpus")), targets);
    let sources = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names_in(&fuzz().join("fuzz_targets")), sources);
}

/// Small enough for a repository, and for a test that everybody runs.
#[test]
fn corpora_stay_small() {
    for (name, _) in targets::TARGETS {
        let corpus = fuzz().join("corpus").join(name);
        let files = names_in(&corpus);
        let bytes: u64 =
            files.iter().map(|file| fs::metadata(corpus.join(file)).unwrap().len()).sum();
        assert!(files.len() <= 200 && bytes <= 200_000, "{name}: {} files, {bytes}", files.len());
    }
}
