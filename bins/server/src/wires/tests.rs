use super::*;
use crate::socket::open;

fn local(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().unwrap()
}

fn peer(of: &UdpSocket) -> Peer {
    Peer { socket: 0, addr: local(of) }
}

/// What was told of each datagram: its first byte, its length, and whether it went.
type Told = Vec<(u8, usize, bool)>;

fn flush(outbox: &mut Outbox, from: &Arc<UdpSocket>) -> Told {
    let mut told = Told::new();
    Carrier::new().carry(outbox, std::slice::from_ref(from));
    outbox.settle(|datagram, result| told.push((datagram[0], datagram.len(), result.is_ok())));
    assert!(outbox.is_empty());
    told
}

fn write(outbox: &mut Outbox, to: Peer, first: u8, len: usize) -> bool {
    let Some(room) = outbox.room() else { return false };
    room[..len].fill(first);
    outbox.push(Transmit { to, len });
    true
}

/// All that waits in a socket: first byte, length, sender.
fn drain(inbox: &mut Inbox, socket: &UdpSocket) -> Vec<(u8, usize, SocketAddr)> {
    let mut all = Vec::new();
    loop {
        match inbox.fill(socket) {
            Received::Datagrams(count) => {
                assert!(count > 0);
                let read = inbox.datagrams();
                all.extend(read.map(|(datagram, from)| {
                    assert!(datagram.iter().all(|byte| *byte == datagram[0]));
                    (datagram[0], datagram.len(), from)
                }));
            }
            Received::Nothing => return all,
            other => panic!("{other:?}"),
        }
    }
}

fn socket() -> Arc<UdpSocket> {
    Arc::new(open(([127, 0, 0, 1], 0).into()).unwrap())
}

#[test]
fn datagrams_of_all_lengths_come_as_they_were_sent_to_whom_they_were_sent() {
    let (from, a, b) = (socket(), socket(), socket());
    let (mut outbox, mut inbox) = (Outbox::new(), Inbox::new());
    // The state first or last, several of one length, a longer one after a shorter one.
    let lens = [1200, 72, 72, 1200, 600, 600, 600, 1, 600, 1200, 1200];
    for (place, &len) in lens.iter().enumerate() {
        let to = if place == 5 { peer(&b) } else { peer(&a) };
        assert!(write(&mut outbox, to, place as u8, len));
    }
    // Those that are cut every 600 bytes go in a call, then those cut every 1200, then single ones.
    let order: [u8; 11] = match outbox.offloads {
        true => [6, 7, 0, 1, 3, 4, 9, 10, 2, 5, 8],
        false => std::array::from_fn(|place| place as u8),
    };
    let told = flush(&mut outbox, &from);
    let sent = order.into_iter().map(|place| (place, lens[usize::from(place)], true));
    assert_eq!(told, sent.clone().collect::<Vec<_>>());
    let came = |place: u8, len| (place, len, local(&from));
    let to_a: Vec<_> =
        sent.filter(|sent| sent.0 != 5).map(|(place, len, _)| came(place, len)).collect();
    assert_eq!(drain(&mut inbox, &a), to_a);
    assert_eq!(drain(&mut inbox, &b), [came(5, 600)]);
}

#[test]
fn datagrams_to_one_peer_go_as_one_where_only_the_last_is_shorter() {
    let (from, a, b) = (socket(), socket(), socket());
    let mut outbox = Outbox::new();
    if !outbox.offloads {
        return;
    }
    for len in [1200, 1200, 72, 72, 1200] {
        write(&mut outbox, peer(&a), 1, len);
    }
    write(&mut outbox, peer(&b), 1, 1200);
    let entries = outbox.entries.iter().map(|entry| (entry.segments, entry.bytes.len()));
    assert_eq!(entries.collect::<Vec<_>>(), [(3, 2472), (1, 72), (1, 1200), (1, 1200)]);
    assert_eq!(flush(&mut outbox, &from).len(), 6);
    assert_eq!(drain(&mut Inbox::new(), &a).len(), 5);
}

