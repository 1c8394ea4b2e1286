//! A disk that takes no more, and then does again.

use std::fs;
use std::process::Command;

use super::*;

/// A file system of a test's own.
struct Mount(PathBuf);

impl Mount {
    fn new(folder: &Folder, size: &str) -> Self {
        let path = folder.0.join("disk");
        fs::create_dir(&path).unwrap();
        run(
            "mount",
            &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", path.to_str().unwrap()],
        );
        Self(path)
    }

    /// Leaves `left` bytes.
    fn fill(&self, left: usize) {
        let mut filler = fs::File::create(self.0.join("filler")).unwrap();
        while std::io::Write::write(&mut filler, &[7; 4096]).is_ok_and(|n| n > 0) {}
        let len = filler.metadata().unwrap().len();
        filler.set_len(len.saturating_sub(left as u64)).unwrap();
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// Enough that it needs more of the disk than is left.
fn large(salt: u16) -> Save {
    let chunks = (0..200).map(|n: u16| chunk(100 + i32::from(n), 0, n * 2 + 1 + salt * 2));
    let world = WorldRecord { tick: 600, ..WORLD };
    Save { world, chunks: chunks.collect(), players: vec![player("Ada", 1)] }
}

fn failing(keeper: &mut Keeper) -> String {
    loop {
        if let Reply::Trouble(Trouble::Failing(what)) = wait(keeper) {
            return what;
        }
    }
}

#[test]
#[ignore = "needs root to mount a tmpfs"]
fn a_full_disk_loses_nothing_and_is_written_when_there_is_room() {
    let folder = Folder::new();
    let disk = Mount::new(&folder, "2m");
    let path = disk.0.join("caves.redb");
    sample_store(&path);
    let (mut keeper, _) = running(&path);
    save(&mut keeper, sample());
    disk.fill(16 << 10);

    keeper.save(large(0), None).unwrap();
    let what = failing(&mut keeper);
    assert!(what.contains("No space left on device"), "{what}");
    let status = keeper.status();
    assert!(status.unsaved_bytes > 100_000 && status.saving_since.is_some(), "{status:?}");
    // Reads of what is kept and of what is not go on meanwhile, over several tries.
    for round in 0..30 {
        let (pos, record) = sample().chunks[round * 2].clone();
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
        let (pos, record) = large(0).chunks[round].clone();
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(keeper.save(large(1), None).is_err(), "one at a time");

    disk.make_room();
    let mut over = false;
    loop {
        match wait(&mut keeper) {
            Reply::Trouble(Trouble::Over) => over = true,
            Reply::Stored(StoreReply::Saved) => break,
            other => panic!("{other:?}"),
        }
    }
    over |= keeper.poll() == Some(Reply::Trouble(Trouble::Over));
    assert!(over);
    let status = keeper.status();
    assert_eq!((status.failing, status.unsaved_bytes, status.unreadable), (None, 0, 0));
    save(&mut keeper, Save { chunks: vec![], ..large(0) });
    keeper.close(PATIENCE).unwrap();

    let (mut keeper, opened) = running(&path);
    assert_eq!(opened.world.unwrap().tick, 600);
    assert_eq!(opened.players, [player("Ada", 1), player("Zoë", 7)]);
    for (pos, record) in large(0).chunks.into_iter().chain(sample().chunks) {
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    keeper.close(PATIENCE).unwrap();
}

#[test]
#[ignore = "needs root to mount a tmpfs"]
fn an_end_on_a_full_disk_says_what_is_not_saved_and_leaves_the_last_save() {
    let folder = Folder::new();
    let disk = Mount::new(&folder, "2m");
    let path = disk.0.join("caves.redb");
    let (mut keeper, _) = running(&path);
    save(&mut keeper, sample());
    disk.fill(16 << 10);
    keeper.save(large(0), None).unwrap();
    failing(&mut keeper);
    let lost = keeper.close(Duration::from_millis(1500)).unwrap_err();
    assert_eq!((lost.chunks, lost.players), (200, 1));
    assert!(lost.to_string().contains("No space left on device"), "{lost}");

    disk.make_room();
    let until = Instant::now() + PATIENCE;
    let opened = loop {
        // The threads that were given up let go of the file a moment later.
        match open(&path) {
            Err(StoreError::InUse(_)) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => break opened.unwrap().1,
        }
    };
    assert!(!opened.was_clean);
    assert_eq!((opened.world.unwrap().tick, opened.players), (500, sample().players));
}

#[test]
#[ignore = "needs root to mount a tmpfs"]
fn no_room_for_a_new_store_is_said_and_leaves_none() {
    let folder = Folder::new();
    let disk = Mount::new(&folder, "1m");
    disk.fill(8 << 10);
    let path = disk.0.join("caves.redb");
    let refused = open(&path).unwrap_err().to_string();
    assert!(refused.contains("No space left on device"), "{refused}");
    assert!(!path.exists());
    disk.make_room();
    open(&path).unwrap();
}
