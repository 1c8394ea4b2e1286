//! ferravex 2 between two processes: a server that lets players walk, and a player.
//!
//!     cargo run -p caves-session --features ferravex --example ferravex -- server 127.0.0.1:4600 1
//!     cargo run -p caves-session --features ferravex --example ferravex -- client 127.0.0.1:4600 100
//!
//! The server shows everybody where everybody is, tells of each ten steps by an event, and says goodbye
//! to whoever has made as many as it wanted; it ends after so many sessions. The player prints what it
//! is told.
#![allow(
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "an example has a socket and a clock, and tells what it does"
)]
#![cfg_attr(not(feature = "ferravex"), allow(unused))]

#[cfg(feature = "ferravex")]
#[path = "ferravex/walk.rs"]
mod walk;

#[cfg(feature = "ferravex")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    walk::run(&args, &mut |line| println!("{line}"))
}

#[cfg(not(feature = "ferravex"))]
fn main() {
    println!("ask for the feature `ferravex`");
}
