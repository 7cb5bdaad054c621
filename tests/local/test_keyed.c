/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is computed with a key gives what the documents of the algorithms say, and payload in pieces
 * is sealed as the same bytes in one piece are by libsodium. Seeded: repeats exactly.
 */
#include "keyed.h"
#include "rng.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROOM   20000
#define PIECES 9

static uint8_t plain[ROOM], sealed[ROOM + BW_SEAL_TAG], opened[ROOM];
static struct sim_rng rng;

static int setup(void **state)
{
	assert_true(bw_keyed_start());
	rng.state = 0x6B657964;
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)sim_random(&rng);
	return 0;
}

/* The bytes that hexadecimal digits stand for. */
static size_t unhex(uint8_t *to, size_t room, const char *text)
{
	size_t n;

	assert_int_equal(sodium_hex2bin(to, room, text, strlen(text), " ", &n, (const char **)NULL),
			 0);
	return n;
}

static void assert_hex(const uint8_t *bytes, size_t n, const char *text)
{
	uint8_t wanted[256];

	assert_int_equal(unhex(wanted, sizeof(wanted), text), n);
	assert_memory_equal(bytes, wanted, n);
}

/* Aumasson and Bernstein, "SipHash: a fast short-input PRF", appendix A; and the first ones of
 * their test vectors, of 0, 1, 2 ... bytes. */
static void siphash__gives_the_papers_numbers(void **state)
{
	static const uint64_t first[] = {
		0x726FDB47DD0E0E31, 0x74F839C593DC67FD, 0x0D6C8009D9A94F5A, 0x85676696D7FB7E2D,
		0xCF2794E0277187B7, 0x18765564CD99A68D, 0xCBC9466E58FEE3CE, 0xAB0200F58B01D137,
	};
	uint8_t key[BW_KEYED_SIP_KEY], up[15];

	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	for (uint8_t i = 0; i < 15; i++)
		up[i] = i;
	assert_int_equal(bw_siphash(key, up, 15), 0xA129CA6149BE45E5);
	for (size_t n = 0; n < sizeof(first) / sizeof(first[0]); n++)
		assert_int_equal(bw_siphash(key, up, n), first[n]);
}

