//! blank: what real programs said, given to our server and our client, and what follows.
#![cfg(feature = "blank")]

mod blank_common;

use std::collections::BTreeSet;
use std::time::Duration;

use blank_common::{
    Line, Outcome, Puppet, RealAck, START, Talk, Told, ack_of, bare, captures, login, parse, peer,
    ping, replay, seq_of, types,
};
use caves_link::ack::{Ack, Known};
use caves_link::time::Instant;
use caves_session::blank::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, Left, MAX_GUESTS, Server,
    ServerConfig, ServerEvent, ServerReceived,
};
use caves_session::{DropReason, Random, SplitMix, StrangerLimits};
use caves_wire::blank::{
    EntityId, HeaderView, Join, Name, Numbers, Packet, PacketType, Seq, Spawn,
};

fn lines(name: &str) -> Vec<Line> {
    captures().into_iter().find(|(other, _)| other == name).unwrap().1
}

/// The table of section 9: the number of a datagram, and what is right to acknowledge then.
const REORDERED: [(u16, u16, u32); 22] = [
    (0, 0, 0xFFFF_FFFF),
    (1, 1, 0xFFFF_FFFF),
    (2, 2, 0xFFFF_FFFF),
    (5, 5, 0xFFFF_FFFC),
    (4, 5, 0xFFFF_FFFD),
    (3, 5, 0xFFFF_FFFF),
    (6, 6, 0xFFFF_FFFF),
    (6, 6, 0xFFFF_FFFF),
    (38, 38, 0x8000_0000),
    (39, 39, 0x0000_0001),
    (70, 70, 0xC000_0000),
    (102, 102, 0x8000_0000),
    (100, 102, 0x8000_0002),
    (105, 105, 0x0000_0014),
    (65535, 105, 0x0000_0014),
    (0, 105, 0x0000_0014),
    (32767, 32767, 0),
    (32768, 32768, 1),
    (65000, 65000, 0),
    (65535, 65535, 0),
    (0, 0, 1),
    (1, 1, 3),
];

#[test]
fn the_ack_table_is_what_our_server_says() {
    let mut talk = Talk::from_zero();
    let from = peer(1, 5);
    let given: Vec<_> = lines("reorder").into_iter().filter(|line| !line.from_server).collect();
    assert_eq!(given.len(), REORDERED.len());
    for (line, (seq, ack, hist)) in given.iter().zip(REORDERED) {
        assert_eq!(seq_of(&line.bytes), seq);
        talk.give(from, &line.bytes);
        talk.wait(510);
        let sent = talk.take(from);
        assert_eq!(types(&sent), ["Ping"]);
        assert_eq!(ack_of(&sent[0]), (ack, hist), "after {seq}");
    }
}

/// The real server of the same capture acknowledges as the column "real" says: backwards, and with
/// bits that it had set before and clears again. A sender that remembers finds nothing wrong in it.
#[test]
fn what_the_real_server_acknowledged_is_tolerated() {
    let all = lines("reorder");
    let mut real = RealAck::START;
    let mut known = Known::<16, 32>::before(Seq::new(0));
    let (mut sent, mut backwards, mut cleared) = (BTreeSet::new(), 0, 0);
    for line in &all {
        if !line.from_server {
            sent.insert(seq_of(&line.bytes));
            real.receive(seq_of(&line.bytes));
            continue;
        }
        let (ack, hist) = ack_of(&line.bytes);
        assert_eq!((ack, hist), (real.ack, real.hist), "the column \"real\"");
        let said = Ack::new(Seq::new(ack.into()), hist.into());
        let before = known.ack();
        backwards += u32::from(before.latest().is_newer_than(said.latest()));
        let forgot = |seq: u16| {
            let seq = Seq::new(seq.into());
            before.covers(seq) && !said.covers(seq) && said.latest().distance_from(seq) <= 32
        };
        cleared += sent.iter().filter(|seq| forgot(**seq)).count();
        let judgement = known.hear(said);
        let lost: Vec<_> = judgement.lost().map(|seq| seq.get() as u16).collect();
        assert!(lost.iter().all(|seq| !sent.contains(seq)), "lost {lost:?} though they arrived");
    }
    assert!(backwards >= 4 && cleared >= 4, "{backwards} backwards, {cleared} cleared");
}

fn played(logins: &[&str], left: &[&str], joins: usize) -> (Vec<String>, Vec<String>, usize) {
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    (owned(logins), owned(left), joins)
}

