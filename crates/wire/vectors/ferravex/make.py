#!/usr/bin/env python3
"""Writes the test vectors of ferravex-net, protocol version 2.

An encoder of its own, made from the protocol's page alone (`struct` of the standard library). `make.py` writes
`vectors.json` beside it; `make.py --check` writes nothing and exits with 1 when it differs.
"""

import json
import math
import pathlib
import struct
import sys

FILE = pathlib.Path(__file__).resolve().parent / "vectors.json"
U32, U64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
SESSION = 0x1122_3344_5566_7788
CASES = []


def le(layout, *numbers):
    return struct.pack("<" + layout, *numbers)


def head(kind, version=2, magic=b"FERRAVEX"):
    return magic + le("BB", version, kind)


def hex64(number):
    return f"0x{number:016x}"


def bits(number):
    """A float as its bit pattern: what is compared has to be exact."""
    return struct.unpack("<I", struct.pack("<f", number))[0]


def ok(name, data, packet, **fields):
    assert len(data) <= 1200 and all(case["name"] != name for case in CASES), name
    CASES.append({"name": name, "hex": data.hex(), "packet": packet, "fields": fields})


def bad(name, data, kind, offset):
    assert all(case["name"] != name for case in CASES), name
    CASES.append({"name": name, "hex": data.hex(), "error": {"kind": kind, "offset": offset}})


def hello(nonce):
    return head(1) + le("Q", nonce)


def frame(sequence, x=0.0, y=0.0, yaw=0.0, pitch=0.0, buttons=0):
    return le("IffffH", sequence & U32, x, y, yaw, pitch, buttons)


def input_(frames, session=SESSION, count=None):
    return head(2) + le("QB", session, len(frames) if count is None else count) + b"".join(frames)


def welcome(nonce, session, player, tick):
    return head(3) + le("QQBI", nonce, session, player, tick)


def player(number, position=(0.0,) * 3, velocity=(0.0,) * 3, yaw=0.0, health=100):
    return le("B", number) + le("ffffff", *position, *velocity) + le("fH", yaw, health)


def snapshot(tick, ack, players, session=SESSION, valid=None, count=None):
    number = 0 if ack is None else ack
    flag = (0 if ack is None else 1) if valid is None else valid
    fixed = le("QIBIB", session, tick, flag, number, len(players) if count is None else count)
    return head(4) + fixed + b"".join(players)


def event(sequence, payload, session=SESSION, length=None):
    return head(5) + le("QQH", session, sequence, len(payload) if length is None else length) + payload


def ack(sequence, session=SESSION):
    return head(6) + le("QQ", session, sequence)


def frame_fields(sequence, x=0.0, y=0.0, yaw=0.0, pitch=0.0, buttons=0):
    return [sequence & U32, bits(x), bits(y), bits(yaw), bits(pitch), buttons]


def player_fields(number, position=(0.0,) * 3, velocity=(0.0,) * 3, yaw=0.0, health=100):
    return [number, [bits(n) for n in position], [bits(n) for n in velocity], bits(yaw), health]


def valid():
    for name, nonce in [("no bit", 0), ("every bit", U64), ("eight different bytes", 0x0102030405060708)]:
        ok(f"A Hello with {name} in its nonce", hello(nonce), "Hello", nonce=hex64(nonce))
    step = (7, 0.5, -1.0, 3.25, -0.125, 0x8001)
    runs = {
        "one frame": [step],
        "six frames": [(n, n / 4, -n / 8, 1.5, 0.0, n) for n in range(100, 106)],
        "six frames over the end of the numbers": [(U32 - 2 + n,) for n in range(6)],
        "the largest and the smallest numbers": [(0, 3.4028234663852886e38, -3.4028234663852886e38, 2.0 ** -149, -0.0, 65535)],
    }
    for name, frames in runs.items():
        ok(f"An Input with {name}", input_([frame(*f) for f in frames]), "Input", session=hex64(SESSION),
           frames=[frame_fields(*f) for f in frames])
    ok("A Welcome", welcome(5, SESSION, 3, 1000), "Welcome", nonce=hex64(5), session=hex64(SESSION), player=3, tick=1000)
    ok("A Welcome of the highest numbers", welcome(U64, U64, 255, U32), "Welcome", nonce=hex64(U64), session=hex64(U64),
       player=255, tick=U32)
    one = (9, (1.0, -2.0, 0.25), (0.0, 9.5, -0.0), 3.125, 65535)
    crowd = [(n * 8, (n + 0.5, 0.0, -n), (0.0, 0.0, n / 2), n / 16, n) for n in range(32)]
    states = {
        "nobody and no acknowledgement": (0, None, []),
        "one player": (77, 12, [one]),
        "thirty-two players": (U32, U32, crowd),
        "an acknowledgement of 0": (1, 0, [one]),
    }
    for name, (tick, number, players) in states.items():
        ok(f"A Snapshot with {name}", snapshot(tick, number, [player(*p) for p in players]), "Snapshot",
           session=hex64(SESSION), tick=tick, ack=number, players=[player_fields(*p) for p in players])
    longest = bytes(n % 251 for n in range(900))
    # The page's text says 924; its list of fields makes this.
    assert len(event(0, longest)) == 928
    for name, sequence, payload in [("no payload", 0, b""), ("a short payload", 1 << 32, b"\0\xff boom"),
                                    ("the longest payload", U64, longest)]:
        ok(f"An Event with {name}", event(sequence, payload), "Event", session=hex64(SESSION), sequence=hex64(sequence),
           payload=payload.hex())
    for sequence in (0, U32 + 1, U64):
        ok(f"An EventAck of {sequence}", ack(sequence), "EventAck", session=hex64(SESSION), sequence=hex64(sequence))


