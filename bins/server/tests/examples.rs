//! The examples of the libraries, against the real server.

mod common;

#[path = "../../../crates/wire/examples/bot.rs"]
#[allow(dead_code, reason = "a test has no use for its main")]
mod bot;
#[path = "../../../crates/session/examples/wanderer.rs"]
#[allow(dead_code, reason = "a test has no use for its main")]
mod wanderer;

use std::time::Duration;

use caves_wire::caves::Token;
use common::{ONE_SOCKET, ServerProcess};

#[test]
fn the_bot_of_a_hundred_lines_sees_the_caves_and_walks() {
    let token = 0x8d3f_00c1_a5b2_e497;
    let entry = format!("[[client]]\nclient_type = 7\nname = \"Robo\"\ntoken = \"{token:#x}\"\n");
    let server = ServerProcess::spawn(&format!("{ONE_SOCKET}{entry}"));
    let address = server.addrs[0].to_string();
    let bot = bot::play(&address, Token(token), Duration::from_secs(3)).expect("it plays");
    let (ticks, chunks, place) = (bot.ticks, bot.chunks, bot.place);
    assert!((20..=31).contains(&ticks), "{ticks} ticks in 3 s");
    assert!(chunks >= 9, "{chunks} chunks");
    assert_ne!(place, (16, 16), "where it began");
    assert_ne!(place, (0, 0), "it saw itself");
    assert!(server.wait_for_log("joined").contains("source_only=true"));
}

#[test]
fn two_wanderers_meet_and_leave() {
    let mut server = ServerProcess::spawn(ONE_SOCKET);
    let address = server.addrs[0].to_string();
    let time = Duration::from_secs(3);
    let other = {
        let address = address.clone();
        std::thread::spawn(move || wanderer::wander(&address, time).expect("it wanders"))
    };
    let (steps, met) = wanderer::wander(&address, time).expect("it wanders");
    let (_, met_by_other) = other.join().expect("no panic");
    assert!((3..=7).contains(&steps), "{steps} steps in 3 s, one in five ticks");
    assert_eq!((met.len(), met_by_other.len()), (1, 1));
    let log = server.wait_for_log("left");
    assert!(log.contains("quit"), "{log}");
    assert!(server.terminate().success());
}
