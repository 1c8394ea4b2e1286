-- Wireshark dissector for Forgotten Caves, version 1, after notes/protocol.md.
--
--   wireshark -X lua_script:bins/inspect/wireshark/forgotten_caves.lua
--   tshark -X lua_script:... -r game.pcap -Y 'caves.type == 3'
--
-- It takes UDP port 21068 (a preference), and on any other port what begins with the magic and the
-- version. To have it always, copy it to the folder that Help > About > Folders calls
-- "Personal Lua Plugins". It runs on Lua 5.2 and later, so it does without operators for bits.

local caves = Proto("caves", "Forgotten Caves")

local DEFAULT_PORT = 21068
local MAX_DATAGRAM = 1200
local HEADER = 6
local ENTRY = 6
local PACKED = 768

local types = {
    [0] = "State", [1] = "Action", [2] = "Chunk", [3] = "Entities", [4] = "Query", [5] = "Detail",
    [6] = "Ping", [7] = "Pong", [8] = "Hello", [9] = "Challenge", [10] = "Join", [11] = "Welcome",
    [12] = "Refuse", [13] = "Leave", [14] = "Event", [16] = "EventAck", [18] = "InfoRequest",
    [19] = "Info",
}
local actions = {
    [0] = "NoOp", [1] = "North", [2] = "East", [3] = "South", [4] = "West", [5] = "Interact",
    [6] = "Attack", [7] = "Dig", [8] = "Place", [9] = "PickUp", [10] = "Drop", [11] = "Use",
    [12] = "Equip", [13] = "Say",
}
local directions = { [1] = "North", [2] = "East", [3] = "South", [4] = "West" }
local event_kinds = { [1] = "chat", [2] = "notice", [3] = "combat" }
local refusals = {
    [1] = "another protocol version", [2] = "server full", [3] = "banned",
    [4] = "client type not allowed", [5] = "bad name", [6] = "name taken", [7] = "bad cookie",
    [8] = "shutting down", [9] = "too many from this address", [10] = "sealed session required",
}
local leaves = {
    [0] = "quit", [1] = "kicked", [2] = "banned", [3] = "idle", [4] = "server shutting down",
    [5] = "replaced by a newer login", [6] = "protocol error", [7] = "events unread",
}
local tags = {
    [0x01] = "status_effects", [0x02] = "weapon", [0x03] = "armor", [0x04] = "name",
    [0x05] = "sign_text", [0x06] = "inventory", [0x07] = "dialogue", [0x10] = "executed_sequence",
    [0x11] = "speech", [0x12] = "executed_bits", [0x20] = "name", [0x21] = "features",
    [0x22] = "server_name", [0x23] = "motd", [0x24] = "token", [0x26] = "next_event",
    [0x30] = "noise_1", [0x31] = "noise_2", [0x32] = "session_id",
}

local f = {}
local function field(name, make, ...)
    f[name] = make("caves." .. name, ...)
end

field("magic", ProtoField.uint16, "Magic", base.HEX)
field("version", ProtoField.uint8, "Version")
field("type", ProtoField.uint8, "Packet type", base.DEC, types)
field("client_type", ProtoField.uint16, "Client type")
field("tick", ProtoField.uint32, "Tick")
field("auth_token", ProtoField.uint64, "Token", base.HEX)
field("sequence", ProtoField.uint32, "Sequence")
field("client_nonce", ProtoField.uint64, "Nonce", base.HEX)
field("player_entity_id", ProtoField.uint32, "Player's entity")
field("entity_checksum", ProtoField.uint32, "Checksum of the entities", base.HEX)
field("entity_id", ProtoField.uint32, "Entity")
field("timestamp_ms", ProtoField.uint64, "Timestamp", base.HEX)
field("cookie", ProtoField.bytes, "Cookie")
field("server_key", ProtoField.bytes, "Server key")
field("tick_rate", ProtoField.uint8, "Ticks a second")
field("reason", ProtoField.uint8, "Reason")
field("server_version", ProtoField.uint8, "Version that the server speaks")
field("text_len", ProtoField.uint8, "Length of the text")
field("text_length", ProtoField.uint16, "Length of the text")
field("text", ProtoField.string, "Text")
field("padding", ProtoField.bytes, "Padding")
field("players", ProtoField.uint16, "Players")
field("max_players", ProtoField.uint16, "Players at most")
field("meta_len", ProtoField.uint16, "Bytes of metadata")
field("event_kind", ProtoField.uint8, "Kind of event", base.DEC, event_kinds)
field("from", ProtoField.uint32, "From entity")

