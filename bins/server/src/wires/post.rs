//! Who carries outboxes to the kernel: the loop itself, or a thread beside it.
//!
//! ```text
//!          full outboxes, in order
//!   loop ---------------------------> courier -> kernel
//!        <---------------------------
//!          empty ones, with what became of each datagram
//! ```
//!
//! Nothing is shared but the sockets, and nothing is allocated as outboxes go round.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

use caves_link::time::Instant;
use mio::net::UdpSocket;

use super::{Carrier, Outbox};
use crate::Clock;

/// Outboxes that go round. When all are on their way the kernel is behind, and the loop waits for one.
const OUTBOXES: usize = 8;

type Sockets = Vec<Arc<UdpSocket>>;

/// The thread that carries has panicked; what it said.
#[derive(Debug)]
pub(crate) struct Gone(pub(crate) String);

/// Takes what is to be sent.
pub(crate) struct Post {
    filling: Outbox,
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
            // The headers of the calls belong to the thread that makes them.
            Courier::start(clock, || {
                let mut carrier = Carrier::new();
                move |outbox| carrier.carry(outbox, &sockets)
            })
        });
        Ok(Self {
            filling: Outbox::new(),
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

    /// The outbox to write into.
    pub(crate) const fn outbox(&mut self) -> &mut Outbox {
        &mut self.filling
    }

    /// Sends off what was written, and tells what became of that, or of what has come back. The outbox is
    /// empty then; if there is no empty one, one is waited for, which takes the kernel well below a millisecond.
    ///
    /// # Errors
    /// Nobody carries any more.
    pub(crate) fn dispatch(
        &mut self,
        mut tell: impl FnMut(&[u8], io::Result<()>),
    ) -> Result<(), Gone> {
        // To wake a thread for less than a full outbox costs more than it saves; but nothing overtakes what is under way.
        if let Some(courier) = &mut self.courier
            && (courier.under_way > 0 || self.filling.is_full())
        {
            if !self.filling.is_empty() {
                courier.send(&mut self.filling, &mut tell)?;
            }
            return courier.collect(&mut self.last, tell);
        }
        self.carrier.carry(&mut self.filling, &self.sockets);
        self.filling.settle(tell);
        self.last = self.clock.now();
        Ok(())
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
            self.last = courier.wait(&mut tell)?;
        }
        Ok(())
    }

    /// Since when the kernel has everything; `None` while something is under way.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.courier.as_ref().is_none_or(|courier| courier.under_way == 0);
        is_idle.then_some(self.last)
    }
}

