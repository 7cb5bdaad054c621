/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's key: /proc/sys/net/beowire/key. Written are 64 hexadecimal digits, or `none`; read is
 * the fingerprint that the tools print of the same key, or `none`. The text of a key is wiped once
 * it was read, and told to no log.
 */
#include "node_key.h"

#include <linux/capability.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "compat.h"
#include "keyed.h"
#include "node.h"
#include "refuse.h"

#define BWK_KEY_LABEL "beowire key fingerprint\n"

void bwk_key_init(struct bwk_key *key)
{
	spin_lock_init(&key->lock);
	key->set = false;
	bwk_news_forget(&key->differs);
	bwk_news_forget(&key->open);
}

bool bwk_key_get(struct bwk_key *key, u8 bytes[BWK_KEY_BYTES], u32 *times)
{
	bool set;

	spin_lock_bh(&key->lock);
	set = key->set;
	*times = key->times;
	if (set)
		memcpy(bytes, key->bytes, BWK_KEY_BYTES);
	spin_unlock_bh(&key->lock);
	return set;
}

bool bwk_key_get_refusal(struct bwk_key *key, u8 bytes[BWK_REFUSAL_KEY])
{
	bool set;

	spin_lock_bh(&key->lock);
	set = key->set;
	if (set)
		memcpy(bytes, key->refusal, BWK_REFUSAL_KEY);
	spin_unlock_bh(&key->lock);
	return set;
}

bool bwk_key_is_set(const struct bwk_key *key)
{
	return READ_ONCE(key->set);
}

static void bwk_key_put(struct bwk_key *key, const u8 bytes[BWK_KEY_BYTES])
{
	u8 refusal[BWK_REFUSAL_KEY];

	bw_key_of_refusals(refusal, bytes, bwk_hmac_sha256);
	spin_lock_bh(&key->lock);
	WRITE_ONCE(key->set, true);
	key->times++;
	memcpy(key->bytes, bytes, BWK_KEY_BYTES);
	memcpy(key->refusal, refusal, sizeof(refusal));
	bwk_news_forget(&key->differs);
	spin_unlock_bh(&key->lock);
	memzero_explicit(refusal, sizeof(refusal));
}

void bwk_key_wipe(struct bwk_key *key)
{
	spin_lock_bh(&key->lock);
	WRITE_ONCE(key->set, false);
	key->times++;
	memzero_explicit(key->bytes, BWK_KEY_BYTES);
	memzero_explicit(key->refusal, BWK_REFUSAL_KEY);
	bwk_news_forget(&key->differs);
	spin_unlock_bh(&key->lock);
}

/* Its bytes; -EINVAL if the text is no key. */
static int bwk_key_parse(const char *text, size_t len, u8 bytes[BWK_KEY_BYTES])
{
	u8 any = 0;
	int i;

	if (len != 2 * BWK_KEY_BYTES || hex2bin(bytes, text, BWK_KEY_BYTES))
		return -EINVAL;
	for (i = 0; i < BWK_KEY_BYTES; i++)
		any |= bytes[i];
	return any ? 0 : -EINVAL;
}

static int bwk_key_set(struct bwk_key *key, const char *text, size_t len)
{
	u8 bytes[BWK_KEY_BYTES] = {0};
	int error;

	if (len && text[len - 1] == '\n')
		len--;
	if (len == 4 && !memcmp(text, "none", 4)) {
		bwk_key_wipe(key);
		return 0;
	}
	if (!BWK_KEYED)
		return -EOPNOTSUPP;
	error = bwk_key_parse(text, len, bytes);
	if (!error)
		bwk_key_put(key, bytes);
	memzero_explicit(bytes, sizeof(bytes));
	return error;
}

/* As ./beowire key show prints it; see docs/security.md. */
static int bwk_key_print(struct bwk_key *key, char *text, size_t room)
{
	char lines[sizeof(BWK_KEY_LABEL) + 2 * BWK_KEY_BYTES + 1] = BWK_KEY_LABEL;
	const size_t label = sizeof(BWK_KEY_LABEL) - 1;
	u8 bytes[BWK_KEY_BYTES], hash[BWK_KEYED_HASH];
	u32 times;

	if (!bwk_key_get(key, bytes, &times))
		return scnprintf(text, room, "none\n");
	*bin2hex(lines + label, bytes, BWK_KEY_BYTES) = '\n';
	bwk_sha256(hash, lines, label + 2 * BWK_KEY_BYTES + 1);
	memzero_explicit(bytes, sizeof(bytes));
	memzero_explicit(lines, sizeof(lines));
	return scnprintf(text, room, "%*phN\n", 4, hash);
}

int bwk_key_handler(BWK_CTL_TABLE *table, int write, void *buffer, size_t *len, loff_t *at)
{
	struct bwk_key *key = table->data;
	struct bwk_node *node = container_of(key, struct bwk_node, set.key);
	char text[16];
	int error, n;

	if (write) {
		/* Who is root here without it may open the file, and no more. */
		error = ns_capable(node->net->user_ns, CAP_NET_ADMIN) ? 0 : -EPERM;
		if (!error)
			error = *at ? -EINVAL : bwk_key_set(key, buffer, *len);
		memzero_explicit(buffer, *len);
		*at += error ? 0 : *len;
		return error;
	}
	n = *at ? 0 : min_t(int, bwk_key_print(key, text, sizeof(text)), *len);
	memcpy(buffer, text, n);
	*len = n;
	*at += n;
	return 0;
}

int bwk_encrypt_handler(BWK_CTL_TABLE *table, int write, void *buffer, size_t *len, loff_t *at)
{
	struct bwk_node *node = container_of(table->data, struct bwk_node, set.encrypt);

	if (write && !ns_capable(node->net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	if (write)
		bwk_news_forget(&node->set.key.open);
	return proc_dointvec_minmax(table, write, buffer, len, at);
}
