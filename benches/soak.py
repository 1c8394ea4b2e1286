#!/usr/bin/env python3
"""Clients come and go, some of them killed, and a server of its own has to bear it.

    cargo build --release -p caves-server -p caves-swarm
    benches/soak.py [--target DIR] [--clients N] [--minutes M | --seconds S] [--seed N]

Groups of clients, each a process of its own, join, play for a random time and leave; one in three is ended by
kill -9, as by a power cut. All the while the server's memory and sessions are read from its metrics. It fails
(status 1) when a client saw anything wrong, when a session is left after the last client and the time of silence,
when memory grew by more than a tenth after the first third, or when the server does not end in order. Its world is
kept in a file, as that of a public server is.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from load import CONFIG, cpu_seconds

GROUPS = 10
# After so many seconds of silence a session ends; a little is added for the tick that finds out.
SILENCE = 10 + 2


class Server:
    def __init__(self, args, directory):
        with open(os.path.join(directory, "config.toml"), "w") as file:
            file.write(CONFIG + '[metrics]\nlisten = "127.0.0.1:0"\n')
        self.log = open(os.path.join(directory, "log"), "w+")
        binary = os.path.abspath(os.path.join(args.target, args.profile, "caves-server"))
        command = [binary, "--log-level", "warn"]
        self.process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        self.address = self.process.stdout.readline().split()[-1]
        self.metrics = self.process.stdout.readline().split()[-1]

    def figures(self):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        samples = (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")
        return {name: float(value) for name, value in samples}

    def end(self):
        self.process.terminate()
        return self.process.wait(timeout=60)


class Group:
    """Some clients in one process."""

    def __init__(self, args, server, draw):
        self.killed_at = None
        seconds = draw.uniform(3, args.stay)
        binary = os.path.join(args.target, args.profile, "caves-swarm")
        command = [binary, "--connect", server.address, "--clients", str(args.clients // GROUPS),
                   "--seconds", str(max(1, round(seconds))), "--json", "--sources", "20",
                   "--walk", draw.choice(["random", "crowd"])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        if draw.random() < 1 / 3:
            self.killed_at = time.monotonic() + draw.uniform(0.2, seconds)

    def turn(self):
        """None while it runs; then its report, or an empty one when it was killed."""
        if self.killed_at is not None and time.monotonic() >= self.killed_at:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            return {}
        if self.process.poll() is None:
            return None
        return json.loads(self.process.stdout.read())


def soak(args, server, total):
    draw = random.Random(args.seed)
    groups, memory = [], []
    start = time.monotonic()
    while time.monotonic() < start + args.length:
        for group in list(groups):
            report = group.turn()
            if report is not None:
                groups.remove(group)
                count(total, report)
        while len(groups) < GROUPS:
            groups.append(Group(args, server, draw))
        figures = server.figures()
        memory.append(figures["process_resident_memory_bytes"])
        total["most sessions"] = max(total["most sessions"], int(figures["caves_sessions"]))
        if sys.stderr.isatty():
            print(f"\r{time.monotonic() - start:6.0f} s, {figures['caves_sessions']:.0f} sessions, "
                  f"{memory[-1] / 2**20:.1f} MiB ", end="", file=sys.stderr)
        time.sleep(0.5)
    for group in groups:
        group.killed_at = time.monotonic()
        count(total, group.turn())
    return memory


def count(total, report):
    total["groups"] += 1
    if not report:
        total["killed"] += 1
        return
    total["ticks"] += report["ticks"]["received"]
    total["missed"] += report["ticks"]["missed"]
    total["wrong"] += report["failures_in_all"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("--profile", default="release", help="debug for programs that cargo test has built")
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--stay", type=float, default=60, help="the longest time that a group stays, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.length = args.seconds or args.minutes * 60
    args.stay = min(args.stay, max(4, args.length / 3))
    total = dict.fromkeys(["groups", "killed", "ticks", "missed", "wrong", "most sessions"], 0)
    with tempfile.TemporaryDirectory() as directory:
        server = Server(args, directory)
        try:
            memory = soak(args, server, total)
            time.sleep(SILENCE)
            left = server.figures()
            busy = cpu_seconds(server.process.pid) / (args.length + SILENCE)
        finally:
            status = server.end()
        server.log.seek(0)
        log = server.log.read().splitlines()
    third = len(memory) // 3
    early, late = max(memory[:third] or [0]), max(memory[2 * third:] or [0])
    grown = late / early - 1 if early else 0
    print(", ".join(f"{what} {number}" for what, number in total.items()))
    print(f"memory {early / 2**20:.1f} MiB in the first third, {late / 2**20:.1f} MiB in the last, "
          f"server {100 * busy:.0f} % of a core, {len(log)} warnings")
    for line in log[-3:]:
        print(f"  {line}")
    troubles = [text for holds, text in [
        (total["wrong"] > 0, f"{total['wrong']} things were wrong"),
        (total["ticks"] == 0, "no tick came"),
        (left["caves_sessions"] > 0, f"{left['caves_sessions']:.0f} sessions are left"),
        (left["caves_players"] > 0, f"{left['caves_players']:.0f} players are left"),
        # A short run has hardly come to rest after its first third.
        (grown > 0.1 and args.length >= 300, f"memory grew by {100 * grown:.0f} %"),
        (status != 0, f"the server ended with status {status}"),
    ] if holds]
    for trouble in troubles:
        print(f"FAILED: {trouble}")
    sys.exit(1 if troubles else 0)


if __name__ == "__main__":
    main()