field("chunk", ProtoField.none, "Chunk")
field("chunk.x", ProtoField.int16, "Chunk x")
field("chunk.y", ProtoField.int16, "Chunk y")
field("chunk.version", ProtoField.uint16, "Version of the chunk")
field("pal_count", ProtoField.uint8, "Entries of the palette")
field("palette", ProtoField.uint16, "Tile of the palette")
field("tiles", ProtoField.bytes, "Packed tiles")
field("tile_row", ProtoField.string, "Row of tiles")

field("player_action", ProtoField.uint16, "Action", base.DEC, actions)
field("direction", ProtoField.uint8, "Direction", base.DEC, directions)
field("target", ProtoField.uint32, "Target")
field("item", ProtoField.uint16, "Item")
field("count", ProtoField.uint16, "Count")

field("entity_count", ProtoField.uint8, "Entities in this datagram")
field("packet_flags", ProtoField.uint8, "Flags", base.HEX)
field("more", ProtoField.bool, "More datagrams of this tick follow", 8, nil, 0x01)
field("entity", ProtoField.none, "Entity")
field("entity.id", ProtoField.uint32, "Id")
field("entity.type_id", ProtoField.uint16, "Kind")
field("entity.pos_x", ProtoField.int16, "x")
field("entity.pos_y", ProtoField.int16, "y")
field("entity.hp", ProtoField.uint16, "Hit points")
field("entity.hp_max", ProtoField.uint16, "Hit points when unhurt")
field("entity.elo", ProtoField.uint16, "Elo")
field("entity.flags", ProtoField.uint8, "Flags", base.HEX)
field("entity.static", ProtoField.bool, "Never moves", 8, nil, 0x01)
field("entity.hostile", ProtoField.bool, "Hostile", 8, nil, 0x02)
field("entity.interactable", ProtoField.bool, "Interactable", 8, nil, 0x04)
field("entity.meta_len", ProtoField.uint8, "Bytes of metadata")

field("tag", ProtoField.none, "Field")
field("tag.number", ProtoField.uint8, "Tag", base.HEX, tags)
field("tag.length", ProtoField.uint8, "Length")
field("tag.value", ProtoField.bytes, "Value")
field("tag.u16", ProtoField.uint16, "Value")
field("tag.u32", ProtoField.uint32, "Value")
field("tag.u64", ProtoField.uint64, "Value", base.HEX)
field("tag.text", ProtoField.string, "Text")
field("tag.kind", ProtoField.uint16, "Kind of item")
field("tag.count", ProtoField.uint16, "How many")

