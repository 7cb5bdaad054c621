/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes of offers. All numbers are little-endian. See offer.h. */
#include "offer.h"

#include <string.h>

static const uint8_t bws_offer_magic[2] = {'B', 'S'};

static uint8_t *bws_offer_put(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

static const uint8_t *bws_offer_get(const uint8_t *at, uint32_t *value, int bytes)
{
	*value = 0;
	for (int i = 0; i < bytes; i++)
		*value |= (uint32_t)*at++ << 8 * i;
	return at;
}

static uint8_t *bws_offer_copy(uint8_t *at, const void *from, size_t n)
{
	memcpy(at, from, n);
	return at + n;
}

static const uint8_t *bws_offer_take(const uint8_t *at, void *to, size_t n)
{
	memcpy(to, at, n);
	return at + n;
}

void bws_offer_pack(const struct bws_offer *o, uint8_t *bytes)
{
	uint8_t *at = bws_offer_copy(bytes, bws_offer_magic, sizeof(bws_offer_magic));

	at = bws_offer_put(at, BWS_OFFER_VERSION, 1);
	at = bws_offer_put(at, o->kind, 1);
	at = bws_offer_put(at, o->id, 4);
	at = bws_offer_copy(at, o->name.here, sizeof(o->name.here));
	at = bws_offer_copy(at, o->name.there, sizeof(o->name.there));
	at = bws_offer_put(at, o->name.here_port, 2);
	at = bws_offer_put(at, o->name.there_port, 2);
	at = bws_offer_copy(at, o->nonce, sizeof(o->nonce));
	at = bws_offer_copy(at, o->to_nonce, sizeof(o->to_nonce));
	bws_offer_copy(at, o->addr.bytes, sizeof(o->addr.bytes));
}

bool bws_offer_unpack(const uint8_t *bytes, size_t n, struct bws_offer *o)
{
	const uint8_t *at = bytes + 4;
	uint32_t value;

	if (n != BWS_OFFER_BYTES || memcmp(bytes, bws_offer_magic, sizeof(bws_offer_magic)) ||
	    bytes[2] != BWS_OFFER_VERSION || !bytes[3] || bytes[3] >= BWS_OFFER_KINDS)
		return false;
	o->kind = bytes[3];
	at = bws_offer_get(at, &o->id, 4);
	at = bws_offer_take(at, o->name.here, sizeof(o->name.here));
	at = bws_offer_take(at, o->name.there, sizeof(o->name.there));
	at = bws_offer_get(at, &value, 2);
	o->name.here_port = (uint16_t)value;
	at = bws_offer_get(at, &value, 2);
	o->name.there_port = (uint16_t)value;
	at = bws_offer_take(at, o->nonce, sizeof(o->nonce));
	at = bws_offer_take(at, o->to_nonce, sizeof(o->to_nonce));
	bws_offer_take(at, o->addr.bytes, sizeof(o->addr.bytes));
	return o->id && o->name.here_port && o->name.there_port;
}

bool bws_name_mirrors(const struct bws_name *one, const struct bws_name *other)
{
	return one->here_port == other->there_port && one->there_port == other->here_port &&
	       !memcmp(one->here, other->there, sizeof(one->here)) &&
	       !memcmp(one->there, other->here, sizeof(one->there));
}
