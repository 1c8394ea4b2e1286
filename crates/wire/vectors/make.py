#!/usr/bin/env python3
"""Writes the test vectors of the Forgotten Caves protocol, version 1.

It is an encoder of its own, made from the protocol's page alone, so that a mistake of the Rust
crate cannot hide here. `make.py` writes the files beside it; `make.py --check` writes nothing and
exits with 1 when they differ from what it would write.
"""

import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 1200
U16, U32, U64 = 0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF

# Who sends which type: the source's table, and section 2. Types 15 and 17 belong to section 6.
TO_SERVER = {1: "Action", 4: "Query", 6: "Ping", 8: "Hello", 10: "Join", 16: "EventAck",
             18: "InfoRequest"}
TO_CLIENT = {0: "State", 2: "Chunk", 3: "Entities", 5: "Detail", 7: "Pong", 9: "Challenge",
             11: "Welcome", 12: "Refuse", 14: "Event", 19: "Info"}
BOTH_WAYS = {13: "Leave"}

# R24: the tags that may be cut into several fields; of any other the first field counts.
CUT_TAGS = (0x05, 0x06, 0x07, 0x22, 0x23, 0x30, 0x31)
CUT = 252


# --- Bytes -------------------------------------------------------------------------------------

def le(layout, *numbers):
    """Little-endian, without padding: b u8, H u16, h i16, I u32, Q u64."""
    return struct.pack("<" + layout.replace("b", "B"), *numbers)


def header(packet_type, client_type=0, version=1, magic=b"\x4c\x52"):
    return magic + le("bbH", version, packet_type, client_type)


def entry(chunk):
    """A ChunkEntry: chunk_id is x in the lower and y in the upper 16 bits."""
    x, y, version = chunk
    return le("IH", (x & U16) | (y & U16) << 16, version)


def field(tag, value=b""):
    return le("bb", tag, len(value)) + value


def long_field(tag, value):
    return b"".join(field(tag, value[at:at + CUT]) for at in range(0, len(value), CUT))


def block(fields):
    return b"".join(field(tag, value) for tag, value in fields)


def pack(tiles):
    """R4: four tiles are one 24-bit number, the first in the lowest bits."""
    out = b""
    for at in range(0, len(tiles), 4):
        t0, t1, t2, t3 = tiles[at:at + 4]
        out += (t0 | t1 << 6 | t2 << 12 | t3 << 18).to_bytes(3, "little")
    return out


