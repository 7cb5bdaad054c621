-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- What the dissector computes with a cluster's key, in plain Lua 5.2 and later: SHA-256, HMAC and
-- HKDF (RFC 6234, 2104, 5869), SipHash-2-4, and AEAD_CHACHA20_POLY1305 (RFC 8439). Everything is a
-- string of bytes. Nothing here is fast, nor safe from who measures time: it is for reading
-- captures, with a key that whoever captures may know.

local M = {}

-- Bit operations on 32 bits: a library in Lua 5.2, operators later.
local band, bor, bxor, bnot, shl, shr
if bit32 then
	band, bor, bxor, bnot = bit32.band, bit32.bor, bit32.bxor, bit32.bnot
	shl, shr = bit32.lshift, bit32.rshift
else
	band = load("return function(a, b) return a & b end")()
	bor = load("return function(a, b) return a | b end")()
	bxor = load("return function(a, b) return a ~ b end")()
	bnot = load("return function(a) return ~a & 0xFFFFFFFF end")()
	shl = load("return function(a, n) return a << n & 0xFFFFFFFF end")()
	shr = load("return function(a, n) return a >> n end")()
end

local WORD = 0x100000000

local function rotate_left(a, n)
	return bor(shl(a, n), shr(a, 32 - n))
end

local function word_le(s, at)
	local a, b, c, d = s:byte(at, at + 3)
	return a + b * 0x100 + c * 0x10000 + d * 0x1000000
end

local function word_be(s, at)
	local a, b, c, d = s:byte(at, at + 3)
	return d + c * 0x100 + b * 0x10000 + a * 0x1000000
end

local function bytes_le(word)
	return string.char(band(word, 255), band(shr(word, 8), 255), band(shr(word, 16), 255),
		shr(word, 24))
end

local function bytes_be(word)
	return bytes_le(word):reverse()
end

function M.xor(a, b)
	local out = {}
	for i = 1, #a do
		out[i] = string.char(bxor(a:byte(i), b:byte(i)))
	end
	return table.concat(out)
end

function M.hex(s)
	return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

