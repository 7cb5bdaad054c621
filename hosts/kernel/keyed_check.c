/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with keys is tried against the numbers of the standards when the module is
 * loaded, by whatever the kernel has chosen for this processor; and a frame that is sealed and
 * opened where it lies against the same bytes sealed to elsewhere.
 */
#include <linux/slab.h>

#include "hkdf.h"
#include "keyed.h"

#define BWK_CHECK_BYTES 5000 /* of a frame, with its tag */

/* Aumasson and Bernstein, "SipHash: a fast short-input PRF", appendix A. */
static bool __init bwk_check_siphash(void)
{
	u8 up[16];
	int i;

	for (i = 0; i < 16; i++)
		up[i] = i;
	return bwk_siphash(up, up, 15) == 0xa129ca6149be45e5ull;
}

/* RFC 4231, 4.3 and 4.7: short keys, and those longer than a block. */
static bool __init bwk_check_hmac(void)
{
	static const u8 short_key[] __initconst = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
						   0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
						   0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
						   0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
	static const u8 long_key[] __initconst = {0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f,
						  0x0d, 0x8a, 0x26, 0xaa, 0xcb, 0xf5, 0xb7, 0x7f,
						  0x8e, 0x0b, 0xc6, 0x21, 0x37, 0x28, 0xc5, 0x14,
						  0x05, 0x46, 0x04, 0x0f, 0x0e, 0xe3, 0x7f, 0x54};
	static const char data[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	u8 out[BWK_KEYED_HASH], key[131];

	bwk_hmac_sha256(out, "Jefe", 4, "what do ya want for nothing?", 28);
	if (memcmp(out, short_key, sizeof(out)))
		return false;
	memset(key, 0xaa, sizeof(key));
	bwk_hmac_sha256(out, key, sizeof(key), data, sizeof(data) - 1);
	return !memcmp(out, long_key, sizeof(out));
}

/* RFC 5869, A.1. */
static bool __init bwk_check_hkdf(void)
{
	static const u8 wanted[] __initconst = {
		0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a, 0x90, 0x43, 0x4f, 0x64, 0xd0, 0x36,
		0x2f, 0x2a, 0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a, 0x5a, 0x4c, 0x5d, 0xb0, 0x2d, 0x56,
		0xec, 0xc4, 0xc5, 0xbf, 0x34, 0x00, 0x72, 0x08, 0xd5, 0xb8, 0x87, 0x18, 0x58, 0x65};
	u8 secret[22], salt[13], info[10], prk[BW_HKDF_HASH], key[sizeof(wanted)];
	int i;

	memset(secret, 0x0b, sizeof(secret));
	for (i = 0; i < sizeof(salt); i++)
		salt[i] = i;
	for (i = 0; i < sizeof(info); i++)
		info[i] = 0xf0 + i;
	bw_hkdf_extract(prk, salt, sizeof(salt), secret, sizeof(secret), bwk_hmac_sha256);
	return !bw_hkdf_expand(key, sizeof(key), prk, info, sizeof(info), bwk_hmac_sha256) &&
	       !memcmp(key, wanted, sizeof(key));
}

/* RFC 8439, 2.8.2, in pieces. */
static bool __init bwk_check_seal(void)
{
	static const char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you "
				   "only one tip for the future, sunscreen would be it.";
	static const u8 first[] __initconst = {0xd3, 0x1a, 0x8d, 0x34, 0x64, 0x8e, 0x60, 0xdb,
					       0x7b, 0x86, 0xaf, 0xbc, 0x53, 0xef, 0x7e, 0xc2};
	static const u8 wanted[] __initconst = {0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a,
						0x7e, 0x90, 0x2e, 0xcb, 0xd0, 0x60, 0x06, 0x91};
	static const u8 shown[] = {0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1,
				   0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7};
	const struct bw_piece head[] = {{shown, 5}, {shown + 5, 7}};
	const struct bw_piece in[] = {{text, 70}, {text + 70, 3}, {text + 73, 41}};
	u8 key[BW_SEAL_KEY], sealed[sizeof(text)], opened[sizeof(text)], tag[BW_SEAL_TAG];
	const struct bw_piece whole = {sealed, sizeof(text) - 1};
	struct bw_seal s = {key,
			    {7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47},
			    head,
			    ARRAY_SIZE(head)};
	int i;

	for (i = 0; i < sizeof(key); i++)
		key[i] = 0x80 + i;
	bw_seal(&s, in, ARRAY_SIZE(in), sealed, tag);
	if (memcmp(sealed, first, sizeof(first)) || memcmp(tag, wanted, sizeof(tag)) ||
	    bw_open(&s, &whole, 1, opened, tag) || memcmp(opened, text, sizeof(text) - 1))
		return false;
	sealed[100] ^= 1;
	return bw_open(&s, &whole, 1, opened, tag) == -EBADMSG;
}

static u8 __init bwk_check_byte(int i)
{
	return i * 7 + i / 256;
}

/* As any payload is, with the nonce of its path and packet; and not if a bit has changed. */
static bool __init bwk_check_sealed_frame(u8 *frame, u8 *wanted)
{
	const u32 end = BWK_CHECK_BYTES - BW_SEAL_TAG;
	const struct bw_piece head = {frame, BW_DATA_HEAD};
	const struct bw_piece in = {frame + BW_DATA_HEAD, end - BW_DATA_HEAD};
	const struct bw_seal s = {frame, {2, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1}, &head, 1};
	const struct bw_seal_by by = {frame, 0x0102030405060708ull};
	int i;

	frame[offsetof(struct bw_hdr, path)] = 2;
	memcpy(wanted, frame, BW_DATA_HEAD);
	bw_seal(&s, &in, 1, wanted + BW_DATA_HEAD, wanted + end);
	bw_seal_frame(frame, end, &by);
	if (memcmp(frame, wanted, BWK_CHECK_BYTES))
		return false;
	frame[end + 15] ^= 0x80;
	if (bw_open_frame(frame, end, &by) != -EBADMSG || memcmp(frame, wanted, end))
		return false;
	frame[end + 15] ^= 0x80;
	if (bw_open_frame(frame, end, &by))
		return false;
	for (i = BW_DATA_HEAD; i < end; i++)
		if (frame[i] != bwk_check_byte(i))
			return false;
	return true;
}

/* True if there is no memory to try it. */
static bool __init bwk_check_frame(void)
{
	u8 *bytes = kmalloc(2 * BWK_CHECK_BYTES, GFP_KERNEL);
	bool good;
	int i;

	if (!bytes)
		return true;
	for (i = 0; i < BWK_CHECK_BYTES; i++)
		bytes[i] = bwk_check_byte(i);
	good = bwk_check_sealed_frame(bytes, bytes + BWK_CHECK_BYTES);
	kfree(bytes);
	return good;
}

int __init bwk_keyed_check(void)
{
	const char *wrong = !bwk_check_siphash() ? "SipHash" : NULL;

	if (BWK_KEYED && !wrong)
		wrong = !bwk_check_hmac()    ? "HMAC-SHA-256"
			: !bwk_check_hkdf()  ? "HKDF"
			: !bwk_check_seal()  ? "ChaCha20-Poly1305"
			: !bwk_check_frame() ? "ChaCha20-Poly1305 in frames"
					     : NULL;
	if (!wrong)
		return 0;
	pr_err("beowire: %s gives wrong numbers on this machine\n", wrong);
	return -EIO;
}