/// What sections 2 and 5 say of each capture's client: who plays, why they leave, how many Joins.
/// Nobody is told to part: real servers do that where a Login comes twice, and ours does not.
fn expected(file: &str) -> (Vec<String>, Vec<String>, usize) {
    let quits = |name: &str| played(&[name], &["Quit"], 1);
    match file {
        "session" | "head-session" => quits("alice"),
        "lossy" | "head-lossy" => quits("bob"),
        // The second Login of the same name gets the same Join again.
        "join-lost" => played(&["carol"], &[], 2),
        "dup-login" | "head-dup-login" => played(&["dave"], &[], 2),
        "name-taken-1" => quits("erin"),
        "name-taken-2" | "name-taken-3" => played(&["erin"], &[], 1),
        "second-name" => played(&["frank", "grace"], &["Renamed", "Quit"], 2),
        "timeout" => played(&["heidi"], &["Silence"], 1),
        // It logs in twice: the older server overlooked the first.
        "older-login-first" => played(&["first"], &["Quit"], 2),
        "older-ping-first" => quits("second"),
        "edge-badutf8" => quits("\\xff\\xfe\\x80x"),
        "edge-empty-name" => quits(""),
        "edge-full32" => quits("0123456789abcdef0123456789ABCDEF"),
        "edge-garbage-after-nul" => quits("nul"),
        "edge-login-first" => quits("login-first"),
        // Its Part has a number from before its Login: to us a late one.
        "edge-login-first-seq5000" => played(&["seq5000"], &[], 1),
        "edge-long40" => quits("L123456789abcdef0123456789ABCDEF"),
        "edge-oversize" => quits("over"),
        "edge-padding" => quits("padme"),
        "edge-short-name" => quits("kim"),
        _ => played(&[], &[], 0),
    }
}

#[test]
fn the_captured_clients_get_what_the_note_promises() {
    for (file, lines) in captures() {
        let mut talk = Talk::new(ServerConfig::default());
        let outcome = replay(&mut talk, peer(1, 5), &lines, true);
        let Outcome { logins, left, joins, parts, pings, dropped } = outcome;
        assert_eq!((logins, left, joins), expected(&file), "{file}");
        assert_eq!(parts, 0, "{file}");
        let unreadable = ["edge-badtag", "edge-empty-datagram", "edge-short15"].contains(&&*file);
        let late = file == "edge-login-first-seq5000";
        assert_eq!(dropped, u64::from(unreadable || late), "{file}");
        // No connection begins by what is no datagram, or ends at once.
        assert_eq!(pings == 0, unreadable || file == "edge-part-first", "{file}");
    }
}

/// Clients that never ping by themselves for an echo's sake still enter with their next datagram.
#[test]
fn real_clients_need_no_more_than_their_next_ping() {
    for file in
        ["session", "lossy", "head-session", "dup-login", "second-name", "older-login-first"]
    {
        let mut talk = Talk::new(ServerConfig::default());
        let outcome = replay(&mut talk, peer(1, 5), &lines(file), false);
        assert_eq!(outcome.logins, expected(file).0, "{file}");
    }
}

#[test]
fn a_name_is_refused_while_it_is_in_use_and_free_afterwards() {
    let mut talk = Talk::new(ServerConfig::default());
    let (mut first, mut second) = (Puppet::new(peer(1, 5)), Puppet::new(peer(2, 5)));
    assert_eq!(types(&first.enter(&mut talk, "erin")), ["Ping", "Join"]);
    // As in the captures: Ping, Login, and Part is the answer; three of them here.
    second.ping(&mut talk);
    let mut refused = second.login(&mut talk, "erin");
    talk.wait(100);
    refused.extend(second.listen(&mut talk));
    assert_eq!(types(&refused), ["Part", "Part", "Part"]);
    assert_eq!((talk.server.players(), talk.server.guests()), (1, 0));
    assert_eq!(types(&first.part(&mut talk)), [""; 0]);
    let mut third = Puppet::new(peer(3, 5));
    assert_eq!(types(&third.enter(&mut talk, "erin")), ["Ping", "Join"]);
    // Other bytes are another name.
    let mut fourth = Puppet::new(peer(4, 5));
    assert_eq!(types(&fourth.enter(&mut talk, "Erin")), ["Ping", "Join"]);
}

#[test]
fn a_name_is_refused_even_to_one_who_was_first_to_ask_and_last_to_prove() {
    let mut talk = Talk::new(ServerConfig::default());
    let (mut slow, mut fast) = (Puppet::new(peer(1, 5)), Puppet::new(peer(2, 5)));
    let bytes = login(slow.numbers(), "zed");
    slow.say(&mut talk, &bytes);
    assert_eq!(types(&fast.enter(&mut talk, "zed")), ["Ping", "Join"]);
    assert_eq!(types(&slow.ping(&mut talk)), ["Part"]);
}

