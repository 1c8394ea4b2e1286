//! The terminal: taken over, drawn on, and always given back.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Stdout, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::{Frame, Terminal};

/// Bytes for one drawing; more are written in several pieces.
const OUTPUT: usize = 64 * 1024;
/// Bytes read from the keyboard at once.
const INPUT: usize = 4096;

/// Whether the terminal is ours just now.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// What another thread said when it crashed.
static CRASH: Mutex<Option<String>> = Mutex::new(None);

/// Whether there is a terminal to play in.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The screen of the terminal. It is given back when this is dropped, and before a panic is told.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal over.
    pub(crate) fn open() -> io::Result<Self> {
        set_panic_hook();
        let backend = CrosstermBackend::new(BufWriter::with_capacity(OUTPUT, io::stdout()));
        TAKEN.store(true, Ordering::SeqCst);
        let opened = terminal::enable_raw_mode()
            .and_then(|()| {
                execute!(
                    io::stdout(),
                    terminal::EnterAlternateScreen,
                    EnableBracketedPaste,
                    cursor::Hide
                )
            })
            .and_then(|()| Terminal::new(backend));
        match opened {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws what has changed.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // What is left of a drawing belongs onto our screen and not onto the shell's.
        let _ = self.terminal.backend_mut().flush();
        restore();
    }
}

/// Gives the terminal back, once. Errors mean that it is gone.
fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stdout(),
            DisableBracketedPaste,
            terminal::LeaveAlternateScreen,
            cursor::Show
        );
        let _ = terminal::disable_raw_mode();
    }
}

/// A panic of this thread is told on a terminal that can show it. That of another thread, which is
/// the server inside, is kept: the screen is not its own, and the game may end in order.
fn set_panic_hook() {
    let default = panic::take_hook();
    let ours = std::thread::current().id();
    panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == ours {
            restore();
            default(info);
        } else if let Ok(mut crash) = CRASH.lock() {
            crash.get_or_insert_with(|| info.to_string());
        }
    }));
}

/// What another thread said when it crashed, if one did.
pub(crate) fn take_crash() -> Option<String> {
    CRASH.lock().ok()?.take()
}

/// The keyboard, as bytes.
#[derive(Debug)]
pub(crate) struct Keyboard {
    stdin: File,
    token: Token,
}

/// What came of reading the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    /// So many bytes.
    Bytes(usize),
    /// The terminal is gone.
    Gone,
}

impl Keyboard {
    pub(crate) const BUFFER: usize = INPUT;

    /// Lets `registry` watch standard input.
    pub(crate) fn open(registry: &Registry, token: Token) -> io::Result<Self> {
        // A file of its own: standard input buffers, and what it had buffered no wake would tell.
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        registry.register(&mut SourceFd(&stdin.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { stdin, token })
    }

    /// Reads what waits, once. Only to be called when the registry said that something does: the
    /// terminal is shared with the shell and with our own output, so that it stays blocking.
    pub(crate) fn read(&mut self, registry: &Registry, buf: &mut [u8]) -> io::Result<Typed> {
        let len = match self.stdin.read(buf) {
            Ok(0) => return Ok(Typed::Gone),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            // EIO: the other end was closed.
            Err(_) => return Ok(Typed::Gone),
        };
        // Watching it anew tells of what is left; an edge would not come again.
        let fd = self.stdin.as_raw_fd();
        registry.reregister(&mut SourceFd(&fd), self.token, Interest::READABLE)?;
        Ok(Typed::Bytes(len))
    }
}
