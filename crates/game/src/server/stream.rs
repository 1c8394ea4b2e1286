//! What is sent of a tick: player by player the state, the entities, then chunks.

use std::collections::VecDeque;

use caves_link::time::Instant;
use caves_session::caves::SessionId;
use caves_session::fault::Fault;
use caves_session::{Peer, Transmit};
use caves_wire::caves::{ChunkEntry, Features, State};
use caves_wire::fnv::fnv1a_many;
use caves_world::{ChunkPos, Pos};

use super::Server;
use crate::convert::entity_from_wire;
use crate::replicate::{self, Audience, ChunkPackets, Scratch, Tags, Update};

/// Players whose updates are made together: their checksums take a quarter of the time then.
const GROUP: usize = 8;

/// What is being sent of the present tick.
#[derive(Debug)]
pub(super) struct Stream {
    /// Players whose turn has not come.
    waiting: VecDeque<SessionId>,
    /// Those whose updates are made. Always [`GROUP`], for their buffers.
    group: Vec<Member>,
    /// How many of them there are, and whose turn it is.
    members: usize,
    turn: usize,
    /// Datagrams of the present one that were sent; `None` before its turn has begun.
    step: Option<usize>,
    /// Chunks of the present one that are left to send.
    chunks: VecDeque<ChunkPos>,
    tags: Tags,
    packets: ChunkPackets,
    scratch: Scratch,
}

/// What one player is sent of a tick.
#[derive(Debug, Default)]
struct Member {
    session: Option<SessionId>,
    /// Where it is when its turn comes.
    to: Option<Peer>,
    audience: Audience,
    has_burst: bool,
    /// `None` for one whose entity is not there (any more): it is sent nothing.
    pos: Option<Pos>,
    manifest: [ChunkEntry; 9],
    /// Whether chunks may be missing.
    takes_stock: bool,
    update: Update,
    checksum: u32,
    /// Whether the entities go first: with the shorter state behind them they are one write to a kernel that
    /// segments. For those who asked for `burst` (section 2); others expect the state first.
    is_state_last: bool,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            group: (0..GROUP).map(|_| Member::default()).collect(),
            members: 0,
            turn: 0,
            step: None,
            chunks: VecDeque::new(),
            tags: Tags::default(),
            packets: ChunkPackets::new(),
            scratch: Scratch::default(),
        }
    }

    /// Whether all of the tick is sent.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.turn == self.members
    }

    /// Nothing more of this tick is sent.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.chunks.clear();
        (self.members, self.turn, self.step) = (0, 0, None);
    }
}

impl Server {
    /// A tick is over: everybody is sent what is theirs of it. What was left of the one before is not.
    pub(super) fn start_stream(&mut self) {
        self.stream.clear();
        self.stream.tags.write(&self.world);
        let in_order = self.order.iter().filter_map(|slot| self.players[*slot].as_ref());
        self.stream.waiting.extend(in_order.map(|player| player.session));
    }

    pub(super) fn next_of_stream(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            if self.stream.turn == self.stream.members && !self.make_group() {
                return None;
            }
            if self.stream.step.is_none() && !self.begin_turn(now) {
                self.stream.turn += 1;
                continue;
            }
            if let Some(transmit) = self.next_of_turn(buf) {
                return Some(transmit);
            }
            self.stream.step = None;
            self.stream.turn += 1;
        }
    }

    /// Makes the updates of the next few players. False when nobody is left.
    ///
    /// Step by step for all of them and not player by player: what is asked of one is mostly not in the
    /// caches, and so the memory is waited for once a step.
    fn make_group(&mut self) -> bool {
        let stream = &mut self.stream;
        (stream.members, stream.turn, stream.step) = (0, 0, None);
        while stream.members < GROUP
            && let Some(id) = stream.waiting.pop_front()
        {
            let Some(view) = self.sessions.session(id) else { continue };
            let member = &mut stream.group[stream.members];
            member.session = Some(id);
            member.has_burst = view.features().contains(Features::BURST);
            member.audience = Audience {
                entity: entity_from_wire(view.entity()),
                wants_all: view.wants_tags(),
                executed: view.executed(),
            };
            stream.members += 1;
        }
        let (members, rest) = stream.group.split_at_mut(stream.members);
        for member in &mut *members {
            let entity = self.world.entity(member.audience.entity);
            member.pos = entity.map(|entity| entity.pos);
        }
        for member in &mut *members {
            let Some(pos) = member.pos else { continue };
            member.manifest = replicate::manifest(&self.world, self.offset, pos);
        }
        for member in &mut *members {
            let slot = member.session.map_or(usize::MAX, SessionId::slot);
            let player = self.players.get_mut(slot).and_then(Option::as_mut);
            member.takes_stock =
                player.is_some_and(|player| player.chunks.takes_stock(&member.manifest));
        }
        for member in &mut *members {
            member.update.fill(&self.world, &stream.tags, member.audience, &mut stream.scratch);
            member.is_state_last = member.has_burst && member.update.first_len() >= State::LEN;
        }
        rest.iter_mut().for_each(|member| member.update.clear());
        let messages = std::array::from_fn::<_, GROUP, _>(|n| stream.group[n].update.entries());
        let checksums = fnv1a_many(messages);
        for (member, checksum) in stream.group.iter_mut().zip(checksums) {
            member.checksum = checksum;
        }
        stream.members > 0
    }

    /// The turn of a player comes: where it is now, and which chunks it misses. False when it has gone.
    fn begin_turn(&mut self, now: Instant) -> bool {
        let stream = &mut self.stream;
        let member = &mut stream.group[stream.turn];
        let Some((id, pos)) = member.session.zip(member.pos) else { return false };
        let Some(view) = self.sessions.session(id) else { return false };
        member.to = Some(view.peer());
        stream.chunks.clear();
        if member.takes_stock
            && let Some(Some(player)) = self.players.get_mut(id.slot())
        {
            player.chunks.take_missing(now, pos, &member.manifest, &mut stream.chunks);
        }
        stream.step = Some(0);
        true
    }

    fn next_of_turn(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        let stream = &mut self.stream;
        let member = &stream.group[stream.turn];
        let (to, step) = (member.to?, stream.step?);
        stream.step = Some(step + 1);
        let packets = member.update.packets();
        let state = if member.is_state_last { packets } else { 0 };
        let len = if step == state {
            let (manifest, checksum) = (member.manifest, member.checksum);
            replicate::emit_state(self.tick, manifest, member.audience.entity, checksum, buf)
        } else if step <= packets {
            let before = usize::from(step > state);
            member.update.emit(step - before, self.tick, buf)
        } else {
            let chunk = stream.chunks.pop_front()?;
            if self.sessions.faults().has(Fault::TearsChunks) {
                replicate::emit_torn_chunk(&self.world, self.offset, chunk, buf)
            } else {
                stream.packets.emit(&self.world, self.offset, chunk, buf)
            }
        }?;
        if let Some(id) = member.session {
            self.sessions.note_sent_to(id, len);
        }
        Some(Transmit { to, len })
    }
}