#[test]
fn a_guest_that_changes_its_mind_plays_under_the_last_name() {
    let mut talk = Talk::new(ServerConfig::default());
    let from = peer(1, 5);
    for (seq, name) in [(1, "first"), (3, "last"), (2, "late")] {
        talk.give(from, &login(numbers(seq, 0xFFFF), name));
    }
    let sent = talk.take(from);
    assert_eq!(types(&sent), ["Ping"]);
    talk.give(from, &ping(numbers(4, seq_of(&sent[0]).into())));
    assert_eq!(talk.events.len(), 1);
    assert_eq!(talk.server.name(talk.session_of("last")), Some(Name::new("last")));
}

#[test]
fn a_full_server_refuses_with_part_and_has_room_again() {
    let config = ServerConfig { max_players: 2, ..ServerConfig::default() };
    let mut talk = Talk::new(config);
    let mut players: Vec<_> = (1..=3).map(|host| Puppet::new(peer(host, 5))).collect();
    assert_eq!(types(&players[0].enter(&mut talk, "a")), ["Ping", "Join"]);
    assert_eq!(types(&players[1].enter(&mut talk, "b")), ["Ping", "Join"]);
    players[2].ping(&mut talk);
    assert_eq!(types(&players[2].login(&mut talk, "c")), ["Part"]);
    // A player of a full server may still take another name.
    assert_eq!(types(&players[0].login(&mut talk, "d")), ["Join"]);
    players[1].part(&mut talk);
    let mut again = Puppet::new(peer(3, 6));
    assert_eq!(types(&again.enter(&mut talk, "c")), ["Ping", "Join"]);
}

#[test]
fn a_repeated_login_gets_the_same_join_again() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut client = Puppet::new(peer(1, 5));
    let first = client.enter(&mut talk, "dave").pop().unwrap();
    // The very datagram again, and another one with a new number.
    let same = login(Numbers { seq: Seq::new(1), ack: client.acks.wire() }, "dave");
    for again in [client.say(&mut talk, &same), client.login(&mut talk, "dave")] {
        assert_eq!(types(&again), ["Join"]);
        assert_eq!(again[0][13..], first[13..], "all but the numbers");
    }
    assert_eq!(talk.events.len(), 1);
    // Another name is another player; the first Login, late, changes nothing any more.
    let other = client.login(&mut talk, "eve");
    assert_eq!(types(&other), ["Join"]);
    assert_ne!(other[0][16..20], first[16..20]);
    assert_eq!(types(&client.say(&mut talk, &same)), [""; 0]);
    assert_eq!(talk.server.counters().dropped(DropReason::OldAction), 1);
    assert_eq!(talk.server.name(talk.session_of("eve")), Some(Name::new("eve")));
}

#[test]
fn the_join_comes_only_to_an_address_that_echoes_a_number() {
    let mut talk = Talk::new(ServerConfig::default());
    let from = peer(1, 5);
    let mut client = Puppet::new(from);
    let bytes = login(client.numbers(), "mallory");
    talk.give(from, &bytes);
    let sent = talk.take(from);
    assert_eq!(types(&sent), ["Ping"]);
    let number = seq_of(&sent[0]);
    assert_ne!(number, 0, "numbers of a session begin anywhere");
    // Who does not see the ping guesses: the number before, the one after, half the circle away.
    for (seq, guess) in
        [number.wrapping_sub(1), number + 1, number ^ 0x8000].into_iter().enumerate()
    {
        let numbers = Numbers {
            seq: Seq::new(seq as u32 + 1),
            ack: Ack::new(Seq::new(guess.into()), 0xFFFF_FFFF),
        };
        talk.give(from, &ping(numbers));
        assert!(talk.events.is_empty());
    }
    let numbers = Numbers { seq: Seq::new(9), ack: Ack::new(Seq::new(number.into()), 0) };
    talk.give(from, &ping(numbers));
    assert_eq!(types(&talk.take(from)).last(), Some(&"Join"));
}

#[test]
fn too_many_wrong_echoes_begin_it_all_anew() {
    let mut talk = Talk::new(ServerConfig::default());
    let from = peer(1, 5);
    let mut firsts = BTreeSet::new();
    let mut seq = 0;
    let mut numbers = |ack: u32| {
        seq += 1;
        Numbers { seq: Seq::new(seq), ack: Ack::new(Seq::new(ack), 0) }
    };
    for _ in 0..4 {
        talk.give(from, &login(numbers(0xFFFF), "mallory"));
        firsts.insert(seq_of(&talk.take(from)[0]));
        // Nine guesses of numbers above those that are ever drawn.
        for guess in 0..9 {
            assert_eq!(talk.server.guests(), 1);
            talk.give(from, &ping(numbers(40_000 + guess)));
        }
        assert_eq!(talk.server.guests(), 0);
        talk.wait(2000);
        talk.take(from);
    }
    assert_eq!(firsts.len(), 4, "another number each time: {firsts:?}");
    assert!(firsts.iter().all(|first| *first < 0x7FFF));
}

