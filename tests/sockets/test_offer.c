/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes of offers: all that is packed is unpacked again, and nothing else is an offer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "offer.h"

static struct bws_offer one(void)
{
	struct bws_offer o = {.kind = BWS_ACCEPT, .id = 0x01020304};

	for (int i = 0; i < 16; i++) {
		o.name.here[i] = (uint8_t)i;
		o.name.there[i] = (uint8_t)(16 + i);
		o.nonce[i] = (uint8_t)(32 + i);
		o.to_nonce[i] = (uint8_t)(48 + i);
	}
	memset(o.addr.bytes, 7, sizeof(o.addr.bytes));
	o.name.here_port = 0x1234;
	o.name.there_port = 0x5678;
	return o;
}

static void offer__is_the_same_when_unpacked(void **state)
{
	struct bws_offer o = one(), again;
	uint8_t bytes[BWS_OFFER_BYTES];

	memset(&again, 0, sizeof(again));
	bws_offer_pack(&o, bytes);
	assert_true(bws_offer_unpack(bytes, sizeof(bytes), &again));
	assert_int_equal(again.kind, o.kind);
	assert_int_equal(again.id, o.id);
	assert_int_equal(again.name.here_port, o.name.here_port);
	assert_int_equal(again.name.there_port, o.name.there_port);
	assert_memory_equal(again.name.here, o.name.here, 16);
	assert_memory_equal(again.name.there, o.name.there, 16);
	assert_memory_equal(again.nonce, o.nonce, BWS_NONCE);
	assert_memory_equal(again.to_nonce, o.to_nonce, BWS_NONCE);
	assert_memory_equal(again.addr.bytes, o.addr.bytes, sizeof(o.addr.bytes));
}

static void offer__has_the_bytes_of_the_document(void **state)
{
	struct bws_offer o = one();
	uint8_t bytes[BWS_OFFER_BYTES];

	bws_offer_pack(&o, bytes);
	assert_int_equal(BWS_OFFER_BYTES, 132);
	assert_memory_equal(bytes, "BS\x01\x02\x04\x03\x02\x01", 8);
	assert_memory_equal(bytes + 8, o.name.here, 16);
	assert_memory_equal(bytes + 40, "\x34\x12\x78\x56", 4);
	assert_memory_equal(bytes + 44, o.nonce, 16);
	assert_memory_equal(bytes + 76, o.addr.bytes, 56);
}

static void offer__of_another_form_is_none(void **state)
{
	struct bws_offer o = one(), out;
	uint8_t bytes[BWS_OFFER_BYTES + 1] = {0}, bad[BWS_OFFER_BYTES];

	bws_offer_pack(&o, bytes);
	assert_false(bws_offer_unpack(bytes, BWS_OFFER_BYTES - 1, &out));
	assert_false(bws_offer_unpack(bytes, BWS_OFFER_BYTES + 1, &out));
	/* magic, version, kind */
	for (int i = 0; i < 4; i++) {
		memcpy(bad, bytes, sizeof(bad));
		bad[i] ^= 0x40;
		assert_false(bws_offer_unpack(bad, sizeof(bad), &out));
	}
	memcpy(bad, bytes, sizeof(bad));
	bad[3] = 0;
	assert_false(bws_offer_unpack(bad, sizeof(bad), &out));
	for (int kind = 0; kind < 256; kind++) {
		bytes[3] = (uint8_t)kind;
		assert_int_equal(bws_offer_unpack(bytes, BWS_OFFER_BYTES, &out),
				 kind >= BWS_OFFER && kind <= BWS_RESCUED);
	}
	bytes[3] = BWS_OFFER;
	for (int version = 0; version < 256; version++) {
		bytes[2] = (uint8_t)version;
		assert_int_equal(bws_offer_unpack(bytes, BWS_OFFER_BYTES, &out),
				 version == BWS_OFFER_VERSION);
	}
}

static void offer__without_a_name_is_none(void **state)
{
	static const struct {
		int at, n;
	} field[] = {{4, 4}, {40, 2}, {42, 2}};
	struct bws_offer o = one(), out;
	uint8_t bytes[BWS_OFFER_BYTES];

	for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
		bws_offer_pack(&o, bytes);
		assert_true(bws_offer_unpack(bytes, sizeof(bytes), &out));
		memset(bytes + field[i].at, 0, (size_t)field[i].n);
		assert_false(bws_offer_unpack(bytes, sizeof(bytes), &out));
	}
}

/* Nothing behind the bytes of a short one is looked at. */
static void offer__that_is_cut_is_none(void **state)
{
	struct bws_offer o = one(), out;
	uint8_t bytes[BWS_OFFER_BYTES];

	bws_offer_pack(&o, bytes);
	for (size_t n = 0; n < sizeof(bytes); n++)
		assert_false(bws_offer_unpack(bytes, n, &out));
}

static void name__mirrors_the_other_end_alone(void **state)
{
	struct bws_name here = one().name, there;

	memcpy(there.here, here.there, 16);
	memcpy(there.there, here.here, 16);
	there.here_port = here.there_port;
	there.there_port = here.here_port;
	assert_true(bws_name_mirrors(&here, &there));
	assert_false(bws_name_mirrors(&here, &here));
	there.here_port++;
	assert_false(bws_name_mirrors(&here, &there));
	there.here_port--;
	there.there[15]++;
	assert_false(bws_name_mirrors(&here, &there));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offer__is_the_same_when_unpacked),
		cmocka_unit_test(offer__has_the_bytes_of_the_document),
		cmocka_unit_test(offer__of_another_form_is_none),
		cmocka_unit_test(offer__without_a_name_is_none),
		cmocka_unit_test(offer__that_is_cut_is_none),
		cmocka_unit_test(name__mirrors_the_other_end_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
