#!/usr/bin/env python3
"""Writes the first inputs of every corpus: the test vectors of the wire crate, and scripts that walk the long ways.

    python3 fuzz/seed.py            # adds to fuzz/corpus; files are named by their SHA-1, as libFuzzer does

The scripts follow the numbers of `take_step` in `src/targets/{server,client,game}_input.rs`.
"""

import hashlib
import json
import pathlib
import zlib

HERE = pathlib.Path(__file__).parent
VECTORS = HERE / "../crates/wire/vectors"
CAPTURES = HERE / "../crates/wire/tests/captures"
PARTS = {"tlv", "tiles", "fnv", "header"}


def put(target, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def vectors():
    for path in sorted(VECTORS.glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            if "hex" not in case:
                continue
            data = bytes.fromhex(case["hex"])
            if path.stem == "tlv":
                put("tlv", data)
            elif path.stem == "tiles":
                put("tiles", data)
            elif path.stem not in PARTS or path.stem == "header":
                put("datagram", data)
                if "error" not in case:
                    put("roundtrip", data)


def ferravex():
    for case in json.loads((VECTORS / "ferravex/vectors.json").read_text())["cases"]:
        data = bytes.fromhex(case["hex"])
        put("ferravex_packet", data)
        # The target puts the magic and the version in front of what lies behind a 0.
        if data.startswith(b"FERRAVEX\x02") and "error" not in case:
            put("ferravex_packet", b"\0" + data[9:])


def blank():
    """One datagram of each type, length and direction that the captures have, and one of each border input."""
    seen = set()
    for path in sorted(CAPTURES.glob("blank-*.txt")):
        for line in path.read_text().splitlines():
            words = line.split(" ")
            data = bytes.fromhex(words[2])
            kind = (words[1], len(data), data[12:13])
            if kind not in seen or "edge" in path.stem:
                seen.add(kind)
                put("blank_packet", data)


def names():
    for name in ["Ada", "Zoë", " x", "x ", "", "a" * 32, "a" * 33, "ＡＤＡ", "Straße", "ẞ", "ς", "ﬁne", "a\u202eb", "İi", "ǅ",
                 "世界", "e\u0301", "\u1fb4", "x\u3000", "\U0001f600"]:
        put("names", name.encode())
    put("names", b"\xff\xfe")


# A step of `server_input`: number, peer, client type, fields, changes.
def hello(peer, nonce=0):
    return bytes([7, peer, 0, nonce, 0])


def join(peer, nonce=0, flags=3, fields=(0, 3)):
    return bytes([10, peer, 0, flags, nonce, *fields, 0])


def action(peer, sequence, kind, token=0):
    return bytes([16, peer, 0, token, *sequence.to_bytes(4, "little"), 0, 0, 1, kind, 0])


def wait(milliseconds):
    return bytes([0, *milliseconds.to_bytes(2, "little")])


TICK = bytes([2])
DUE = bytes([1])
ACKNOWLEDGE = bytes([24, 0, 0, 0, 0, 0])


def server_scripts():
    both = hello(0) + join(0)
    events = bytes([3, 0, 5, 10, 0, 1])
    yield both + action(0, 7, 1) + TICK + action(0, 8, 2) + action(0, 9, 13) + TICK + TICK
    yield both + events + ACKNOWLEDGE + DUE * 12
    yield both + events + DUE * 60
    yield both + wait(10_000)
    # Moves to another address, at once and after some silence.
    yield both + hello(1, 1) + join(1, 1, 7, (0, 3, 130, 0)) + wait(3000) + join(1, 1, 7, (0, 3, 130, 0))
    # A stranger's questions, a flood, other versions.
    yield hello(4) * 25 + bytes([26, 4, 0]) + bytes(9) + bytes([6, 4]) + wait(2000) + bytes([22, 4, 0]) + bytes(9)
    yield bytes([7, 4, 0, 0, 1, 2, 0, 3]) + bytes([7, 5, 0, 0, 1, 64, 0, 200])
    # Refusals: taken, reserved, banned, bad and no names, wrong cookies, a full server.
    yield both + b"".join(hello(4, 2) + join(4, 2, 3, (name, 3)) for name in range(8))
    yield b"".join(hello(peer, peer % 4) + join(peer, peer % 4, 2, (3,)) for peer in range(10))
    yield join(4) + hello(9) + join(9)
    # A registered token, without joining, moved, restarted, left, joined.
    source = action(0, 100, 1, 200) + TICK
    late = b"".join(action(0, n, 1) + wait(600) for n in (10, 11, 12)) + TICK
    yield source + late + wait(3000) + action(1, 5, 1, 200) + TICK
    yield source + wait(1000) + bytes([23, 0, 0, 200, 0, 0]) + action(0, 101, 1, 200)
    yield source + hello(4) + join(4, 0, 7, (0, 3, 200)) + wait(3000) + join(4, 0, 7, (0, 3, 200))
    # The operator ends a session, and the server.
    yield both + bytes([4, 0, 1]) + DUE * 3 + both + bytes([5, 0xA5]) + both
    # Queries, pings, repeated Joins.
    yield both + bytes([21, 0, 0, 0, 1, 0, 0, 0, 0]) * 12 + bytes([29, 0, 0, 0]) * 3 + wait(100) + bytes([29, 0, 0, 0])


def client_scripts():
    enter = bytes([9, 7, 0]) + bytes([11, 4, 0, 10, 0])
    own = bytes([7, 0, 1, 1, 2, 2, 3, 65, 100, 97, 3, 9, 0, 0, 0, 1, 0, 1, 0, 2, 0, 0])
    update = bytes([7, 3, 0, 0, 1, 1, 1, 1, 2, 3, 65, 100, 97, 1, 0, 1, 0, 1, 0, 0])
    chunk = bytes([21, 0, 0, 3, 1, 2, 0]) + bytes(61) + bytes([0])
    text = bytes([25, 0, 3, 104, 101, 121, 0])
    yield enter
    yield enter + update * 3 + chunk + own
    yield enter + update + text * 3 + bytes([8, 140]) + DUE * 20
    yield enter + update + bytes([2, 1]) * 3 + bytes([2, 7]) + DUE * 20 + update * 4 + DUE * 30
    yield enter + update + bytes([3, 2]) + DUE * 3 + bytes([23, 2, 1, 4, 2, 65, 66, 0]) + bytes([3, 3]) + DUE * 60
    yield enter + update + wait(2000) + DUE * 10 + enter + update
    yield enter + update + bytes([14, 4, 0]) + DUE * 8 + enter
    yield enter + update + bytes([14, 1, 0]) + DUE
    for reason in range(1, 11):
        yield bytes([9, 7, 0]) + bytes([13, reason, 2, 110, 111, 0]) + DUE * 6 + enter
    yield enter + bytes([15, 255]) + (9).to_bytes(4, "little") + bytes([0, 0, 0]) + wait(200) * 3
    yield enter + update + DUE * 4 + bytes([24, 0]) + DUE * 30 + bytes([6, 0xA5]) + DUE * 4
    yield DUE * 40


def game_scripts():
    tick = bytes([0])
    walk = b"".join(bytes([8, way << 4]) + tick for way in (1, 1, 2, 2, 3, 0, 1)) * 3
    yield tick * 20
    yield walk
    yield b"".join(bytes([8, kind]) + tick * 2 for kind in range(14)) + bytes([12, 0]) + tick * 4
    yield bytes([5, 50] + [5, 6, 7, 1, 9, 0, 3] * 6) * 6 + bytes([13, 0]) * 6
    yield tick * 3 + bytes([7, 40]) + tick * 10 + bytes([7, 200]) + tick * 10
    yield bytes([14, 20, 0]) + bytes.fromhex("4c5201080000") + bytes(14) + tick * 3


def teeworlds():
    # The first byte: without a token, with one, guessed.
    kinds = {"notoken": 0, "probes": 2, "serverinfo": 2}
    for path in sorted(CAPTURES.glob("teeworlds-ddnet-*.txt")):
        kind = kinds.get(path.stem.rsplit("-", 1)[1], 1)
        for line in path.read_text().splitlines():
            words = line.split(" ")
            if words[0] != "#" or "dropped" in words[2:3]:
                put("teeworlds_packet", bytes([kind]) + bytes.fromhex(words[-1]))


# The sessions of the siblings: the honest client's line is kept busy.
CARRY = bytes([8, 15]) + bytes(16)


def ferravex_scripts():
    def greet(peer, nonce=0, times=2):
        return bytes([14, peer, nonce, 0]) * times

    def frames(peer, first, count=5, choice=0):
        return bytes([20, peer, choice, first, count, 0, 0])

    def acknowledge(peer, number):
        return bytes([26, peer, 0, number, number, 0])

    snapshot, events = bytes([2, 9]), bytes([4, 0, 3, 20, 0])
    enter = CARRY + DUE + CARRY
    yield enter + snapshot + CARRY + events + CARRY + bytes([7, 1, 3]) + CARRY + snapshot + CARRY + DUE * 9
    yield greet(0) + frames(0, 9) + frames(0, 12) + events + DUE * 4 + b"".join(acknowledge(0, n) for n in range(7))
    yield b"".join(greet(peer) + frames(peer, 9) for peer in range(9)) + snapshot + DUE * 9 + wait(10_000)
    yield greet(0) + frames(0, 9) + greet(0, 1) + frames(0, 9) + bytes([5, 0]) + greet(0, 2, 12)
    yield greet(3) + greet(4, 0, 1) + bytes([6, 4]) + wait(3000) + greet(4, 1) + frames(4, 9) + frames(3, 9, 5, 200)
    yield enter + bytes([4, 0, 255, 132, 3]) + (bytes([8, 15]) + bytes([56, 7, 0, 64] * 4) + DUE) * 12
    yield enter + bytes([7, 1, 15, 13, 0xA5]) + CARRY + DUE * 30


def blank_scripts():
    def ping(peer, numbers=0):
        return bytes([23, peer, numbers, 0])

    def log_in(peer, name, numbers=0):
        return bytes([14, peer, numbers, name, 0])

    def part(peer):
        return bytes([19, peer, 0, 0])

    def enter(peer, name):
        return ping(peer) + log_in(peer, name) + ping(peer)

    yield (CARRY + DUE) * 5 + bytes([2, 0, 1]) + CARRY + bytes([4, 0]) + CARRY + DUE * 9
    yield enter(0, 0) + log_in(0, 0) + log_in(0, 1) + ping(0) + part(0) + enter(0, 0) + wait(10_000) + DUE
    yield b"".join(enter(peer, peer % 6) for peer in range(9)) + DUE * 9 + bytes([5, 0xA5]) + DUE * 9
    yield enter(0, 0) + bytes([23, 0, 230, 200, 0]) * 3 + ping(0, 192) + log_in(0, 0, 192) + ping(0)
    yield bytes([6, 3, 0, 0, 0, 0]) + DUE * 30 + enter(3, 1) + wait(10_000)
    yield b"".join(bytes([23, 4, 250, n, 0, n, 9, 0, 0, 0, 0, 0]) for n in range(12)) + enter(4, 3)
    yield enter(0, 0) + bytes([22, 0, 0, 8, 3, 1, 2, 3, 0]) + bytes([21, 0, 0, 0]) + log_in(8, 0) * 2 + bytes([27, 8, 0])
    yield (CARRY + DUE) * 3 + bytes([13, 0xA5]) + DUE * 4 + CARRY
    yield enter(0, 5) + bytes([2, 0, 1]) + ping(0) * 3 + b"".join(ping(0, 224) + bytes([0]) for _ in range(40)) + ping(0)


def blank_captures():
    """The client's half of each capture, raw and in order, half a second apart."""
    for path in sorted(CAPTURES.glob("blank-*.txt")):
        script = b""
        for line in path.read_text().splitlines():
            words = line.split(" ")
            data = bytes.fromhex(words[2])
            if words[1] == "c2s" and len(script) < 1500:
                script += bytes([29, 0, *len(data).to_bytes(2, "little")]) + data + bytes([0]) + wait(500)
        yield script


def teeworlds_scripts():
    def connect(peer, choice=0):
        return bytes([14, peer, choice, 0])

    def accept(peer, choice=0):
        return bytes([17, peer, choice, 0])

    def chunks(peer, flags, *sizes):
        datas = b"".join(bytes([size]) + bytes(size) for size in sizes)
        extra = bytes([1]) if flags & 16 else b""
        return bytes([20, peer, 0, flags]) + extra + bytes([len(sizes)]) + datas + bytes([0])

    def send(kind, times, size):
        return bytes([2, 0, kind, times, 65, *size.to_bytes(2, "little")])

    flush = bytes([4, 0])
    join = connect(0) + accept(0)
    yield CARRY + CARRY + send(0, 3, 40) + flush + CARRY + bytes([7, 0, 4, 1, 20]) + CARRY + (DUE + CARRY) * 4
    yield join + chunks(0, 0, 4, 8, 3, 200) + chunks(0, 16, 4) + chunks(0, 24, 4, 4) + chunks(0, 0) + DUE * 9
    yield join + send(0, 200, 60) + flush + chunks(0, 4) + chunks(0, 4) + wait(150) + chunks(0, 4) + DUE * 30
    yield join + connect(0) + accept(0) + bytes([5, 0, 3, 98, 121, 101]) + join + wait(65_000) + wait(36_000)
    yield b"".join(connect(peer) + accept(peer) for peer in range(9)) + accept(3, 200) + bytes([25, 0, 0, 0, 150, 0]) + DUE * 9
    yield bytes([14, 3, 0, 0, 6, 3]) + wait(2000) + connect(3, 255) + accept(3, 230) + bytes([26, 3, 0, 9]) + bytes(10)
    yield CARRY * 2 + bytes([13, 0xA5, 2, 98, 121]) + CARRY + DUE * 4
    yield join + send(0, 255, 900) * 2 + (chunks(0, 4) + wait(200)) * 6 + send(1, 255, 900) * 2 + DUE * 9
    # Without tokens, which the server of these allows.
    yield connect(0, 255) + bytes([20, 0, 200, 0, 1, 4, 1, 2, 3, 4, 0]) + connect(3, 255) * 2 + connect(4, 255) + DUE * 9


def teeworlds_captures():
    """The client's half of each capture of a whole session, raw and in order."""
    for path in sorted(CAPTURES.glob("teeworlds-ddnet-*.txt")):
        script = b""
        for line in path.read_text().splitlines():
            words = line.split(" ")
            if words[1] == "c2s" and len(script) < 3000:
                data = bytes.fromhex(words[-1])
                script += bytes([30, 0, *len(data).to_bytes(2, "little")]) + data + bytes([0]) + wait(20)
        if script:
            yield script


def varint(number):
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def text(words):
    data = words.encode()
    return varint(len(data)) + data


def store_records():
    """A table, a key's length, a key, and a record without its checksum, which the target adds; and some with it."""
    def put_record(table, key, body, whole=False):
        name = ["meta", "chunks", "players", "bans"][table].encode()
        sum = zlib.crc32(name + key + body).to_bytes(4, "little") if whole else b""
        put("store_records", bytes([table, len(key)]) + key + body + sum)

    def key(x, y):
        return (x + 2**31).to_bytes(4, "big") + (y + 2**31).to_bytes(4, "big")

    put_record(0, b"world", b"\1\1" + varint(2**64 - 1) + b"\1" + varint(640) + varint(90) + b"\1")
    put_record(0, b"world", b"\1\1\7\1\0\0\0", True)
    put_record(0, b"content", b"\1\2\0" + text("core:unknown") + b"\1" + text("core:rock") + b"\1\0" + text("core:player"))
    bag = b"\2\6\3\x08\xff\xff\3"
    put_record(2, "zoë".encode(), b"\1" + text("Zoë") + b"\x79\x50\x11" + varint(1043) + bag)
    put_record(2, b"ada", b"\1" + text("Ada") + b"\0\0\1\0\0", True)
    put_record(3, b"nMallory", b"\1" + text("Mallory") + b"\1" + text("no") + b"\0\5")
    put_record(3, b"a::/0", b"\1" + text("::/0") + b"\0" + text("") + b"\1" + varint(2**33) + b"\5", True)
    put_record(1, key(0, 0), b"\1\1\0\0\0")
    put_record(1, key(1022, -1023), b"\1\1\0\0\0", True)
    residents = b"\2\1\xff\7\xa0\6\0\2\0\1\1\x4d"
    things = b"\3\7\x0c\x21\0" + bag + b"\x08\x0d\0\1" + text("Mind the ghoul.") + b"\x80\1\6\1\2\5"
    tiles = b"\1\2\3\1\2\7\x80\6" + b"\x40\x20\4" + bytes(765)
    put_record(1, key(-1, 2), b"\1\1" + tiles + residents + things)
    put_record(1, key(-1, 2), b"\1\1" + tiles + residents + things, True)


def main():
    store_records()
    vectors()
    ferravex()
    blank()
    names()
    teeworlds()
    for target, scripts in [("server_input", server_scripts), ("client_input", client_scripts), ("game_input", game_scripts),
                            ("ferravex_session", ferravex_scripts), ("blank_session", blank_scripts),
                            ("teeworlds_session", teeworlds_scripts)]:
        for kind, script in enumerate(scripts()):
            kind = 19 if target == "teeworlds_session" and kind == 8 else kind % 4
            put(target, bytes([kind]) + script)
    for script in blank_captures():
        put("blank_session", bytes([3]) + script)
    for script in teeworlds_captures():
        # A server that lets those in who have no token: the captures' are not its own.
        put("teeworlds_session", bytes([19]) + script)


if __name__ == "__main__":
    main()