/// Strangers send anything but an echo, for a minute: no address is ever sent more than came from it.
#[test]
fn an_address_without_proof_never_gets_more_than_it_sent() {
    for seed in 0..20 {
        let limits = StrangerLimits { per_second: 1000, burst: 1000, ..StrangerLimits::default() };
        let config = ServerConfig { strangers: limits, ..ServerConfig::default() };
        let mut talk = Talk::seeded(config, seed);
        let mut random = SplitMix::new(seed);
        let mut balance = [0i64; 5];
        for _ in 0..600 {
            let draw = random.next_u64();
            let host = (draw % 5) as usize;
            let from = peer(host as u32, 5);
            let numbers = Numbers {
                seq: Seq::new((draw >> 8) as u32 % 60),
                ack: if draw & 1 << 40 == 0 {
                    Numbers::first().ack
                } else {
                    Ack::new(Seq::new(50_000), draw >> 32)
                },
            };
            let mut bytes = match draw >> 48 & 7 {
                0..=3 => ping(numbers),
                4 | 5 => login(numbers, if host.is_multiple_of(2) { "same" } else { "other" }),
                6 => bare(numbers, PacketType(77)),
                _ => bare(numbers, PacketType::PART),
            };
            if draw >> 52 & 7 == 0 {
                bytes.truncate((draw >> 56) as usize % 20);
            }
            balance[host] += bytes.len() as i64;
            talk.give(from, &bytes);
            talk.wait(if draw >> 60 == 0 { 3000 } else { 37 });
            for (_, to, bytes) in talk.sent.drain(..) {
                let host = (0..5).find(|host| peer(*host, 5) == to).unwrap() as usize;
                balance[host] -= bytes.len() as i64;
                assert_ne!(parse(&bytes).header().packet_type(), PacketType::JOIN);
            }
            assert!(balance.iter().all(|left| *left >= 0), "seed {seed}: {balance:?}");
        }
        assert!(talk.events.is_empty());
    }
}

#[test]
fn a_guest_that_never_answers_is_sent_what_it_paid_for_and_then_nothing() {
    let mut talk = Talk::new(ServerConfig::default());
    let from = peer(1, 5);
    talk.give(from, &ping(Numbers::first()));
    talk.give(from, &login(Numbers { seq: Seq::new(1), ..Numbers::first() }, "ghost"));
    talk.wait(9999);
    // 16 and 48 bytes came; four pings of 16 went.
    assert_eq!(types(&talk.take(from)), ["Ping"; 4]);
    assert_eq!(talk.server.guests(), 1);
    talk.wait(1);
    assert_eq!(talk.server.guests(), 0);
    assert_eq!(types(&talk.take(from)), [""; 0]);
    assert_eq!(talk.server.poll_timeout(), None);
}

#[test]
fn a_flood_of_new_addresses_takes_bounded_memory_and_leaves_players_alone() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut player = Puppet::new(peer(1, 5));
    assert_eq!(types(&player.enter(&mut talk, "here")), ["Ping", "Join"]);
    let mut most = 0;
    for number in 0..60_000u32 {
        let from = peer(0x1000 + number, 7);
        talk.give(from, &login(Numbers::first(), &format!("n{number}")));
        talk.sent.retain(|(_, to, _)| *to == player.peer);
        most = most.max(talk.server.guests());
        if number % 4000 == 3999 {
            talk.wait(500);
            player.ping(&mut talk);
        }
    }
    assert_eq!(most, MAX_GUESTS);
    assert_eq!((talk.server.players(), talk.events.len()), (1, 1));
    assert!(talk.server.counters().dropped(DropReason::Budget) > 0);
    // Somebody new who answers at once still gets in.
    let mut late = Puppet::new(peer(2, 5));
    assert_eq!(types(&late.enter(&mut talk, "late")), ["Ping", "Join"]);
    talk.wait(20_000);
    assert_eq!((talk.server.guests(), talk.server.players()), (0, 0));
    assert_eq!(talk.server.poll_timeout(), None, "nothing is left behind");
}

#[test]
fn pings_go_out_500_ms_after_the_last_datagram_and_silence_ends_after_10_s() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut client = Puppet::new(peer(1, 5));
    client.enter(&mut talk, "heidi");
    let heard = talk.now;
    talk.until(heard + Duration::from_secs(30));
    let sent: Vec<_> =
        talk.sent.drain(..).map(|(at, ..)| at.saturating_since(heard).as_millis()).collect();
    // The Join was at 0. The last ping before the end is at 9.5 s: at 10 s it is over, silently.
    assert_eq!(sent, (1..20).map(|n| n * 500).collect::<Vec<u128>>());
    let left = talk.events.last().unwrap();
    assert!(matches!(left, ServerEvent::Left { why: Left::Silence, .. }), "{left:?}");
    // The next datagram of the same address begins a new connection, with numbers of its own.
    let answers = client.ping(&mut talk);
    assert_eq!(types(&answers), ["Ping"]);
    assert_eq!(ack_of(&answers[0]).0, client.next.wrapping_sub(1));
}

