//! Teeworlds 0.6: `gie3`, answered by `inf3`, or by DDNet's `iext`.

use std::time::Duration;

use caves_link::retry::{Retry, RetryPolicy};
use caves_link::time::{Deadline, Instant};

use super::{Answer, Question};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
const RETRY: RetryPolicy =
    RetryPolicy::uniform(Duration::from_millis(300), Duration::from_millis(500));
/// A connectionless packet's header, and what stands before each message's name.
const HEADER: [u8; 6] = [0xFF; 6];
const MARK: [u8; 4] = [0xFF; 4];
/// The longest text that is kept of a field, in bytes.
const LONGEST_TEXT: usize = 256;

/// The question in its extended form; a server that knows only the plain one answers it as such.
pub(super) struct Teeworlds {
    /// Three bytes: two of the extended form, and one that the plain form has as well.
    token: u32,
    retry: Retry,
    until: Instant,
    asked: Instant,
}

impl Teeworlds {
    pub(super) fn new(random: u64, now: Instant) -> Self {
        let mut retry = Retry::new(RETRY);
        retry.ask(now);
        Self { token: random as u32 & 0xFF_FFFF, retry, until: now + PATIENCE, asked: now }
    }

    fn request(&self) -> [u8; 15] {
        let [_, high, middle, low] = self.token.to_be_bytes();
        let [a, b, c, d] = MARK;
        [b'x', b'e', high, middle, 0, 0, a, b, c, d, b'g', b'i', b'e', b'3', low]
    }
}

impl Question for Teeworlds {
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Option<Answer> {
        let body = datagram.strip_prefix(&HEADER)?.strip_prefix(&MARK)?;
        let (name, fields) = body.split_first_chunk::<4>()?;
        let mut fields = fields.split(|byte| *byte == 0);
        let token = number(fields.next()?)?;
        // The plain form gives one byte of the token back, the extended one all three.
        let expected = match name {
            b"inf3" => self.token & 0xFF,
            b"iext" => self.token,
            _ => return None,
        };
        if token != expected {
            return None;
        }
        let _version = fields.next()?;
        let (server, map) = (text(fields.next()?), text(fields.next()?));
        // The extended form has the map's checksum and size here.
        if name == b"iext" {
            fields.nth(1)?;
        }
        let (_game_type, _flags) = (fields.next()?, fields.next()?);
        let (_players, _max_players) = (fields.next()?, fields.next()?);
        let (clients, max_clients) = (number(fields.next()?)?, number(fields.next()?)?);
        Some(Answer {
            name: server,
            map: Some(map),
            players: clients,
            max_players: max_clients,
            round_trip: now.saturating_since(self.asked),
        })
    }

    fn poll_transmit(&mut self, now: Instant, random: u32, buf: &mut [u8]) -> Option<usize> {
        if !self.retry.due(now) {
            return None;
        }
        self.retry.sent(now, random);
        self.asked = now;
        let request = self.request();
        buf.get_mut(..request.len())?.copy_from_slice(&request);
        Some(request.len())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Deadline::earliest([self.retry.deadline(), Some(self.until)])
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }
}

fn number(field: &[u8]) -> Option<u32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&field[..field.len().min(LONGEST_TEXT)]).into_owned()
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
