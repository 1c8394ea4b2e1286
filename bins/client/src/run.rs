//! The loop: sleep, receive, read keys, do what is due, send, draw.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use caves_game::Client;
use caves_game::client::ClientEvent;
use caves_game::mirror::MessageKind;
use caves_link::time::{Deadline, Instant};
use caves_server::{Clock, OsRandom};
use caves_session::caves::{ClientConfig, ClientEnd};
use mio::{Events, Poll, Token};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook_mio::v1_0::Signals;

use crate::app::{App, Home, Scroll};
use crate::glyphs::Glyphs;
use crate::input::{Decoder, Input};
use crate::net::Socket;
use crate::screen::{self, View};
use crate::solo::Solo;
use crate::term::{Keyboard, Screen, Typed};
use crate::theme::Theme;

/// Longer than any valid datagram, so that one too long is seen as such.
const LONGEST_DATAGRAM: usize = 2048;
/// At most 30 drawings a second.
const FRAME: Duration = Duration::from_millis(33);
/// Silence and waits are counted in seconds, whether anything happens or not.
const REDRAW: Duration = Duration::from_secs(1);
/// A notice so long before the end says why; a server waits for one second that it is read.
const LAST_WORDS: Duration = Duration::from_millis(2500);
/// Saying goodbye ends after this, said or not.
const GOODBYE: Duration = Duration::from_millis(500);

const SOCKET: Token = Token(0);
const KEYBOARD: Token = Token(1);
const SIGNALS: Token = Token(2);

/// Where to play, as whom, and what the terminal can show.
pub(crate) struct Game {
    pub(crate) home: Home,
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) config: ClientConfig,
    pub(crate) theme: Theme,
}

/// Why the loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The player quit, or a signal asked to.
    Quit,
    /// The session is over.
    Session {
        /// Why.
        end: ClientEnd,
        /// What the server has said just before.
        notice: Option<String>,
    },
    /// The terminal was closed.
    TerminalGone,
    /// The server inside ended by itself.
    ServerOver,
}

/// Plays until the end. The terminal is given back when this returns, whatever it returns.
pub(crate) fn play(game: Game, solo: Option<&Solo>) -> anyhow::Result<Ending> {
    let mut run = Run::open(game)?;
    let mut screen = Screen::open().context("cannot use the terminal")?;
    let ending = run.turns(&mut screen, solo)?;
    run.say_goodbye();
    Ok(ending)
}

struct Run {
    clock: Clock,
    poll: Poll,
    socket: Socket,
    keyboard: Keyboard,
    keys_wait: bool,
    signals: Signals,
    decoder: Decoder,
    /// When half an escape sequence is no longer waited for.
    decode_at: Deadline,
    client: Client,
    app: App,
    theme: Theme,
    glyphs: Glyphs,
    dirty: bool,
    drawn_at: Option<Instant>,
    /// When a figure on the screen comes to another tile; never while all stand.
    moves_at: Deadline,
    ended: Option<ClientEnd>,
    /// Messages so far, and when the last one came.
    told: (u64, Instant),
    buf: Box<[u8]>,
}