#[test]
fn any_tagged_datagram_keeps_a_connection_and_is_acknowledged() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut client = Puppet::new(peer(1, 5));
    client.enter(&mut talk, "ivan");
    let old = ping(Numbers::first());
    for bytes in
        [old, bare(client.numbers(), PacketType(99)), bare(client.numbers(), PacketType::JOIN)]
    {
        talk.wait(9000);
        client.say(&mut talk, &bytes);
    }
    talk.wait(9999);
    assert_eq!(talk.server.players(), 1);
    let newest = client.listen(&mut talk).pop().unwrap();
    assert_eq!(ack_of(&newest), (4, 0xFFFF_FFFF));
    let from = client.peer;
    let unknown = bare(client.numbers(), PacketType(99));
    let received = talk.server.handle_datagram(talk.now, from, &unknown);
    assert!(matches!(received, ServerReceived::Unknown { session, header }
        if session == talk.session_of("ivan") && header.packet_type() == PacketType(99)));
}

#[test]
fn a_late_part_of_an_earlier_connection_ends_nothing() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut client = Puppet::new(peer(1, 5));
    client.enter(&mut talk, "judy");
    client.ping(&mut talk);
    let late = bare(Numbers { seq: Seq::new(2), ack: client.acks.wire() }, PacketType::PART);
    client.say(&mut talk, &late);
    assert_eq!(talk.server.players(), 1);
    client.part(&mut talk);
    assert_eq!(talk.server.players(), 0);
}

#[test]
fn a_new_program_behind_the_same_address_gets_in() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut old = Puppet::new(peer(1, 5));
    old.enter(&mut talk, "kim");
    for _ in 0..40 {
        talk.wait(500);
        old.ping(&mut talk);
    }
    let mut new = Puppet::new(peer(1, 5));
    assert_eq!(types(&new.enter(&mut talk, "kim")), ["Ping", "Join"]);
    let left = talk.events.iter().filter_map(|event| match event {
        ServerEvent::Left { why, .. } => Some(*why),
        _ => None,
    });
    assert_eq!(left.collect::<Vec<_>>(), [Left::Restarted]);
}

#[test]
fn a_kicked_player_is_told_three_times_and_a_server_that_stops_tells_all() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut players: Vec<_> = (1..=3).map(|host| Puppet::new(peer(host, 5))).collect();
    for (player, name) in players.iter_mut().zip(["a", "b", "c"]) {
        player.enter(&mut talk, name);
    }
    let (now, session) = (talk.now, talk.session_of("b"));
    talk.server.part(now, session);
    talk.pump();
    talk.wait(100);
    assert_eq!(types(&players[1].listen(&mut talk)), ["Part"; 3]);
    assert!(!talk.server.admit(session, Spawn::at_origin(EntityId(9)), Name::new("w")));
    let mut guest = Puppet::new(peer(9, 5));
    guest.ping(&mut talk);
    let now = talk.now;
    talk.server.shut_down(now);
    assert!(!talk.server.is_drained());
    talk.pump();
    talk.wait(100);
    assert!(talk.server.is_drained());
    assert_eq!(types(&players[0].listen(&mut talk)), ["Part"; 3]);
    assert_eq!(types(&players[2].listen(&mut talk)), ["Part"; 3]);
    assert_eq!(types(&guest.listen(&mut talk)), [""; 0]);
    assert_eq!(types(&guest.ping(&mut talk)), [""; 0], "nobody is taken any more");
}

/// A Join that was lost: the server finds out when an acknowledgement is 33 numbers beyond it.
#[test]
fn a_lost_join_is_sent_again() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut client = Puppet::new(peer(1, 5));
    client.ping(&mut talk);
    let bytes = login(client.numbers(), "carol");
    talk.give(client.peer, &bytes);
    // The Join, which the client does not hear of.
    let lost = talk.take(client.peer);
    assert_eq!(types(&lost), ["Join"]);
    let mut told = Told::default();
    let mut again = Vec::new();
    for _ in 0..40 {
        talk.wait(500);
        client.listen(&mut talk);
        let bytes = ping(client.numbers());
        told.hear(&bytes);
        let answers = client.say(&mut talk, &bytes);
        let joins: Vec<_> = answers.into_iter().filter(|bytes| bytes[12] == 2).collect();
        assert_eq!(joins.is_empty(), !told.is_lost(seq_of(&lost[0])) || !again.is_empty());
        again.extend(joins);
    }
    assert_eq!(again.len(), 1);
    assert_eq!(again[0][16..], lost[0][16..]);
    assert_eq!(seq_of(&again[0]).wrapping_sub(seq_of(&lost[0])), 34);
}

