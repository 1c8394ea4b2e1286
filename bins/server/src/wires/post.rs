//! Who carries outboxes to the kernel: the loop alone, or a thread beside it, too.
//!
//! ```text
//!                       full outboxes, in order
//!        three peers of four ---------------------> courier -> kernel
//!   loop               <---------------------
//!    |                  empty ones, with what became of each datagram
//!    `-- every fourth ----------------------------------------> kernel
//! ```
//!
//! A peer has its carrier once and for all, so no outbox of its overtakes another. The loop has other work, too, and so
//! fewer peers. Nothing is shared but the sockets, and nothing is allocated as outboxes go round.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

use caves_link::time::Instant;
use caves_session::Transmit;
use mio::net::UdpSocket;

use super::cores::Cores;
use super::{Carrier, Outbox};
use crate::Clock;

/// Outboxes that go round. When all are on their way the kernel is behind, and the loop waits for one.
const OUTBOXES: usize = 8;
/// Of so many peers the loop carries one's datagrams itself: to write them is a third of all work.
const SHARE: u64 = 4;

type Sockets = Vec<Arc<UdpSocket>>;

/// The thread that carries has panicked; what it said.
#[derive(Debug)]
pub(crate) struct Gone(pub(crate) String);

/// Takes what is to be sent.
pub(crate) struct Post {
    /// What the loop carries.
    own: Outbox,
    carrier: Carrier,
    sockets: Sockets,
    courier: Option<Courier>,
    clock: Clock,
    /// When the kernel had all that was sent off, or the newest of what came back.
    last: Instant,
}

impl Post {
    /// With two threads or more the second carries.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn new(threads: usize, sockets: Sockets, clock: Clock) -> io::Result<Self> {
        let courier = (threads > 1).then(|| {
            let sockets = sockets.clone();
            let [own, other] = Cores::halves();
            own.take();
            // The headers of the calls belong to the thread that makes them.
            Courier::start(clock, move || {
                other.take();
                let mut carrier = Carrier::new();
                move |outbox| carrier.carry(outbox, &sockets)
            })
        });
        Ok(Self {
            own: Outbox::new(),
            carrier: Carrier::new(),
            sockets,
            courier: courier.transpose()?,
            clock,
            last: clock.now(),
        })
    }

    /// One whose other thread sends nothing, and calls something for each outbox.
    #[cfg(test)]
    pub(crate) fn held_up(clock: Clock, mut by: impl FnMut() + Send + 'static) -> Self {
        let courier = Courier::start(clock, move || move |_: &mut Outbox| by());
        Self { courier: Some(courier.unwrap()), ..Self::new(1, Vec::new(), clock).unwrap() }
    }

    /// Whether datagrams to one peer go as one from now on: see [`Outbox::set_joins`].
    pub(crate) fn set_joins(&mut self, joins: bool) {
        self.own.set_joins(joins);
        if let Some(courier) = &mut self.courier {
            courier.filling.set_joins(joins);
        }
    }

    /// Where the next datagram is to be written; `None` when [`Post::make_room`] is due.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        match &mut self.courier {
            Some(courier) => courier.filling.room().filter(|_| !self.own.is_full()),
            None => self.own.room(),
        }
    }

    /// The datagram that was just written into the room.
    pub(crate) fn push(&mut self, transmit: Transmit) {
        match &mut self.courier {
            Some(courier) if is_own(transmit.to.addr) => {
                courier.filling.copy_to(&mut self.own, transmit);
            }
            Some(courier) => courier.filling.push(transmit),
            None => self.own.push(transmit),
        }
    }

    /// Sends off what is full, and tells what became of that, or of what has come back. Where there is no
    /// empty outbox one is waited for, which takes the kernel well below a millisecond.
    ///
    /// # Errors
    /// Nobody carries any more.
    pub(crate) fn make_room(
        &mut self,
        mut tell: impl FnMut(&[u8], io::Result<()>),
    ) -> Result<(), Gone> {
        if let Some(courier) = &mut self.courier {
            if courier.filling.is_full() {
                courier.send(&mut tell)?;
            }
            courier.collect(&mut self.last, &mut tell)?;
        }
        if self.own.is_full() {
            self.carry(tell);
        }
        Ok(())
    }

    /// Sends off all that was written.
    ///
    /// # Errors
    /// As [`Post::make_room`].
    pub(crate) fn dispatch(
        &mut self,
        mut tell: impl FnMut(&[u8], io::Result<()>),
    ) -> Result<(), Gone> {
        if let Some(courier) = &mut self.courier {
            // To wake a thread for less than a full outbox costs more than it saves; but nothing may overtake what is under way.
            if courier.under_way == 0 && !courier.filling.is_full() {
                self.carrier.carry(&mut courier.filling, &self.sockets);
                courier.filling.settle(&mut tell);
            } else if !courier.filling.is_empty() {
                courier.send(&mut tell)?;
            }
        }
        // With nothing of its own it only looks what has come back, which was carried earlier.
        if !self.own.is_empty() || self.idle_since().is_some() {
            self.carry(&mut tell);
        }
        match &mut self.courier {
            Some(courier) => courier.collect(&mut self.last, tell),
            None => Ok(()),
        }
    }

    /// Waits until nothing is under way.
    ///
    /// # Errors
    /// Nobody carries any more.
    pub(crate) fn finish(
        &mut self,
        mut tell: impl FnMut(&[u8], io::Result<()>),
    ) -> Result<(), Gone> {
        let Some(courier) = &mut self.courier else { return Ok(()) };
        while courier.under_way > 0 {
            let at = courier.wait(&mut tell)?;
            self.last = self.last.max(at);
        }
        Ok(())
    }

    /// Since when the kernel has everything; `None` while something is under way.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.courier.as_ref().is_none_or(|courier| courier.under_way == 0);
        is_idle.then_some(self.last)
    }

    fn carry(&mut self, tell: impl FnMut(&[u8], io::Result<()>)) {
        self.carrier.carry(&mut self.own, &self.sockets);
        self.own.settle(tell);
        self.last = self.clock.now();
    }
}