def fnv(data):
    """R13: FNV-1a with 32 bits."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & U32
    return value


# --- Fields ------------------------------------------------------------------------------------

def hex64(number):
    return f"0x{number:016x}"


def meta_fields(fields):
    """What a reader finds in a block; `values` where a tag repeats: joined, or the first (R24)."""
    found = {"meta": [[tag, value.hex()] for tag, value in fields]}
    values = {}
    for tag, value in fields:
        key = f"0x{tag:02x}"
        if key not in values:
            values[key] = value.hex()
        elif tag in CUT_TAGS:
            values[key] += value.hex()
    if len(values) < len(fields):
        found["values"] = values
    return found


def tile_field(tiles):
    runs = []
    for tile in tiles:
        if runs and runs[-1][0] == tile:
            runs[-1][1] += 1
        else:
            runs.append([tile, 1])
    return runs if len(runs) <= 64 else bytes(tiles).hex()


# --- Cases -------------------------------------------------------------------------------------

FILES = {}


class File:
    """The cases of one layout."""

    def __init__(self, name, layout, about):
        self.layout, self.about, self.cases, self.names = layout, about, [], set()
        FILES[name + ".json"] = self

    def add(self, name, case):
        assert name not in self.names, name
        self.names.add(name)
        self.cases.append({"name": name, **case})

    def ok(self, name, data, fields, lossy=None, **more):
        """`lossy` is why a writer that follows the page does not give these bytes again."""
        case = {"hex": data.hex(), **more, "fields": fields}
        if lossy:
            case |= {"reemit": False, "why": lossy}
        self.add(name, case)

    def bad(self, name, data, kind, offset=None, needed=None, got=None, **more):
        places = {"offset": offset, "needed": needed, "got": got}
        error = {"kind": kind} | {key: n for key, n in places.items() if n is not None}
        self.add(name, {"hex": data.hex(), **more, "error": error})

    def short(self, name, data, needed):
        self.bad(name, data, "TooShort", len(data), needed, len(data))

    def long(self, name, data, needed):
        self.bad(name, data, "TooLong", needed, needed, len(data))

    def faults(self, good, fixed, any_version=False, types=1):
        """What every layout refuses: `good` is valid, its first `fixed` bytes are always there."""
        self.short("No bytes at all", b"", 6)
        self.short("Half a header", good[:3], 6)
        self.short("A header without its last byte", good[:5], 6)
        if fixed > 6:
            self.short("A header and nothing else", good[:6], fixed)
            self.short("The fixed part without its last byte", good[:fixed - 1], fixed)
        if len(good) > fixed:
            self.short("The whole packet without its last byte", good[:-1], len(good))
        self.long("One byte too many", good + b"\0", len(good))
        over = good + bytes(LIMIT + 1 - len(good))
        self.long("A datagram of 1201 bytes", over, LIMIT)
        swapped = b"\x52\x4c" + good[2:]
        self.bad("The bytes of the magic swapped", swapped, "Magic", 0, 0x524C, 0x4C52)
        self.bad("A magic of zero", b"\0\0" + good[2:], "Magic", 0, 0x524C, 0)
        if not any_version:
            for version in (0, 2, 255):
                other = good[:2] + le("b", version) + good[3:]
                self.bad(f"Version {version}", other, "Version", 2, 1, version)
        kind = good[3]
        for other in (0 if kind else 1, 255):
            data = good[:3] + le("b", other) + good[4:]
            needed = kind if types == 1 else None
            self.bad(f"Packet type {other}", data, "PacketType", 3, needed, other)

    def meta_faults(self, head, start):
        """`head(meta_len)` is the fixed part, `start` its length; a TLV block follows."""
        def packet(meta, announced=None):
            return head(len(meta) if announced is None else announced) + meta

        self.short("The block is shorter than announced", packet(field(0xEE), 3), start + 3)
        self.long("The block is longer than announced", packet(field(0xEE, b"1"), 2), start + 2)
        self.short("65535 bytes of metadata announced", packet(b"", U16), start + U16)
        self.bad("A tag without length", packet(b"\xee"), "TlvOverrun", start, 2, 1)
        self.bad("A tag without length behind a whole field", packet(field(0xEE, b"12") + b"\x01"),
                 "TlvOverrun", start + 4, 2, 1)
        self.bad("A value that lacks one byte", packet(b"\xee\x03ab"), "TlvOverrun", start, 5, 4)
        self.bad("A value of 255 bytes of which none is there", packet(b"\xee\xff"), "TlvOverrun",
                 start, 257, 2)


def text(string):
    return string.encode("utf-8")


BAD_UTF8 = [
    ("a lone continuation byte", b"ab\x80", 2),
    ("a character cut at the end", b"abc\xc3", 3),
    ("an overlong zero", b"\xc0\x80", 0),
    ("half a surrogate pair", b"a\xed\xa0\x80", 1),
    ("a character above U+10FFFF", b"\xf4\x90\x80\x80", 0),
    ("the byte FF", b"\xff", 0),
]
# Characters that R32 forbids: a decoder reads them, and strips them before they are used.
DIRTY = "a\nb\x1b[2J\u202ec\u200b"

EDGES = [(-1024, -1024, 1), (1023, -1024, 2), (0, 0, 65535), (-1, 0, 3), (0, -1, 4), (1, 1, 5),
         (-32768, 32767, 6), (32767, -32768, 7), (-2, 3, 256)]
NONE_HELD = [(0, 0, 0)] * 9
FULL = [(-1, -1, 65535)] * 9


# --- Types 0 to 7 ------------------------------------------------------------------------------

def make_header():
    f = File("header", "Header", "The first six bytes of every datagram (R1 to R3).")

    def case(name, packet_type, client_type=0, version=1, tail=b"", **more):
        fields = {"version": version, "packet_type": packet_type, "client_type": client_type}
        if packet_type in TO_SERVER | TO_CLIENT | BOTH_WAYS:
            fields["from_client"] = packet_type not in TO_CLIENT
        f.ok(name, header(packet_type, client_type, version) + tail, fields, **more)

    for number, name in sorted((TO_SERVER | TO_CLIENT | BOTH_WAYS).items()):
        case(f"Type {number} is {name}", number)
    case("The type of sealed packets", 15)
    case("The type of path checks", 17)
    case("A client type of 1", 1, 1)
    case("A client type of 256: the low byte comes first", 1, 256)
    case("The highest client type", 1, U16)
    case("Whatever follows is no part of the header", 6, 0, 1, b"\x01\x02\x03")
    for number in (20, 128, 255):
        case(f"Type {number} is unknown", number, packet="UnknownType")
    for version in (0, 2, 255):
        case(f"Version {version} is another one", 1, 0, version, packet="OtherVersion")
    case("A Hello of version 2", 8, 7, 2, bytes(58), packet="OtherVersion")
    f.short("No bytes at all", b"", 6)
    f.short("One byte", b"\x4c", 6)
    f.short("Five bytes, magic and version right", header(1)[:5], 6)
    f.short("Five bytes with a wrong magic are too short first", b"\0\0\x01\x01\0", 6)
    f.bad("The bytes of the magic swapped", header(1, magic=b"\x52\x4c"), "Magic", 0, 0x524C,
          0x4C52)
    f.bad("The second byte of the magic wrong", header(1, magic=b"\x4c\x53"), "Magic", 0, 0x524C,
          0x534C)
    f.bad("A wrong magic counts before a wrong version", header(1, version=9, magic=b"\0\0"),
          "Magic", 0, 0x524C, 0)


def make_state():
    f = File("state", "State", "Type 0, 72 bytes: the manifest of a tick.")

    def case(name, tick, chunks, player, checksum, client_type=0, lossy=None):
        data = header(0, client_type) + le("I", tick) + b"".join(map(entry, chunks))
        data += le("II", player, checksum)
        fields = {"client_type": client_type, "tick": tick, "chunks": [list(c) for c in chunks],
                  "player_entity_id": player, "entity_checksum": checksum}
        f.ok(name, data, fields, lossy)
        return data

    manifest = [(x, y, 9 + 3 * y + x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    good = case("The 3x3 around chunk 0,0 in the order of R9", 1, manifest, 1, fnv(b""))
    case("The lowest numbers", 0, [(0, 0, 1)] * 9, 1, 0)
    case("The highest numbers", U32, FULL, U32, U32)
    case("Chunks at the edges of the grid and of i16", 0x01020304, EDGES, 0x05060708, 0x090A0B0C)
    case("A tick half way round", 1 << 31, manifest, 1 << 31, 1 << 31)
    case("A client type is not looked at", 2, manifest, 1, 3, 0x1234,
         "servers write client_type 0 (R3)")
    f.faults(good, 72)
    f.bad("The version is judged before the length", header(0, version=2), "Version", 2, 1, 2)
    f.bad("The version is judged before the type", header(1, version=3) + good[6:], "Version", 2,
          1, 3)
    f.bad("The type is judged before the length", header(6) + bytes(8), "PacketType", 3, 0, 6)
    f.long("1201 bytes are judged before the magic", bytes(1201), LIMIT)


def make_action():
    f = File("action", "Action", "Type 1, 74 bytes and the data of the action (section 4).")
    names = ["no-op", "north", "east", "south", "west", "interact", "attack", "dig", "place",
             "pick up", "drop", "use", "equip", "say"]

    def head(number, token=0x1122334455667788, sequence=7, cache=EDGES, client_type=0):
        data = header(1, client_type) + le("QI", token, sequence)
        return data + b"".join(map(entry, cache)) + le("H", number)

    def case(name, number, data=b"", extra=None, token=0x1122334455667788, sequence=7,
             cache=EDGES, client_type=0):
        fields = {"client_type": client_type, "auth_token": hex64(token), "sequence": sequence,
                  "cache": [list(c) for c in cache], "player_action": number, **(extra or {})}
        packet = head(number, token, sequence, cache, client_type) + data
        f.ok(name, packet, fields)
        return packet

    def say(name, string):
        case(name, 13, text(string), {"text": string})

    good = case("A no-op", 0)
    case("The lowest numbers, no chunk held", 0, token=1, sequence=0, cache=NONE_HELD)
    case("The highest numbers", 0, token=U64, sequence=U32, cache=FULL, client_type=U16)
    case("A registered bot of client type 258", 9, client_type=258)
    case("A token whose halves differ", 9, token=0x0000000100000002)
    case("Nine times the same chunk in the cache list", 0, cache=[(5, -5, n) for n in range(9)])
    for number in (1, 2, 3, 4):
        case(f"Action {number}: a step {names[number]}", number, extra={"direction": number})
    case("Interact with entity 1", 5, le("I", 1), {"target": 1})
    case("Interact with the highest entity", 5, le("I", U32), {"target": U32})
    case("Interact: the bytes of the target", 5, b"\x01\x02\x03\x04", {"target": 0x04030201})
    for number in (6, 7):
        for way in (1, 2, 3, 4):
            case(f"{names[number].capitalize()} to the {names[way]}", number, le("b", way),
                 {"direction": way})
    for way, item in ((1, 0), (2, U16), (3, 0x0201), (4, 1)):
        case(f"Place item {item} to the {names[way]}", 8, le("bH", way, item),
             {"direction": way, "item": item})
    case("Pick up", 9)
    for item, count in ((0, 0), (1, U16), (U16, 1), (U16, U16), (0x0201, 0x0403)):
        case(f"Drop {count} of item {item}", 10, le("HH", item, count),
             {"item": item, "count": count})
    for number in (11, 12):
        for item in (0, 0x0201, U16):
            case(f"{names[number].capitalize()} item {item}", number, le("H", item),
                 {"item": item})
    say("Say one byte", "a")
    say("Say one character of two bytes", "é")
    say("Say 200 bytes of ASCII", "x" * 200)
    say("Say 200 bytes that are 100 characters", "ä" * 100)
    say("Say 200 bytes that are 50 characters", "🦀" * 50)
    say("Say the last character of Unicode", "\U0010FFFF")
    say("Say a zero byte: it is UTF-8, and is stripped later", "\0")
    say("Say forbidden characters: they are read, and stripped later", DIRTY)

    f.faults(good, 74)
    for number in (14, 15, 255, 256, U16):
        f.bad(f"Action {number} does not exist", head(number), "Action", 72, 13, number)
    f.bad("An unknown action is judged before its data", head(14) + b"\1\2\3", "Action", 72, 13,
          14)
    lengths = {0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 4, 6: 1, 7: 1, 8: 3, 9: 0, 10: 4, 11: 2, 12: 2}
    for number, length in lengths.items():
        data = head(number) + b"\1\1\1\1\1"[:length]
        if length:
            f.short(f"Action {number} without data", data[:74], 74 + length)
        if length > 1:
            f.short(f"Action {number} with one byte too few", data[:-1], 74 + length)
        if number:
            f.long(f"Action {number} with one byte too many", data + b"\1", 74 + length)
    f.short("Say nothing", head(13), 75)
    f.long("Say 201 bytes", head(13) + b"x" * 201, 274)
    f.long("Say 201 bytes, the last character half beyond", head(13) + b"x" * 199 + text("é"),
           274)
    for number, tail in ((6, b""), (7, b""), (8, b"\1\0")):
        for way in (0, 5, 255):
            f.bad(f"Action {number} in direction {way}", head(number) + le("b", way) + tail,
                  "Direction", 74, 4, way)
    f.long("The length is judged before the direction", head(6) + b"\0\0", 75)
    for name, bad, valid in BAD_UTF8:
        f.bad(f"Say {name}", head(13) + bad, "Utf8", 74 + valid, len(bad), valid)


def noise(count, bound, seed):
    """Numbers below `bound` without runs: the usual linear congruence, upper bits."""
    out = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        out.append((seed >> 16) % bound)
    return out


TILES = {
    "all tiles 0": [0] * 1024,
    "all tiles 63": [63] * 1024,
    "0 to 63 over and over": [n % 64 for n in range(1024)],
    "only the north-west tile set": [1] + [0] * 1023,
    "only the north-east tile set": [0] * 31 + [2] + [0] * 992,
    "only the south-west tile set": [0] * 992 + [3] + [0] * 31,
    "only the south-east tile set": [0] * 1023 + [4],
    "each row its own number": [n // 32 for n in range(1024)],
    "each column its own number": [n % 32 for n in range(1024)],
    "no order at all": noise(1024, 64, 1),
}


def make_tiles():
    f = File("tiles", "Tiles", "Packed six-bit indices (R4); a chunk has 768 bytes of them, and "
             "the short ones here are its start.")
    # Written down by hand from R4, so that `pack` itself is checked.
    by_hand = [("8130fc", [1, 2, 3, 63]), ("3f0000", [63, 0, 0, 0]), ("c00f00", [0, 63, 0, 0]),
               ("00f003", [0, 0, 63, 0]), ("0000fc", [0, 0, 0, 63]), ("ffffff", [63] * 4),
               ("010000", [1, 0, 0, 0]), ("400000", [0, 1, 0, 0]), ("001000", [0, 0, 1, 0]),
               ("000004", [0, 0, 0, 1]), ("200820", [32, 32, 0, 8])]
    for digits, tiles in by_hand:
        assert pack(tiles).hex() == digits, (digits, tiles)
        f.ok(f"The group {tiles}", bytes.fromhex(digits), {"tiles": tile_field(tiles)})
    f.ok("Two groups behind each other", bytes.fromhex("8130fc3f0000"),
         {"tiles": tile_field([1, 2, 3, 63, 63, 0, 0, 0])})
    for name, tiles in TILES.items():
        f.ok("A chunk: " + name, pack(tiles), {"tiles": tile_field(tiles)})


def make_chunk():
    f = File("chunk", "Chunk", "Type 2, 783 to 909 bytes: the tiles of one chunk.")

    def head(chunk, count, client_type=0):
        return header(2, client_type) + entry(chunk) + le("b", count)

    def body(palette, tiles):
        return le(f"{len(palette)}H", *palette) + pack(tiles)

    def case(name, chunk, palette, tiles, client_type=0, lossy=None):
        fields = {"client_type": client_type, "chunk": list(chunk), "palette": palette,
                  "tiles": tile_field(tiles)}
        data = head(chunk, len(palette), client_type) + body(palette, tiles)
        f.ok(name, data, fields, lossy)
        return data

    full = [1000 + 7 * n for n in range(64)]
    good = case("A palette of one, the shortest chunk", (0, 0, 1), [1], TILES["all tiles 0"])
    case("A palette of 64, the longest chunk", (-1, 2, 65535), full, TILES["no order at all"])
    case("Each of 64 tiles in turn", (3, -4, 258), full, TILES["0 to 63 over and over"])
    case("Only the last of 64 tiles", (0, 0, 2), full, TILES["all tiles 63"])
    case("A palette of 63", (0, 0, 3), full[:63], [n % 63 for n in range(1024)])
    case("A palette of two", (1, 1, 4), [2, 1], [n % 2 for n in range(1024)])
    case("The lowest and the highest tile id", (0, 0, 5), [0, U16], [0] * 512 + [1] * 512)
    case("A palette that names a tile twice", (0, 0, 6), [7, 7], [1] * 1024)
    case("A palette of which only the first is used", (0, 0, 7), full, [0] * 1024)
    case("North-west corner of i16", (-32768, -32768, 8), [2], [0] * 1024)
    case("South-east corner of i16", (32767, 32767, 9), [2], [0] * 1024)
    case("Bedrock at the edge of the world", (1023, -1024, 10), [3], [0] * 1024)
    for corner in ("north-west", "north-east", "south-west", "south-east"):
        case(f"One tile in the {corner} corner", (0, 0, 11), [1, 2, 5, 6, 8],
             TILES[f"only the {corner} tile set"])
    case("A client type is not looked at", (0, 0, 12), [1], [0] * 1024, 5,
         "servers write client_type 0 (R3)")

    f.faults(good, 13)
    chunk = (0, 0, 1)
    f.short("The palette cut", head(chunk, 64) + body(full, [0] * 1024)[:127], 909)
    f.short("No tiles", head(chunk, 2) + le("2H", 1, 2), 785)
    f.short("A palette of two announced, one there", head(chunk, 2) + body([1], [0] * 1024), 785)
    f.long("A palette of one announced, two there", head(chunk, 1) + body([1, 2], [0] * 1024),
           783)
    f.bad("A palette of none", head(chunk, 0) + body([], [0] * 1024), "PaletteCount", 12, 64, 0)
    f.bad("A palette of 65", head(chunk, 65) + body(full + [1], [0] * 1024), "PaletteCount", 12,
          64, 65)
    f.bad("A palette of 255", head(chunk, 255) + body([1] * 160, [0] * 1024), "PaletteCount", 12,
          64, 255)
    f.bad("The palette count is judged before the length", head(chunk, 0), "PaletteCount", 12, 64,
          0)

    def outside(name, count, tile, index):
        tiles = [0] * 1024
        tiles[tile] = index
        f.bad(name, head(chunk, count) + body(full[:count], tiles), "PaletteIndex",
              13 + 2 * count + tile // 4 * 3, count - 1, index)

    outside("Index 1 with a palette of one, first tile", 1, 0, 1)
    outside("Index 1 with a palette of one, last tile", 1, 1023, 1)
    outside("Index 63 with a palette of one", 1, 500, 63)
    outside("Index 2 with a palette of two", 2, 33, 2)
    outside("Index 63 with a palette of 63", 63, 1022, 63)
    outside("Index 32 with a palette of 32", 32, 513, 32)


PLAIN = {"id": 1, "type_id": 0, "pos_x": 3, "pos_y": -4, "hp": 20, "hp_max": 20, "elo": 1000,
         "entity_flags": 0}


def entity_bytes(entity, meta):
    numbers = [entity[key] for key in PLAIN]
    return le("IHhhHHHbb", *numbers, len(meta)) + meta


def entities_packet(tick, entities, flags=0, client_type=0):
    """`entities` are pairs of numbers and TLV fields."""
    entries = b"".join(entity_bytes(e, block(fields)) for e, fields in entities)
    return header(3, client_type) + le("Ibb", tick, len(entities), flags) + entries


INLINE = [(0x01, le("H", 5)), (0x02, le("H", 258)), (0x03, le("H", U16)), (0x04, b"n" * 32),
          (0x11, text("ö" * 40)), (0x10, le("I", 0xFFFFFFFE)), (0x12, le("I", 0x80000001))]


def make_entities():
    f = File("entities", "Entities", "Type 3, 12 to 1200 bytes: what a player sees.")

    def case(name, entities, tick=9, flags=0, client_type=0, lossy=None):
        data = entities_packet(tick, entities, flags, client_type)
        listed = [e | meta_fields(fields) for e, fields in entities]
        f.ok(name, data, {"client_type": client_type, "tick": tick, "more": flags & 1 == 1,
                          "entities": listed, "checksum": fnv(data[12:])}, lossy)
        return data

    def one(**changes):
        return PLAIN | changes

    def crowd(count, fields=()):
        return [(one(id=n + 1, pos_x=n - 15, elo=n), list(fields)) for n in range(count)]

    good = case("One player", [(PLAIN, [])])
    case("Nobody in view", [], 0)
    case("Nobody in view, the highest tick", [], U32)
    case("The lowest numbers", [(one(id=1, pos_x=-32768, pos_y=-32768, hp=0, hp_max=0, elo=0),
                                 [])])
    case("The highest numbers", [(one(id=U32, type_id=U16, pos_x=32767, pos_y=32767, hp=U16,
                                      hp_max=U16, elo=U16, entity_flags=7), [])])
    case("Every number of its own bytes",
         [(one(id=0x04030201, type_id=0x0605, pos_x=0x0807, pos_y=0x0A09, hp=0x0C0B,
               hp_max=0x0E0D, elo=0x100F, entity_flags=1), [])], 0x0D0C0B0A)
    for bit, flag in enumerate(("static", "hostile", "interactable")):
        case(f"An entity that is {flag}", [(one(entity_flags=1 << bit), [])])
    case("Reserved bits of entity_flags are set: they mean nothing", [(one(entity_flags=0xFA), [])])
    case("More packets follow", [(PLAIN, [])], flags=1)
    case("Reserved bits of packet_flags are set, bit 0 is not", [(PLAIN, [])], flags=0xFE,
         lossy="reserved bits are written as 0 (R25)")
    case("All bits of packet_flags are set", [(PLAIN, [])], flags=0xFF,
         lossy="reserved bits are written as 0 (R25)")
    case("A client type is not looked at", [(PLAIN, [])], client_type=U16,
         lossy="servers write client_type 0 (R3)")
    case("65 bare entities", crowd(65))
    case("66 bare entities fill the datagram", crowd(66), flags=1)
    case("An entity with status, weapon and armor", [(PLAIN, INLINE[:3])])
    case("All inline tags at their longest", [(PLAIN, INLINE)])
    case("An empty name", [(PLAIN, [(0x04, b"")])])
    case("A name of one character of four bytes", [(PLAIN, [(0x04, text("🦀"))])])
    case("Empty speech", [(PLAIN, [(0x11, b"")])])
    case("A name twice: the first counts", [(PLAIN, [(0x04, b"Ada"), (0x04, b"Bob")])])
    case("A weapon twice: the first counts", [(PLAIN, [(0x02, b"\1\0"), (0x02, b"\2\0")])])
    case("An unknown tag without value", [(PLAIN, [(0xEE, b"")])])
    case("An unknown tag between known ones",
         [(PLAIN, [(0x01, b"\1\0"), (0x7F, b"?" * 9), (0x02, b"\2\0")])])
    case("Tag 0 is an unknown tag as well", [(PLAIN, [(0x00, b"\0")])])
    case("255 bytes of metadata", [(PLAIN, [(0xEE, bytes(range(253)))])])
    case("Four entities with 255 bytes of metadata each", crowd(4, [(0xEE, bytes(253))]))
    case("Only the last of three has metadata", crowd(2) + [(one(id=9), [(0x04, b"Z")])])
    case("1200 bytes with metadata", crowd(43, [(0x04, b"abcdefg")])
         + [(one(id=99), [(0x04, b"x" * 7)])])

    f.faults(good, 12)
    f.short("One entity announced, none there", entities_packet(9, [])[:10] + b"\1\0", 30)
    two = entities_packet(9, crowd(2))
    f.short("Two announced, the second cut", two[:-5], 48)
    f.short("Three announced, two there", two[:10] + b"\3" + two[11:], 66)
    f.long("One announced, two there", two[:10] + b"\1" + two[11:], 30)
    f.long("None announced, two there", two[:10] + b"\0" + two[11:], 12)
    f.short("255 announced, one there", good[:10] + b"\xff" + good[11:], 48)
    named = entities_packet(9, [(PLAIN, [(0x04, b"Ada")])])
    f.short("Metadata announced, none there", named[:30], 35)
    f.short("The last byte of the metadata missing", named[:34], 35)
    f.long("67 bare entities pass 1200 bytes", entities_packet(9, crowd(67)), LIMIT)

    def meta(name, data, kind, at, needed, got):
        entries = entity_bytes(PLAIN, b"") + entity_bytes(PLAIN | {"id": 2}, data)
        packet = header(3) + le("Ibb", 9, 2, 0) + entries
        f.bad(name, packet, kind, 12 + 18 + 18 + at, needed, got)

    meta("A tag without length", b"\x04", "TlvOverrun", 0, 2, 1)
    meta("A name that runs past its block", b"\x04\x04Ada", "TlvOverrun", 0, 6, 5)
    meta("A field that runs past the block behind a whole one", b"\xee\0\x01\x02\0", "TlvOverrun",
         2, 4, 3)
    meta("A status of one byte", field(1, b"\0"), "TlvLength", 0, 2, 1)
    meta("A weapon of three bytes", field(2, b"\0\0\0"), "TlvLength", 0, 2, 3)
    meta("A name of 33 bytes", field(4, b"n" * 33), "TlvLength", 0, 32, 33)
    meta("Speech of 81 bytes", field(0x11, b"s" * 81), "TlvLength", 0, 80, 81)
    meta("A sequence of eight bytes behind a name", field(4, b"A") + field(0x10, bytes(8)),
         "TlvLength", 3, 4, 8)


def make_query():
    f = File("query", "Query", "Type 4, 18 bytes: a client asks about an entity.")

    def case(name, token, entity, client_type=0):
        data = header(4, client_type) + le("QI", token, entity)
        f.ok(name, data, {"client_type": client_type, "auth_token": hex64(token),
                          "entity_id": entity})
        return data

    good = case("Every number of its own bytes", 0x0807060504030201, 0x0C0B0A09, 0x0E0D)
    case("The lowest numbers", 1, 1)
    case("The highest numbers", U64, U32, U16)
    f.faults(good, 18)


def make_detail():
    f = File("detail", "Detail", "Type 5, 16 to 1200 bytes: everything about an entity.")

    def case(name, fields, tick=9, entity=7, client_type=0, lossy=None):
        meta = block(fields)
        data = header(5, client_type) + le("IIH", tick, entity, len(meta)) + meta
        f.ok(name, data, {"client_type": client_type, "tick": tick, "entity_id": entity,
                          **meta_fields(fields)}, lossy)
        return data

    def cut(tag, value):
        return [(tag, value[at:at + CUT]) for at in range(0, len(value), CUT)]

    def items(count):
        return le(f"{2 * count}H", *[n for i in range(count) for n in (i + 1, 1000 - i)])

    case("Nothing to tell", [])
    case("Nothing to tell, the lowest tick", [], 0, 1)
    case("Nothing to tell, the highest numbers", [], U32, U32)
    case("Every number of its own bytes", [], 0x04030201, 0x08070605)
    good = case("A sign", [(0x05, text("Vorsicht, Höhle!"))])
    case("A sign of 252 bytes in one field", cut(5, b"s" * 252))
    case("A sign of 253 bytes in two fields", cut(5, b"s" * 253))
    case("A character cut between two fields", [(5, b"H\xc3"), (5, b"\xb6hle")])
    case("A sign of 255 bytes in one field", [(5, b"s" * 255)])
    case("Dialogue of two lines", [(7, b"Hello.\nWho are you?")])
    case("Dialogue of 700 bytes in three fields", cut(7, b"word word\n" * 70))
    case("An inventory of one kind", cut(6, items(1)))
    case("An empty inventory", [(6, b"")])
    case("An inventory of 63 kinds fills a field", cut(6, items(63)))
    case("An inventory of 64 kinds is cut between two", cut(6, items(64)))
    case("An inventory that somebody cut within an entry", [(6, items(2)[:3]), (6, items(2)[3:])])
    case("Cut fields with another between them", [(6, items(1)), (4, b"chest"), (6, items(1))])
    case("A long inventory of 1150 bytes with its fields", cut(6, items(285)))
    case("The longest detail, 1184 bytes", cut(6, items(293)) + [(0xEE, b"")],
         lossy="a server of this project writes at most 1150 bytes of metadata (R23)")
    case("Unknown tags are skipped", [(0xEE, b"1"), (5, b"sign"), (0xEF, b"")])
    case("A client type is not looked at", [], client_type=1,
         lossy="servers write client_type 0 (R3)")
    f.faults(good, 16)
    f.meta_faults(lambda length: header(5) + le("IIH", 9, 7, length), 16)

    def bad(name, meta, at, got, needed=None):
        data = header(5) + le("IIH", 9, 7, len(meta)) + meta
        f.bad(name, data, "TlvLength", 16 + at, needed, got)

    bad("An inventory of three bytes", field(6, b"\1\0\1"), 0, 3)
    bad("An inventory of 254 bytes in two fields", field(6, bytes(252)) + field(6, b"\1\0"), 0,
        254)
    bad("Armor of no bytes", field(5, b"sign") + field(3), 6, 0, 2)


def make_echo():
    f = File("echo", "Echo", "Types 6 and 7, 14 bytes: Ping and Pong have one layout.")

    def case(name, packet_type, stamp, client_type=0):
        data = header(packet_type, client_type) + le("Q", stamp)
        f.ok(name, data, {"client_type": client_type, "packet_type": packet_type,
                          "timestamp_ms": hex64(stamp)})
        return data

    good = case("A ping of zero, as the source's client sends it", 6, 0)
    case("A ping whose bytes count up", 6, 0x0807060504030201, 0x0A09)
    case("A ping of the highest number", 6, U64, U16)
    case("A pong of zero", 7, 0)
    case("A pong whose bytes count up", 7, 0x0807060504030201)
    case("A pong of the highest number", 7, U64)
    f.faults(good, 14, types=2)
    pong = header(7) + bytes(8)
    f.short("A pong without its last byte", pong[:-1], 14)
    f.long("A pong with one byte too many", pong + b"\0", 14)


# --- Types 8 to 19 -----------------------------------------------------------------------------

NONCE = 0x0807060504030201
COOKIE = bytes(range(0xA0, 0xB0))


def make_padded(name, layout, number, length, about):
    """Hello and InfoRequest: a nonce, padded to more than the answer will have."""
    f = File(name, layout, about)

    def packet(nonce, client_type=0, version=1, padding=None):
        rest = bytes(length - 14) if padding is None else padding
        return header(number, client_type, version) + le("Q", nonce) + rest

    def case(name, nonce, client_type=0, padding=None, lossy=None, **more):
        f.ok(name, packet(nonce, client_type, 1, padding),
             {"client_type": client_type, "client_nonce": hex64(nonce)}, lossy, **more)

    case("A nonce whose bytes count up", NONCE, 0x0A09)
    case("The lowest numbers", 0)
    case("The highest numbers", U64, U16)
    case("Padding that is not zero", NONCE, padding=b"\xff" * (length - 14),
         lossy="padding is written as 0 (R25)")
    case("Only the last byte of the padding set", NONCE, padding=bytes(length - 15) + b"\1",
         lossy="padding is written as 0 (R25)")
    f.faults(packet(NONCE), length)
    f.short("The padding missing", packet(NONCE)[:14], length)
    return f, packet


def make_hello():
    f, packet = make_padded("hello", "Hello", 8, 64, "Type 8, 64 bytes. Cases with any_version "
                            "are read as a server does to answer with Refuse(1) (R1).")
    for version in (0, 1, 2, 255):
        fields = {"client_type": 3, "client_nonce": hex64(NONCE), "version": version}
        lossy = None if version == 1 else "a writer of version 1 writes version 1"
        f.ok(f"Read whatever its version, here {version}", packet(NONCE, 3, version), fields,
             lossy, any_version=True)
    data = packet(NONCE, 3, 2, b"\x55" * 50)
    f.ok("Another version may use the padding", data,
         {"client_type": 3, "client_nonce": hex64(NONCE), "version": 2},
         "a writer of version 1 writes version 1", any_version=True)
    f.bad("Version 2 with 63 bytes gets no answer", data[:63], "TooShort", 63, 64, 63,
          any_version=True)
    f.bad("Version 2 with 65 bytes gets no answer", data + b"\0", "TooLong", 64, 64, 65,
          any_version=True)
    f.bad("Version 2 and the first 14 bytes", data[:14], "TooShort", 14, 64, 14, any_version=True)
    f.bad("Version 2 of another type", header(10, 0, 2) + data[6:], "PacketType", 3, 8, 10,
          any_version=True)
    f.bad("Version 2 with a wrong magic", b"\0\0" + data[2:], "Magic", 0, 0x524C, 0,
          any_version=True)


def make_challenge():
    f = File("challenge", "Challenge", "Type 9, 62 bytes: the cookie that proves an address.")

    def case(name, nonce, cookie, key, client_type=0, lossy=None):
        data = header(9, client_type) + le("Q", nonce) + cookie + key
        f.ok(name, data, {"client_type": client_type, "client_nonce": hex64(nonce),
                          "cookie": cookie.hex(), "server_key": key.hex()}, lossy)
        return data

    good = case("A server with a key", NONCE, COOKIE, bytes(range(32)))
    case("A server without a key", 0, bytes(16), bytes(32))
    case("The highest numbers", U64, b"\xff" * 16, b"\xff" * 32)
    case("A client type is not looked at", 1, COOKIE, bytes(32), 9,
         "servers write client_type 0 (R3)")
    f.faults(good, 62)


def make_join():
    f = File("join", "Join", "Type 10, 32 bytes and a TLV block, at most 1200.")

    def case(name, fields, nonce=NONCE, cookie=COOKIE, client_type=0):
        meta = block(fields)
        data = header(10, client_type) + le("Q", nonce) + cookie + le("H", len(meta)) + meta

        def first(tag):
            return next((value for t, value in fields if t == tag), None)

        wanted, features, token = first(0x20), first(0x21), first(0x24)
        f.ok(name, data, {
            "client_type": client_type, "client_nonce": hex64(nonce), "cookie": cookie.hex(),
            **meta_fields(fields),
            "name": None if wanted is None else wanted.decode("utf-8"),
            "features": 0 if features is None else int.from_bytes(features, "little"),
            "token": None if token is None else hex64(int.from_bytes(token, "little"))})
        return data

    case("Nothing wanted", [])
    case("The lowest numbers", [], 0, bytes(16))
    case("The highest numbers", [], U64, b"\xff" * 16, U16)
    good = case("A name", [(0x20, b"Ada")])
    case("A name of one byte", [(0x20, b"A")])
    case("A name of 32 bytes", [(0x20, b"n" * 32)])
    case("A name of 32 bytes that are 16 characters", [(0x20, text("ß" * 16))])
    case("An empty name is read: the answer is Refuse(5)", [(0x20, b"")])
    case("A name of 33 bytes is read: the answer is Refuse(5)", [(0x20, b"n" * 33)])
    case("No feature", [(0x21, le("I", 0))])
    case("The feature burst", [(0x21, le("I", 1))])
    case("The feature events", [(0x21, le("I", 2))])
    case("All bits of the features", [(0x21, le("I", U32))])
    case("The features twice: the first counts", [(0x21, le("I", 2)), (0x21, le("I", 1))])
    case("A token to resume", [(0x24, le("Q", 0x1122334455667788)), (0x20, b"Ada")])
    case("The highest token", [(0x24, le("Q", U64))])
    case("A token twice: the first counts", [(0x24, le("Q", 1 << 32)), (0x24, le("Q", 2))])
    case("Everything, unknown tags between",
         [(0xEE, b"?"), (0x20, text("Zoë")), (0xEF, b""), (0x21, le("I", 3)),
          (0x24, le("Q", NONCE))])
    case("The longest Join", [(0xEE, bytes(255))] * 4 + [(0xEE, bytes(138))])
    f.faults(good, 32)

    def head(length):
        return header(10) + le("Q", NONCE) + COOKIE + le("H", length)

    f.meta_faults(head, 32)
    for name, meta, at, needed, got in (
            ("Features of two bytes", field(0x21, b"\3\0"), 0, 4, 2),
            ("Features of eight bytes", field(0x21, bytes(8)), 0, 4, 8),
            ("A token of four bytes behind a name", field(0x20, b"A") + field(0x24, bytes(4)), 3,
             8, 4),
            ("A second features field of a wrong length",
             field(0x21, bytes(4)) + field(0x21, b"\0"), 6, 4, 1)):
        f.bad(name, head(len(meta)) + meta, "TlvLength", 32 + at, needed, got)


def make_welcome():
    f = File("welcome", "Welcome", "Type 11, 33 bytes and a TLV block, at most 1200.")

    def head(length, rate=10):
        return header(11) + le("QQIIbH", NONCE, 1 << 40, 7, 9, rate, length)

    def case(name, fields, nonce=NONCE, token=0x1122334455667788, player=7, tick=9, rate=10,
             client_type=0, lossy=None):
        meta = block(fields)
        data = header(11, client_type)
        data += le("QQIIbH", nonce, token, player, tick, rate, len(meta)) + meta

        def number(tag, missing):
            found = [value for t, value in fields if t == tag]
            return int.from_bytes(found[0], "little") if found else missing

        f.ok(name, data, {
            "client_type": client_type, "client_nonce": hex64(nonce), "auth_token": hex64(token),
            "player_entity_id": player, "tick": tick, "tick_rate": rate, **meta_fields(fields),
            "features": number(0x21, 0), "next_event": number(0x26, None)}, lossy)
        return data

    case("Nothing granted", [])
    case("The lowest numbers", [], 0, 1, 1, 0, 1)
    case("The highest numbers", [(0x21, le("I", U32)), (0x26, le("I", U32))], U64, U64, U32, U32,
         20)
    case("Every number of its own bytes", [], NONCE, 0x100F0E0D0C0B0A09, 0x14131211, 0x18171615,
         16)
    good = case("Events granted in a new session", [(0x21, le("I", 2)), (0x26, le("I", 0))])
    case("A resumed session", [(0x21, le("I", 3)), (0x26, le("I", 0x04030201))])
    case("Server name and message of the day", [(0x22, text("Höhlen")), (0x23, b"Mind the gap.")])
    case("A server name of 64 bytes", [(0x22, b"s" * 64)])
    case("A server name in two fields", [(0x22, b"Deep "), (0x22, b"caves")])
    case("An empty server name", [(0x22, b"")])
    case("A message of 512 bytes in three fields",
         [(0x23, b"m" * 252), (0x23, b"m" * 252), (0x23, b"m" * 8)])
    case("Features twice: the first counts", [(0x21, le("I", 1)), (0x21, le("I", 2))])
    case("The longest Welcome", [(0xEE, bytes(255))] * 4 + [(0xEE, bytes(137))])
    case("A client type is not looked at", [], client_type=2,
         lossy="servers write client_type 0 (R3)")
    f.faults(good, 33)
    f.meta_faults(head, 33)
    f.bad("A rate of 0", head(0, 0), "Range", 30, 1, 0)
    f.bad("A rate of 0 with metadata", head(6, 0) + field(0x21, bytes(4)), "Range", 30, 1, 0)
    for name, meta, at, needed, got in (
            ("A server name of 65 bytes", field(0x22, b"s" * 65), 0, 64, 65),
            ("A server name of 65 bytes in two fields",
             field(0x21, bytes(4)) + field(0x22, b"s" * 64) + field(0x22, b"s"), 6, 64, 65),
            ("A message of 513 bytes in three fields", long_field(0x23, b"m" * 513), 0, 512, 513),
            ("A next event of eight bytes", field(0x26, bytes(8)), 0, 4, 8)):
        f.bad(name, head(len(meta)) + meta, "TlvLength", 33 + at, needed, got)


def make_refuse():
    f = File("refuse", "Refuse", "Type 12, 17 to 272 bytes: read whatever its version (R1).")

    def head(length, reason=2, version=1, nonce=NONCE, client_type=0, speaks=1):
        return header(12, client_type, version) + le("Qbbb", nonce, reason, speaks, length)

    def case(name, string, reason=2, version=1, nonce=NONCE, client_type=0, speaks=None,
             lossy=None):
        speaks = version if speaks is None else speaks
        data = head(len(text(string)), reason, version, nonce, client_type, speaks) + text(string)
        f.ok(name, data, {"header_version": version, "client_type": client_type,
                          "client_nonce": hex64(nonce), "reason": reason, "version": speaks,
                          "text": string}, lossy)
        return data

    reasons = ["version", "full", "banned", "client_type", "bad name", "name taken", "bad cookie",
               "shutting down", "too many from this address", "sealed required"]
    for number, reason in enumerate(reasons, 1):
        case(f"Reason {number}: {reason}", reason, number)
    case("A reason that is not known yet", "later", 200)
    case("No text", "", nonce=0)
    case("255 bytes of text", "x" * 255, 255, nonce=U64)
    case("255 bytes that are 85 characters", "€" * 85)
    case("Forbidden characters: they are read, and stripped later", DIRTY)
    for version in (0, 2, 255):
        case(f"A server of version {version}", "other version", 1, version,
             lossy="a writer of version 1 writes version 1")
    case("Header and body speak of different versions", "odd", 1, 3, speaks=4,
         lossy="a writer of version 1 writes version 1")
    case("A client type is not looked at", "", client_type=6,
         lossy="servers write client_type 0 (R3)")
    good = head(4) + b"full"
    f.faults(good, 17, any_version=True)
    f.short("A text of five bytes announced, four there", head(5) + b"full", 22)
    f.long("A text of three bytes announced, four there", head(3) + b"full", 20)
    f.short("A text of 255 bytes announced, none there", head(255), 272)
    f.short("Another version does not excuse a missing text", head(1, 1, 2), 18)
    for name, bad, valid in BAD_UTF8:
        f.bad(f"Text with {name}", head(len(bad)) + bad, "Utf8", 17 + valid, len(bad), valid)


def make_leave():
    f = File("leave", "Leave", "Type 13, 15 bytes: either side ends the session.")

    def case(name, token, reason, client_type=0):
        data = header(13, client_type) + le("Qb", token, reason)
        f.ok(name, data, {"client_type": client_type, "auth_token": hex64(token),
                          "reason": reason})
        return data

    reasons = ["quit", "kicked", "banned", "idle", "shutting down", "replaced by a newer login",
               "protocol error", "events unread"]
    for number, reason in enumerate(reasons):
        good = case(f"Reason {number}: {reason}", 0x0807060504030201, number)
    case("The lowest numbers", 1, 0)
    case("The highest numbers, a reason not known yet", U64, 255, U16)
    f.faults(good, 15)


def make_event():
    f = File("event", "Event", "Type 14, 17 to 1017 bytes: chat, notices, combat.")

    def head(length, sequence=7, kind=2, source=0, client_type=0):
        return header(14, client_type) + le("IbIH", sequence, kind, source, length)

    def case(name, string, sequence=7, kind=2, source=0, client_type=0, lossy=None):
        data = head(len(text(string)), sequence, kind, source, client_type) + text(string)
        f.ok(name, data, {"client_type": client_type, "sequence": sequence, "kind": kind,
                          "from": source, "text": string}, lossy)
        return data

    good = case("Chat of entity 5", "Hello!", 0, 1, 5)
    case("A notice of the server", "The caves close at ten.", 1, 2)
    case("Combat", "Ada hits the rat.", 2, 3, 9)
    case("A kind that is not known yet", "?", 3, 255)
    case("No text", "")
    case("The lowest numbers", "a", 0, 1, 0)
    case("The highest numbers", "z", U32, 3, U32)
    case("Every number of its own bytes", "b", 0x04030201, 1, 0x08070605)
    case("1000 bytes of text", "x" * 1000)
    case("1000 bytes that are 250 characters", "🦀" * 250)
    case("256 bytes of text: the length has two bytes", "y" * 256)
    case("Forbidden characters: they are read, and stripped later", DIRTY)
    case("A client type is not looked at", "n", client_type=4,
         lossy="servers write client_type 0 (R3)")
    f.faults(good, 17)
    f.short("A text of seven bytes announced, six there", head(7) + b"Hello!", 24)
    f.long("A text of five bytes announced, six there", head(5) + b"Hello!", 22)
    f.short("A text of 65535 bytes announced", head(U16), 17 + U16)
    f.bad("1001 bytes of text", head(1001) + b"x" * 1001, "Range", 15, 1000, 1001)
    f.bad("1183 bytes of text fit the datagram and are too many", head(1183) + b"x" * 1183,
          "Range", 15, 1000, 1183)
    for name, bad, valid in BAD_UTF8:
        f.bad(f"Text with {name}", head(len(bad)) + bad, "Utf8", 17 + valid, len(bad), valid)


def make_event_ack():
    f = File("event_ack", "EventAck", "Type 16, 18 bytes: one event was received.")

    def case(name, token, sequence, client_type=0):
        data = header(16, client_type) + le("QI", token, sequence)
        f.ok(name, data, {"client_type": client_type, "auth_token": hex64(token),
                          "sequence": sequence})
        return data

    good = case("Every number of its own bytes", 0x0807060504030201, 0x0C0B0A09, 0x0E0D)
    case("The lowest numbers", 1, 0)
    case("The highest numbers", U64, U32, U16)
    f.faults(good, 18)


def make_info():
    make_padded("info_request", "InfoRequest", 18, 256, "Type 18, 256 bytes.")
    f = File("info", "Info", "Type 19, 24 to 256 bytes: a server tells about itself.")

    def head(length):
        return header(19) + le("QIHHH", NONCE, 9, 3, 400, length)

    def case(name, fields, nonce=NONCE, tick=9, players=3, most=400, client_type=0, lossy=None):
        meta = block(fields)
        data = header(19, client_type)
        data += le("QIHHH", nonce, tick, players, most, len(meta)) + meta
        f.ok(name, data, {"client_type": client_type, "client_nonce": hex64(nonce), "tick": tick,
                          "players": players, "max_players": most, **meta_fields(fields)}, lossy)
        return data

    case("Nothing to tell", [])
    case("The lowest numbers", [], 0, 0, 0, 0)
    case("The highest numbers", [], U64, U32, U16, U16)
    case("Every number of its own bytes", [], NONCE, 0x0C0B0A09, 0x0E0D, 0x100F)
    good = case("Server name and message of the day", [(0x22, b"Deep"), (0x23, text("Grüße"))])
    case("A message in two fields", [(0x23, b"one "), (0x22, b"Deep"), (0x23, b"two")])
    case("The longest Info", [(0x22, b"s" * 64), (0x23, b"m" * 164)])
    case("Unknown tags are skipped", [(0xEE, b"12345"), (0x22, b"Deep")])
    case("A client type is not looked at", [], client_type=2,
         lossy="servers write client_type 0 (R3)")
    f.faults(good, 24)
    f.meta_faults(head, 24)
    over = field(0x22, b"s" * 64) + field(0x23, b"m" * 165)
    f.bad("257 bytes", head(len(over)) + over, "Range", 22, 232, 233)
    over = field(0xEE, bytes(255)) * 2
    f.bad("538 bytes", head(len(over)) + over, "Range", 22, 232, 514)
    f.bad("A server name of 65 bytes", head(67) + field(0x22, b"s" * 65), "TlvLength", 24, 64, 65)


# --- Parts -------------------------------------------------------------------------------------

def make_tlv():
    f = File("tlv", "Tlv", "A TLV block by itself, offsets from its start (R24).")

    def case(name, fields, **more):
        f.ok(name, block(fields), meta_fields(fields), **more)

    def long(name, tag, value):
        parts = [(tag, value[at:at + CUT]) for at in range(0, len(value), CUT)]
        case(name, parts, long=True)

    def bad(name, data, at, needed, got, kind="TlvLength"):
        f.bad(name, data, kind, at, needed, got)

    case("An empty block", [])
    case("One field without value", [(0xEE, b"")])
    case("A field of one byte", [(0xEE, b"\xff")])
    case("A field of 255 bytes", [(0xEE, bytes(range(255)))])
    case("The lowest and the highest tag", [(0x00, b"a"), (0xFF, b"b")])
    case("Three empty fields of one unknown tag", [(0xEE, b"")] * 3)
    case("An unknown tag twice: the first counts", [(0xEE, b"1"), (0xEE, b"2")])
    case("A value that looks like fields", [(0xEE, b"\x01\x01\x00\x02")])
    for tag, size in ((0x01, 2), (0x02, 2), (0x03, 2), (0x10, 4), (0x12, 4), (0x21, 4),
                      (0x24, 8), (0x26, 4)):
        value = bytes(range(1, size + 1))
        case(f"Tag 0x{tag:02x} has {size} bytes", [(tag, value)])
        case(f"Tag 0x{tag:02x} twice: the first counts", [(tag, value), (tag, b"\xff" * size)])
        for wrong in (0, size - 1, size + 1, 255):
            bad(f"Tag 0x{tag:02x} of {wrong} bytes", field(tag, bytes(wrong)), 0, size, wrong)
        bad(f"Tag 0x{tag:02x} again with a wrong length", field(tag, value) + field(tag, b"\0"),
            2 + size, size, 1)
    for tag, most in ((0x04, 32), (0x11, 80), (0x22, 64)):
        case(f"Tag 0x{tag:02x} of {most} bytes", [(tag, b"x" * most)])
        case(f"Tag 0x{tag:02x} of no bytes", [(tag, b"")])
        bad(f"Tag 0x{tag:02x} of {most + 1} bytes", field(tag, b"x" * (most + 1)), 0, most,
            most + 1)
    long("One long value of 252 bytes is one field", 0x05, b"s" * 252)
    long("One long value of 253 bytes is two fields", 0x05, b"s" * 253)
    long("One long value of 504 bytes is two fields", 0x07, b"d" * 504)
    long("One long value of 1000 bytes is four fields", 0x07, bytes(n % 251 for n in range(1000)))
    long("An inventory of 300 bytes is cut between its entries", 0x06,
         bytes(range(250)) + b"\1" * 50)
    long("A message of the day of 512 bytes", 0x23, b"m" * 512)
    long("A Noise message of 207 bytes", 0x30, bytes(range(207)))
    long("A Noise message of 300 bytes", 0x31, b"\x5a" * 300)
    case("Parts of two values interleaved", [(5, b"a"), (7, b"x"), (5, b"b"), (7, b"y")])
    case("Parts of different lengths, one empty", [(5, b"abc"), (5, b""), (5, b"d")])
    bad("A message of the day of 513 bytes", long_field(0x23, b"m" * 513), 0, 512, 513)
    bad("A server name of 65 bytes in 65 fields", field(0x22, b"s") * 65, 0, 64, 65)
    bad("An inventory of five bytes", field(6, bytes(5)), 0, None, 5)
    bad("An inventory of six bytes in two fields behind another tag",
        field(0xEE) + field(6, bytes(4)) + field(6, bytes(2)), 2, None, 6)
    bad("A lone tag", b"\xee", 0, 2, 1, "TlvOverrun")
    bad("A length without value", b"\xee\x01", 0, 3, 2, "TlvOverrun")
    bad("The longest value, one byte short", b"\xee\xff" + bytes(254), 0, 257, 256, "TlvOverrun")
    bad("A lone tag behind an empty field", b"\xee\0\xee", 2, 2, 1, "TlvOverrun")
    bad("A known tag runs past the end", b"\x01\x02\0", 0, 4, 3, "TlvOverrun")
    bad("The form is judged before the lengths of tags", field(1, b"\0") + b"\xee", 3, 2, 1,
        "TlvOverrun")


def make_fnv():
    f = File("fnv", "Fnv", "FNV-1a, 32 bits, of bytes; or of the entry bytes of all EntityPackets "
             "of a tick (R13), then with datagrams in place of hex.")
    # Published values of the hash.
    for name, data, value in (("Nothing", b"", 0x811C9DC5), ("The letter a", b"a", 0xE40C292C),
                              ("The letter b", b"b", 0xE70C2DE5),
                              ("The word foobar", b"foobar", 0xBF9CF968)):
        assert fnv(data) == value
        f.ok(name, data, {"fnv": value})
    for name, data in (("A zero byte", b"\0"), ("The byte FF", b"\xff"),
                       ("All bytes in order", bytes(range(256))), ("1188 zero bytes", bytes(1188))):
        f.ok(name, data, {"fnv": fnv(data)})

    crowd = [(PLAIN | {"id": n, "pos_x": n}, INLINE[3:4] if n % 3 == 0 else [])
             for n in range(1, 8)]
    entries = b"".join(entity_bytes(e, block(fields)) for e, fields in crowd)

    def tick(name, packets):
        f.add(name, {"datagrams": [p.hex() for p in packets], "fields": {"fnv": fnv(
            b"".join(p[12:] for p in packets))}})

    tick("A tick without entities", [entities_packet(5, [])])
    tick("Seven entities in one packet", [entities_packet(5, crowd)])
    tick("The same seven in two packets", [entities_packet(5, crowd[:4], 1),
                                           entities_packet(5, crowd[4:])])
    tick("The same seven in seven packets of another tick",
         [entities_packet(6, [e], 1 if e is not crowd[-1] else 0) for e in crowd])
    for case in f.cases[-3:]:
        assert case["fields"]["fnv"] == fnv(entries)
    tick("The same seven in another order have another checksum", [entities_packet(5, crowd[::-1])])


# --- Files -------------------------------------------------------------------------------------

def render(file):
    def line(value):
        return json.dumps(value, ensure_ascii=True)

    cases = []
    for case in file.cases:
        lines = [f"   {line(key)}: {line(value)}" for key, value in case.items()]
        cases.append("  {\n" + ",\n".join(lines) + "\n  }")
    return (f"{{\n \"layout\": {line(file.layout)},\n \"about\": {line(file.about)},\n"
            " \"cases\": [\n" + ",\n".join(cases) + "\n ]\n}\n")


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: make.py [--check]")
    for make in (make_header, make_state, make_action, make_tiles, make_chunk, make_entities,
                 make_query, make_detail, make_echo, make_hello, make_challenge, make_join,
                 make_welcome, make_refuse, make_leave, make_event, make_event_ack, make_info,
                 make_tlv, make_fnv):
        make()
    written = {name: render(file) for name, file in FILES.items()}
    if not sys.argv[1:]:
        for name, content in written.items():
            (HERE / name).write_bytes(content.encode("ascii"))
    found = {path.name: path.read_bytes() for path in HERE.glob("*.json")}
    wrong = sorted(name for name in written.keys() | found.keys()
                   if found.get(name) != written.get(name, "").encode("ascii"))
    if wrong:
        sys.exit("not what make.py writes: " + ", ".join(wrong))
    print(sum(len(file.cases) for file in FILES.values()), "cases in", len(written), "files")


if __name__ == "__main__":
    main()