static void hmac__gives_the_numbers_of_rfc_4231(void **state)
{
	static const char large[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	static const char both[] = "This is a test using a larger than block-size key and a larger "
				   "than block-size data. The key needs to be hashed before being "
				   "used by the HMAC algorithm.";
	uint8_t out[BW_KEYED_HASH], key[131], data[50];

	memset(key, 0x0B, 20);
	bw_hmac_sha256(out, key, 20, "Hi There", 8);
	assert_hex(out, 32, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	bw_hmac_sha256(out, (const uint8_t *)"Jefe", 4, "what do ya want for nothing?", 28);
	assert_hex(out, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xAA, 20);
	memset(data, 0xDD, 50);
	bw_hmac_sha256(out, key, 20, data, 50);
	assert_hex(out, 32, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	for (uint8_t i = 0; i < 25; i++)
		key[i] = i + 1;
	memset(data, 0xCD, 50);
	bw_hmac_sha256(out, key, 25, data, 50);
	assert_hex(out, 32, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
	memset(key, 0xAA, 131);
	bw_hmac_sha256(out, key, 131, large, sizeof(large) - 1);
	assert_hex(out, 32, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	bw_hmac_sha256(out, key, 131, both, sizeof(both) - 1);
	assert_hex(out, 32, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

/* The first example of FIPS 180-2, appendix B. */
static void sha256__gives_the_standards_number(void **state)
{
	uint8_t out[BW_KEYED_HASH];

	bw_sha256(out, "abc", 3);
	assert_hex(out, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* The bytes cut into pieces, some of them empty, and most of them short. */
static size_t cut(struct bw_piece *piece, const uint8_t *bytes, size_t len)
{
	size_t n = 0;

	for (; n < PIECES - 1; n++) {
		size_t part = sim_random(&rng) % ((len >> sim_random(&rng) % 10) + 1);

		piece[n] = (struct bw_piece){bytes, part};
		bytes += part;
		len -= part;
	}
	piece[n] = (struct bw_piece){bytes, len};
	return n + 1;
}

static void seal__gives_the_numbers_of_rfc_8439(void **state)
{
	static const char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you "
				   "only one tip for the future, sunscreen would be it.";
	static const char wanted[] =
		"d31a8d34648e60db7b86afbc53ef7ec2 a4aded51296e08fea9e2b5a736ee62d6"
		"3dbea45e8ca9671282fafb69da92728b 1a71de0a9e060b2905d6a5b67ecd3b36"
		"92ddbd7f2d778b8c9803aee328091b58 fab324e4fad675945585808b4831d7bc"
		"3ff4def08e4b7a9de576d26586cec64b 6116";
	const size_t len = sizeof(text) - 1;
	uint8_t key[BW_SEAL_KEY], aad[12], tag[BW_SEAL_TAG];
	struct bw_piece piece[PIECES], head[2] = {{aad, 5}, {aad + 5, 7}};
	struct bw_seal s = {.key = key, .head = head, .heads = 2};

	for (uint8_t i = 0; i < 32; i++)
		key[i] = 0x80 + i;
	unhex(aad, sizeof(aad), "50515253c0c1c2c3c4c5c6c7");
	unhex(s.nonce, sizeof(s.nonce), "070000004041424344454647");
	for (int i = 0; i < 20; i++) {
		bw_seal(&s, piece, cut(piece, (const uint8_t *)text, len), sealed, tag);
		assert_hex(sealed, len, wanted);
		assert_hex(tag, sizeof(tag), "1ae10b594f09e26a7e902ecbd0600691");
		assert_int_equal(bw_open(&s, piece, cut(piece, sealed, len), opened, tag), 0);
		assert_memory_equal(opened, text, len);
	}
}

static void nonce__is_path_and_packet(void **state)
{
	uint8_t nonce[BW_SEAL_NONCE];

	bw_seal_nonce(nonce, 0x04030201, 0x0C0B0A0908070605);
	assert_hex(nonce, sizeof(nonce), "0102030405060708090a0b0c");
}

/* Payload and head of any length in any pieces are sealed as in one piece; what is sealed opens
 * in pieces, and in place. */
static void seal__in_pieces_as_in_one(void **state)
{
	static uint8_t wanted[ROOM];
	struct bw_piece piece[PIECES], head[PIECES];
	uint8_t key[BW_SEAL_KEY], tag[BW_SEAL_TAG], wanted_tag[BW_SEAL_TAG];

	for (int round = 0; round < 3000; round++) {
		struct bw_seal s = {.key = key, .head = head};
		size_t len = sim_random(&rng) % (1 + (ROOM >> sim_random(&rng) % 12));
		size_t aad = sim_random(&rng) % 200;

		for (size_t i = 0; i < sizeof(key); i++)
			key[i] = (uint8_t)sim_random(&rng);
		bw_seal_nonce(s.nonce, (uint32_t)sim_random(&rng), sim_random(&rng));
		crypto_aead_chacha20poly1305_ietf_encrypt_detached(
			wanted, wanted_tag, NULL, plain, len, plain + 7, aad, NULL, s.nonce, key);
		s.heads = cut(head, plain + 7, aad);
		bw_seal(&s, piece, cut(piece, plain, len), sealed, tag);
		assert_memory_equal(sealed, wanted, len);
		assert_memory_equal(tag, wanted_tag, sizeof(tag));

		s.heads = cut(head, plain + 7, aad);
		assert_int_equal(bw_open(&s, piece, cut(piece, sealed, len), opened, tag), 0);
		assert_memory_equal(opened, plain, len);

		piece[0] = (struct bw_piece){sealed, len};
		assert_int_equal(bw_open(&s, piece, 1, sealed, tag), 0);
		assert_memory_equal(sealed, plain, len);
		bw_seal(&s, piece, 1, sealed, tag);
		assert_memory_equal(sealed, wanted, len);
	}
}

/* A frame: 48 bytes are shown, the nonce has the path of its header and the packet's number. */
static void frame__is_sealed_as_it_is_described(void **state)
{
	uint8_t key[BW_SEAL_KEY] = {9}, frame[200], wanted[200], whole[200];
	static const uint8_t nonce[] = {2, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
	const struct bw_seal_by by = {key, 0x0102030405060708};
	const uint32_t end = sizeof(frame) - BW_SEAL_TAG;

	memcpy(frame, plain, sizeof(frame));
	((struct bw_hdr *)frame)->path = 2;
	memcpy(whole, frame, sizeof(frame));
	memcpy(wanted, frame, 48);
	crypto_aead_chacha20poly1305_ietf_encrypt(wanted + 48, NULL, frame + 48, end - 48, frame,
						  48, NULL, nonce, key);
	bw_seal_frame(frame, end, &by);
	assert_memory_equal(frame, wanted, sizeof(frame));
	assert_int_equal(bw_open_frame(frame, end, &by), 0);
	assert_memory_equal(frame, whole, end);
	assert_int_equal(bw_open_frame(frame, end, &by), -EBADMSG);
}

/* One changed bit, wherever, and nothing is opened, nor written. */
static void open__refuses_each_changed_bit(void **state)
{
	uint8_t key[BW_SEAL_KEY] = {1}, tag[BW_SEAL_TAG], aad[48] = {2};
	struct bw_piece piece = {plain, 150}, head = {aad, sizeof(aad)};
	struct bw_seal s = {.key = key, .nonce = {3}, .head = &head, .heads = 1};
	const struct {
		uint8_t *bytes;
		size_t len;
	} all[] = {{sealed, 150}, {tag, 16}, {aad, sizeof(aad)}, {key, 32}, {s.nonce, 12}};

	bw_seal(&s, &piece, 1, sealed, tag);
	piece.base = sealed;
	memset(opened, 0xEE, 150);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (size_t bit = 0; bit < 8 * all[i].len; bit++) {
			all[i].bytes[bit / 8] ^= 1 << bit % 8;
			assert_int_equal(bw_open(&s, &piece, 1, opened, tag), -EBADMSG);
			all[i].bytes[bit / 8] ^= 1 << bit % 8;
		}
	for (size_t i = 0; i < 150; i++)
		assert_int_equal(opened[i], 0xEE);
	piece.len--;
	assert_int_equal(bw_open(&s, &piece, 1, opened, tag), -EBADMSG);
	piece.len++;
	assert_int_equal(bw_open(&s, &piece, 1, opened, tag), 0);
}

static void secret__is_compared_and_forgotten(void **state)
{
	uint8_t a[32], b[32];

	memcpy(a, plain, 32);
	memcpy(b, plain, 32);
	assert_true(bw_same(a, b, 32));
	for (int bit = 0; bit < 256; bit++) {
		b[bit / 8] ^= 1 << bit % 8;
		assert_false(bw_same(a, b, 32));
		b[bit / 8] ^= 1 << bit % 8;
	}
	bw_wipe(a, 31);
	for (int i = 0; i < 31; i++)
		assert_int_equal(a[i], 0);
	assert_int_equal(a[31], plain[31]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash__gives_the_papers_numbers),
		cmocka_unit_test(hmac__gives_the_numbers_of_rfc_4231),
		cmocka_unit_test(sha256__gives_the_standards_number),
		cmocka_unit_test(seal__gives_the_numbers_of_rfc_8439),
		cmocka_unit_test(nonce__is_path_and_packet),
		cmocka_unit_test(seal__in_pieces_as_in_one),
		cmocka_unit_test(frame__is_sealed_as_it_is_described),
		cmocka_unit_test(open__refuses_each_changed_bit),
		cmocka_unit_test(secret__is_compared_and_forgotten),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
