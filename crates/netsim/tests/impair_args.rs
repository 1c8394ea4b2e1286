//! The command line of the example `impair`.

#[path = "../examples/impair/args.rs"]
mod args;

use args::{Options, Request, parse};
use caves_netsim::{Burst, Chance, LinkConfig};
use std::time::Duration;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

fn options(line: &str) -> Options {
    match parse(words(line)) {
        Ok(Request::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn only_the_server_must_be_given() {
    let options = options("--to 127.0.0.1:4000");
    assert_eq!(options.to, "127.0.0.1:4000".parse().unwrap());
    assert_eq!(options.listen, "127.0.0.1:0".parse().unwrap());
    assert_eq!((options.seed, options.seconds, options.until_eof), (1, None, false));
    let perfect = LinkConfig { reorder_by: Duration::from_millis(50), ..LinkConfig::PERFECT };
    assert_eq!((options.up, options.down), (perfect, perfect));
}

#[test]
fn every_option_reaches_its_field() {
    let options = options(
        "--listen [::1]:5 --to 127.0.0.1:4000 --loss 20 --duplicate 5 --delay 75 --jitter 20 \
         --reorder 2.5 --reorder-by 30 --corrupt 0.05 --rate 9000 --mtu 1200 --seed 7 \
         --seconds 3 --until-eof",
    );
    let expected = LinkConfig {
        delay: Duration::from_millis(75),
        jitter: Duration::from_millis(20),
        loss: Chance::percent(20),
        burst: None,
        duplicate: Chance::percent(5),
        reorder: Chance::from_per_10_000(250),
        reorder_by: Duration::from_millis(30),
        corrupt: Chance::from_per_10_000(5),
        rate: std::num::NonZeroU32::new(9000),
        mtu: Some(1200),
        max_queue: LinkConfig::PERFECT.max_queue,
        down: false,
    };
    assert_eq!(options.up, expected);
    assert_eq!(options.down, expected);
    assert_eq!(options.listen, "[::1]:5".parse().unwrap());
    assert_eq!((options.seed, options.seconds, options.until_eof), (7, Some(3), true));
}

#[test]
fn one_direction_can_lose_more_than_the_other() {
    let options = options("--up-loss 0 --loss 10 --down-loss 30.25 --to 127.0.0.1:4000");
    assert_eq!(options.up.loss, Chance::NEVER);
    assert_eq!(options.down.loss, Chance::from_per_10_000(3025));
    let both = self::options("--down-loss 30 --loss 10 --to 127.0.0.1:4000");
    assert_eq!((both.up.loss, both.down.loss), (Chance::percent(10), Chance::percent(30)));
}

#[test]
fn losses_come_in_runs_when_asked_for() {
    let options = options("--loss 20 --burst 5 --to 127.0.0.1:4000");
    assert_eq!(options.up.loss, Chance::NEVER);
    let burst =
        Burst { enter: Chance::percent(5), leave: Chance::percent(20), loss: Chance::ALWAYS };
    assert_eq!(options.up.burst, Some(burst));
}

#[test]
fn help_is_given_whatever_else_is_said() {
    assert_eq!(parse(words("--loss 20 --help")), Ok(Request::Help));
    // All options are in the text.
    for option in ["--listen", "--to", "--burst", "--reorder-by", "--rate", "--until-eof"] {
        assert!(args::HELP.contains(option), "{option}");
    }
}

#[test]
fn mistakes_are_named() {
    for (line, part) in [
        ("", "--to"),
        ("--to", "--to needs a value"),
        ("--to nowhere", "--to nowhere"),
        ("--to 127.0.0.1:0", "port 0"),
        ("--to 127.0.0.1:99999", "--to 127.0.0.1:99999"),
        ("--to 127.0.0.1:1 --loss 101", "--loss 101: expected a percentage"),
        ("--to 127.0.0.1:1 --delay -5", "--delay -5: expected a whole number"),
        ("--to 127.0.0.1:1 --rate 0", "--rate 0: expected a whole number from 1"),
        ("--to 127.0.0.1:1 --burst 0", "--burst 0"),
        ("--lose 5", "--lose is not an option"),
        ("extra", "extra is not an option"),
    ] {
        let error = parse(words(line)).unwrap_err();
        assert!(error.contains(part), "{line:?}: {error}");
    }
}