function M.unhex(digits)
	return (digits:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

-- ---- SHA-256 ----

-- The first 32 bits of the fractional parts of roots of the first primes: their cube roots, and of
-- eight of them the square roots (RFC 6234, 5.1 and 6.1).
local CUBE, SQUARE = {}, {}

local function fraction(root, prime, power)
	-- The root times 2^32, corrected by whole numbers: that of a double is not exact enough.
	local whole = math.floor(root)
	local low = math.floor((root - whole) * WORD)
	local function above(part)
		-- Is (whole + part / 2^32)^power > prime? In pieces of 16 bits, exactly.
		local digits = { part % 0x10000, math.floor(part / 0x10000), whole }
		local product = { 1 }
		for _ = 1, power do
			local next_one = {}
			for i = 1, #product do
				for k = 1, 3 do
					next_one[i + k - 1] = (next_one[i + k - 1] or 0) + product[i] * digits[k]
				end
			end
			local carry = 0
			for i = 1, #next_one do
				local sum = next_one[i] + carry
				next_one[i] = sum % 0x10000
				carry = math.floor(sum / 0x10000)
			end
			next_one[#next_one + 1] = carry
			product = next_one
		end
		local value = 0
		for i = #product, 2 * power + 1, -1 do
			value = value * 0x10000 + product[i]
		end
		return value >= prime
	end
	while above(low) do
		low = low - 1
	end
	while not above(low + 1) do
		low = low + 1
	end
	return low
end

do
	local prime = 2
	while #CUBE < 64 do
		local is_prime = true
		for divisor = 2, math.floor(math.sqrt(prime)) do
			is_prime = is_prime and prime % divisor ~= 0
		end
		if is_prime then
			CUBE[#CUBE + 1] = fraction(prime ^ (1 / 3), prime, 3)
			if #SQUARE < 8 then
				SQUARE[#SQUARE + 1] = fraction(math.sqrt(prime), prime, 2)
			end
		end
		prime = prime + 1
	end
end

local function rotate_right(a, n)
	return bor(shr(a, n), shl(a, 32 - n))
end

local function sha256_block(state, s, at)
	local w = {}
	for i = 1, 16 do
		w[i] = word_be(s, at + 4 * (i - 1))
	end
	for i = 17, 64 do
		local x, y = w[i - 15], w[i - 2]
		local s0 = bxor(bxor(rotate_right(x, 7), rotate_right(x, 18)), shr(x, 3))
		local s1 = bxor(bxor(rotate_right(y, 17), rotate_right(y, 19)), shr(y, 10))
		w[i] = (w[i - 16] + s0 + w[i - 7] + s1) % WORD
	end
	local a, b, c, d, e, f, g, h = table.unpack(state)
	for i = 1, 64 do
		local s1 = bxor(bxor(rotate_right(e, 6), rotate_right(e, 11)), rotate_right(e, 25))
		local choice = bxor(band(e, f), band(bnot(e), g))
		local t1 = h + s1 + choice + CUBE[i] + w[i]
		local s0 = bxor(bxor(rotate_right(a, 2), rotate_right(a, 13)), rotate_right(a, 22))
		local most = bxor(bxor(band(a, b), band(a, c)), band(b, c))
		h, g, f, e, d, c, b, a = g, f, e, (d + t1) % WORD, c, b, a, (t1 + s0 + most) % WORD
	end
	for i, each in ipairs({ a, b, c, d, e, f, g, h }) do
		state[i] = (state[i] + each) % WORD
	end
end

function M.sha256(s)
	local bits = #s * 8
	local padded = s .. "\128" .. ("\0"):rep((55 - #s) % 64)
		.. bytes_be(math.floor(bits / WORD)) .. bytes_be(bits % WORD)
	local state, out = { table.unpack(SQUARE) }, {}
	for at = 1, #padded, 64 do
		sha256_block(state, padded, at)
	end
	for i = 1, 8 do
		out[i] = bytes_be(state[i])
	end
	return table.concat(out)
end

function M.hmac_sha256(key, s)
	if #key > 64 then
		key = M.sha256(key)
	end
	key = key .. ("\0"):rep(64 - #key)
	local inner = M.sha256(M.xor(key, ("\54"):rep(64)) .. s)
	return M.sha256(M.xor(key, ("\92"):rep(64)) .. inner)
end

function M.hkdf_extract(salt, secret)
	return M.hmac_sha256(salt, secret)
end

function M.hkdf_expand(prk, info, len)
	local out, previous, number = "", "", 1
	while #out < len do
		previous = M.hmac_sha256(prk, previous .. info .. string.char(number))
		out = out .. previous
		number = number + 1
	end
	return out:sub(1, len)
end

-- ---- SipHash-2-4: words of 64 bits are pairs, the higher half first ----

local function add64(a, b)
	local low = a[2] + b[2]
	return { (a[1] + b[1] + (low >= WORD and 1 or 0)) % WORD, low % WORD }
end

local function xor64(a, b)
	return { bxor(a[1], b[1]), bxor(a[2], b[2]) }
end

local function rotate64(a, n)
	if n >= 32 then
		a, n = { a[2], a[1] }, n - 32
	end
	if n == 0 then
		return a
	end
	return { bor(shl(a[1], n), shr(a[2], 32 - n)), bor(shl(a[2], n), shr(a[1], 32 - n)) }
end

local function sip_round(v)
	v[1] = add64(v[1], v[2])
	v[2] = xor64(rotate64(v[2], 13), v[1])
	v[1] = rotate64(v[1], 32)
	v[3] = add64(v[3], v[4])
	v[4] = xor64(rotate64(v[4], 16), v[3])
	v[1] = add64(v[1], v[4])
	v[4] = xor64(rotate64(v[4], 21), v[1])
	v[3] = add64(v[3], v[2])
	v[2] = xor64(rotate64(v[2], 17), v[3])
	v[3] = rotate64(v[3], 32)
end

-- The tag as its 8 bytes on the wire.
function M.siphash(key, s)
	local k0, k1 = { word_le(key, 5), word_le(key, 1) }, { word_le(key, 13), word_le(key, 9) }
	-- "somepseudorandomlygeneratedbytes"
	local v = {
		xor64(k0, { 0x736F6D65, 0x70736575 }), xor64(k1, { 0x646F7261, 0x6E646F6D }),
		xor64(k0, { 0x6C796765, 0x6E657261 }), xor64(k1, { 0x74656462, 0x79746573 }),
	}
	local padded = s .. ("\0"):rep((7 - #s) % 8) .. string.char(#s % 256)
	for at = 1, #padded, 8 do
		local word = { word_le(padded, at + 4), word_le(padded, at) }
		v[4] = xor64(v[4], word)
		sip_round(v)
		sip_round(v)
		v[1] = xor64(v[1], word)
	end
	v[3] = xor64(v[3], { 0, 255 })
	for _ = 1, 4 do
		sip_round(v)
	end
	local tag = xor64(xor64(v[1], v[2]), xor64(v[3], v[4]))
	return bytes_le(tag[2]) .. bytes_le(tag[1])
end

-- ---- ChaCha20 ----

local function quarter(x, a, b, c, d)
	x[a] = (x[a] + x[b]) % WORD
	x[d] = rotate_left(bxor(x[d], x[a]), 16)
	x[c] = (x[c] + x[d]) % WORD
	x[b] = rotate_left(bxor(x[b], x[c]), 12)
	x[a] = (x[a] + x[b]) % WORD
	x[d] = rotate_left(bxor(x[d], x[a]), 8)
	x[c] = (x[c] + x[d]) % WORD
	x[b] = rotate_left(bxor(x[b], x[c]), 7)
end

local function chacha20_block(key, nonce, number)
	local state = { 0x61707865, 0x3320646E, 0x79622D32, 0x6B206574 } -- "expand 32-byte k"
	for at = 1, 29, 4 do
		state[#state + 1] = word_le(key, at)
	end
	state[13] = number
	for at = 1, 9, 4 do
		state[#state + 1] = word_le(nonce, at)
	end
	local x, out = { table.unpack(state) }, {}
	for _ = 1, 10 do
		quarter(x, 1, 5, 9, 13)
		quarter(x, 2, 6, 10, 14)
		quarter(x, 3, 7, 11, 15)
		quarter(x, 4, 8, 12, 16)
		quarter(x, 1, 6, 11, 16)
		quarter(x, 2, 7, 12, 13)
		quarter(x, 3, 8, 9, 14)
		quarter(x, 4, 5, 10, 15)
	end
	for i = 1, 16 do
		out[i] = bytes_le((x[i] + state[i]) % WORD)
	end
	return table.concat(out)
end

function M.chacha20(key, nonce, number, s)
	local out = {}
	for at = 1, #s, 64 do
		local piece = s:sub(at, at + 63)
		out[#out + 1] = M.xor(piece, chacha20_block(key, nonce, number))
		number = number + 1
	end
	return table.concat(out)
end

-- ---- Poly1305: numbers of 130 bits are ten limbs of 13, whose products a double holds ----

local LIMBS, LIMB = 10, 0x2000

local function limbs(s, top)
	local bits, have, at, out = 0, 0, 1, {}
	for i = 1, LIMBS do
		while have < 13 and at <= #s do
			bits = bits + s:byte(at) * 2 ^ have
			have, at = have + 8, at + 1
		end
		out[i] = bits % LIMB
		bits, have = math.floor(bits / LIMB), have - 13
	end
	out[LIMBS] = out[LIMBS] + top
	return out
end

local function carried(h)
	local carry = 0
	for i = 1, LIMBS do
		local sum = h[i] + carry
		h[i] = sum % LIMB
		carry = math.floor(sum / LIMB)
	end
	h[1] = h[1] + 5 * carry -- 2^130 is 5 modulo 2^130 - 5
	return h
end

local function times(h, r)
	local out = {}
	for i = 1, LIMBS do
		local sum = 0
		for k = 1, LIMBS do
			local other = i - k + 1
			if other >= 1 then
				sum = sum + h[k] * r[other]
			else
				sum = sum + 5 * h[k] * r[other + LIMBS]
			end
		end
		out[i] = sum
	end
	return carried(carried(out))
end

function M.poly1305(key, s)
	local clamped = {}
	for i = 1, 16 do
		local byte = key:byte(i)
		if i % 4 == 0 then
			byte = band(byte, 15)
		elseif i % 4 == 1 and i > 1 then
			byte = band(byte, 252)
		end
		clamped[i] = string.char(byte)
	end
	local r, h = limbs(table.concat(clamped), 0), {}
	for i = 1, LIMBS do
		h[i] = 0
	end
	for at = 1, #s, 16 do
		local piece = s:sub(at, at + 15)
		local block = limbs(#piece < 16 and piece .. "\1" or piece, #piece == 16 and 2 ^ 11 or 0)
		for i = 1, LIMBS do
			h[i] = h[i] + block[i]
		end
		h = times(h, r)
	end
	h = carried(carried(h))
	-- Is it at least the modulus? Then less that.
	local less, carry = {}, 5
	for i = 1, LIMBS do
		local sum = h[i] + carry
		less[i] = sum % LIMB
		carry = math.floor(sum / LIMB)
	end
	if carry > 0 then
		h = less
	end
	local out, bits, have, sum = {}, 0, 0, 0
	local at = 1
	for i = 1, 16 do
		if have < 8 and at <= LIMBS then
			bits = bits + h[at] * 2 ^ have
			have, at = have + 13, at + 1
		end
		sum = sum + bits % 256 + key:byte(16 + i)
		out[i] = string.char(sum % 256)
		sum = math.floor(sum / 256)
		bits, have = math.floor(bits / 256), have - 8
	end
	return table.concat(out)
end

-- ---- AEAD_CHACHA20_POLY1305 ----

local function filled(s)
	return s .. ("\0"):rep(-#s % 16)
end

local function aead_tag(key, nonce, head, sealed)
	local one_time = chacha20_block(key, nonce, 0):sub(1, 32)
	local lengths = bytes_le(#head) .. "\0\0\0\0" .. bytes_le(#sealed) .. "\0\0\0\0"
	return M.poly1305(one_time, filled(head) .. filled(sealed) .. lengths)
end

function M.seal(key, nonce, head, plain)
	local sealed = M.chacha20(key, nonce, 1, plain)
	return sealed, aead_tag(key, nonce, head, sealed)
end

-- What was sealed, or nil if it is not genuine.
function M.open(key, nonce, head, sealed, tag)
	if aead_tag(key, nonce, head, sealed) ~= tag then
		return nil
	end
	return M.chacha20(key, nonce, 1, sealed)
end

-- ---- the key ----

-- The nonce of a packet: its path's number and its own, as 8 bytes that lie so on the wire.
function M.nonce(path, packet)
	return bytes_le(path) .. packet
end

function M.fingerprint(key)
	return M.hex(M.sha256("beowire key fingerprint\n" .. M.hex(key) .. "\n"):sub(1, 4))
end

-- The key that a file's text holds; or nil, and why.
function M.key_of(text)
	local key
	for line in (text:gsub("\n$", "") .. "\n"):gmatch("(.-)\n") do
		if line:sub(1, 1) ~= "#" then
			if key or #line ~= 64 or line:find("%X") then
				return nil, "the file holds no single line of 64 hexadecimal digits"
			end
			key = M.unhex(line)
		end
	end
	if not key then
		return nil, "the file holds no line of 64 hexadecimal digits"
	end
	if not key:find("[^%z]") then
		return nil, "a key of zeroes is none"
	end
	return key
end

return M