/// Whether the loop carries what goes there, where there is a thread beside it.
fn is_own(to: SocketAddr) -> bool {
    let mut hasher = DefaultHasher::new();
    to.hash(&mut hasher);
    hasher.finish().is_multiple_of(SHARE)
}

/// The loop's side of the thread.
struct Courier {
    filling: Outbox,
    /// Empty ones.
    free: Vec<Outbox>,
    /// `None` when it is over.
    out: Option<SyncSender<Outbox>>,
    /// Carried ones, and when they were.
    back: Receiver<(Outbox, Instant)>,
    under_way: usize,
    thread: Option<JoinHandle<()>>,
}

impl Courier {
    /// `begin` is called in the thread, and gives what carries.
    fn start<C: FnMut(&mut Outbox)>(
        clock: Clock,
        begin: impl FnOnce() -> C + Send + 'static,
    ) -> io::Result<Self> {
        // Both have room for all there are: neither side ever waits for room.
        let (out, to_carry) = sync_channel::<Outbox>(OUTBOXES);
        let (done, back) = sync_channel(OUTBOXES);
        let work = move || {
            let mut carry = begin();
            for mut outbox in to_carry {
                carry(&mut outbox);
                if done.send((outbox, clock.now())).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("courier".to_owned()).spawn(work)?;
        // One more is being filled.
        let free = (1..OUTBOXES).map(|_| Outbox::new()).collect();
        let filling = Outbox::new();
        Ok(Self { filling, free, out: Some(out), back, under_way: 0, thread: Some(thread) })
    }

    /// Sends off what was written; there is an empty one in its place then.
    fn send(&mut self, mut tell: impl FnMut(&[u8], io::Result<()>)) -> Result<(), Gone> {
        while self.free.is_empty() {
            self.wait(&mut tell)?;
        }
        let Some(empty) = self.free.pop() else { return Ok(()) };
        let outbox = std::mem::replace(&mut self.filling, empty);
        let taken = self.out.as_ref().is_some_and(|out| out.send(outbox).is_ok());
        self.under_way += usize::from(taken);
        if taken { Ok(()) } else { Err(self.mourn()) }
    }

    /// Waits for the next that comes back; when it was carried.
    fn wait(&mut self, tell: impl FnMut(&[u8], io::Result<()>)) -> Result<Instant, Gone> {
        let (outbox, at) = self.back.recv().map_err(|_| self.mourn())?;
        self.settle(outbox, tell);
        Ok(at)
    }

    /// Takes what has come back.
    fn collect(
        &mut self,
        last: &mut Instant,
        mut tell: impl FnMut(&[u8], io::Result<()>),
    ) -> Result<(), Gone> {
        loop {
            match self.back.try_recv() {
                Ok((outbox, at)) => {
                    self.settle(outbox, &mut tell);
                    *last = at.max(*last);
                }
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(self.mourn()),
            }
        }
    }

    fn settle(&mut self, mut outbox: Outbox, tell: impl FnMut(&[u8], io::Result<()>)) {
        outbox.settle(tell);
        self.under_way -= 1;
        self.free.push(outbox);
    }

    /// The thread has ended, which it does by a panic alone.
    fn mourn(&mut self) -> Gone {
        let panic = self.thread.take().and_then(|thread| thread.join().err());
        Gone(panic.as_deref().map_or("it is over", said).to_owned())
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

impl Drop for Courier {
    /// What is under way is carried before.
    fn drop(&mut self) {
        self.out = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use caves_session::{Peer, Transmit};

    use super::*;
    use crate::socket::open;
    use crate::wires::{ENTRIES, Inbox, Received};

    fn socket() -> Arc<UdpSocket> {
        Arc::new(open(([127, 0, 0, 1], 0).into()).unwrap())
    }

    fn post(threads: usize, from: &Arc<UdpSocket>) -> Post {
        Post::new(threads, vec![Arc::clone(from)], Clock::start()).unwrap()
    }

    fn peer(of: &UdpSocket) -> Peer {
        Peer { socket: 0, addr: of.local_addr().unwrap() }
    }

    /// Writes a datagram that says a number; `false` when the outbox is full.
    fn write(outbox: &mut Outbox, to: Peer, number: u32) -> bool {
        outbox.set_joins(false);
        let Some(room) = outbox.room() else { return false };
        room[..4].copy_from_slice(&number.to_le_bytes());
        outbox.push(Transmit { to, len: 4 });
        true
    }

    fn number(datagram: &[u8]) -> u32 {
        u32::from_le_bytes(datagram.try_into().unwrap())
    }

    fn drain(inbox: &mut Inbox, socket: &UdpSocket) -> Vec<u32> {
        let mut all = Vec::new();
        while let Received::Datagrams(_) = inbox.fill(socket) {
            all.extend(inbox.datagrams().map(|(datagram, _)| number(datagram)));
        }
        all
    }

    /// A peer of the other thread's, at which nobody is.
    fn other() -> Peer {
        let addr = (1..).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        Peer { socket: 0, addr: addr.into_iter().find(|addr| !is_own(*addr)).unwrap() }
    }

    fn write_to_post(post: &mut Post, to: Peer, number: u32) -> bool {
        post.set_joins(false);
        let Some(room) = post.room() else { return false };
        room[..4].copy_from_slice(&number.to_le_bytes());
        post.push(Transmit { to, len: 4 });
        true
    }

    /// Puts as many as an outbox takes into each of several.
    fn fill_many(
        courier: &mut Courier,
        outboxes: u32,
        told: &mut Vec<(u32, bool)>,
    ) -> Result<(), Gone> {
        for place in 0..outboxes {
            let first = place * ENTRIES as u32;
            let mut numbers = first..first + ENTRIES as u32;
            assert!(numbers.all(|number| write(&mut courier.filling, other(), number)));
            courier.send(|datagram, sent| told.push((number(datagram), sent.is_ok())))?;
        }
        Ok(())
    }

    #[test]
    fn with_one_thread_or_two_all_comes_in_order_and_all_is_told_of() {
        const ALL: u32 = 5000;
        const PEERS: usize = 12;
        for threads in [1, 2] {
            let (from, to) = (socket(), [(); PEERS].map(|()| socket()));
            let (mut post, mut inbox) = (post(threads, &from), Inbox::new());
            assert_eq!(post.courier.is_some(), threads == 2);
            let (mut told, mut came) = (Vec::new(), vec![Vec::new(); PEERS]);
            let mut read = |came: &mut Vec<Vec<u32>>| {
                to.iter().zip(came).for_each(|(to, came)| came.extend(drain(&mut inbox, to)));
            };
            for sent in 0..ALL {
                let mut tell = |datagram: &[u8], sent: io::Result<()>| {
                    told.push((number(datagram), sent.is_ok()));
                };
                if post.room().is_none() {
                    post.make_room(&mut tell).unwrap();
                }
                // Now and then less than an outbox: it must not overtake.
                if sent % 300 == 10 {
                    post.dispatch(&mut tell).unwrap();
                    read(&mut came);
                }
                assert!(write_to_post(&mut post, peer(&to[sent as usize % PEERS]), sent));
            }
            let mut tell = |datagram: &[u8], sent: io::Result<()>| {
                told.push((number(datagram), sent.is_ok()));
            };
            post.dispatch(&mut tell).unwrap();
            post.finish(&mut tell).unwrap();
            assert!(post.idle_since().is_some());
            read(&mut came);
            for (place, came) in came.into_iter().enumerate() {
                let sent = (place as u32..ALL).step_by(PEERS);
                assert_eq!(came, sent.collect::<Vec<_>>(), "{threads} threads, peer {place}");
            }
            told.sort_unstable();
            assert_eq!(told, (0..ALL).map(|number| (number, true)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_loop_carries_for_one_peer_of_four() {
        let peers = (1..=10_000).map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let own = peers.filter(|addr| is_own(*addr)).count();
        // Five standard deviations of a fair draw, 43 each.
        assert!((2_285..2_715).contains(&own), "{own} of 10,000");
    }

    #[test]
    fn what_the_other_thread_cannot_send_is_told() {
        let (from, mut told) = (socket(), Vec::new());
        let mut post = post(2, &from);
        // An IPv4 socket reaches no IPv6 address.
        let six = |port| SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port));
        let addr = (1..).map(six).find(|addr| !is_own(*addr)).unwrap();
        let nobody = Peer { socket: 0, addr };
        for number in 0..ENTRIES as u32 {
            assert!(write_to_post(
                &mut post,
                if number % 9 == 4 { nobody } else { other() },
                number
            ));
        }
        let mut tell =
            |datagram: &[u8], sent: io::Result<()>| told.push((number(datagram), sent.is_ok()));
        post.make_room(&mut tell).unwrap();
        post.finish(&mut tell).unwrap();
        let expected = (0..ENTRIES as u32).map(|number| (number, number % 9 != 4));
        assert_eq!(told, expected.collect::<Vec<_>>());
    }

    #[test]
    fn outboxes_go_round_and_when_all_are_out_one_is_waited_for() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let begin = move || move |_: &mut Outbox| wait.recv().unwrap();
        let mut courier = Courier::start(Clock::start(), begin).unwrap();
        let mut told = Vec::new();
        fill_many(&mut courier, OUTBOXES as u32 - 1, &mut told).unwrap();
        assert_eq!((courier.under_way, courier.free.len(), told.len()), (OUTBOXES - 1, 0, 0));
        // The eighth takes the place of the first, which must be back before.
        go.send(()).unwrap();
        fill_many(&mut courier, 1, &mut told).unwrap();
        assert_eq!((courier.under_way, courier.free.len()), (OUTBOXES - 1, 0));
        assert_eq!(told, (0..ENTRIES as u32).map(|number| (number, true)).collect::<Vec<_>>());
        (1..OUTBOXES).for_each(|_| go.send(()).unwrap());
        while courier.under_way > 0 {
            courier.wait(|_, _| {}).unwrap();
        }
        assert_eq!(courier.free.len(), OUTBOXES - 1);
    }

    #[test]
    fn what_comes_back_was_carried_before_that_was_noticed() {
        let (clock, (go, wait)) = (Clock::start(), std::sync::mpsc::channel());
        let mut post = Post::held_up(clock, move || wait.recv().unwrap());
        for number in 0..ENTRIES as u32 {
            assert!(write_to_post(&mut post, other(), number));
        }
        post.make_room(|_, _| {}).unwrap();
        go.send(()).unwrap();
        let courier = post.courier.as_mut().unwrap();
        courier.out = None;
        courier.thread.take().unwrap().join().unwrap();
        let carried = clock.now();
        while clock.now() == carried {}
        // It was taken back before it was found that the thread has ended.
        let _ = post.dispatch(|_, _| {});
        assert!(post.idle_since().is_some_and(|since| since <= carried));
    }

    #[test]
    fn a_panic_of_the_other_thread_is_an_error_that_says_what_it_said() {
        for outboxes in [1, OUTBOXES as u32 - 1, 3 * OUTBOXES as u32] {
            let begin = || |_: &mut Outbox| panic!("no kernel today");
            let mut courier = Courier::start(Clock::start(), begin).unwrap();
            let mut told = Vec::new();
            let sent = fill_many(&mut courier, outboxes, &mut told);
            let Gone(why) = sent.and_then(|()| courier.wait(|_, _| {})).unwrap_err();
            assert_eq!(why, "no kernel today");
            assert!(told.is_empty());
        }
    }

    #[test]
    fn what_is_under_way_at_the_end_is_carried() {
        const ALL: u32 = 3 * ENTRIES as u32;
        let (from, to) = (socket(), std::iter::repeat_with(socket));
        let to = to.into_iter().find(|to| !is_own(peer(to).addr)).unwrap();
        let mut post = post(2, &from);
        for number in 0..ALL {
            if post.room().is_none() {
                post.make_room(|_, _| {}).unwrap();
            }
            assert!(write_to_post(&mut post, peer(&to), number));
        }
        post.dispatch(|_, _| {}).unwrap();
        drop(post);
        assert_eq!(drain(&mut Inbox::new(), &to), (0..ALL).collect::<Vec<_>>());
    }
}
