-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- The conversations of a capture and their keys (docs/wire-protocol.md, section 14): what the HELLOs
-- seen so far tell, and what is genuine by the cluster's key. Everything is a string of bytes as it
-- lies on the wire.

local M = {}
local crypto -- beowire_crypto.lua, of which only the dissector knows where it lies

function M.use(module)
	crypto = module
end

local BAD, GOOD, UNVERIFIED = 0, 1, 2
local FILE_MAX = 4096 -- bytes
local NONE = ("\0"):rep(4)

-- The key's file as it was asked for, what is wrong with it, and what is made of the key.
local file, problem, prk, hello_key, refuse_key, challenge_key = "", nil, nil, nil, nil, nil
-- Sides of conversations. A side is who said HELLO: `text` as it goes into keys, `name` by which
-- frames to it name it, `shows`: names of the sides that its HELLOs were said to.
local sides, shown_to, keys, verdicts, highs
-- By what a frame of the capture that is genuine is sealed: the key, and the packet's upper half.
local seals

function M.reset()
	sides, shown_to, keys, verdicts, highs, seals = {}, {}, {}, {}, {}, {}
end

M.reset()

local function read(name)
	local handle = io.open(name, "rb")
	if not handle then
		return nil, "the key's file cannot be opened"
	end
	local text = handle:read(FILE_MAX + 1) or ""
	handle:close()
	if #text > FILE_MAX then
		return nil, "the key's file is too long"
	end
	return crypto.key_of(text)
end

-- The key of this file counts from now on; "": none. What is wrong with it, or nil.
function M.load(name)
	if name == file then
		return problem
	end
	local key
	file, problem, prk = name, nil, nil
	keys, verdicts, highs, seals = {}, {}, {}, {}
	if name ~= "" then
		key, problem = read(name)
	end
	if key then
		prk = crypto.hkdf_extract("beowire 2", key)
		hello_key = crypto.hkdf_expand(prk, "hello", 32)
		refuse_key = crypto.hkdf_expand(prk, "refuse", 16)
		challenge_key = crypto.hkdf_expand(prk, "challenge", 16)
	end
	return problem
end

local function name_of(cluster, engine, conn)
	return cluster .. engine .. conn
end

local function append(list, name, value)
	list[name] = list[name] or {}
	for _, each in ipairs(list[name]) do
		if each == value then
			return
		end
	end
	table.insert(list[name], value)
end

-- A HELLO was seen. h: cluster, dst_engine and conn of its header, and its own engine, node, random,
-- inc, given (its `conn`), token, auth, and whether it offers to encrypt.
function M.saw_hello(h)
	local name = name_of(h.cluster, h.engine, h.given)
	local text = h.node .. h.random .. h.inc .. h.given .. h.token .. h.engine .. "\0\0"
	local side
	for _, each in ipairs(sides[name] or {}) do
		side = side or (each.text == text and each)
	end
	if not side then
		side = { text = text, name = name, engine = h.engine, shows = {}, keyed = false }
		append(sides, name, side)
	end
	side.keyed = side.keyed or h.auth:find("[^%z]") ~= nil
	side.encrypts = side.encrypts or h.encrypts
	if h.conn ~= NONE then
		local other = name_of(h.cluster, h.dst_engine, h.conn)
		append(side.shows, other, true)
		append(shown_to, other, side)
	end
end

-- Calls f(receiver, sender) for each pair that a frame from this engine to this handle may be of,
-- until it returns true; whether it did. The newest first: handles come again.
local function each_pair(cluster, dst_engine, conn, src_engine, f)
	local name = name_of(cluster, dst_engine, conn)
	local receivers = sides[name] or {}
	for i = #receivers, 1, -1 do
		local receiver = receivers[i]
		local senders = {}
		for _, side in ipairs(shown_to[name] or {}) do
			append(senders, 1, side)
		end
		for shown in pairs(receiver.shows) do
			for _, side in ipairs(sides[shown] or {}) do
				append(senders, 1, side)
			end
		end
		local list = senders[1] or {}
		for k = #list, 1, -1 do
			if list[k].engine == src_engine and f(receiver, list[k]) then
				return true
			end
		end
	end
	return false
end

-- The keys of the tags and of the seals of what one side sends to another.
local function pair_keys(from, to)
	local info = "frames\0\0" .. from.text .. to.text
	keys[info] = keys[info] or crypto.hkdf_expand(prk, info, 48)
	return keys[info]:sub(1, 16), keys[info]:sub(17)
end

