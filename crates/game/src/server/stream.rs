//! What is sent of a tick: player by player the state, the entities, then chunks.

use std::collections::VecDeque;

use caves_link::time::Instant;
use caves_session::caves::SessionId;
use caves_session::fault::Fault;
use caves_session::{Peer, Transmit};
use caves_wire::caves::{ChunkEntry, Features, State};
use caves_wire::fnv::fnv1a_many;
use caves_world::{ChunkPos, EntityId, Pos};

use super::Server;
use crate::convert::entity_from_wire;
use crate::replicate::{self, ChunkPackets, Scratch, Tags, Update};

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
    entity: Option<EntityId>,
    pos: Pos,
    manifest: [ChunkEntry; 9],
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
    fn make_group(&mut self) -> bool {
        let stream = &mut self.stream;
        (stream.members, stream.turn, stream.step) = (0, 0, None);
        stream.group.iter_mut().for_each(|member| member.update.clear());
        while stream.members < GROUP
            && let Some(id) = stream.waiting.pop_front()
        {
            let Some(view) = self.sessions.session(id) else { continue };
            let entity = entity_from_wire(view.entity());
            let Some(pos) = self.world.entity(entity).map(|entity| entity.pos) else { continue };
            let member = &mut stream.group[stream.members];
            member.update.fill(&self.world, &stream.tags, entity, view, &mut stream.scratch);
            (member.session, member.entity, member.pos) = (Some(id), Some(entity), pos);
            member.is_state_last = view.features().contains(Features::BURST)
                && member.update.first_len() >= State::LEN;
            member.manifest = replicate::manifest(&self.world, self.offset, pos);
            stream.members += 1;
        }
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
        let Some(id) = member.session else { return false };
        let Some(view) = self.sessions.session(id) else { return false };
        member.to = Some(view.peer());
        stream.chunks.clear();
        if let Some(Some(player)) = self.players.get_mut(id.slot()) {
            player.chunks.take_missing(now, member.pos, &member.manifest, &mut stream.chunks);
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
            replicate::emit_state(self.tick, manifest, member.entity?, checksum, buf)
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