// The client.

struct Alone {
    client: Client,
    now: Instant,
    sent: Vec<(Instant, Vec<u8>)>,
    events: Vec<ClientEvent>,
}

fn server() -> caves_session::Peer {
    peer(9, 12354)
}

impl Alone {
    fn new() -> Self {
        let client = Client::new(ClientConfig::new(server(), Name::new("ada")), START);
        let mut alone = Self { client, now: START, sent: Vec::new(), events: Vec::new() };
        alone.pump();
        alone
    }

    fn pump(&mut self) {
        self.events.extend(std::iter::from_fn(|| self.client.poll_event()));
        let mut buf = [0; 500];
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            self.sent.push((self.now, buf[..len].to_vec()));
        }
        assert!(self.client.poll_timeout().is_none_or(|due| due > self.now));
    }

    fn until(&mut self, until: Instant) {
        while let Some(due) = self.client.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.client.handle_timeout(self.now);
            self.pump();
        }
        self.now = until;
    }

    fn wait(&mut self, millis: u64) {
        self.until(self.now + Duration::from_millis(millis));
    }

    fn give(&mut self, bytes: &[u8]) {
        self.client.handle_datagram(self.now, server(), bytes);
        self.pump();
    }

    fn types(&mut self) -> Vec<&'static str> {
        types(
            &std::mem::take(&mut self.sent).into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>(),
        )
    }
}

fn numbers(seq: u32, ack: u32) -> Numbers {
    Numbers { seq: Seq::new(seq), ack: Ack::all_up_to(Seq::new(ack)) }
}

fn join(seq: u32, ack: u32, entity: u32) -> Vec<u8> {
    let mut buf = [0; 116];
    let spawn = Spawn::at_origin(EntityId(entity));
    Join { numbers: numbers(seq, ack), spawn, world: Name::new("w") }.emit(&mut buf).unwrap();
    buf.to_vec()
}

