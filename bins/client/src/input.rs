//! Bytes from the terminal as keys.
//!
//! Decoded here and not by crossterm's `event::read`, which shares our standard input in blocking
//! mode: half an escape sequence (Alt and `[` is one) stops it, and with it the whole loop, until
//! another key comes; a terminal that is gone makes it spin; and of more than 1024 bytes at once
//! the rest stays unread until the next key. What is left of the work is small.

use std::time::Duration;

use crate::keys::Key;

/// Half an escape sequence this old is no escape sequence.
const SEQUENCE_TIME: Duration = Duration::from_millis(50);
/// Pasted text that has not ended after this silence has ended.
const PASTE_TIME: Duration = Duration::from_secs(1);
/// The longest escape sequence that means anything.
const LONGEST_SEQUENCE: usize = 32;
/// What is kept of pasted text, in bytes; nothing here takes more.
const LONGEST_PASTE: usize = 4096;
const PASTE_END: &[u8] = b"\x1b[201~";

/// What the player did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Key(Key),
    /// Text that was pasted, whatever it holds.
    Paste(String),
}

/// Cuts a stream of bytes into inputs.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What the start of the pending bytes is.
enum Step {
    /// Not complete.
    More,
    /// So many bytes mean this.
    Take(usize, Option<Key>),
    /// So many bytes, then pasted text.
    Paste(usize),
}

impl Decoder {
    /// Takes bytes and adds what they mean to `out`.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        self.pending.extend_from_slice(bytes);
        self.decode(out);
    }

    /// For how long to wait for the rest of something incomplete.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match (&self.paste, self.pending.is_empty()) {
            (Some(_), _) => Some(PASTE_TIME),
            (None, false) => Some(SEQUENCE_TIME),
            (None, true) => None,
        }
    }

    /// The rest did not come: what there is, is all.
    pub(crate) fn flush(&mut self, out: &mut Vec<Input>) {
        if let Some(mut text) = self.paste.take() {
            text.append(&mut self.pending);
            return push_paste(&text, out);
        }
        if self.pending.first() == Some(&0x1b) {
            self.pending.remove(0);
            out.push(Input::Key(Key::Esc));
        }
        // Alt and "[" say nothing here.
        self.pending.clear();
    }

    fn decode(&mut self, out: &mut Vec<Input>) {
        while !self.pending.is_empty() {
            if self.paste.is_some() {
                if !self.decode_paste(out) {
                    return;
                }
                continue;
            }
            match step(&self.pending) {
                Step::More => return,
                Step::Take(len, key) => {
                    self.pending.drain(..len);
                    out.extend(key.map(Input::Key));
                }
                Step::Paste(len) => {
                    self.pending.drain(..len);
                    self.paste = Some(Vec::new());
                }
            }
        }
    }

    /// Moves pasted text out of the pending bytes; `false` while its end is missing.
    fn decode_paste(&mut self, out: &mut Vec<Input>) -> bool {
        let Some(text) = &mut self.paste else { return true };
        let end = self.pending.windows(PASTE_END.len()).position(|at| at == PASTE_END);
        // The last bytes may be the start of the end.
        let safe = end.unwrap_or(self.pending.len().saturating_sub(PASTE_END.len() - 1));
        let room = LONGEST_PASTE.saturating_sub(text.len());
        text.extend(self.pending.drain(..safe).take(room));
        if end.is_none() {
            return false;
        }
        self.pending.drain(..PASTE_END.len());
        push_paste(&self.paste.take().unwrap_or_default(), out);
        true
    }
}

fn push_paste(text: &[u8], out: &mut Vec<Input>) {
    out.push(Input::Paste(String::from_utf8_lossy(text).into_owned()));
}

