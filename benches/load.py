#!/usr/bin/env python3
"""Loads a server of its own with ever more clients, and writes a table row for each.

    cargo build --release -p caves-server -p caves-swarm
    benches/load.py [--target DIR] [--seconds S] [--perf CLIENTS] [--swarm ARGS] CLIENTS...

The server's share of a core is that of the seconds in which all clients play, from /proc; "waits" is
how much of that time it was ready to run and others had the cores: above a few percent the row tells
of the machine, and only us/tick, the server's processor time for one tick of one client, of the server.
--perf records where the server's time goes in the run with so many clients, into load.perf.data of the
target directory.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

CONFIG = """
[server]
listen = ["127.0.0.1:0"]
max_players = 10000
open = true
[world]
seed = 1
[limits]
sessions_per_address = 10000
strangers_total_per_second = 100000
"""

HEAD = ("clients", "in", "join p50", "p99", "missed", "never", "jitter p50", "p99", "max",
        "down/s", "Mbit/s", "server", "waits", "us/tick", "swarm", "overrun", "wrong")


def cpu_seconds(pid):
    """User and system time of a process: fields 14 and 15, after a name that may hold spaces."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waited_seconds(pid):
    """How long a process of one thread was ready and had no core: others had them."""
    with open(f"/proc/{pid}/schedstat") as schedstat:
        return int(schedstat.read().split()[1]) * 1e-9


def run(args, clients):
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "config.toml")
        with open(config, "w") as file:
            file.write(CONFIG)
        log = open(os.path.join(directory, "log"), "w+")
        binary = os.path.abspath(os.path.join(args.target, "release", "caves-server"))
        command = [binary, "--config", config, "--log-level", "warn"]
        # Its world and its control socket are in there, too.
        server = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            address = server.stdout.readline().split()[-1]
            row = measure(args, clients, server.pid, address)
        finally:
            server.terminate()
            server.wait()
        log.seek(0)
        warnings = log.read().splitlines()
        if warnings:
            print(f"  server: {len(warnings)} warnings, the last: {warnings[-1]}", file=sys.stderr)
        return row


def measure(args, clients, pid, address):
    # The last clients need a moment to come in.
    ramp, settle = clients / 200, 2
    swarm = [os.path.join(args.target, "release", "caves-swarm"), "--connect", address, "--json",
             "--clients", str(clients), "--seconds", str(args.seconds + settle + 1), *args.swarm]
    swarm = subprocess.Popen(swarm, stdout=subprocess.PIPE, text=True)
    time.sleep(ramp + settle)
    if args.perf == clients:
        profile = os.path.join(args.target, "load.perf.data")
        seconds = str(max(1, args.seconds - 2))
        perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-g", "-o", profile,
                                 "-p", str(pid), "--", "sleep", seconds])
    start, before, waited = time.monotonic(), cpu_seconds(pid), waited_seconds(pid)
    time.sleep(args.seconds)
    span = time.monotonic() - start
    share, waits = (cpu_seconds(pid) - before) / span, (waited_seconds(pid) - waited) / span
    report = json.loads(swarm.communicate()[0])
    if args.perf == clients:
        perf.wait()
    busy = sum(thread["share"] for thread in report["busy"])
    jitter, join, missed = report["jitter_ms"], report["join_ms"], report["ticks"]["missed"]
    came, down = report["ticks"]["received"], report["steady"]["down"]
    seconds, ticks = report["steady"]["seconds"], report["steady"]["ticks"]
    return (clients, report["playing_at_the_end"], f"{join['p50']:.1f}", f"{join['p99']:.1f}",
            f"{100 * missed / max(1, missed + came):.2f} %",
            report["updates"]["incomplete"], f"{jitter['p50']:.2f}", f"{jitter['p99']:.1f}",
            f"{jitter['max']:.0f}", f"{down['datagrams'] / seconds:.0f}",
            f"{down['bytes'] * 8e-6 / seconds:.0f}", f"{100 * share:.0f} %",
            f"{100 * waits:.0f} %", f"{1e6 * share * seconds / max(1, ticks):.0f}", f"{100 * busy:.0f} %", report["overrun"], report["failures_in_all"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--perf", type=int)
    parser.add_argument("--swarm", type=str.split, default=[], help="more arguments for the swarm")
    parser.add_argument("clients", type=int, nargs="+")
    args = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for clients in args.clients:
        row = run(args, clients)
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
