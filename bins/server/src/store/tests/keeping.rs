//! Saving and reading while a server runs.

use super::*;

#[test]
fn what_was_saved_is_there_after_closing_and_opening() {
    let folder = Folder::new();
    let (mut keeper, opened) = running(&folder.store());
    assert_eq!(opened, Opened { world: None, players: vec![], bans: vec![], was_clean: true });
    keeper.save(sample(), Some(vec![ban("Mallory"), ban("192.0.2.0/24")])).unwrap();
    assert_eq!(next(&mut keeper), StoreReply::Saved);
    keeper.close(PATIENCE).unwrap();

    let (mut keeper, opened) = running(&folder.store());
    assert_eq!(opened.world, Some(WORLD));
    assert!(opened.was_clean);
    assert_eq!(opened.players, sample().players);
    assert_eq!(opened.bans, [ban("192.0.2.0/24"), ban("Mallory")]);
    for (pos, record) in sample().chunks {
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    let nobody = ChunkPos { x: 500, y: -500 };
    assert_eq!(read(&mut keeper, nobody), StoreReply::Chunk(nobody, None));
    assert_eq!(keeper.status().reads, 61);
    keeper.close(PATIENCE).unwrap();
}

#[test]
fn a_later_save_replaces_what_it_names_and_nothing_else() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let (mut keeper, _) = running(&folder.store());
    let (changed, other) = (chunk(0, 0, 901), chunk(1, 1, 5));
    assert!(sample().chunks.iter().any(|(pos, record)| *pos == changed.0 && *record != changed.1));
    let world = WorldRecord { tick: 900, ..WORLD };
    // The same player in other letters (names are compared folded), and one ban less.
    let players = vec![player("ADA", 3)];
    let later = Save { world, chunks: vec![changed.clone()], players };
    keeper.save(later, Some(vec![ban("Mallory")])).unwrap();
    assert_eq!(next(&mut keeper), StoreReply::Saved);
    let kept = sample().chunks.into_iter().find(|(pos, _)| *pos == other.0).unwrap();
    for (pos, record) in [changed, kept] {
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    keeper.close(PATIENCE).unwrap();
    let (_, opened) = open(&folder.store()).unwrap();
    assert_eq!(opened.world, Some(world));
    assert_eq!(opened.players, [player("ADA", 3), player("Zoë", 7)]);
    assert_eq!(opened.bans, [ban("Mallory")]);
}

#[test]
fn a_chunk_of_a_save_under_way_is_read_from_it() {
    let folder = Folder::new();
    let (mut keeper, _) = running(&folder.store());
    let (pos, record) = chunk(2, -2, 33);
    let all = Save { world: WORLD, chunks: vec![(pos, record.clone())], players: vec![] };
    keeper.save(all, None).unwrap();
    // Whether the writer is done or not: the answer is what was asked to be saved.
    assert!(keeper.read(pos));
    let mut replies = [next(&mut keeper), next(&mut keeper)];
    replies.sort_by_key(|reply| *reply == StoreReply::Saved);
    assert_eq!(replies, [StoreReply::Chunk(pos, Some(Box::new(record))), StoreReply::Saved]);
    keeper.close(PATIENCE).unwrap();
}

#[test]
fn one_save_at_a_time() {
    let folder = Folder::new();
    let (mut keeper, _) = open(&folder.store()).unwrap();
    let early = keeper.save(sample(), None).unwrap_err();
    assert_eq!(early.save, sample(), "before the threads run");
    keeper.start(|| ()).unwrap();
    keeper.save(sample(), None).unwrap();
    let second = Save { chunks: vec![chunk(9, 9, 9)], ..sample() };
    let refused = keeper.save(second.clone(), Some(vec![ban("Mallory")])).unwrap_err();
    assert_eq!((refused.save, refused.bans), (second.clone(), Some(vec![ban("Mallory")])));
    assert_eq!(next(&mut keeper), StoreReply::Saved);
    save(&mut keeper, second);
    assert_eq!(keeper.status().commits, 2);
    keeper.close(PATIENCE).unwrap();
}

#[test]
fn more_reads_than_the_queue_holds_are_asked_again_later() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let (mut keeper, _) = running(&folder.store());
    let all = sample().chunks;
    let asked = (0..READ_QUEUE + 50).filter(|n| keeper.read(all[n % all.len()].0)).count();
    assert_eq!(asked, READ_QUEUE, "answers count until they are taken");
    for n in 0..asked {
        let (pos, record) = all[n % all.len()].clone();
        assert_eq!(next(&mut keeper), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    assert!(keeper.read(all[0].0));
    keeper.close(PATIENCE).unwrap();
}

#[test]
fn the_loop_is_woken_for_every_answer() {
    let folder = Folder::new();
    let (mut keeper, _) = open(&folder.store()).unwrap();
    let (told, woken) = std::sync::mpsc::channel();
    keeper.start(move || told.send(()).unwrap_or_default()).unwrap();
    keeper.save(sample(), None).unwrap();
    woken.recv_timeout(PATIENCE).unwrap();
    assert_eq!(keeper.poll(), Some(Reply::Stored(StoreReply::Saved)));
    assert!(keeper.read(ChunkPos { x: 0, y: 0 }));
    woken.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(keeper.poll(), Some(Reply::Stored(StoreReply::Chunk(..)))));
    keeper.close(PATIENCE).unwrap();
}

#[test]
fn a_record_that_could_not_be_read_again_does_not_replace_one_that_can() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let (mut keeper, _) = running(&folder.store());
    let (pos, good) = chunk(0, 0, 24 * 13);
    let (_, mut bad) = chunk(0, 0, 1);
    bad.things[0].pos = Pos { x: 9999, y: 0 };
    let ada = player("Ada", 11);
    let faulty = Save { world: WORLD, chunks: vec![(pos, bad)], players: vec![ada.clone()] };
    save(&mut keeper, faulty);
    assert_eq!(keeper.status().refused, 1);
    let kept = sample().chunks.into_iter().find(|(at, _)| *at == pos).unwrap().1;
    assert_ne!(kept, good, "the sample has another salt there");
    assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(kept))));
    keeper.close(PATIENCE).unwrap();
    assert_eq!(open(&folder.store()).unwrap().1.players[0], ada, "the rest of it is saved");
}

#[test]
fn a_file_as_a_crash_leaves_it_has_the_last_save_that_was_reported() {
    let folder = Folder::new();
    let (mut keeper, _) = running(&folder.store());
    for round in 0..20u16 {
        let chunks: Vec<_> = (0..30).map(|n| chunk(n, 0, round * 40 + n as u16)).collect();
        let world = WorldRecord { tick: round.into(), ..WORLD };
        let players = vec![player("Ada", 1 + round)];
        save(&mut keeper, Save { world, chunks: chunks.clone(), players: players.clone() });
        // Nothing is closed: what a killed process leaves, and a machine that lost its power.
        let left = folder.0.join(format!("left-{round}.redb"));
        fs::copy(folder.store(), &left).unwrap();
        let (mut after, opened) = running(&left);
        let ids_left_out = WorldRecord { last_id: LAST + 65_536, ..world };
        assert_eq!((opened.world, opened.was_clean), (Some(ids_left_out), false));
        assert_eq!(opened.players, players);
        for (pos, record) in chunks {
            assert_eq!(read(&mut after, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
        }
        after.close(PATIENCE).unwrap();
    }
    keeper.close(PATIENCE).unwrap();
}
