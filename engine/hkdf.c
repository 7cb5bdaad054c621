/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two steps of RFC 5869, 2.2 and 2.3. */
#include "hkdf.h"

#define BW_HKDF_MOST (255u * BW_HKDF_HASH)

void bw_hkdf_forget(void *secret, size_t len)
{
	memset(secret, 0, len);
	__asm__ volatile("" : : "r"(secret) : "memory");
}

void bw_hkdf_extract(uint8_t prk[BW_HKDF_HASH], const void *salt, size_t salt_len,
		     const void *secret, size_t len, bw_hmac_sha256_fn hmac)
{
	static const uint8_t zeroes[BW_HKDF_HASH];

	if (salt_len)
		hmac(prk, salt, salt_len, secret, len);
	else
		hmac(prk, zeroes, sizeof(zeroes), secret, len);
}

int bw_hkdf_expand(uint8_t *out, size_t len, const uint8_t prk[BW_HKDF_HASH], const void *info,
		   size_t info_len, bw_hmac_sha256_fn hmac)
{
	/* The previous hash, `info`, and which hash this is; the first has no previous one. */
	uint8_t input[BW_HKDF_HASH + BW_HKDF_INFO_MAX + 1], hash[BW_HKDF_HASH];
	size_t before = 0, n;

	if (info_len > BW_HKDF_INFO_MAX || len > BW_HKDF_MOST)
		return -EINVAL;
	for (uint8_t number = 1; len; number++) {
		if (before)
			memcpy(input, hash, before);
		if (info_len)
			memcpy(input + before, info, info_len);
		input[before + info_len] = number;
		hmac(hash, prk, BW_HKDF_HASH, input, before + info_len + 1);
		before = BW_HKDF_HASH;
		n = bw_min_u64(len, BW_HKDF_HASH);
		memcpy(out, hash, n);
		out += n;
		len -= n;
	}
	bw_hkdf_forget(hash, sizeof(hash));
	bw_hkdf_forget(input, sizeof(input));
	return 0;
}
