//! Teeworlds 0.6: `gie3`, answered by `inf3`, or by DDNet's `iext`.

use std::time::Duration;

use caves_link::retry::{Retry, RetryPolicy};
use caves_link::time::{Deadline, Instant};
use caves_wire::teeworlds::{Connless, InfoKind, InfoRequest, InfoView, InfoWanted};

use super::{Answer, Question};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
const RETRY: RetryPolicy =
    RetryPolicy::uniform(Duration::from_millis(300), Duration::from_millis(500));
/// The question in its extended form; a server that knows only the plain one answers it as such.
pub(super) struct Teeworlds {
    request: InfoRequest,
    retry: Retry,
    until: Instant,
    asked: Instant,
}

impl Teeworlds {
    pub(super) fn new(random: u64, now: Instant) -> Self {
        let mut retry = Retry::new(RETRY);
        retry.ask(now);
        let [token, low, high, ..] = random.to_le_bytes();
        let wanted = InfoWanted::Extended { token: u16::from_le_bytes([low, high]) };
        Self { request: InfoRequest { wanted, token }, retry, until: now + PATIENCE, asked: now }
    }
}

impl Question for Teeworlds {
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Option<Answer> {
        let info = InfoView::parse(&Connless::parse(datagram).ok()?).ok()?;
        // The plain form gives one byte of the token back, the extended one all three.
        let expected = match info.kind() {
            InfoKind::Vanilla => self.request.token.into(),
            _ => self.request.answered_token(),
        };
        let server = info.server().filter(|_| info.token() == expected)?;
        Some(Answer {
            name: server.name.to_string(),
            map: Some(server.map.to_string()),
            players: server.clients.try_into().ok()?,
            max_players: server.max_clients.try_into().ok()?,
            round_trip: now.saturating_since(self.asked),
        })
    }

    fn poll_transmit(&mut self, now: Instant, random: u32, buf: &mut [u8]) -> Option<usize> {
        if !self.retry.due(now) {
            return None;
        }
        self.retry.sent(now, random);
        self.asked = now;
        self.request.emit(buf).ok()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Deadline::earliest([self.retry.deadline(), Some(self.until)])
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    fn answered(token: u32, hex: &str) -> Option<(String, Option<String>, u32, u32)> {
        let mut question = Teeworlds::new(token.into(), Instant::ZERO);
        let answer = question.handle_datagram(Instant::from_secs(1), &bytes(hex))?;
        Some((answer.name, answer.map, answer.players, answer.max_players))
    }

    /// What a real server (DDNet 16.4) was asked.
    #[test]
    fn the_question_is_the_extended_one() {
        let mut question = Teeworlds::new(0x12_3442, Instant::ZERO);
        let mut buf = [0; 64];
        let len = question.poll_transmit(Instant::ZERO, 0, &mut buf).unwrap();
        assert_eq!(buf[..len], bytes("786512340000ffffffff6769653342"));
        assert_eq!(question.poll_transmit(Instant::ZERO, 0, &mut buf), None, "once");
        let due = question.poll_timeout().unwrap();
        assert!(question.poll_transmit(due, 0, &mut buf).is_some(), "again when it is due");
    }

    /// What it answered, in both forms.
    #[test]
    fn both_forms_of_the_answer_are_read_and_a_wrong_token_is_not() {
        let extended = "ffffffffffffffffffff696578743131393330323600302e362e342c2031362e340074772d\
            6361707475726500646d31002d32333334363431323000353830350054657374444472616365\
            4e6574776f720030003000363400300036340000";
        let plain = "ffffffffffffffffffff696e6633363600302e362e342c2031362e340074772d63617074757265\
            205b302f36345d00646d3100546573744444726163654e6574776f7200300030003136003000313600";
        let dm1 = Some("dm1".to_owned());
        assert_eq!(answered(0x12_3442, extended), Some(("tw-capture".into(), dm1.clone(), 0, 64)));
        assert_eq!(answered(0x12_3442, plain), Some(("tw-capture [0/64]".into(), dm1, 0, 16)));
        assert_eq!(answered(0x12_3443, extended), None);
        assert_eq!(answered(0x12_3443, plain), None);
        for len in (0..extended.len()).step_by(2) {
            let _ = answered(0x12_3442, &extended[..len]);
        }
    }
}
