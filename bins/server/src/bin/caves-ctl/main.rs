//! `caves-ctl`: gives a running server commands, over its control socket.

mod args;
mod ask;
mod show;

use std::io::{self, Write};
use std::process::ExitCode;

use args::Args;
use clap::Parser;
use serde_json::Value;

fn main() -> ExitCode {
    let args = Args::parse();
    let command = args.command.to_command();
    match ask::ask(&args.socket, &command) {
        Ok(answer) => tell(&args, &answer),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Prints an answer: as it is, or to be read.
fn tell(args: &Args, line: &str) -> ExitCode {
    let Ok(answer) = serde_json::from_str::<Value>(line) else {
        complain("the server's answer is no JSON: is it another version?");
        return ExitCode::FAILURE;
    };
    let done = answer["ok"] == true;
    if args.json {
        print(&format!("{line}\n"));
    } else if done {
        print(&show::answer(&args.command, &answer, ask::unix_s()));
    } else {
        complain(&show::clean(answer["error"].as_str().unwrap_or("the server says no")));
    }
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    // A reader that has read enough and went is no failure of the command.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "caves-ctl: {text}");
}
