/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protocols by number; see beowire_protocol.h. */
#include "registry.h"

#include <linux/mutex.h>

static struct {
	const struct bw_protocol *protocol;
	struct module *owner;
} bwk_registry[BEOWIRE_PROTOCOLS];
static DEFINE_MUTEX(bwk_registry_lock);

int beowire_register_protocol(const struct bw_protocol *protocol, int number, struct module *owner)
{
	int error = 0;

	if (number < 1 || number >= BEOWIRE_PROTOCOLS || !protocol || !protocol->size ||
	    !protocol->open || !protocol->close || !protocol->submit || !protocol->rx ||
	    !protocol->next_frame || !protocol->next_event || !protocol->next_deadline ||
	    !protocol->grow || !protocol->hungry || !protocol->unsent || !protocol->busy ||
	    !protocol->counters)
		return -EINVAL;
	mutex_lock(&bwk_registry_lock);
	if (bwk_registry[number].protocol) {
		error = -EBUSY;
	} else {
		bwk_registry[number].protocol = protocol;
		bwk_registry[number].owner = owner;
	}
	mutex_unlock(&bwk_registry_lock);
	return error;
}
EXPORT_SYMBOL_GPL(beowire_register_protocol);

void beowire_unregister_protocol(const struct bw_protocol *protocol)
{
	int i;

	mutex_lock(&bwk_registry_lock);
	for (i = 0; i < BEOWIRE_PROTOCOLS; i++)
		if (bwk_registry[i].protocol == protocol)
			bwk_registry[i].protocol = NULL;
	mutex_unlock(&bwk_registry_lock);
}
EXPORT_SYMBOL_GPL(beowire_unregister_protocol);

const struct bw_protocol *bwk_registry_get(int number, struct module **owner)
{
	const struct bw_protocol *found = NULL;

	if (number < 1 || number >= BEOWIRE_PROTOCOLS)
		return NULL;
	mutex_lock(&bwk_registry_lock);
	if (bwk_registry[number].protocol && try_module_get(bwk_registry[number].owner)) {
		found = bwk_registry[number].protocol;
		*owner = bwk_registry[number].owner;
	}
	mutex_unlock(&bwk_registry_lock);
	return found;
}
