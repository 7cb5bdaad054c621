-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- Wireshark dissector for Beowire's wire format, version 2 (engine/wire.h), in raw Ethernet frames
-- and in UDP. Every structure is a list of rows in the order of the wire; offsets follow from the
-- rows' sizes, and a field is named beowire.STRUCTURE.MEMBER after the header file.
--
-- Use: tshark -X lua_script:beowire.lua -r FILE, or copy it into Wireshark's personal plugin folder,
-- together with beowire_keys.lua and beowire_crypto.lua, which lie beside it.

local beowire = Proto("beowire", "Beowire")
local cluster_keys = dofile(__DIR__ .. "/beowire_keys.lua")
cluster_keys.use(dofile(__DIR__ .. "/beowire_crypto.lua"))

local MAGIC = 0xBE0A
local VERSION = 2
local HEADER_BYTES = 32
local PATHS_MAX = 4
local RANGES_MAX = 32
local HEAD_MAX = 1024 -- bytes in which all parts lie
local PARTS_MAX = 64
local SEAL_TAG = 16 -- bytes of the tag of what is sealed
local ETHERTYPES = { 0x88B5, 0x080A }

local HELLO, DATA, ACK, REFUSE, BYE, DGRAM, CHALLENGE = 1, 2, 3, 4, 5, 6, 7
local MESSAGE, PULL, PULL_ERROR, BULK, PAD = 1, 2, 3, 4, 5

local TYPES = {
	[HELLO] = "HELLO",
	[DATA] = "DATA",
	[ACK] = "ACK",
	[REFUSE] = "REFUSE",
	[BYE] = "BYE",
	[DGRAM] = "DGRAM",
	[CHALLENGE] = "CHALLENGE",
}
-- Types that have a tag instead of a token and a checksum where there is a key.
local TAGGED = { [DATA] = true, [ACK] = true, [BYE] = true }
-- Types that show the token which their receiver gave.
local CONTACT = { [DATA] = true, [ACK] = true, [BYE] = true, [CHALLENGE] = true }
local KINDS = {
	[MESSAGE] = "MESSAGE",
	[PULL] = "PULL",
	[PULL_ERROR] = "PULL_ERROR",
	[BULK] = "BULK",
	[PAD] = "PAD",
}
local REFUSALS = {
	[1] = "that incarnation is not alive here",
	[2] = "no version in common",
	[3] = "the handle is unknown here",
	[4] = "no engine of that number lives here",
	[5] = "another cluster key, or none",
	[6] = "one side encrypts, the other does not",
}
local CHECKS = { [0] = "bad", [1] = "good", [2] = "unverified" }
local BAD, GOOD, UNVERIFIED = 0, 1, 2

beowire.prefs.payload = Pref.bool("Verify payload checksums", false,
	"Compute CRC32C over every payload (slow for large frames)")
beowire.prefs.port_low = Pref.uint("First UDP port", 47100, "Lowest port of Beowire's UDP range")
beowire.prefs.port_high = Pref.uint("Last UDP port", 47999, "Highest port of Beowire's UDP range")

beowire.prefs.key_file = Pref.string("Key file", "",
	"The cluster's key, as BEOWIRE_KEY names it: what it makes genuine is verified, what is sealed opened")

-- Bit operations: a library in Lua 5.2, operators later.
local bxor, band, rshift
if bit32 then
	bxor, band, rshift = bit32.bxor, bit32.band, bit32.rshift
else
	bxor = load("return function(a, b) return a ~ b end")()
	band = load("return function(a, b) return a & b end")()
	rshift = load("return function(a, n) return a >> n end")()
end

-- CRC32C (Castagnoli, RFC 3720 B.4), reflected, one table of 256 entries.
local crc_table = {}
for i = 0, 255 do
	local c = i
	for _ = 1, 8 do
		c = band(c, 1) == 1 and bxor(rshift(c, 1), 0x82F63B78) or rshift(c, 1)
	end
	crc_table[i] = c
end

local function crc_add(state, text)
	for i = 1, #text do
		state = bxor(rshift(state, 8), crc_table[band(bxor(state, text:byte(i)), 0xFF)])
	end
	return state
end

local CRC_START = 0xFFFFFFFF

local function crc_end(state)
	return bxor(state, 0xFFFFFFFF)
end

-- Every field of the protocol, in the order of its definition, for registration below.
local registered = {}