local all = {}
for _, one in pairs(f) do
    all[#all + 1] = one
end
caves.fields = all

local e = {
    short = ProtoExpert.new("caves.too_short", "Shorter than its layout", expert.group.MALFORMED,
        expert.severity.ERROR),
    long = ProtoExpert.new("caves.too_long", "Longer than its layout", expert.group.MALFORMED,
        expert.severity.ERROR),
    value = ProtoExpert.new("caves.bad_value", "A value that the protocol does not have",
        expert.group.MALFORMED, expert.severity.ERROR),
    unknown = ProtoExpert.new("caves.unknown", "Not of version 1", expert.group.UNDECODED,
        expert.severity.WARN),
    cut = ProtoExpert.new("caves.cut", "Cut by the recording", expert.group.UNDECODED,
        expert.severity.NOTE),
}
caves.experts = { e.short, e.long, e.value, e.unknown, e.cut }

caves.prefs.port = Pref.uint("UDP port", DEFAULT_PORT, "Where the server listens")
caves.prefs.unpack = Pref.bool("Unpack tiles", false, "Show the 32 rows of a chunk's tiles")

-- Reads fields one behind the other. Where the datagram ends too early it says so once, and from
-- then on it gives nothing.
local Reader = {}
Reader.__index = Reader

local function reader(tvb, tree)
    return setmetatable({ tvb = tvb, tree = tree, at = 0, ok = true }, Reader)
end

function Reader:left()
    return self.tvb:len() - self.at
end

-- The next bytes, or nil.
function Reader:take(len)
    if not self.ok then
        return nil
    end
    if self:left() < len then
        self.ok = false
        self.tree:add_proto_expert_info(e.short, string.format(
            "Too short: %d bytes needed at offset %d, %d there", len, self.at, self:left()))
        return nil
    end
    if len == 0 then
        return nil
    end
    local range = self.tvb(self.at, len)
    self.at = self.at + len
    return range
end

-- A number of 1, 2 or 4 bytes; gives its value and its tree item.
function Reader:number(name, len, tree)
    local range = self:take(len)
    if not range then
        return nil
    end
    return range:le_uint(), (tree or self.tree):add_le(f[name], range)
end

function Reader:wide(name, tree)
    local range = self:take(8)
    if range then
        (tree or self.tree):add_le(f[name], range)
    end
end

function Reader:bytes(name, len)
    local range = self:take(len)
    if range then
        self.tree:add(f[name], range)
    end
end

function Reader:text(name, len, tree)
    local range = self:take(len)
    if range then
        (tree or self.tree):add(f[name], range, range:string(ENC_UTF_8))
    end
end

-- Whatever follows the layout is wrong.
function Reader:finish()
    if self.ok and self:left() > 0 then
        self.tree:add_proto_expert_info(e.long,
            string.format("Too long: %d bytes behind the end", self:left()))
    end
end

local function bad(tree, ...)
    tree:add_proto_expert_info(e.value, string.format(...))
end

local function chunk_entry(r, tree)
    local range = r:take(ENTRY)
    if not range then
        return nil
    end
    local x, y = range(0, 2):le_int(), range(2, 2):le_int()
    local version = range(4, 2):le_uint()
    local item = tree:add(f["chunk"], range)
    item:set_text(string.format("Chunk %d,%d version %d", x, y, version))
    item:add_le(f["chunk.x"], range(0, 2))
    item:add_le(f["chunk.y"], range(2, 2))
    item:add_le(f["chunk.version"], range(4, 2))
    return x, y, version
end

local function nine_entries(r, title)
    local tree = r.tree:add(title)
    for _ = 1, 9 do
        chunk_entry(r, tree)
    end
end

-- The lengths that a known tag's value can have: least, most, a multiple of; "joined" where it may be
-- spread over several fields (R24), so that one field alone cannot be wrong but for the multiple.
local rules = {
    [0x01] = { 2, 2 }, [0x02] = { 2, 2 }, [0x03] = { 2, 2 }, [0x04] = { 0, 32 },
    [0x10] = { 4, 4 }, [0x11] = { 0, 80 }, [0x12] = { 4, 4 }, [0x21] = { 4, 4 },
    [0x22] = { 0, 64, joined = true }, [0x23] = { 0, 512, joined = true },
    [0x24] = { 8, 8 }, [0x26] = { 4, 4 },
}
local texts = {
    [0x04] = true, [0x05] = true, [0x07] = true, [0x11] = true, [0x20] = true, [0x22] = true,
    [0x23] = true,
}

local function tag_value(item, tag, range)
    local len = range:len()
    if texts[tag] then
        item:add(f["tag.text"], range, range:string(ENC_UTF_8))
    elseif tag == 0x06 then
        for at = 0, len - 4, 4 do
            item:add_le(f["tag.kind"], range(at, 2))
            item:add_le(f["tag.count"], range(at + 2, 2))
        end
    elseif rules[tag] and len == 2 then
        item:add_le(f["tag.u16"], range)
    elseif rules[tag] and len == 4 then
        item:add_le(f["tag.u32"], range)
    elseif rules[tag] and len == 8 then
        item:add_le(f["tag.u64"], range)
    else
        item:add(f["tag.value"], range)
    end
end

-- A TLV block of so many bytes.
local function meta(r, len, tree)
    if not len or not r.ok then
        return
    end
    local block = r:take(len)
    local at, sums = 0, {}
    while block and at < len do
        local value_len = at + 1 < len and block(at + 1, 1):uint() or 0
        if at + 2 + value_len > len then
            bad(tree, "A field runs past its block at offset %d", r.at - len + at)
            return
        end
        local tag = block(at, 1):uint()
        local item = tree:add(f["tag"], block(at, 2 + value_len))
        item:set_text(string.format("0x%02x %s", tag, tags[tag] or "unknown"))
        item:add(f["tag.number"], block(at, 1))
        item:add(f["tag.length"], block(at + 1, 1))
        if value_len > 0 then
            tag_value(item, tag, block(at + 2, value_len))
        end
        sums[tag] = (sums[tag] or 0) + value_len
        local rule = rules[tag]
        local sum = rule and rule.joined and sums[tag] or value_len
        if rule and (sum < rule[1] or sum > rule[2]) then
            bad(item, "A value of %d bytes, where %d to %d can be", sum, rule[1], rule[2])
        end
        at = at + 2 + value_len
    end
    if sums[0x06] and sums[0x06] % 4 ~= 0 then
        bad(tree, "An inventory of %d bytes, which is no multiple of 4", sums[0x06])
    end
end

local function counted_meta(r)
    local len, item = r:number("meta_len", 2)
    meta(r, len, r.tree)
    return len, item
end

local read = {}

read[0] = function(r)
    local tick = r:number("tick", 4)
    nine_entries(r, "Chunks around the player")
    r:number("player_entity_id", 4)
    r:number("entity_checksum", 4)
    return tick and "tick=" .. tick
end

local function direction(r)
    local way, item = r:number("direction", 1)
    if way and not directions[way] then
        bad(item, "Direction %d", way)
    end
end

local data = {
    [5] = function(r) r:number("target", 4) end,
    [6] = direction,
    [7] = direction,
    [8] = function(r) direction(r) r:number("item", 2) end,
    [10] = function(r) r:number("item", 2) r:number("count", 2) end,
    [11] = function(r) r:number("item", 2) end,
    [12] = function(r) r:number("item", 2) end,
    [13] = function(r)
        if r:left() == 0 or r:left() > 200 then
            bad(r.tree, "A text of %d bytes, where 1 to 200 can be", r:left())
        end
        r:text("text", r:left())
    end,
}

read[1] = function(r)
    r:wide("auth_token")
    local sequence = r:number("sequence", 4)
    nine_entries(r, "Chunks that the client holds")
    local action, item = r:number("player_action", 2)
    if not action then
        return
    end
    if not actions[action] then
        bad(item, "Action %d", action)
        r.at = r.tvb:len()
    elseif data[action] then
        data[action](r)
    end
    return string.format("seq=%d %s", sequence, actions[action] or "?")
end

-- Four indices in three bytes, from the least significant bit (R4).
local function unpack_row(bytes, row, palette)
    local shown = {}
    for group = 0, 7 do
        local number = bytes(row * 24 + group * 3, 3):le_uint()
        for _ = 1, 4 do
            local index = number % 64
            number = math.floor(number / 64)
            shown[#shown + 1] = palette[index] and tostring(palette[index]) or "?"
        end
    end
    return table.concat(shown, " ")
end

read[2] = function(r)
    local x, y, version = chunk_entry(r, r.tree)
    local count, item = r:number("pal_count", 1)
    if not count then
        return
    end
    if count < 1 or count > 64 then
        bad(item, "A palette of %d entries", count)
    end
    local palette, tree = {}, r.tree:add("Palette")
    for index = 0, count - 1 do
        palette[index] = r:number("palette", 2, tree)
    end
    local packed = r:take(PACKED)
    if packed then
        local tiles = r.tree:add(f["tiles"], packed)
        if caves.prefs.unpack then
            for row = 0, 31 do
                tiles:add(f["tile_row"], packed(row * 24, 24), unpack_row(packed, row, palette))
            end
        end
    end
    return string.format("%d,%d v%d", x, y, version)
end

local function entity(r, tree)
    local start = r.at
    local item = tree:add(f["entity"], r.tvb(start, math.min(18, r:left())))
    local id = r:number("entity.id", 4, item)
    local kind = r:number("entity.type_id", 2, item)
    r:number("entity.pos_x", 2, item)
    r:number("entity.pos_y", 2, item)
    r:number("entity.hp", 2, item)
    r:number("entity.hp_max", 2, item)
    r:number("entity.elo", 2, item)
    local flags = r:take(1)
    if flags then
        local bits = item:add(f["entity.flags"], flags)
        bits:add(f["entity.static"], flags)
        bits:add(f["entity.hostile"], flags)
        bits:add(f["entity.interactable"], flags)
    end
    local len = r:number("entity.meta_len", 1, item)
    meta(r, len, item)
    if r.ok then
        item:set_len(r.at - start)
        item:set_text(string.format("Entity %d of kind %d", id, kind))
    end
end

read[3] = function(r)
    local tick = r:number("tick", 4)
    local count = r:number("entity_count", 1)
    local flags = r:take(1)
    if flags then
        r.tree:add(f["packet_flags"], flags):add(f["more"], flags)
    end
    for _ = 1, count or 0 do
        if not r.ok or r:left() == 0 then
            -- One more look, for the complaint.
            r:take(18)
            break
        end
        entity(r, r.tree)
    end
    return tick and count and string.format("tick=%d count=%d", tick, count)
end

read[4] = function(r)
    r:wide("auth_token")
    local id = r:number("entity_id", 4)
    return id and "entity=" .. id
end

read[5] = function(r)
    r:number("tick", 4)
    local id = r:number("entity_id", 4)
    counted_meta(r)
    return id and "entity=" .. id
end

read[6] = function(r) r:wide("timestamp_ms") end
read[7] = read[6]

read[8] = function(r)
    r:wide("client_nonce")
    r:bytes("padding", 50)
end

read[9] = function(r)
    r:wide("client_nonce")
    r:bytes("cookie", 16)
    r:bytes("server_key", 32)
end

read[10] = function(r)
    r:wide("client_nonce")
    r:bytes("cookie", 16)
    counted_meta(r)
end

read[11] = function(r)
    r:wide("client_nonce")
    r:wide("auth_token")
    local player = r:number("player_entity_id", 4)
    r:number("tick", 4)
    local rate, item = r:number("tick_rate", 1)
    if rate == 0 then
        bad(item, "No ticks at all")
    end
    counted_meta(r)
    return player and "player=" .. player
end

read[12] = function(r)
    r:wide("client_nonce")
    local reason, item = r:number("reason", 1)
    if reason then
        item:append_text(" (" .. (refusals[reason] or "unknown") .. ")")
    end
    r:number("server_version", 1)
    r:text("text", r:number("text_len", 1) or 0)
    return reason and (refusals[reason] or "reason " .. reason)
end

read[13] = function(r)
    r:wide("auth_token")
    local reason, item = r:number("reason", 1)
    if reason then
        item:append_text(" (" .. (leaves[reason] or "unknown") .. ")")
    end
    return reason and (leaves[reason] or "reason " .. reason)
end

read[14] = function(r)
    local sequence = r:number("sequence", 4)
    local kind = r:number("event_kind", 1)
    r:number("from", 4)
    local len, item = r:number("text_length", 2)
    if len and len > 1000 then
        bad(item, "A text of %d bytes, where 1000 can be at most", len)
    end
    r:text("text", len or 0)
    return kind and string.format("seq=%d %s", sequence, event_kinds[kind] or "kind " .. kind)
end

read[16] = function(r)
    r:wide("auth_token")
    local sequence = r:number("sequence", 4)
    return sequence and "seq=" .. sequence
end

read[18] = function(r)
    r:wide("client_nonce")
    r:bytes("padding", 242)
end

read[19] = function(r)
    r:wide("client_nonce")
    r:number("tick", 4)
    local players = r:number("players", 2)
    local most = r:number("max_players", 2)
    local len, item = counted_meta(r)
    if len and len > 232 then
        bad(item, "%d bytes of metadata, where 232 can be at most", len)
    end
    return players and most and string.format("players=%d/%d", players, most)
end

function caves.dissector(tvb, pinfo, root)
    if tvb:len() < 2 or tvb(0, 2):le_uint() ~= 0x524C then
        return 0
    end
    pinfo.cols.protocol = "CAVES"
    local tree = root:add(caves, tvb())
    local r = reader(tvb, tree)
    r:number("magic", 2)
    local version = r:number("version", 1)
    local kind = r:number("type", 1)
    r:number("client_type", 2)
    if not r.ok then
        return tvb:len()
    end
    local name = types[kind] or "type " .. kind
    tree:append_text(", " .. name)
    pinfo.cols.info = name
    if tvb:len() < tvb:reported_len() then
        tree:add_proto_expert_info(e.cut)
        return tvb:len()
    end
    if tvb:len() > MAX_DATAGRAM then
        tree:add_proto_expert_info(e.long, "A datagram has at most 1200 bytes")
    end
    -- A Refuse is read whatever its version (R1).
    if version ~= 1 and kind ~= 12 then
        tree:add_proto_expert_info(e.unknown, "Version " .. version)
        return tvb:len()
    end
    if not read[kind] then
        tree:add_proto_expert_info(e.unknown, "Packet type " .. kind)
        return tvb:len()
    end
    local info = read[kind](r)
    r:finish()
    if info then
        tree:append_text(" " .. info)
        pinfo.cols.info = name .. " " .. info
    end
    return tvb:len()
end

local function looks_like_it(tvb, pinfo, root)
    if tvb:len() < HEADER or tvb(0, 2):le_uint() ~= 0x524C or tvb(2, 1):uint() ~= 1 then
        return false
    end
    caves.dissector(tvb, pinfo, root)
    return true
end
caves:register_heuristic("udp", looks_like_it)

local udp = DissectorTable.get("udp.port")
local port = DEFAULT_PORT
udp:add(port, caves)

function caves.prefs_changed()
    if port ~= caves.prefs.port then
        if port ~= 0 then
            udp:remove(port, caves)
        end
        port = caves.prefs.port
        if port ~= 0 then
            udp:add(port, caves)
        end
    end
end