fn step(bytes: &[u8]) -> Step {
    match bytes {
        [0x1b, b'[', ..] => sequence(bytes),
        [0x1b, b'O', last, ..] => Step::Take(3, keypad(*last)),
        [0x1b] | [0x1b, b'O'] => Step::More,
        // Esc and then another key, which came together.
        [0x1b, ..] => Step::Take(1, Some(Key::Esc)),
        [b'\r' | b'\n', ..] => Step::Take(1, Some(Key::Enter)),
        [b'\t', ..] => Step::Take(1, Some(Key::Tab)),
        [0x7f | 0x08, ..] => Step::Take(1, Some(Key::Backspace)),
        [control @ 0x01..=0x1a, ..] => {
            Step::Take(1, Some(Key::Ctrl(char::from(control - 1 + b'a'))))
        }
        [0x00..=0x1f, ..] => Step::Take(1, None),
        _ => character(bytes),
    }
}

/// One character of UTF-8; what is none is skipped byte by byte.
fn character(bytes: &[u8]) -> Step {
    let len = match bytes[0] {
        0x20..=0x7e => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Step::Take(1, None),
    };
    let Some(start) = bytes.get(..len) else {
        let broken = bytes[1..].iter().any(|byte| byte & 0xc0 != 0x80);
        return if broken { Step::Take(1, None) } else { Step::More };
    };
    match std::str::from_utf8(start).ok().and_then(|text| text.chars().next()) {
        Some(c) => Step::Take(len, (!c.is_control()).then_some(Key::Char(c))),
        None => Step::Take(1, None),
    }
}

/// `ESC [`, parameters, one final byte.
fn sequence(bytes: &[u8]) -> Step {
    // The Linux console sends `ESC [ [ A` for F1.
    if bytes.get(2) == Some(&b'[') {
        return if bytes.len() < 4 { Step::More } else { Step::Take(4, None) };
    }
    let rest = &bytes[2..];
    match rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
        Some(at) if (0x40..=0x7e).contains(&rest[at]) => {
            let first = rest[..at].split(|byte| *byte == b';').next().unwrap_or_default();
            match (first, rest[at]) {
                (b"200", b'~') => Step::Paste(at + 3),
                (first, last) => Step::Take(at + 3, named(first, last)),
            }
        }
        // Something else began in the middle of it.
        Some(at) => Step::Take(at + 2, None),
        None if rest.len() > LONGEST_SEQUENCE => Step::Take(bytes.len(), None),
        None => Step::More,
    }
}

/// Keys that are sent as a sequence; with Shift, Alt or Ctrl they are the same to us.
fn named(first: &[u8], last: u8) -> Option<Key> {
    Some(match (first, last) {
        (b"1" | b"7", b'~') => Key::Home,
        (b"4" | b"8", b'~') => Key::End,
        (b"3", b'~') => Key::Delete,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        (_, b'Z') => Key::BackTab,
        (_, b'A'..=b'D' | b'H' | b'F') => return keypad(last),
        _ => return None,
    })
}

