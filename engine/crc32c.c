/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32C (Castagnoli, RFC 3720 B.4) by tables, eight bytes a step, for hosts without an instruction
 * for it. A CRC is linear: the entry for a byte is the XOR of the entries for its bits, so eight
 * constants make a table of 256, and the compiler builds the tables.
 */
#include "protocol.h"

#define BIT(i, k, c) ((i) >> (k)&1 ? (c) : 0u)
#define E1(i, a, b, c, d, e, f, g, h)                                                              \
	(BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^ \
	 BIT(i, 6, g) ^ BIT(i, 7, h))
#define E4(i, ...)                                                                                 \
	E1(i, __VA_ARGS__), E1(i + 1, __VA_ARGS__), E1(i + 2, __VA_ARGS__), E1(i + 3, __VA_ARGS__)
#define E16(i, ...)                                                                                \
	E4(i, __VA_ARGS__), E4(i + 4, __VA_ARGS__), E4(i + 8, __VA_ARGS__), E4(i + 12, __VA_ARGS__)
#define E64(i, ...)                                                                                \
	E16(i, __VA_ARGS__), E16(i + 16, __VA_ARGS__), E16(i + 32, __VA_ARGS__),                   \
		E16(i + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
	{                                                                                          \
		E64(0, __VA_ARGS__), E64(64, __VA_ARGS__), E64(128, __VA_ARGS__),                  \
			E64(192, __VA_ARGS__)                                                      \
	}

/* Row s: CRCs of the bytes 1, 2, 4 ... 128, each with s zero bytes behind; polynomial 0x82F63B78.
 */
static const uint32_t bw_crc_table[8][256] = {
	TABLE(0xF26B8303, 0xE13B70F7, 0xC79A971F, 0x8AD958CF, 0x105EC76F, 0x20BD8EDE, 0x417B1DBC,
	      0x82F63B78),
	TABLE(0x13A29877, 0x274530EE, 0x4E8A61DC, 0x9D14C3B8, 0x3FC5F181, 0x7F8BE302, 0xFF17C604,
	      0xFBC3FAF9),
	TABLE(0xA541927E, 0x4F6F520D, 0x9EDEA41A, 0x38513EC5, 0x70A27D8A, 0xE144FB14, 0xC76580D9,
	      0x8B277743),
	TABLE(0xDD45AAB8, 0xBF672381, 0x7B2231F3, 0xF64463E6, 0xE964B13D, 0xD725148B, 0xABA65FE7,
	      0x52A0C93F),
	TABLE(0x38116FAC, 0x7022DF58, 0xE045BEB0, 0xC5670B91, 0x8F2261D3, 0x1BA8B557, 0x37516AAE,
	      0x6EA2D55C),
	TABLE(0xEF306B19, 0xDB8CA0C3, 0xB2F53777, 0x6006181F, 0xC00C303E, 0x85F4168D, 0x0E045BEB,
	      0x1C08B7D6),
	TABLE(0x68032CC8, 0xD0065990, 0xA5E0C5D1, 0x4E2DFD53, 0x9C5BFAA6, 0x3D5B83BD, 0x7AB7077A,
	      0xF56E0EF4),
	TABLE(0x493C7D27, 0x9278FA4E, 0x211D826D, 0x423B04DA, 0x847609B4, 0x0D006599, 0x1A00CB32,
	      0x34019664),
};

uint32_t bw_crc32c(uint32_t crc, const void *p, size_t n)
{
	const uint8_t *b = p;
	uint32_t lo, hi;

	crc = ~crc;
	for (; n >= 8; n -= 8, b += 8) {
		memcpy(&lo, b, 4);
		memcpy(&hi, b + 4, 4);
		lo ^= crc;
		crc = bw_crc_table[7][lo & 0xFF] ^ bw_crc_table[6][lo >> 8 & 0xFF] ^
		      bw_crc_table[5][lo >> 16 & 0xFF] ^ bw_crc_table[4][lo >> 24] ^
		      bw_crc_table[3][hi & 0xFF] ^ bw_crc_table[2][hi >> 8 & 0xFF] ^
		      bw_crc_table[1][hi >> 16 & 0xFF] ^ bw_crc_table[0][hi >> 24];
	}
	for (; n; n--, b++)
		crc = crc >> 8 ^ bw_crc_table[0][(crc ^ *b) & 0xFF];
	return ~crc;
}
