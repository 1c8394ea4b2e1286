//! Who carries outboxes to the kernel: the loop itself, or a thread beside it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use mio::net::UdpSocket;

use super::{Carrier, Outbox};

/// Outboxes that go round between the loop and the thread. When all are on their way the kernel is behind, and
/// the loop reads on before it writes more.
const OUTBOXES: usize = 8;

type Sockets = Vec<Arc<UdpSocket>>;

/// Takes what is to be sent.
pub(crate) struct Post {
    /// The one that is being filled; `None` while all are on their way.
    filling: Option<Outbox>,
    way: Way,
}

enum Way {
    Here { carrier: Carrier, sockets: Sockets },
    There(Courier),
}

/// The loop's side of the thread.
struct Courier {
    /// Empty ones.
    free: Vec<Outbox>,
    /// `None` when it is over.
    out: Option<SyncSender<Outbox>>,
    back: Receiver<Outbox>,
    under_way: usize,
    thread: Option<JoinHandle<()>>,
}

impl Post {
    /// With two threads or more the second carries.
    pub(crate) fn new(threads: usize, sockets: Sockets) -> io::Result<Self> {
        let way = match threads {
            0 | 1 => Way::Here { carrier: Carrier::new(), sockets },
            _ => Way::There(Courier::start(sockets)?),
        };
        Ok(Self { filling: Some(Outbox::new()), way })
    }

    /// The outbox to write into.
    pub(crate) fn outbox(&mut self) -> Option<&mut Outbox> {
        self.filling.as_mut()
    }

    /// Sends off what was written, and tells what became of that and of what came back.
    pub(crate) fn dispatch(&mut self, mut tell: impl FnMut(&[u8], io::Result<()>)) {
        match &mut self.way {
            Way::Here { carrier, sockets } => {
                let Some(outbox) = &mut self.filling else { return };
                carrier
                    .carry(outbox, |place| sockets.get(usize::from(place)).map(|socket| &**socket));
                outbox.settle(tell);
            }
            Way::There(courier) => {
                if let Some(outbox) = self.filling.take_if(|outbox| !outbox.is_empty()) {
                    courier.send(outbox, &mut tell);
                }
                courier.collect(&mut tell);
                if self.filling.is_none() {
                    self.filling = courier.free.pop();
                }
            }
        }
    }

    /// Whether nothing is on its way any more.
    pub(crate) fn is_idle(&self) -> bool {
        match &self.way {
            Way::Here { .. } => true,
            Way::There(courier) => courier.under_way == 0,
        }
    }
}

impl Courier {
    fn start(sockets: Sockets) -> io::Result<Self> {
        let (out, to_carry) = sync_channel::<Outbox>(OUTBOXES);
        let (done, back) = sync_channel(OUTBOXES);
        let work = move || {
            let mut carrier = Carrier::new();
            for mut outbox in to_carry {
                carrier.carry(&mut outbox, |place| {
                    sockets.get(usize::from(place)).map(|socket| &**socket)
                });
                if done.send(outbox).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("courier".to_owned()).spawn(work)?;
        let free = (1..OUTBOXES).map(|_| Outbox::new()).collect();
        Ok(Self { free, out: Some(out), back, under_way: 0, thread: Some(thread) })
    }

    fn send(&mut self, outbox: Outbox, tell: &mut impl FnMut(&[u8], io::Result<()>)) {
        let refused = match &self.out {
            // There are no more of them than the queue has room for.
            Some(out) => out.send(outbox).err().map(|refused| refused.0),
            None => Some(outbox),
        };
        match refused {
            None => self.under_way += 1,
            // The thread is gone, which it never is: what it should have carried is lost.
            Some(mut outbox) => {
                outbox.settle(|datagram, _| tell(datagram, Err(io::ErrorKind::BrokenPipe.into())));
                self.free.push(outbox);
            }
        }
    }

    fn collect(&mut self, tell: &mut impl FnMut(&[u8], io::Result<()>)) {
        while let Ok(mut outbox) = self.back.try_recv() {
            outbox.settle(&mut *tell);
            self.under_way -= 1;
            self.free.push(outbox);
        }
    }
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