#[test]
fn what_goes_together_stands_together_and_in_order_among_its_like() {
    let (from, peers) = (socket(), [(); 6].map(|()| socket()));
    let mut outbox = Outbox::new();
    if !outbox.offloads {
        return;
    }
    // A full packet and the rest of the entities, then the state, for each.
    for (place, to) in peers.iter().enumerate() {
        let full = if place % 3 == 2 { 900 } else { 1200 };
        for (kind, len) in [full, 190, 72].into_iter().enumerate() {
            // Never below the one before it.
            let len = if kind == 2 { len + 200 } else { len };
            assert!(write(&mut outbox, peer(to), (10 * place + kind) as u8, len));
        }
    }
    let told = flush(&mut outbox, &from);
    let order: Vec<_> = told.iter().map(|(first, ..)| *first).collect();
    let expected = [20, 21, 50, 51, 0, 1, 10, 11, 30, 31, 40, 41, 2, 12, 22, 32, 42, 52];
    assert_eq!(order, expected, "those of 900 in a call, those of 1200, single ones");
    assert!(peers.iter().all(|to| drain(&mut Inbox::new(), to).len() == 3));
}

#[test]
fn an_outbox_is_full_some_time_and_empty_after_it_was_flushed() {
    let (from, to) = (socket(), socket());
    let mut outbox = Outbox::new();
    for round in 0..3 {
        let mut count = 0;
        // Each longer than the one before, so that none joins another.
        while write(&mut outbox, peer(&to), round, 100 + count) {
            count += 1;
        }
        assert_eq!(count, ENTRIES);
        assert_eq!(flush(&mut outbox, &from).len(), ENTRIES);
        assert_eq!(drain(&mut Inbox::new(), &to).len(), ENTRIES);
    }
    let mut bytes = 0;
    while write(&mut outbox, peer(&to), 1, MAX_DATAGRAM) {
        bytes += MAX_DATAGRAM;
    }
    assert!(bytes <= ARENA && bytes > ARENA - 2 * MAX_DATAGRAM);
}

#[test]
fn what_cannot_be_sent_is_told_and_holds_up_nothing() {
    let (from, to) = (socket(), socket());
    let mut outbox = Outbox::new();
    // Nobody can be sent anything at port 0, and an IPv4 socket reaches no IPv6 address.
    let nobody = Peer { socket: 0, addr: ([127, 0, 0, 1], 0).into() };
    let other = Peer { socket: 0, addr: (std::net::Ipv6Addr::LOCALHOST, 9).into() };
    let elsewhere = Peer { socket: 7, addr: local(&to) };
    let order = [peer(&to), nobody, peer(&to), other, other, elsewhere, peer(&to)];
    for (place, to) in order.into_iter().enumerate() {
        write(&mut outbox, to, place as u8, 200);
    }
    let is_joined = outbox.entries.len() < order.len();
    let told = flush(&mut outbox, &from);
    // The two that go as one come first, those of the other socket last.
    let mut expected =
        [(3, false), (4, false), (0, true), (1, false), (2, true), (6, true), (5, false)];
    if !is_joined {
        expected[..6].sort_unstable();
    }
    assert_eq!(told, expected.map(|(place, went)| (place, 200, went)));
    let came = drain(&mut Inbox::new(), &to);
    assert_eq!(came.iter().map(|(place, ..)| *place).collect::<Vec<_>>(), [0, 2, 6]);
}

#[test]
fn more_than_a_batch_is_read_in_several_and_what_is_too_long_is_cut() {
    let (from, to) = (socket(), socket());
    for count in 0..100 {
        from.send_to(&vec![count; 100 + usize::from(count)], local(&to)).unwrap();
    }
    from.send_to(&[9; 5000], local(&to)).unwrap();
    from.send_to(&[8; 0], local(&to)).unwrap();
    let mut inbox = Inbox::new();
    let mut lens = Vec::new();
    while let Received::Datagrams(count) = inbox.fill(&to) {
        assert!(count <= SLOTS);
        lens.extend(inbox.datagrams().map(|(datagram, _)| datagram.len()));
    }
    let mut expected: Vec<usize> = (100..200).collect();
    expected.extend([SLOT, 0]);
    assert_eq!(lens, expected);
    assert!(matches!(inbox.fill(&to), Received::Nothing));
    assert_eq!(inbox.datagrams().count(), 0);
}

#[test]
fn ipv6_senders_are_known_too() {
    let here = (std::net::Ipv6Addr::LOCALHOST, 0).into();
    // A machine without IPv6.
    let (Ok(from), Ok(to)) = (open(here).map(Arc::new), open(here)) else { return };
    let mut outbox = Outbox::new();
    write(&mut outbox, peer(&to), 3, 900);
    write(&mut outbox, peer(&to), 4, 72);
    write(&mut outbox, peer(&to), 5, 900);
    flush(&mut outbox, &from);
    let from = local(&from);
    assert_eq!(drain(&mut Inbox::new(), &to), [(3, 900, from), (4, 72, from), (5, 900, from)]);
}