/// Arrows, and a numeric keypad in application mode.
fn keypad(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        b'p'..=b'y' => Key::Char(char::from(last - b'p' + b'0')),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Input> {
        let mut out = Vec::new();
        Decoder::default().feed(bytes, &mut out);
        out
    }

    fn only(bytes: &[u8]) -> Option<Key> {
        match keys(bytes).as_slice() {
            [Input::Key(key)] => Some(*key),
            _ => None,
        }
    }

    #[test]
    fn keys_of_common_terminals_are_known() {
        for (bytes, key) in [
            (&b"\x1b[A"[..], Key::Up),
            (b"\x1bOB", Key::Down),
            (b"\x1b[1;5C", Key::Right),
            (b"\x1b[D", Key::Left),
            (b"\x1b[H", Key::Home),
            (b"\x1b[1~", Key::Home),
            (b"\x1b[7~", Key::Home),
            (b"\x1bOF", Key::End),
            (b"\x1b[4~", Key::End),
            (b"\x1b[3~", Key::Delete),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[6~", Key::PageDown),
            (b"\x1b[Z", Key::BackTab),
            (b"\x1bOx", Key::Char('8')),
            (b"\x1bOM", Key::Enter),
            (b"\r", Key::Enter),
            (b"\x7f", Key::Backspace),
            (b"\x03", Key::Ctrl('c')),
            (b"q", Key::Char('q')),
            ("é".as_bytes(), Key::Char('é')),
            ("世".as_bytes(), Key::Char('世')),
            ("\u{1F600}".as_bytes(), Key::Char('\u{1F600}')),
        ] {
            assert_eq!(only(bytes), Some(key), "{bytes:?}");
        }
    }

    #[test]
    fn what_means_nothing_is_skipped_and_the_rest_goes_on() {
        for noise in [
            &b"\x1b[[A"[..],     // F1 of the Linux console
            b"\x1b[15~",         // F5
            b"\x1b[?62;22c",     // a terminal describing itself
            b"\x00",             // Ctrl and space
            b"\xff\xfe",         // no UTF-8
            b"\xe4\xb8",         // cut short
            b"\x1b[12",          // cut short by what follows
            "\u{85}".as_bytes(), // a control character
        ] {
            let mut out = Vec::new();
            let mut decoder = Decoder::default();
            decoder.feed(noise, &mut out);
            decoder.feed(b"\x1b[A", &mut out);
            assert_eq!(out, [Input::Key(Key::Up)], "{noise:?}");
        }
    }

    #[test]
    fn sequences_may_come_byte_by_byte() {
        let mut out = Vec::new();
        let mut decoder = Decoder::default();
        for byte in "\x1b[1;2A世x\x1b[200~a\nb\x1b[201~y".bytes() {
            decoder.feed(&[byte], &mut out);
        }
        assert_eq!(
            out,
            [
                Input::Key(Key::Up),
                Input::Key(Key::Char('世')),
                Input::Key(Key::Char('x')),
                Input::Paste("a\nb".into()),
                Input::Key(Key::Char('y')),
            ]
        );
    }

    #[test]
    fn escape_alone_needs_a_moment_and_before_a_letter_none() {
        let (mut out, mut decoder) = (Vec::new(), Decoder::default());
        decoder.feed(b"\x1b", &mut out);
        assert_eq!((out.len(), decoder.patience()), (0, Some(SEQUENCE_TIME)));
        decoder.flush(&mut out);
        assert_eq!((out.as_slice(), decoder.patience()), (&[Input::Key(Key::Esc)][..], None));
        assert_eq!(keys(b"\x1by"), [Input::Key(Key::Esc), Input::Key(Key::Char('y'))]);
    }

    #[test]
    fn half_a_sequence_does_not_stop_what_comes_later() {
        let (mut out, mut decoder) = (Vec::new(), Decoder::default());
        decoder.feed(b"\x1b[", &mut out);
        decoder.flush(&mut out);
        decoder.feed(b"d", &mut out);
        assert_eq!(out, [Input::Key(Key::Esc), Input::Key(Key::Char('d'))]);
    }

    #[test]
    fn a_paste_without_end_ends_by_silence_and_is_bounded() {
        let (mut out, mut decoder) = (Vec::new(), Decoder::default());
        decoder.feed(b"\x1b[200~", &mut out);
        decoder.feed(&vec![b'x'; 3 * LONGEST_PASTE], &mut out);
        assert_eq!((out.len(), decoder.patience()), (0, Some(PASTE_TIME)));
        decoder.flush(&mut out);
        let [Input::Paste(text)] = out.as_slice() else { panic!("{out:?}") };
        assert!((LONGEST_PASTE..LONGEST_PASTE + PASTE_END.len()).contains(&text.len()));
        decoder.feed(b"q", &mut out);
        assert_eq!(out.last(), Some(&Input::Key(Key::Char('q'))));
    }

    #[test]
    fn no_bytes_make_it_panic_or_grow() {
        // Numbers from a linear congruence, high bits; biased towards what opens sequences.
        let mut state = 1u32;
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for _ in 0..200_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let byte = match state >> 29 {
                0 => 0x1b,
                1 => b'[',
                2 => b"0123456789;~AO"[(state >> 8) as usize % 14],
                _ => (state >> 16) as u8,
            };
            decoder.feed(&[byte], &mut out);
            assert!(decoder.pending.len() <= 2 * LONGEST_SEQUENCE);
            out.clear();
        }
    }
}