impl Run {
    fn open(game: Game) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let now = clock.now();
        let poll = Poll::new().context("cannot wait for events")?;
        let registry = poll.registry();
        let socket = Socket::open(game.servers, registry, SOCKET, now).context("no socket")?;
        let keyboard = Keyboard::open(registry, KEYBOARD).context("cannot read the terminal")?;
        let mut signals =
            Signals::new([SIGHUP, SIGINT, SIGTERM, SIGWINCH]).context("cannot wait for signals")?;
        registry.register(&mut signals, SIGNALS, mio::Interest::READABLE)?;
        let random = OsRandom::new().context("no random numbers from the operating system")?;
        let client = Client::new(game.config, Box::new(random), now);
        let glyphs = Glyphs::new(client.mirror().content());
        Ok(Self {
            clock,
            poll,
            socket,
            keyboard,
            keys_wait: false,
            signals,
            decoder: Decoder::default(),
            decode_at: Deadline::NEVER,
            client,
            app: App::new(game.home, now),
            theme: game.theme,
            glyphs,
            dirty: true,
            drawn_at: None,
            moves_at: Deadline::NEVER,
            ended: None,
            told: (0, now),
            buf: vec![0; LONGEST_DATAGRAM.max(Keyboard::BUFFER)].into(),
        })
    }

    fn turns(&mut self, screen: &mut Screen, solo: Option<&Solo>) -> anyhow::Result<Ending> {
        let mut events = Events::with_capacity(64);
        loop {
            // What came is read before any timer: silence is judged by when a datagram arrived.
            self.receive();
            if self.read_keys()? == Typed::Gone {
                return Ok(Ending::TerminalGone);
            }
            self.do_what_is_due();
            self.send();
            if let Some(ending) = self.ending(solo) {
                return Ok(ending);
            }
            self.draw(screen).context("cannot write to the terminal")?;
            self.sleep(&mut events).context("cannot wait for events")?;
            if self.take_signals() {
                return Ok(Ending::Quit);
            }
        }
    }

    fn ending(&mut self, solo: Option<&Solo>) -> Option<Ending> {
        if self.app.wants_to_quit() {
            return Some(Ending::Quit);
        }
        if let Some(end) = self.ended.take() {
            return Some(Ending::Session { end, notice: self.last_words() });
        }
        solo.is_some_and(Solo::is_over).then_some(Ending::ServerOver)
    }

    /// The server's last notice, if nothing came since and that is not long ago: whoever is thrown out
    /// is told why right before. The screen that shows it is gone in a moment.
    fn last_words(&self) -> Option<String> {
        let (_, at) = self.told;
        let last = self.client.mirror().messages().back()?;
        let fresh = self.clock.now().saturating_since(at) <= LAST_WORDS;
        (fresh && last.kind == MessageKind::Notice).then(|| last.text.clone())
    }

    fn receive(&mut self) {
        let (clock, client, app, dirty) =
            (&self.clock, &mut self.client, &mut self.app, &mut self.dirty);
        let (ended, told) = (&mut self.ended, &mut self.told);
        self.socket.receive(&mut self.buf, |datagram| {
            let now = clock.now();
            client.handle_datagram(now, datagram);
            take_events(client, app, ended);
            if client.mirror().told() != told.0 {
                *told = (client.mirror().told(), now);
            }
            app.heard(client, now);
            *dirty = true;
        });
    }

    /// Reads the keyboard if something waits there.
    fn read_keys(&mut self) -> anyhow::Result<Typed> {
        let mut inputs = Vec::new();
        if std::mem::take(&mut self.keys_wait) {
            match self.keyboard.read(self.poll.registry(), &mut self.buf[..Keyboard::BUFFER])? {
                Typed::Gone => return Ok(Typed::Gone),
                Typed::Bytes(len) => self.decoder.feed(&self.buf[..len], &mut inputs),
            }
            let now = self.clock.now();
            self.decode_at = self
                .decoder
                .patience()
                .map_or(Deadline::NEVER, |patience| Deadline::at(now + patience));
        } else if self.decode_at.is_due(self.clock.now()) {
            self.decode_at.clear();
            self.decoder.flush(&mut inputs);
        }
        for input in inputs {
            self.dirty = true;
            let now = self.clock.now();
            match input {
                Input::Key(key) => self.app.handle_key(key, &mut self.client, now),
                Input::Paste(text) => self.app.handle_paste(&text, now),
            }
        }
        Ok(Typed::Bytes(0))
    }

    fn do_what_is_due(&mut self) {
        let now = self.clock.now();
        self.socket.handle_timeout(self.poll.registry(), now);
        self.client.handle_timeout(now);
        if self.app.poll_timeout().is_some_and(|due| due <= now) {
            // A step that was due before the key counts as let go is sent, however late it is now.
            self.send();
            self.app.handle_timeout(&mut self.client, now);
            self.dirty = true;
        }
        take_events(&mut self.client, &mut self.app, &mut self.ended);
    }

    fn send(&mut self) {
        while let Some(len) = self.client.poll_transmit(self.clock.now(), &mut self.buf) {
            self.socket.send(&self.buf[..len]);
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        let now = self.clock.now();
        if self.moves_at.is_due(now) {
            self.moves_at.clear();
            self.dirty = true;
        }
        let pause = if self.dirty { FRAME } else { REDRAW };
        if self.drawn_at.is_some_and(|at| now < at + pause) {
            return Ok(());
        }
        let view = View {
            app: &self.app,
            client: &self.client,
            theme: self.theme,
            glyphs: &self.glyphs,
            now,
        };
        let mut scroll = Scroll::default();
        screen.draw(|frame| scroll = screen::draw(frame, view))?;
        self.app.note_scroll(scroll);
        self.drawn_at = Some(now);
        self.moves_at = self.client.next_step(now).map_or(Deadline::NEVER, Deadline::at);
        self.dirty = false;
        Ok(())
    }

    /// Waits for a datagram, a key, a signal, or the next deadline.
    fn sleep(&mut self, events: &mut Events) -> io::Result<()> {
        let now = self.clock.now();
        let pause = if self.dirty { FRAME } else { REDRAW };
        let due = Deadline::earliest([
            self.drawn_at.map(|at| at + pause),
            self.moves_at.get(),
            self.client.poll_timeout(),
            self.socket.poll_timeout(),
            self.app.poll_timeout(),
            self.decode_at.get(),
        ]);
        let timeout = due.map_or(REDRAW, |due| due.saturating_since(now).min(REDRAW));
        let timeout = if self.socket.has_more() { Duration::ZERO } else { timeout };
        match self.poll.poll(events, Some(timeout)) {
            // Its events are not valid then; the next turn asks again.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
            done => done?,
        }
        for event in &*events {
            match event.token() {
                SOCKET => self.socket.wake(),
                KEYBOARD => self.keys_wait = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a signal asks to quit. That the window has another size shows when it is drawn.
    fn take_signals(&mut self) -> bool {
        let mut quit = false;
        for signal in self.signals.pending() {
            self.dirty = true;
            quit |= signal != SIGWINCH;
        }
        quit
    }

    /// Tells the server, three times, since nobody confirms it.
    fn say_goodbye(&mut self) {
        let until = self.clock.now() + GOODBYE;
        self.client.leave(self.clock.now());
        loop {
            self.send();
            let now = self.clock.now();
            if self.client.is_drained() || now >= until {
                return;
            }
            let due = self.client.poll_timeout().unwrap_or(until).min(until);
            std::thread::sleep(due.saturating_since(now).max(Duration::from_millis(1)));
        }
    }
}

/// Takes all that the client has to tell.
fn take_events(client: &mut Client, app: &mut App, ended: &mut Option<ClientEnd>) {
    while let Some(event) = client.poll_event() {
        match event {
            ClientEvent::Ended(end) => *ended = Some(end),
            event => app.handle_event(event, client),
        }
    }
}