/// What our client makes of a real server's half of each capture, and what unknown packets it hands on.
#[test]
fn the_captured_servers_are_understood() {
    let entered = |entities: &[u32]| entities.iter().map(u32::to_string).collect::<Vec<_>>();
    for (file, lines) in captures() {
        let mut alone = Alone::new();
        let mut unknown = 0;
        for line in lines.iter().filter(|line| line.from_server && !line.lost) {
            alone.until(START + Duration::from_millis(line.at));
            let received = alone.client.handle_datagram(alone.now, server(), &line.bytes);
            unknown += u32::from(matches!(received, ClientReceived::Unknown(_)));
            alone.pump();
        }
        let events: Vec<String> = alone
            .events
            .iter()
            .map(|event| match event {
                ClientEvent::Joined(joined) => {
                    assert_eq!(joined.world(), Name::new("default"));
                    joined.entity().0.to_string()
                }
                ClientEvent::Ended(end) => format!("{end:?}"),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = match file.as_str() {
            "session" | "older-login-first" => entered(&[1]),
            // The newest servers count from 1 for each of these; their Join is the newest layout.
            "head-session" | "head-lossy" => entered(&[1]),
            "head-dup-login" => vec!["1".into(), "Kicked".into()],
            "dup-login" => vec!["3".into(), "Kicked".into()],
            "second-name" => entered(&[5, 8]),
            "name-taken-1" => entered(&[4]),
            "name-taken-2" | "name-taken-3" | "join-lost" => vec!["Refused".into()],
            "timeout" => entered(&[6]),
            "lossy" => entered(&[18]),
            "older-ping-first" => entered(&[2]),
            "edge-oversize" => entered(&[7]),
            "edge-login-first-seq5000" => entered(&[9]),
            "edge-login-first" => entered(&[10]),
            "edge-padding" => entered(&[11]),
            "edge-garbage-after-nul" => entered(&[12]),
            "edge-badutf8" => entered(&[13]),
            "edge-long40" => entered(&[14]),
            "edge-full32" => entered(&[15]),
            "edge-short-name" => entered(&[16]),
            "edge-empty-name" => entered(&[17]),
            _ => vec![],
        };
        assert_eq!(events, expected, "{file}");
        // Of the newest servers' own types those before the Join are skipped.
        let joins = lines.iter().position(|l| l.from_server && !l.lost && l.bytes[12] == 2);
        let after = lines.iter().skip(joins.unwrap_or(lines.len()));
        let new = after.filter(|l| l.from_server && !l.lost && l.bytes[12] > 3).count();
        assert_eq!(unknown as usize, new, "{file}");
    }
}

#[test]
fn a_client_pings_then_logs_in_and_answers_the_first_datagram_at_once() {
    let mut alone = Alone::new();
    assert_eq!(alone.types(), ["Ping", "Login"]);
    alone.wait(400);
    alone.give(&ping(numbers(77, 1)));
    assert_eq!(ack_of(&alone.sent[0].1).0, 77);
    assert_eq!(alone.types(), ["Ping"]);
    alone.give(&ping(numbers(78, 2)));
    assert_eq!(alone.types(), [""; 0]);
    alone.wait(499);
    assert_eq!(alone.types(), [""; 0]);
    alone.wait(1);
    assert_eq!(alone.types(), ["Ping"]);
}

#[test]
fn a_client_hears_only_its_server_and_only_until_it_is_over() {
    let mut alone = Alone::new();
    for other in [peer(9, 12355), peer(8, 12354)] {
        alone.client.handle_datagram(alone.now, other, &join(0, 1, 5));
    }
    assert_eq!(alone.client.counters().dropped(DropReason::Address), 2);
    alone.give(&login(numbers(0, 1), "me"));
    assert_eq!(alone.client.counters().dropped(DropReason::PacketType), 1);
    // Too short for a Join, and numbers that are none.
    alone.give(&join(1, 1, 5)[..83]);
    let mut infinite = join(2, 1, 5);
    infinite[32..36].copy_from_slice(&f32::INFINITY.to_le_bytes());
    alone.give(&infinite);
    assert_eq!(alone.client.counters().dropped(DropReason::Malformed), 2);
    assert!(alone.events.is_empty());
    alone.give(&bare(numbers(3, 1), PacketType::PART));
    assert_eq!(alone.events, [ClientEvent::Ended(ClientEnd::Refused)]);
    alone.give(&join(4, 1, 5));
    assert_eq!(alone.client.counters().dropped(DropReason::Unasked), 1);
    assert_eq!((alone.events.len(), alone.client.poll_timeout()), (1, None));
}

#[test]
fn joins_and_parts_count_once_and_in_order() {
    let mut alone = Alone::new();
    alone.give(&join(5, 1, 1));
    alone.give(&join(5, 1, 1));
    // The same Join in a new datagram, as our server repeats it.
    alone.give(&join(6, 1, 1));
    let entities = |alone: &Alone| -> Vec<u32> {
        let joined = alone.events.iter().filter_map(|event| match event {
            ClientEvent::Joined(joined) => Some(joined.entity().0),
            _ => None,
        });
        joined.collect()
    };
    assert_eq!(entities(&alone), [1]);
    alone.give(&join(8, 1, 2));
    alone.give(&join(7, 1, 1));
    assert_eq!(entities(&alone), [1, 2], "an older world does not come back");
    assert_eq!(alone.client.counters().dropped(DropReason::Repeated), 3);
    alone.give(&bare(numbers(7, 1), PacketType::PART));
    assert_eq!(alone.events.len(), 2);
    alone.give(&bare(numbers(9, 1), PacketType::PART));
    assert_eq!(alone.events.last(), Some(&ClientEvent::Ended(ClientEnd::Kicked)));
}

/// As in the capture `lossy`: the Login was number 1, and is sent anew when the acknowledgement
/// reaches 34.
#[test]
fn a_login_is_sent_again_when_it_is_judged_lost_and_never_before() {
    let mut alone = Alone::new();
    assert_eq!(alone.types(), ["Ping", "Login"]);
    let mut history = RealAck::START;
    history.receive(0);
    let mut logins = Vec::new();
    for seq in 0..40u32 {
        alone.wait(500);
        for (_, bytes) in std::mem::take(&mut alone.sent) {
            history.receive(seq_of(&bytes));
            if parse(&bytes).header().packet_type() == PacketType::LOGIN {
                logins.push((history.ack, alone.now));
            }
        }
        let numbers = Numbers { seq: Seq::new(seq), ack: history.wire() };
        alone.give(&ping(numbers));
        if logins.is_empty() && alone.types().contains(&"Login") {
            logins.push((history.ack, alone.now));
        }
    }
    let (ack, at) = logins[0];
    assert_eq!(ack, 34);
    // 32 pings of 500 ms after those of 0 and of the first answer.
    let seconds = at.saturating_since(START).as_millis();
    assert!((16_000..17_500).contains(&seconds), "{seconds}");
}

#[test]
fn a_client_whose_login_was_heard_does_not_repeat_it_and_gives_up_after_two_minutes() {
    let mut alone = Alone::new();
    for seq in 0..250 {
        alone.wait(500);
        let newest = alone.sent.last().map_or(1, |(_, bytes)| seq_of(bytes));
        alone.give(&ping(numbers(seq, newest.into())));
    }
    let end = alone.sent.iter().rev().find(|(_, bytes)| bytes[12] == 3).unwrap().0;
    assert_eq!(end, START + Duration::from_millis(120_040));
    let types = alone.types();
    assert_eq!(types.iter().filter(|name| **name == "Login").count(), 1);
    assert_eq!(types[types.len() - 4..], ["Ping", "Part", "Part", "Part"]);
    assert_eq!(alone.events, [ClientEvent::Ended(ClientEnd::Unanswered)]);
}

#[test]
fn a_client_that_hears_nothing_for_10_s_ends_silently() {
    let mut alone = Alone::new();
    alone.give(&join(0, 1, 1));
    alone.wait(4000);
    // Any datagram counts, a repeated one too.
    alone.give(&join(0, 1, 1));
    alone.types();
    alone.wait(9999);
    assert_eq!(alone.events.len(), 1);
    alone.wait(1);
    assert_eq!(alone.events.last(), Some(&ClientEvent::Ended(ClientEnd::Silence)));
    assert_eq!(alone.types(), ["Ping"; 19]);
    assert_eq!(alone.client.poll_timeout(), None);
}

#[test]
fn a_client_that_leaves_says_so_three_times() {
    let mut alone = Alone::new();
    alone.give(&join(0, 1, 1));
    alone.types();
    alone.client.leave(alone.now);
    alone.pump();
    let begin = alone.now;
    alone.wait(1000);
    let gaps: Vec<_> =
        alone.sent.iter().map(|(at, _)| at.saturating_since(begin).as_millis()).collect();
    assert_eq!(gaps, [0, 20, 40]);
    assert_eq!(alone.types(), ["Part"; 3]);
    assert_eq!(alone.events.last(), Some(&ClientEvent::Ended(ClientEnd::Quit)));
}

/// A server that has dropped a client counts anew from 0, or from a drawn number (ours).
#[test]
fn a_client_that_was_forgotten_notices() {
    let played = |first: u32| {
        let mut alone = Alone::new();
        for seq in first..first + 50 {
            alone.give(&join(seq, 1, 1));
            alone.wait(100);
        }
        alone
    };
    let mut alone = played(0);
    for seq in 0..3 {
        alone.give(&ping(numbers(seq, 9)));
    }
    assert_eq!(alone.events.len(), 1, "three may be late");
    alone.give(&ping(numbers(3, 9)));
    assert_eq!(alone.events.last(), Some(&ClientEvent::Ended(ClientEnd::Forgotten)));
    alone.wait(100);
    assert_eq!(alone.types().iter().filter(|name| **name == "Part").count(), 3);
    let mut alone = played(0);
    alone.give(&ping(numbers(50 + 5000, 9)));
    assert_eq!(alone.events.last(), Some(&ClientEvent::Ended(ClientEnd::Forgotten)));
    // The first number may be any.
    assert_eq!(played(20_000).events.len(), 1);
}

#[test]
fn only_one_world_and_one_end_wait_to_be_told() {
    let mut client = Client::new(ClientConfig::new(server(), Name::new("x")), START);
    for seq in 0..1000 {
        client.handle_datagram(START, server(), &join(seq, 1, seq));
    }
    client.leave(START);
    let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    assert!(
        matches!(&events[..], [ClientEvent::Joined(world), ClientEvent::Ended(ClientEnd::Quit)]
        if world.entity() == EntityId(999))
    );
}

#[test]
fn a_world_change_is_one_more_join() {
    let mut talk = Talk::new(ServerConfig::default());
    let mut player = Puppet::new(peer(1, 5));
    player.enter(&mut talk, "walt");
    let session = talk.session_of("walt");
    assert_eq!(talk.server.peer(session), Some(player.peer));
    talk.server.admit(session, Spawn::at_origin(EntityId(7)), Name::new("other"));
    talk.pump();
    let sent = player.listen(&mut talk);
    let Packet::Join(join) = parse(&sent[0]) else { panic!("{sent:?}") };
    assert_eq!((join.spawn().entity, join.world()), (EntityId(7), Name::new("other")));
    // From now on a repeated Login is answered by the new world.
    let again = player.login(&mut talk, "walt");
    assert_eq!(again[0][16..], sent[0][16..]);
    assert_eq!(HeaderView::parse(&again[0]).unwrap().packet_type(), PacketType::JOIN);
}

#[test]
fn a_name_changes_only_after_it_was_admitted() {
    let mut server = Server::new(ServerConfig::default(), Box::new(|| 0), START);
    let from = peer(1, 5);
    let mut buf = [0; 500];
    server.handle_datagram(START, from, &login(numbers(0, 0xFFFF), "a0"));
    server.poll_transmit(START, &mut buf).unwrap();
    for seq in 1..100 {
        server.handle_datagram(START, from, &login(numbers(seq, 0), &format!("a{seq}")));
    }
    let events: Vec<_> = std::iter::from_fn(|| server.poll_event()).collect();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(server.counters().dropped(DropReason::Waiting), 98);
}