local function any_side(cluster, dst_engine, conn, what)
	local name = name_of(cluster, dst_engine, conn)
	for _, list in ipairs({ sides[name] or {}, shown_to[name] or {} }) do
		for _, side in ipairs(list) do
			if side[what] then
				return true
			end
		end
	end
	return false
end

-- Has a frame to this handle a tag in the place of its checksum?
function M.is_tagged(cluster, dst_engine, conn)
	return any_side(cluster, dst_engine, conn, "keyed")
end

-- Is DATA to this handle sealed?
function M.is_sealed(cluster, dst_engine, conn)
	return any_side(cluster, dst_engine, conn, "encrypts")
end

local function high_bytes(n)
	local out = {}
	for i = 1, 4 do
		out[i] = string.char(n % 256)
		n = math.floor(n / 256)
	end
	return table.concat(out)
end

-- What stands for `token` and `hcrc` under a tag, by the upper halves of the numbers in the frame: of
-- the packet's and of the credit, or of what is acknowledged, of the floor and of the credit.
local OVER = {
	[0] = function()
		return NONE, NONE
	end,
	[2] = function(high)
		return high_bytes(high[1]), high_bytes(high[2])
	end,
	[3] = function(high)
		return high_bytes(high[3]), high_bytes(high[2]):sub(1, 2) .. high_bytes(high[1]):sub(1, 2)
	end,
}

-- Each number is as it was last in frames like this one, or has just passed 2^32.
local function later(high, count, which)
	local out = {}
	for i = 1, count do
		out[i] = (high[i] or 0) + math.floor(which / 2 ^ (i - 1)) % 2
	end
	return out
end

-- Is this tag (8 bytes, the lower half first) that of the frame's covered bytes with `hcrc` 0?
-- f: number (of the frame in the capture), cluster, dst_engine, conn, src_engine, path, covered,
-- tag, halves: how many numbers of it have an upper half under its tag.
function M.tag_status(f)
	if not prk then
		return UNVERIFIED
	end
	if verdicts[f.number] then
		return verdicts[f.number]
	end
	local known = false
	local function fits(receiver, sender)
		local key, seal_key = pair_keys(sender, receiver)
		local way = key .. f.path .. f.halves
		known = true
		for which = 0, 2 ^ f.halves - 1 do
			local high = later(highs[way] or {}, f.halves, which)
			local token, hcrc = OVER[f.halves](high)
			local covered = f.covered:sub(1, 12) .. token .. f.covered:sub(17, 28) .. hcrc .. f.covered:sub(33)
			if crypto.siphash(key, covered) == f.tag then
				highs[way] = high
				seals[f.number] = { key = seal_key, high = token }
				return true
			end
		end
		return false
	end
	local good = each_pair(f.cluster, f.dst_engine, f.conn, f.src_engine, fits)
	verdicts[f.number] = good and GOOD or known and BAD or UNVERIFIED
	return verdicts[f.number]
end

-- What is sealed in a frame of which tag_status() has been asked: its status, and the bytes if that
-- is good. f: number, path and pn as of there, head: what is shown, sealed, tag.
function M.open(f)
	local seal = seals[f.number]
	if not seal then
		return UNVERIFIED
	end
	local nonce = f.path .. "\0\0\0" .. f.pn .. seal.high
	local plain = crypto.open(seal.key, nonce, f.head, f.sealed, f.tag)
	return plain and GOOD or BAD, plain
end

-- Of a HELLO: its bytes with `hcrc` and `auth` 0.
function M.hello_status(bytes, auth)
	if not prk or not auth:find("[^%z]") then
		return UNVERIFIED
	end
	return crypto.hmac_sha256(hello_key, bytes):sub(1, 16) == auth and GOOD or BAD
end

-- Of a CHALLENGE likewise.
function M.challenge_status(bytes, auth)
	if not prk or not auth:find("[^%z]") then
		return UNVERIFIED
	end
	return crypto.siphash(challenge_key, bytes) == auth and GOOD or BAD
end

-- Of a REFUSE likewise. One of a HELLO is made with the key of refusals. One of another frame may
-- be made with that of the conversation, whose handle it echoes.
function M.refusal_status(r)
	if not prk or not r.auth:find("[^%z]") then
		return UNVERIFIED
	end
	local function fits(refuser, other)
		local key = pair_keys(refuser, other)
		return crypto.siphash(key, r.bytes) == r.auth
	end
	if crypto.siphash(refuse_key, r.bytes) == r.auth
		or each_pair(r.cluster, r.echo_engine, r.echo_conn, r.dst_engine, fits) then
		return GOOD
	end
	return BAD
end

return M
