//! A disk that hangs, or fails once.

use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use super::super::file::RedbFile;
use super::*;

/// What the disk does from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    /// Whoever waits for it to have written waits.
    Hangs,
    /// Nothing is written.
    Fails,
}

#[derive(Debug)]
struct Disk {
    file: FileBackend,
    mood: Arc<(Mutex<Mood>, Condvar)>,
}

struct Switch(Arc<(Mutex<Mood>, Condvar)>);

impl Switch {
    fn set(&self, mood: Mood) {
        *self.0.0.lock().unwrap() = mood;
        self.0.1.notify_all();
    }
}

/// A keeper on the sample store that lies on such a disk.
fn on_a_bad_disk(folder: &Folder) -> (Keeper, Switch) {
    let path = folder.store();
    sample_store(&path);
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mood = Arc::new((Mutex::new(Mood::Good), Condvar::new()));
    let switch = Switch(Arc::clone(&mood));
    let disk = Disk { file: FileBackend::new(file).unwrap(), mood };
    let mut keeper = Keeper::over(&path, RedbFile::over(disk).unwrap());
    keeper.start(|| ()).unwrap();
    (keeper, switch)
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let held = self.mood.0.lock().unwrap();
        drop(self.mood.1.wait_while(held, |mood| *mood == Mood::Hangs).unwrap());
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if *self.mood.0.lock().unwrap() == Mood::Fails {
            return Err(io::Error::other("the disk is on fire"));
        }
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

fn later() -> Save {
    let world = WorldRecord { tick: 501, ..WORLD };
    Save {
        world,
        chunks: vec![chunk(50, 50, 3), chunk(51, 50, 3)],
        players: vec![player("Ada", 2)],
    }
}

#[test]
fn a_write_that_hangs_holds_up_no_read() {
    let folder = Folder::new();
    let (mut keeper, disk) = on_a_bad_disk(&folder);
    disk.set(Mood::Hangs);
    keeper.save(later(), None).unwrap();
    for (pos, record) in sample().chunks {
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    let status = keeper.status();
    assert!(status.saving_since.is_some() && status.commits == 0, "{status:?}");
    disk.set(Mood::Good);
    assert_eq!(next(&mut keeper), StoreReply::Saved);
    keeper.close(PATIENCE).unwrap();
    assert_eq!(open(&folder.store()).unwrap().1.world.unwrap().tick, 501);
}

#[test]
fn an_end_while_a_write_hangs_says_what_is_not_saved() {
    let folder = Folder::new();
    let (mut keeper, disk) = on_a_bad_disk(&folder);
    disk.set(Mood::Hangs);
    keeper.save(later(), None).unwrap();
    let lost = keeper.close(Duration::from_millis(300)).unwrap_err();
    assert_eq!((lost.chunks, lost.players), (2, 1));
    assert!(lost.to_string().contains("(a write hangs): 2 chunks and 1 players"), "{lost}");
    disk.set(Mood::Good);
}

#[test]
fn a_disk_that_fails_once_is_tried_again_from_the_last_commit() {
    let folder = Folder::new();
    let (mut keeper, disk) = on_a_bad_disk(&folder);
    disk.set(Mood::Fails);
    keeper.save(later(), None).unwrap();
    let said = wait(&mut keeper);
    assert_eq!(said, Reply::Trouble(Trouble::Failing("the disk is on fire".to_owned())));
    // The file is opened again, past the bad disk.
    assert_eq!(next(&mut keeper), StoreReply::Saved);
    assert_eq!(keeper.status().commits, 1);
    for (pos, record) in sample().chunks.into_iter().chain(later().chunks) {
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    keeper.close(PATIENCE).unwrap();
    let (_, opened) = open(&folder.store()).unwrap();
    assert_eq!((opened.world.unwrap().tick, opened.was_clean), (501, true));
    assert_eq!(opened.players, [player("Ada", 2), player("Zoë", 7)]);
}