def invalid():
    good = {"Hello": hello(1), "Input": input_([frame(1), frame(2)]), "Welcome": welcome(1, SESSION, 1, 1),
            "Snapshot": snapshot(1, 1, [player(1), player(2)]), "Event": event(1, b"abc"), "EventAck": ack(1)}
    for name, data in good.items():
        bad(f"{name} without its last byte", data[:-1], "TooShort", len(data) - 1)
        bad(f"{name} and one byte", data + b"\0", "Trailing", len(data))
        bad(f"{name} in 1201 bytes", data + bytes(1201 - len(data)), "TooLong", 1200)
        bad(f"{name} of version 1", data[:8] + b"\x01" + data[9:], "Version", 8)
        bad(f"{name} with a lower-case magic", b"ferravex" + data[8:], "Magic", 0)
        bad(f"{name} with a wrong last byte of its magic", data[:7] + b"Y" + data[8:], "Magic", 7)
        bad(f"{name} under kind 0", data[:9] + b"\0" + data[10:], "PacketType", 9)
        bad(f"{name} under kind 7", data[:9] + b"\x07" + data[10:], "PacketType", 9)
        if name not in ("Hello", "Welcome"):
            bad(f"{name} with a session of zero", data[:10] + bytes(8) + data[18:], "Zero", 10)
    bad("Welcome with a session of zero", welcome(1, 0, 1, 1), "Zero", 18)
    bad("Nothing", b"", "TooShort", 0)
    bad("A header without its kind", head(1)[:9], "TooShort", 9)
    for version in (0, 3, 255):
        bad(f"Version {version}", head(1, version) + bytes(8), "Version", 8)
    bad("An Input without frames", input_([]), "Range", 18)
    bad("An Input with seven frames", input_([frame(n) for n in range(7)]), "Range", 18)
    bad("An Input with 255 frames announced", input_([frame(1)], count=255), "Range", 18)
    bad("An Input with more frames announced", input_([frame(1)], count=2), "TooShort", 41)
    bad("An Input with fewer frames announced", input_([frame(1), frame(2)], count=1), "Trailing", 41)
    for name, second in [("the same number twice", 5), ("a number left out", 7), ("numbers going down", 4),
                         ("numbers half the circle apart", 5 + (1 << 31))]:
        bad(f"An Input with {name}", input_([frame(5), frame(second)]), "Sequence", 41)
    for place, field in enumerate(("x", "y", "yaw", "pitch")):
        for name, number in [("no number", math.nan), ("infinity", math.inf), ("minus infinity", -math.inf)]:
            data = input_([frame(1), frame(2, **{field: number})])
            bad(f"An Input with {name} as {field}", data, "NonFinite", 19 + 22 + 4 + 4 * place)
    bad("A Snapshot with 33 players", snapshot(1, None, [player(n) for n in range(33)]), "Range", 27)
    bad("A Snapshot with a player twice", snapshot(1, None, [player(3), player(4), player(3)]), "Twice", 28 + 62)
    bad("A Snapshot with ack_valid 2", snapshot(1, 5, [], valid=2), "Range", 22)
    bad("A Snapshot with an acknowledgement that is not valid", snapshot(1, 5, [], valid=0), "Flags", 23)
    for place in range(7):
        numbers = [math.nan if n == place else 0.0 for n in range(7)]
        data = snapshot(1, None, [player(1, numbers[:3], numbers[3:6], numbers[6])])
        bad(f"A Snapshot without a number at place {place}", data, "NonFinite", 28 + 1 + 4 * place)
    bad("An Event with 901 bytes", event(1, bytes(901)), "Cap", 26)
    bad("An Event with 65535 bytes announced", event(1, b"", length=65535), "Cap", 26)
    bad("An Event with fewer bytes announced", event(1, b"abc", length=2), "Trailing", 30)
    bad("An Event with more bytes announced", event(1, b"abc", length=4), "TooShort", 31)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: make.py [--check]")
    valid()
    invalid()
    lines = ",\n".join("  " + json.dumps(case) for case in CASES)
    text = '{\n "protocol": "ferravex-net 2",\n "cases": [\n' + lines + "\n ]\n}\n"
    if not sys.argv[1:]:
        FILE.write_text(text)
    elif not FILE.exists() or FILE.read_text() != text:
        sys.exit("vectors.json is not what make.py writes")
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
