/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* HKDF gives the numbers of RFC 5869, appendix A (the cases with SHA-256), in any length. */
#include "groups.h"
#include "hkdf.h"
#include "keyed.h"

#define ROOM 256

/* Bytes from hexadecimal digits. */
static void unhex(uint8_t *to, const char *text, size_t n)
{
	assert_int_equal(strlen(text), 2 * n);
	for (size_t i = 0; i < n; i++) {
		const char pair[3] = {text[2 * i], text[2 * i + 1], 0};

		to[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
}

static void up(uint8_t *to, uint8_t first, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(first + i);
}

/* Extracted and expanded, whole and each shorter key, whose bytes are the first of the longest. */
static void check(const uint8_t *secret, size_t len, const uint8_t *salt, size_t salt_len,
		  const uint8_t *info, size_t info_len, const char *prk_text, const char *key_text)
{
	uint8_t prk[BW_HKDF_HASH], key[ROOM], wanted[ROOM];
	size_t n = strlen(key_text) / 2;

	bw_hkdf_extract(prk, salt, salt_len, secret, len, bw_hmac_sha256);
	unhex(wanted, prk_text, sizeof(prk));
	assert_memory_equal(prk, wanted, sizeof(prk));
	unhex(wanted, key_text, n);
	for (size_t shorter = 0; shorter <= n; shorter++) {
		memset(key, 0xEE, sizeof(key));
		assert_int_equal(bw_hkdf_expand(key, shorter, prk, info, info_len, bw_hmac_sha256),
				 0);
		assert_memory_equal(key, wanted, shorter);
		assert_int_equal(key[shorter], 0xEE);
	}
}

static void hkdf__gives_the_numbers_of_rfc_5869(void **state)
{
	uint8_t secret[80], salt[80], info[80];

	memset(secret, 0x0B, 22);
	up(salt, 0x00, 13);
	up(info, 0xF0, 10);
	check(secret, 22, salt, 13, info, 10,
	      "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
	      "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
	      "34007208d5b887185865");
	check(secret, 22, NULL, 0, NULL, 0,
	      "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
	      "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
	      "9d201395faa4b61a96c8");
	up(secret, 0x00, 80);
	up(salt, 0x60, 80);
	up(info, 0xB0, 80);
	check(secret, 80, salt, 80, info, 80,
	      "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
	      "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
	      "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
	      "cc30c58179ec3e87c14c01d5c1f3434f1d87");
}

/* No key of another length than was wanted, and none of an `info` in part. */
static void hkdf__has_bounds(void **state)
{
	static uint8_t out[255 * BW_HKDF_HASH + 1], info[BW_HKDF_INFO_MAX + 1];
	uint8_t prk[BW_HKDF_HASH] = {1}, other[BW_HKDF_HASH];
	size_t most = sizeof(out) - 1, long_info = sizeof(info) - 1;

	assert_int_equal(bw_hkdf_expand(out, most, prk, NULL, 0, bw_hmac_sha256), 0);
	assert_int_equal(bw_hkdf_expand(out, most + 1, prk, NULL, 0, bw_hmac_sha256), -EINVAL);
	assert_int_equal(bw_hkdf_expand(out, 32, prk, info, long_info + 1, bw_hmac_sha256),
			 -EINVAL);
	assert_int_equal(bw_hkdf_expand(out, 32, prk, info, long_info, bw_hmac_sha256), 0);
	info[long_info - 1] = 1;
	assert_int_equal(bw_hkdf_expand(other, 32, prk, info, long_info, bw_hmac_sha256), 0);
	assert_memory_not_equal(out, other, 32);
}

int hkdf_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hkdf__gives_the_numbers_of_rfc_5869),
		cmocka_unit_test(hkdf__has_bounds),
	};

	return cmocka_run_group_tests_name("hkdf", tests, NULL, NULL);
}
