//! A server on a real socket, and people who are not nice to it.

mod common;

use caves_session::{Random, SplitMix};
use common::{ONE_SOCKET, PATIENCE, ServerProcess, TempDir, info, stranger};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A header of every packet type, 0 to 255, with a body of `len` random bytes.
fn junk(random: &mut SplitMix, packet_type: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0x4C, 0x52, 1, packet_type, 0, 0];
    bytes.extend((0..len).map(|_| random.next_u64() as u8));
    bytes
}

#[test]
fn junk_of_all_kinds_is_survived_and_counted() {
    let mut server = ServerProcess::spawn(&format!("{ONE_SOCKET}[world]\nstore = \"memory\"\n"));
    let socket = stranger(server.addrs[0]);
    let mut random = SplitMix::new(7);
    let mut sent = 0;
    // Every type, empty, short, of the lengths that some packets have, and too long.
    for packet_type in 0..=255 {
        for len in [0, 1, 8, 24, 58, 250, 1194, 1195, 9000] {
            socket.send(&junk(&mut random, packet_type, len)).unwrap();
            sent += 1;
            if sent % 100 == 0 {
                // Its answer comes after all that was read before it: nothing overflows.
                info(&socket);
            }
        }
    }
    for len in 0..100 {
        let noise: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        socket.send(&noise).unwrap();
    }
    let answer = info(&socket);
    assert_eq!(answer.players, 0);
    assert_eq!(server.terminate().code(), Some(0));
    let log = server.wait_for_log("stopped");
    let dropped = number(&log, " dropped=");
    assert!(dropped > 2000, "{log}");
    assert_eq!(log.lines().count(), 2, "no line for what strangers send: {log}");
}

/// The number after `key` in a log.
fn number(log: &str, key: &str) -> u64 {
    let (_, rest) = log.split_once(key).unwrap_or_else(|| panic!("no {key} in {log}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn a_flood_does_not_stop_the_tick_and_the_tick_does_not_stop_answers() {
    let mut server = ServerProcess::spawn(
        "[server]\nlisten = [\"127.0.0.1:0\", \"127.0.0.1:0\"]\n\
         [limits]\nstrangers_total_per_second = 1000000\n",
    );
    let (flooded, quiet) = (server.addrs[0], server.addrs[1]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let over = &over;
            scope.spawn(move || {
                let socket = stranger(flooded);
                let mut random = SplitMix::new(seed);
                while !over.load(Ordering::Relaxed) {
                    // A Ping is answered, which is the most work for the least.
                    let _ = socket.send(&junk(&mut random, 6, 8));
                }
            });
        }
        let socket = stranger(quiet);
        let first = info(&socket);
        let start = Instant::now();
        let mut last = first;
        while last.tick.wrapping_sub(first.tick) < 15 && start.elapsed() < PATIENCE {
            last = info(&socket);
        }
        over.store(true, Ordering::Relaxed);
        let elapsed = start.elapsed();
        assert!(last.tick.wrapping_sub(first.tick) >= 15, "{first:?} {last:?}");
        // 1.5 s of ticks; a machine with much else to do is given its time.
        assert!(elapsed < Duration::from_secs(6), "{elapsed:?}");
    });
    let start = Instant::now();
    assert_eq!(server.terminate().code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(2));
    let log = server.wait_for_log("stopped");
    assert!(number(&log, " received=") > 10_000, "that was no flood: {log}");
}

#[test]
fn a_log_that_nobody_reads_any_more_does_not_end_the_server() {
    let dir = TempDir::new();
    dir.file("config.toml", ONE_SOCKET);
    let mut child =
        (dir.program().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()).expect("it starts");
    // Both ends are closed as soon as it has told its address.
    drop(child.stderr.take());
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).unwrap();
    drop(out);
    let addr = line.trim().strip_prefix("listening udp ").unwrap().parse().unwrap();
    info(&stranger(addr));
    assert!(child.try_wait().unwrap().is_none(), "it still runs");
    let script = format!("kill -TERM {}", child.id());
    Command::new("sh").args(["-c", &script]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