local function field(make, abbr, ...)
	local f = make("beowire." .. abbr, ...)
	registered[#registered + 1] = f
	return f
end

local MAKERS = {
	u8 = { ProtoField.uint8, 1 },
	u16 = { ProtoField.uint16, 2 },
	u32 = { ProtoField.uint32, 4 },
	u64 = { ProtoField.uint64, 8 },
	i32 = { ProtoField.int32, 4 },
}

-- A structure from rows {member, type, label, base, names}; type is a key of MAKERS, or a number of
-- bytes (bytes), or {n} (a string of n bytes, zero-padded).
local function structure(name, rows)
	local s = { size = 0, fields = {}, offset = {} }
	for _, row in ipairs(rows) do
		local member, kind, label, shown, names = row[1], row[2], row[3], row[4], row[5]
		local abbr = name .. "." .. member
		local f, size
		if type(kind) == "number" then
			f, size = field(ProtoField.bytes, abbr, label), kind
		elseif type(kind) == "table" then
			f, size = field(ProtoField.string, abbr, label), kind[1]
		else
			f = field(MAKERS[kind][1], abbr, label, shown or base.DEC, names)
			size = MAKERS[kind][2]
		end
		s.fields[#s.fields + 1] = { f = f, at = s.size, size = size, member = member }
		s.offset[member] = s.size
		s.size = s.size + size
	end
	return s
end

local hdr = structure("hdr", {
	{ "magic", "u16", "Magic", base.HEX },
	{ "version", "u8", "Version" },
	{ "type", "u8", "Type", base.DEC, TYPES },
	{ "cluster", "u32", "Cluster", base.HEX },
	{ "dst_engine", "u16", "Destination engine" },
	{ "src_engine", "u16", "Source engine" },
	{ "token", "u32", "Token (HELLO: destination incarnation)", base.HEX },
	{ "conn", "u32", "Connection handle", base.HEX },
	{ "pn", "u32", "Packet number" },
	{ "path", "u8", "Path" },
	{ "flags", "u8", "Flags", base.HEX },
	{ "len", "u16", "Body length" },
	{ "hcrc", "u32", "Header checksum", base.HEX },
})
local hello = structure("hello", {
	{ "node", "u64", "Node", base.HEX },
	{ "features", "u64", "Features", base.HEX },
	{ "inc", "u32", "Incarnation", base.HEX },
	{ "conn", "u32", "Handle to use from now on", base.HEX },
	{ "version_min", "u8", "Lowest version" },
	{ "version_max", "u8", "Highest version" },
	{ "engine", "u16", "Engine" },
	{ "credit", "u32", "First credit limit (64 bytes)" },
	{ "charge_min", "u32", "Least charge (bytes)" },
	{ "frame_max", "u32", "Largest frame (bytes)" },
	{ "target_node", "u64", "Target node", base.HEX },
	{ "target_inc", "u32", "Target incarnation", base.HEX },
	{ "token", "u32", "Token to use from now on", base.HEX },
	{ "name", { 32 }, "Host name" },
	{ "nonce", "u32", "Nonce", base.HEX },
	{ "echo", "u32", "Echoed nonce", base.HEX },
	{ "cookie", "u64", "Cookie", base.HEX },
	{ "random", "u64", "Random number", base.HEX },
	{ "auth", 16, "Authentication" },
})
local ackblk = structure("ackblk", {
	{ "ack", "u32", "Acknowledged up to" },
	{ "floor", "u32", "Lowest own packet of interest" },
	{ "credit", "u32", "Credit limit (64 bytes)" },
	{ "flags", "u16", "Flags", base.HEX },
	{ "marks", "u16", "Congestion marks" },
})
local ack = structure("ack", {
	{ "delay_ns", "u32", "Delay (ns)" },
	{ "largest", "u32", "Largest received" },
	{ "ranges", "u16", "Ranges" },
	{ "reserved0", "u16", "Reserved", base.HEX },
	{ "reserved1", "u32", "Reserved", base.HEX },
})
local range = structure("range", {
	{ "gap", "u32", "Missing" },
	{ "run", "u32", "Received" },
})
local part = structure("part", {
	{ "kind", "u8", "Kind", base.DEC, KINDS },
	{ "code", "u8", "Operation code" },
	{ "plen", "u16", "Payload length" },
	{ "crc", "u32", "Payload checksum", base.HEX },
})
-- The rest of part_msg and part_bulk, behind their part.
local part_msg = structure("part_msg", {
	{ "id", "u64", "Number in its flow" },
	{ "offset", "u64", "Offset" },
	{ "total", "u64", "Total length" },
	{ "tag", "u64", "Tag, key or pull", base.HEX },
	{ "imm", "u64", "Immediate or pull", base.HEX },
	{ "dst_ep", "u16", "Destination endpoint" },
	{ "src_ep", "u16", "Source endpoint" },
	{ "status", "i32", "Status" },
})
local part_bulk = structure("part_bulk", {
	{ "id", "u64", "Pull", base.HEX },
	{ "offset", "u64", "Offset" },
})
local refuse = structure("refuse", {
	{ "why", "u8", "Reason", base.DEC, REFUSALS },
	{ "version_min", "u8", "Lowest version" },
	{ "version_max", "u8", "Highest version" },
	{ "echo_type", "u8", "Refused type", base.DEC, TYPES },
	{ "echo_engine", "u16", "Refused engine" },
	{ "reserved0", "u16", "Reserved", base.HEX },
	{ "echo_token", "u32", "Refused token", base.HEX },
	{ "echo_conn", "u32", "Refused handle", base.HEX },
	{ "name", { 32 }, "Host name" },
	{ "inc", "u32", "Incarnation", base.HEX },
	{ "echo_hello", "u32", "Token in the refused HELLO", base.HEX },
	{ "auth", "u64", "Authentication", base.HEX },
})
local challenge = structure("challenge", {
	{ "cookie", "u64", "Cookie to use from now on", base.HEX },
	{ "nonce", "u32", "Nonce of the HELLO", base.HEX },
	{ "reserved0", "u32", "Reserved", base.HEX },
	{ "auth", "u64", "Authentication", base.HEX },
})
local dgram = structure("dgram", {
	{ "dst_ep", "u16", "Destination endpoint" },
	{ "src_ep", "u16", "Source endpoint" },
	{ "plen", "u16", "Payload length" },
	{ "reserved0", "u16", "Reserved", base.HEX },
	{ "crc", "u32", "Payload checksum", base.HEX },
	{ "reserved1", "u32", "Reserved", base.HEX },
})

-- Single bits by name: member -> list of {field, mask}; the boolean's width is that of the member.
local function bits(abbr, width, list)
	local out = {}
	for _, b in ipairs(list) do
		out[#out + 1] = field(ProtoField.bool, abbr .. "." .. b[1], b[2], width, nil, b[3])
	end
	return out
end

local HDR_ANSWER, ACKBLK_NO_ACK = 0x01, 0x2
local hdr_flags = bits("hdr.flags", 8, {
	{ "answer", "Answers a HELLO", HDR_ANSWER },
	{ "ack_now", "Acknowledge at once", 0x02 },
})
local hello_features = bits("hello.features", 64, {
	{ "checksum", "Payload checksums", 0x1 },
	{ "stripe", "Data of one pull by several paths", 0x2 },
	{ "long", "Long messages are taken", 0x4 },
	{ "encrypt", "DATA is sealed", 0x8 },
})
local ackblk_flags = bits("ackblk.flags", 16, {
	{ "pressure", "Send envelopes only", 0x1 },
	{ "no_ack", "Nothing received on this path yet", ACKBLK_NO_ACK },
})
local pull_flags = bits("part_msg.status", 32, {
	{ "final", "Release the region afterwards", 0x1 },
	{ "host_key", "Key of registered memory", 0x2 },
})

local hcrc_status = field(ProtoField.uint8, "hdr.hcrc.status", "Header checksum status", base.DEC, CHECKS)
local crc_status = field(ProtoField.uint8, "part.crc.status", "Payload checksum status", base.DEC, CHECKS)
local tag_status = field(ProtoField.uint8, "hdr.tag.status", "Tag status", base.DEC, CHECKS)
local hello_auth_status = field(ProtoField.uint8, "hello.auth.status", "Authentication status", base.DEC, CHECKS)
local challenge_auth_status = field(ProtoField.uint8, "challenge.auth.status", "Authentication status", base.DEC, CHECKS)
local refuse_auth_status = field(ProtoField.uint8, "refuse.auth.status", "Authentication status", base.DEC, CHECKS)
local range_first = field(ProtoField.uint32, "range.first", "First received")
local range_last = field(ProtoField.uint32, "range.last", "Last received")
local sealed_field = field(ProtoField.bytes, "sealed", "Sealed")
local seal_tag = field(ProtoField.bytes, "sealed.tag", "Tag of what is sealed")
local seal_status = field(ProtoField.uint8, "sealed.tag.status", "Status of what is sealed", base.DEC, CHECKS)
local payload_field = field(ProtoField.bytes, "payload", "Payload")
local gap_field = field(ProtoField.bytes, "alignment", "Alignment")
local padding_field = field(ProtoField.bytes, "padding", "Bytes behind the frame")
local foreign_body = field(ProtoField.bytes, "undecoded", "Not decoded")
beowire.fields = registered

local function problem(name, text, group, severity)
	return ProtoExpert.new("beowire." .. name, text, group, severity)
end

local g, sev = expert.group, expert.severity
local bad = {
	version = problem("version.other", "Another version: only the header and HELLO are decoded", g.PROTOCOL, sev.WARN),
	type = problem("type.unknown", "Unknown frame type", g.MALFORMED, sev.ERROR),
	short = problem("short", "The frame is shorter than it says", g.MALFORMED, sev.ERROR),
	cut = problem("cut", "Not the whole frame was captured", g.UNDECODED, sev.NOTE),
	length = problem("length", "The body's length does not suit its type", g.MALFORMED, sev.ERROR),
	hcrc = problem("hdr.hcrc.bad", "Wrong header checksum", g.CHECKSUM, sev.ERROR),
	tag = problem("hdr.tag.bad", "Wrong tag: not made with the cluster's key, or changed", g.CHECKSUM, sev.ERROR),
	auth = problem("auth.bad", "Wrong authentication: made with another cluster key, or changed", g.SECURITY, sev.ERROR),
	seal = problem("sealed.bad", "What is sealed was changed", g.CHECKSUM, sev.ERROR),
	key = problem("key_file.bad", "No key", g.UNDECODED, sev.WARN),
	crc = problem("part.crc.bad", "Wrong payload checksum", g.CHECKSUM, sev.ERROR),
	kind = problem("part.kind.unknown", "Unknown kind of part", g.MALFORMED, sev.ERROR),
	deep = problem("part.place", "A part beyond the first 1024 bytes, or the 65th", g.MALFORMED, sev.ERROR),
	plen = problem("part.plen.long", "The payload runs beyond the body", g.MALFORMED, sev.ERROR),
	segment = problem("part_msg.segment", "The segment lies beyond its message's end", g.MALFORMED, sev.ERROR),
	path = problem("hdr.path.range", "No such path: a peer has at most 4", g.MALFORMED, sev.ERROR),
	zero = problem("range.zero", "A range or its gap is empty", g.MALFORMED, sev.ERROR),
	ranges = problem("ack.ranges.count", "More ranges than an ACK may state", g.MALFORMED, sev.ERROR),
	reserved = problem("reserved", "A reserved field is not 0", g.PROTOCOL, sev.NOTE),
	token = problem("hdr.token.zero", "No token is shown", g.PROTOCOL, sev.WARN),
	refused = problem("refused", "Refused", g.RESPONSE_CODE, sev.NOTE),
	pull = problem("pull.error", "A pull cannot be served", g.RESPONSE_CODE, sev.NOTE),
}
beowire.experts = {
	bad.version, bad.type, bad.short, bad.cut, bad.length, bad.hcrc, bad.tag, bad.auth, bad.seal, bad.key, bad.crc, bad.kind, bad.deep, bad.plen, bad.segment,
	bad.path, bad.zero, bad.ranges, bad.reserved, bad.token, bad.refused, bad.pull,
}

-- One frame under dissection: tvb, how many bytes of it may be read (`limit`: the stated length or
-- what was captured), the position, and the pieces that the header checksum covers.
local Frame = {}
Frame.__index = Frame

-- The frame's parts cannot be told apart from here on: its checksum cannot be verified.
function Frame:fail(item, why)
	item:add_proto_expert_info(why)
	self.broken = true
end

function Frame:room(size)
	return self.at + size <= self.limit
end

-- Why a structure is not there: the frame lies, the capture was cut, or the body is too short.
function Frame:missing(tree)
	if self.stated > self.reported then
		self:fail(tree, bad.short)
	elseif self.limit < self.stated then
		self:fail(tree, bad.cut)
	else
		self:fail(tree, bad.length)
	end
end

-- The header checksum counts the next n bytes, unless they were sealed.
function Frame:cover(n)
	if not self.opened then
		self.covered[#self.covered + 1] = { self.at, n }
	end
	self.at = self.at + n
end

-- Adds every member of a structure at the current position; returns items and ranges by member.
function Frame:add(tree, s)
	local items, ranges = {}, {}
	for _, row in ipairs(s.fields) do
		local r = self.tvb(self.at + row.at, row.size)
		ranges[row.member] = r
		items[row.member] = tree:add_le(row.f, r)
		if row.member:find("^reserved") and r:bytes():tohex():find("[^0]") then
			items[row.member]:add_proto_expert_info(bad.reserved)
		end
	end
	self:cover(s.size)
	return items, ranges
end

-- A zero-padded name, with what cannot be printed as a dot.
local function text_of(r)
	return (r:raw():gsub("%z.*", ""):gsub("[^\32-\126]", "."))
end

local function add_bits(item, list, r)
	for _, f in ipairs(list) do
		item:add_le(f, r)
	end
end

-- What the header's check covers, with that field 0.
function Frame:covered_bytes()
	local pieces = {}
	for i, piece in ipairs(self.covered) do
		pieces[i] = self.tvb(piece[1], piece[2]):raw()
	end
	local text = table.concat(pieces)
	return text:sub(1, hdr.offset.hcrc) .. "\0\0\0\0" .. text:sub(hdr.size + 1)
end

-- Bytes of the header's member, as they lie there.
function Frame:head(member, size)
	return self.tvb(hdr.offset[member], size):raw()
end

function Frame:check(tree, items, ranges)
	local cluster, to, conn = self:head("cluster", 4), self:head("dst_engine", 2), self:head("conn", 4)
	if TAGGED[self.type] and self.version == VERSION and cluster_keys.is_tagged(cluster, to, conn) then
		self:tag(tree, items, ranges)
	else
		self:header_checksum(tree, items.hcrc, ranges.hcrc)
	end
end

function Frame:tag_status()
	return cluster_keys.tag_status({
		number = self.number,
		cluster = self:head("cluster", 4),
		dst_engine = self:head("dst_engine", 2),
		conn = self:head("conn", 4),
		src_engine = self:head("src_engine", 2),
		path = self:head("path", 1),
		halves = self.type == DATA and 2 or self.stated > hdr.size and 3 or 0,
		covered = self:covered_bytes(),
		tag = self:head("hcrc", 4) .. self:head("token", 4),
	})
end

function Frame:tag(tree, items, ranges)
	local status = UNVERIFIED
	if self.sealed or not self.broken then
		status = self:tag_status()
	end
	items.token:append_text(" (upper half of a tag)")
	items.hcrc:append_text(status == UNVERIFIED and " (lower half of a tag, not checked)" or " (lower half of a tag)")
	if status == BAD then
		items.hcrc:add_proto_expert_info(bad.tag)
	end
	tree:add(tag_status, ranges.hcrc, status):set_generated()
end

function Frame:header_checksum(tree, item, r)
	local status = UNVERIFIED
	if not self.broken then
		local sum = crc_end(crc_add(CRC_START, self:covered_bytes()))
		status = sum == r:le_uint() and GOOD or BAD
		if status == BAD then
			item:append_text(string.format(" [wrong, computed 0x%08x]", sum))
			item:add_proto_expert_info(bad.hcrc)
		end
	end
	tree:add(hcrc_status, r, status):set_generated()
end

-- The frame up to the end of a body of this size, with its checksum and these bytes of the body 0.
function Frame:blanked(size, at, bytes)
	local text = self.tvb(0, HEADER_BYTES + size):raw()
	return text:sub(1, hdr.offset.hcrc) .. "\0\0\0\0" .. text:sub(HEADER_BYTES + 1, HEADER_BYTES + at)
		.. ("\0"):rep(bytes) .. text:sub(HEADER_BYTES + at + bytes + 1)
end

-- Says what is known of an `auth`, if there is one.
local function show_auth(tree, f, item, r, status)
	if r:raw():find("[^%z]") then
		tree:add(f, r, status):set_generated()
		if status == BAD then
			item:add_proto_expert_info(bad.auth)
		end
	end
end

-- The payload at the current position, of n bytes with this checksum (0: none was computed).
function Frame:payload(tree, n, crc_item, crc_range)
	if n > 0 then
		tree:add(payload_field, self.tvb(self.at, n))
	end
	local crc, status = crc_range:le_uint(), UNVERIFIED
	if beowire.prefs.payload and crc ~= 0 then
		local sum = crc_end(crc_add(CRC_START, n > 0 and self.tvb(self.at, n):raw() or ""))
		status = sum == crc and GOOD or BAD
		if status == BAD then
			crc_item:append_text(string.format(" [wrong, computed 0x%08x]", sum))
			crc_item:add_proto_expert_info(bad.crc)
		end
	end
	tree:add(crc_status, crc_range, status):set_generated()
	self.at = self.at + n
end

function Frame:hello(tree)
	if not self:room(hello.size) then
		return self:missing(tree)
	end
	local sub = tree:add(self.tvb(self.at, hello.size), "Hello")
	local items, ranges = self:add(sub, hello)
	add_bits(items.features, hello_features, ranges.features)
	self:say(string.format("%s inc=%08x", text_of(ranges.name), ranges.inc:le_uint()))
	if self.version ~= VERSION then
		return
	end
	cluster_keys.saw_hello({
		cluster = self:head("cluster", 4),
		dst_engine = self:head("dst_engine", 2),
		conn = self:head("conn", 4),
		engine = ranges.engine:raw(),
		node = ranges.node:raw(),
		random = ranges.random:raw(),
		inc = ranges.inc:raw(),
		given = ranges.conn:raw(),
		token = ranges.token:raw(),
		auth = ranges.auth:raw(),
		encrypts = band(ranges.features:raw():byte(1), 0x8) ~= 0,
	})
	local blank = self:blanked(hello.size, hello.offset.auth, 16)
	show_auth(sub, hello_auth_status, items.auth, ranges.auth, cluster_keys.hello_status(blank, ranges.auth:raw()))
end

function Frame:ackblk(tree)
	local sub = tree:add(self.tvb(self.at, ackblk.size), "Acknowledgement")
	local items, ranges = self:add(sub, ackblk)
	add_bits(items.flags, ackblk_flags, ranges.flags)
	local none = band(ranges.flags:le_uint(), ACKBLK_NO_ACK) ~= 0
	if not none then
		self:say("ack=" .. ranges.ack:le_uint())
	end
	return ranges.ack:le_uint()
end

function Frame:ack(tree)
	if not self:room(ackblk.size + ack.size) then
		return self:missing(tree)
	end
	local last = self:ackblk(tree)
	local sub = tree:add(self.tvb(self.at, ack.size), "Received")
	local items, ranges = self:add(sub, ack)
	local count = ranges.ranges:le_uint()
	if count > RANGES_MAX then
		items.ranges:add_proto_expert_info(bad.ranges)
	end
	for _ = 1, count do
		if not self:room(range.size) then
			return self:missing(items.ranges)
		end
		local row = sub:add(self.tvb(self.at, range.size), "Range")
		local _, r = self:add(row, range)
		local gap, run = r.gap:le_uint(), r.run:le_uint()
		if gap == 0 or run == 0 then
			row:add_proto_expert_info(bad.zero)
		end
		local first = (last + gap + 1) % 2 ^ 32
		last = (last + gap + run) % 2 ^ 32
		row:add(range_first, r.gap, first):set_generated()
		row:add(range_last, r.run, last):set_generated()
		row:append_text(string.format(" %d-%d", first, last))
		self:say(string.format("+%d-%d", first, last))
	end
end

local function message_text(kind, r, plen)
	if kind == MESSAGE then
		return string.format("%s %s+%d/%s", r.id:le_uint64(), r.offset:le_uint64(), plen, r.total:le_uint64())
	elseif kind == PULL then
		return string.format("%s of %s+%s", r.imm:le_uint64(), r.offset:le_uint64(), r.total:le_uint64())
	end
	return string.format("%s status=%d", r.tag:le_uint64(), r.status:le_int())
end

-- What follows a part's first 8 bytes; false when it is not all there.
function Frame:part_rest(sub, kind, plen)
	local s = (kind == BULK or kind == PAD) and part_bulk or part_msg
	if not self:room(s.size) then
		self:missing(sub)
		return false
	end
	local items, r = self:add(sub, s)
	local text
	if s == part_bulk then
		text = string.format("%s+%d", r.offset:le_uint64(), plen)
	else
		text = message_text(kind, r, plen)
		if kind == MESSAGE and r.offset:le_uint64() + plen > r.total:le_uint64() then
			items.offset:add_proto_expert_info(bad.segment)
		elseif kind == PULL then
			add_bits(items.status, pull_flags, r.status)
		elseif kind == PULL_ERROR then
			if r.status:le_int() ~= 0 then
				items.status:add_proto_expert_info(bad.pull)
			end
		end
	end
	sub:append_text(" " .. KINDS[kind] .. " " .. text)
	self:say(KINDS[kind] .. " " .. text)
	return true
end

-- One part with its payload; false when the parts behind it cannot be found.
function Frame:part(tree)
	if not self:room(part.size) then
		self:missing(tree)
		return false
	end
	local start = self.at
	local sub = tree:add(self.tvb(start, part.size), "Part")
	local items, ranges = self:add(sub, part)
	local kind, plen = ranges.kind:le_uint(), ranges.plen:le_uint()
	if not KINDS[kind] then
		self:fail(items.kind, bad.kind)
		return false
	end
	if not self:part_rest(sub, kind, plen) then
		return false
	end
	self.parts = self.parts + 1
	if self.at > HEAD_MAX or self.parts > PARTS_MAX then
		sub:add_proto_expert_info(bad.deep)
	end
	if self.at + plen > self.stated then
		self:fail(items.plen, bad.plen)
		return false
	elseif not self:room(plen) then
		self:missing(sub)
		return false
	end
	self:payload(sub, plen, items.crc, ranges.crc)
	sub:set_len(self.at - start)
	return true
end

-- Zero bytes up to the next multiple of 8, if another part follows.
function Frame:align(tree)
	local gap = math.min(-self.at % 8, self.limit - self.at)
	if gap > 0 then
		tree:add(gap_field, self.tvb(self.at, gap))
		self:cover(gap)
	end
end

-- What is sealed behind the head, up to its tag: the same as without, or nil.
function Frame:open(tree)
	local size = self.limit - self.at - SEAL_TAG
	if self.limit < self.stated or size < 0 then
		return self:missing(tree)
	end
	self.sealed = true
	self:tag_status()
	local sealed, tag = self.tvb(self.at, size), self.tvb(self.at + size, SEAL_TAG)
	local item = tree:add(sealed_field, sealed)
	tree:add(seal_tag, tag)
	local status, plain = cluster_keys.open({
		number = self.number,
		path = self:head("path", 1),
		pn = self:head("pn", 4),
		head = self.tvb(0, self.at):raw(),
		sealed = sealed:raw(),
		tag = tag:raw(),
	})
	tree:add(seal_status, tag, status):set_generated()
	if status == BAD then
		item:add_proto_expert_info(bad.seal)
	end
	if not plain then
		self:say("sealed")
	end
	return plain
end

function Frame:data(tree)
	if not self:room(ackblk.size) then
		return self:missing(tree)
	end
	self:ackblk(tree)
	if not cluster_keys.is_sealed(self:head("cluster", 4), self:head("dst_engine", 2), self:head("conn", 4)) then
		return self:parts_of(tree)
	end
	local plain = self:open(tree)
	if plain then
		local outer, stated = self.tvb, self.stated
		self.tvb = ByteArray.new(self.tvb(0, self.at):raw() .. plain, true):tvb("Opened")
		self.limit, self.stated, self.opened = self.tvb:len(), self.tvb:len(), true
		self:parts_of(tree)
		self.tvb, self.stated, self.limit, self.opened = outer, stated, stated, false
	end
	if self.sealed then
		self.at = self.limit
	end
end

function Frame:parts_of(tree)
	while self.at < self.limit do
		if not self:part(tree) then
			return
		end
		if self.at < self.limit then
			self:align(tree)
		end
	end
	if self.limit < self.stated then
		self:missing(tree)
	end
end

function Frame:refuse(tree)
	if not self:room(refuse.size) then
		return self:missing(tree)
	end
	local sub = tree:add(self.tvb(self.at, refuse.size), "Refusal")
	local items, ranges = self:add(sub, refuse)
	items.why:add_proto_expert_info(bad.refused)
	local why = ranges.why:le_uint()
	self:say(string.format("%s: %s", text_of(ranges.name), REFUSALS[why] or "reason " .. why))
	show_auth(sub, refuse_auth_status, items.auth, ranges.auth, cluster_keys.refusal_status({
		bytes = self:blanked(refuse.size, refuse.offset.auth, 8),
		auth = ranges.auth:raw(),
		cluster = self:head("cluster", 4),
		dst_engine = self:head("dst_engine", 2),
		echo_engine = ranges.echo_engine:raw(),
		echo_conn = ranges.echo_conn:raw(),
	}))
end

function Frame:challenge(tree)
	if not self:room(challenge.size) then
		return self:missing(tree)
	end
	local sub = tree:add(self.tvb(self.at, challenge.size), "Challenge")
	local items, ranges = self:add(sub, challenge)
	local blank = self:blanked(challenge.size, challenge.offset.auth, 8)
	show_auth(sub, challenge_auth_status, items.auth, ranges.auth, cluster_keys.challenge_status(blank, ranges.auth:raw()))
end

-- What was received before the leave may follow.
function Frame:bye(tree)
	if self.at < self.stated then
		self:ack(tree)
	end
end

function Frame:dgram(tree)
	if not self:room(dgram.size) then
		return self:missing(tree)
	end
	local sub = tree:add(self.tvb(self.at, dgram.size), "Datagram")
	local items, ranges = self:add(sub, dgram)
	local plen = ranges.plen:le_uint()
	self:say(string.format("%d bytes to endpoint %d", plen, ranges.dst_ep:le_uint()))
	if self.at + plen > self.stated then
		return self:fail(items.plen, bad.plen)
	elseif not self:room(plen) then
		return self:missing(sub)
	end
	self:payload(sub, plen, items.crc, ranges.crc)
end

local BODIES = {
	[HELLO] = Frame.hello,
	[DATA] = Frame.data,
	[ACK] = Frame.ack,
	[REFUSE] = Frame.refuse,
	[BYE] = Frame.bye,
	[DGRAM] = Frame.dgram,
	[CHALLENGE] = Frame.challenge,
}

function Frame:say(text)
	self.info[#self.info + 1] = text
end

function Frame:rest_undecoded(tree)
	if self.at < self.limit then
		tree:add(foreign_body, self.tvb(self.at, self.limit - self.at))
		self.at = self.limit
	end
end

-- The header's fields, and what can be said of them alone.
function Frame:header(tree)
	local items, ranges = self:add(tree, hdr)
	add_bits(items.flags, hdr_flags, ranges.flags)
	self.type = ranges.type:le_uint()
	self.version = ranges.version:le_uint()
	self.stated = HEADER_BYTES + ranges.len:le_uint()
	self.limit = math.min(self.stated, self.tvb:len())
	if ranges.path:le_uint() >= PATHS_MAX then
		items.path:add_proto_expert_info(bad.path)
	end
	if ranges.token:le_uint() == 0 and CONTACT[self.type] then
		items.token:add_proto_expert_info(bad.token)
	end
	local answer = self.type == HELLO and band(ranges.flags:le_uint(), HDR_ANSWER) ~= 0
	self:say(string.format("%s%s %d > %d", TYPES[self.type] or "type " .. self.type, answer and " (answer)" or "",
		ranges.src_engine:le_uint(), ranges.dst_engine:le_uint()))
	if self.type == DATA then
		self:say(string.format("path=%d pn=%d", ranges.path:le_uint(), ranges.pn:le_uint()))
	end
	return items, ranges
end

function Frame:body(tree, items)
	local body = BODIES[self.type]
	if self.version ~= VERSION then
		items.version:add_proto_expert_info(bad.version)
		self:say("version " .. self.version)
		if self.type ~= HELLO then
			self.broken = true
			body = nil
		end
	elseif not body then
		self:fail(items.type, bad.type)
	end
	if body then
		body(self, tree)
		if not self.broken and self.at < self.limit then
			items.len:add_proto_expert_info(bad.length)
			tree:add(foreign_body, self.tvb(self.at, self.limit - self.at))
			self:cover(self.limit - self.at)
		end
	end
	if self.stated > self.reported and not self.broken then
		self:fail(items.len, bad.short)
	end
	if self.broken then
		self:rest_undecoded(tree)
	end
end

local function ours(tvb)
	return tvb:len() >= 2 and tvb(0, 2):le_uint() == MAGIC
end

-- Returns the bytes dissected; 0 leaves the frame to others: it is foreign.
function beowire.dissector(tvb, pinfo, tree)
	if not ours(tvb) then
		return 0
	end
	pinfo.cols.protocol = "Beowire"
	local top = tree:add(beowire, tvb())
	local frame = setmetatable({
		tvb = tvb, at = 0, limit = tvb:len(), stated = HEADER_BYTES, reported = tvb:reported_len(), parts = 0,
		covered = {}, info = {}, number = pinfo.number,
	}, Frame)
	local wrong = cluster_keys.load(beowire.prefs.key_file)
	if wrong then
		top:add_proto_expert_info(bad.key, "No key: " .. wrong)
	end
	if not frame:room(HEADER_BYTES) then
		frame:missing(top)
		pinfo.cols.info = "header cut off"
		return tvb:len()
	end
	local items, ranges = frame:header(top)
	frame:body(top, items)
	frame:check(top, items, ranges)
	if frame.at < tvb:len() and frame.at >= frame.stated then
		top:add(padding_field, tvb(frame.at))
	end
	top:append_text(", " .. frame.info[1])
	pinfo.cols.info = table.concat(frame.info, ", ")
	return tvb:len()
end

-- A capture is read from its beginning, perhaps again.
function beowire.init()
	cluster_keys.reset()
end

local function in_range(port)
	return port >= beowire.prefs.port_low and port <= beowire.prefs.port_high
end

local function heuristic(tvb, pinfo, tree)
	if not (in_range(pinfo.src_port) and in_range(pinfo.dst_port)) or not ours(tvb) then
		return false
	end
	beowire.dissector(tvb, pinfo, tree)
	return true
end

local by_type = DissectorTable.get("ethertype")
for _, number in ipairs(ETHERTYPES) do
	by_type:add(number, beowire)
end
beowire:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(beowire)
