//! What a server tells of itself: Welcome and Info (section 2).

use caves_link::time::Instant;
use caves_wire::caves::{EntityId, Features, Info, Nonce, Sequence, Welcome, tag};
use caves_wire::tlv::{TlvWriter, long_len};
use caves_wire::{EmitError, MAX_DATAGRAM, text};

use super::names::fold_name;
use super::outbox::{self, Answer};
use super::server::{Server, ServerConfig};
use crate::peers::SessionId;

impl Server {
    /// Lets a session in as `entity`, at the present tick, and welcomes it.
    pub fn admit(&mut self, now: Instant, id: SessionId, entity: EntityId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.entity = entity;
        if session.name.is_empty() {
            let name = guest_name(entity, |folded| {
                self.by_name.contains_key(folded) || self.reserved.contains_key(folded)
            });
            session.folded = fold_name(&name);
            session.name = name;
            self.by_name.insert(session.folded.clone(), id);
        }
        self.welcome(now, id);
    }

    /// Writes a session's Welcome and queues it.
    pub(super) fn welcome(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let is_first = !session.is_known;
        let Some(record) = &mut session.join else { return };
        record.welcomed(now, is_first);
        let next_event = (session.features.contains(Features::EVENTS))
            .then(|| session.events.lowest_unacknowledged());
        let mut block = [0; MAX_DATAGRAM];
        let mut buf = [0; MAX_DATAGRAM];
        let len =
            welcome_meta(&self.config, session.features, next_event, &mut block).and_then(|meta| {
                Welcome {
                    nonce: record.nonce,
                    token: session.token,
                    player: session.entity,
                    tick: self.tick,
                    tick_rate: self.config.tick_rate,
                    meta,
                }
                .emit(&mut buf)
            });
        // Name and message are cut to their limits, so a Welcome always fits.
        record.welcome = buf[..len.unwrap_or(0)].into();
        let peer = session.peer;
        self.outbox.answer(peer, Answer::Welcome(id));
        self.set_timer(now, id);
    }

    pub(super) fn emit_answer(
        &self,
        answer: &Answer,
        buf: &mut [u8],
    ) -> Option<Result<usize, EmitError>> {
        match answer {
            Answer::Info(nonce) => Some(self.emit_info(*nonce, buf)),
            Answer::Welcome(id) => {
                let welcome = &self.sessions.get(*id)?.join.as_ref()?.welcome;
                buf.get_mut(..welcome.len())?.copy_from_slice(welcome);
                (!welcome.is_empty()).then_some(Ok(welcome.len()))
            }
            plain => outbox::emit_plain(plain, buf),
        }
    }

    fn emit_info(&self, nonce: Nonce, buf: &mut [u8]) -> Result<usize, EmitError> {
        let mut block = [0; Info::MAX_META];
        let mut tlv = TlvWriter::new(&mut block);
        let name = text::cut(&self.config.name, tag::MAX_SERVER_NAME);
        tlv.put_long(tag::SERVER_NAME, name.as_bytes())?;
        // What is left of 232 bytes is below one field's limit.
        let room = Info::MAX_META - tlv.len() - long_len(1) + 1;
        tlv.put(tag::MOTD, text::cut(&self.config.motd, room).as_bytes())?;
        let meta = tlv.finish();
        let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        Info {
            nonce,
            tick: self.tick,
            players: count(self.sessions.len()),
            max_players: count(self.config.max_players),
            meta,
        }
        .emit(buf)
    }
}

/// A name for a player who brought none: `guest-` and the entity id (section 2, Join TLVs), and a
/// number behind it should somebody have taken that name.
fn guest_name(entity: EntityId, taken: impl Fn(&str) -> bool) -> String {
    let plain = format!("guest-{}", entity.0);
    if !taken(&plain) {
        return plain;
    }
    let mut number = 2;
    loop {
        let name = format!("{plain}-{number}");
        if !taken(&name) {
            return name;
        }
        number += 1;
    }
}

fn welcome_meta<'b>(
    config: &ServerConfig,
    features: Features,
    next_event: Option<Sequence>,
    block: &'b mut [u8],
) -> Result<&'b [u8], EmitError> {
    let mut tlv = TlvWriter::new(block);
    tlv.put(tag::FEATURES, &features.0.to_le_bytes())?;
    if let Some(next) = next_event {
        tlv.put(tag::NEXT_EVENT, &next.get().to_le_bytes())?;
    }
    let name = text::cut(&config.name, tag::MAX_SERVER_NAME);
    tlv.put_long(tag::SERVER_NAME, name.as_bytes())?;
    tlv.put_long(tag::MOTD, text::cut(&config.motd, tag::MAX_MOTD).as_bytes())?;
    Ok(tlv.finish())
}
