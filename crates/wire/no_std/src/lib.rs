//! Shows that `caves-wire`, `caves-link` and `caves-sixbit` need no standard library: this links into a
//! program that brings its own panic handler, which a second one would not allow.
#![no_std]

use caves_wire::caves::{Echo, Packet};

/// Answers a ping with a pong: the length of the answer in `buf`, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn caves_answer(byte: u8) -> usize {
    let mut buf = [byte; 14];
    match Packet::parse(&buf) {
        Ok(Packet::Ping(ping)) => Echo::pong(ping.timestamp_ms()).emit(&mut buf).unwrap_or(0),
        _ => 0,
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