/// The loop's side of the thread.
struct Courier {
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
        Ok(Self { free, out: Some(out), back, under_way: 0, thread: Some(thread) })
    }

    /// Takes this one, and leaves an empty one in its place.
    fn send(
        &mut self,
        filled: &mut Outbox,
        mut tell: impl FnMut(&[u8], io::Result<()>),
    ) -> Result<(), Gone> {
        while self.free.is_empty() {
            self.wait(&mut tell)?;
        }
        let Some(empty) = self.free.pop() else { return Ok(()) };
        let outbox = std::mem::replace(filled, empty);
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
                    *last = at;
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

    /// Puts as many as an outbox takes into each of several.
    fn fill_many(
        courier: &mut Courier,
        filling: &mut Outbox,
        outboxes: u32,
        told: &mut Vec<(u32, bool)>,
    ) -> Result<(), Gone> {
        let to = Peer { socket: 0, addr: ([127, 0, 0, 1], 9).into() };
        for place in 0..outboxes {
            let first = place * ENTRIES as u32;
            assert!((first..first + ENTRIES as u32).all(|number| write(filling, to, number)));
            courier.send(filling, |datagram, sent| told.push((number(datagram), sent.is_ok())))?;
        }
        Ok(())
    }

    #[test]
    fn with_one_thread_or_two_all_comes_in_order_and_all_is_told_of() {
        const ALL: u32 = 5000;
        for threads in [1, 2] {
            let (from, to) = (socket(), socket());
            let (mut post, mut inbox) = (post(threads, &from), Inbox::new());
            assert_eq!(post.courier.is_some(), threads == 2);
            let (mut told, mut came) = (Vec::new(), Vec::new());
            for sent in 0..ALL {
                // Now and then less than an outbox: it must not overtake.
                if post.outbox().is_full() || sent % 300 == 10 {
                    post.dispatch(|datagram, sent| told.push((number(datagram), sent.is_ok())))
                        .unwrap();
                    // The receiver's buffer is not without end.
                    if sent % 7 == 0 {
                        came.extend(drain(&mut inbox, &to));
                    }
                }
                assert!(write(post.outbox(), peer(&to), sent));
            }
            let mut tell = |datagram: &[u8], sent: io::Result<()>| {
                told.push((number(datagram), sent.is_ok()));
            };
            post.dispatch(&mut tell).unwrap();
            post.finish(&mut tell).unwrap();
            assert!(post.idle_since().is_some());
            came.extend(drain(&mut inbox, &to));
            assert_eq!(came, (0..ALL).collect::<Vec<_>>(), "{threads} threads");
            assert_eq!(told, (0..ALL).map(|number| (number, true)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_the_other_thread_cannot_send_is_told() {
        let (from, to) = (socket(), socket());
        let (mut post, mut told) = (post(2, &from), Vec::new());
        // Nobody can be sent anything at port 0.
        let nobody = Peer { socket: 0, addr: ([127, 0, 0, 1], 0).into() };
        for number in 0..ENTRIES as u32 {
            assert!(write(post.outbox(), if number % 9 == 4 { nobody } else { peer(&to) }, number));
        }
        let mut tell =
            |datagram: &[u8], sent: io::Result<()>| told.push((number(datagram), sent.is_ok()));
        post.dispatch(&mut tell).unwrap();
        post.finish(&mut tell).unwrap();
        let expected = (0..ENTRIES as u32).map(|number| (number, number % 9 != 4));
        assert_eq!(told, expected.collect::<Vec<_>>());
        assert_eq!(drain(&mut Inbox::new(), &to).len(), 64 - 7);
    }

    #[test]
    fn outboxes_go_round_and_when_all_are_out_one_is_waited_for() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let begin = move || move |_: &mut Outbox| wait.recv().unwrap();
        let mut courier = Courier::start(Clock::start(), begin).unwrap();
        let (mut filling, mut told) = (Outbox::new(), Vec::new());
        fill_many(&mut courier, &mut filling, OUTBOXES as u32 - 1, &mut told).unwrap();
        assert_eq!((courier.under_way, courier.free.len(), told.len()), (OUTBOXES - 1, 0, 0));
        // The eighth takes the place of the first, which must be back before.
        go.send(()).unwrap();
        fill_many(&mut courier, &mut filling, 1, &mut told).unwrap();
        assert_eq!((courier.under_way, courier.free.len()), (OUTBOXES - 1, 0));
        assert_eq!(told, (0..ENTRIES as u32).map(|number| (number, true)).collect::<Vec<_>>());
        (1..OUTBOXES).for_each(|_| go.send(()).unwrap());
        while courier.under_way > 0 {
            courier.wait(|_, _| {}).unwrap();
        }
        assert_eq!(courier.free.len(), OUTBOXES - 1);
    }

    #[test]
    fn a_panic_of_the_other_thread_is_an_error_that_says_what_it_said() {
        for outboxes in [1, OUTBOXES as u32 - 1, 3 * OUTBOXES as u32] {
            let begin = || |_: &mut Outbox| panic!("no kernel today");
            let mut courier = Courier::start(Clock::start(), begin).unwrap();
            let (mut filling, mut told) = (Outbox::new(), Vec::new());
            let sent = fill_many(&mut courier, &mut filling, outboxes, &mut told);
            let Gone(why) = sent.and_then(|()| courier.wait(|_, _| {})).unwrap_err();
            assert_eq!(why, "no kernel today");
            assert!(told.is_empty());
        }
    }

    #[test]
    fn what_is_under_way_at_the_end_is_carried() {
        let (from, to) = (socket(), socket());
        let mut post = post(2, &from);
        for number in 0..3 * ENTRIES as u32 {
            if post.outbox().is_full() {
                post.dispatch(|_, _| {}).unwrap();
            }
            assert!(write(post.outbox(), peer(&to), number));
        }
        post.dispatch(|_, _| {}).unwrap();
        drop(post);
        let came = drain(&mut Inbox::new(), &to);
        assert_eq!(came, (0..3 * ENTRIES as u32).collect::<Vec<_>>());
    }
}
