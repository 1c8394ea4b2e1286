//! `caves-inspect`: arguments, files, exit status. All else is in the library.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use caves_inspect::args::{Args, Command};
use caves_inspect::output::printable;
use caves_inspect::query;
use caves_inspect::run::{Inspector, is_broken_pipe};

/// Something failed, or was found.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let args = Args::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let outcome = match &args.command {
        Some(Command::Query { protocol, server }) => {
            query::ask(*protocol, server).and_then(|answer| {
                answer.write(&mut io::stdout().lock(), args.json).context("cannot write")
            })
        }
        None => return inspect(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn inspect(args: &Args) -> ExitCode {
    let files: &[_] = if args.files.is_empty() { &["-".into()] } else { &args.files };
    // A pipe may be a recording under way; then, as at a terminal, every line counts at once.
    let flush = io::stdout().is_terminal() || files.iter().any(|file| is_stdin(file));
    let mut out = BufWriter::new(io::stdout().lock());
    let mut inspector = Inspector::new(args.options(flush), &mut out);
    let mut complete = true;
    for file in files {
        let read = open(file).and_then(|input| inspector.read(input));
        if let Err(error) = read.with_context(|| file.display().to_string()) {
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            complete = false;
            complain(&error);
        }
    }
    let totals = inspector.totals().and_then(|totals| {
        out.flush().context("cannot write")?;
        Ok(totals)
    });
    match totals {
        Err(error) => failed(&error),
        Ok(totals) if args.strict && totals.problems + totals.broken > 0 => ExitCode::from(FAILED),
        Ok(_) if !complete => ExitCode::from(FAILED),
        Ok(_) => ExitCode::SUCCESS,
    }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn open(file: &Path) -> anyhow::Result<Box<dyn Read>> {
    if is_stdin(file) {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(File::open(file).context("cannot open it")?))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    complain(error);
    ExitCode::from(FAILED)
}

fn complain(error: &anyhow::Error) {
    // File names and what a recording says may hold anything.
    let text = printable(&format!("{error:#}"));
    // Where standard error is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "caves-inspect: {text}");
}
