/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policy file: lines `key = value, value`; see policy.h and beowired(8). */
#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire.h"

struct bs_key {
	const char *name;
	const char *like;
	bool (*take)(struct bs_policy *p, const char *value);
};

static bool bs_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *n >= lo && *n <= hi;
}

static bool bs_ids_add(struct bs_ids *ids, uint32_t id)
{
	if (ids->n == BS_POLICY_IDS)
		return false;
	ids->id[ids->n++] = id;
	return true;
}

/* A name; what is made of digits was to be a number. */
static bool bs_is_name(const char *value)
{
	return value[strspn(value, "-0123456789")];
}

static bool bs_take_user(struct bs_policy *p, const char *value)
{
	const struct passwd *found;
	uint64_t n;

	p->everybody |= !strcmp(value, "*");
	if (p->everybody)
		return true;
	if (bs_number(value, 0, UINT32_MAX - 1, &n))
		return bs_ids_add(&p->users, (uint32_t)n);
	found = getpwnam(value);
	p->unknown = !found && bs_is_name(value);
	return found && bs_ids_add(&p->users, found->pw_uid);
}

static bool bs_take_group(struct bs_policy *p, const char *value)
{
	const struct group *found;
	uint64_t n;

	if (bs_number(value, 0, UINT32_MAX - 1, &n))
		return bs_ids_add(&p->groups, (uint32_t)n);
	found = getgrnam(value);
	p->unknown = !found && bs_is_name(value);
	return found && bs_ids_add(&p->groups, found->gr_gid);
}

static bool bs_take_interface(struct bs_policy *p, const char *value)
{
	if (p->interfaces == BS_DEVICES || strlen(value) >= IFNAMSIZ || strchr(value, '/'))
		return false;
	for (unsigned int i = 0; i < p->interfaces; i++) {
		if (!strcmp(p->interface[i], value))
			return false;
	}
	memcpy(p->interface[p->interfaces++], value, strlen(value) + 1);
	return true;
}

static bool bs_take_ethertype(struct bs_policy *p, const char *value)
{
	uint64_t n;
	bool good = bs_number(value, 0x0600, 0xFFFF, &n) && n != 0x0800 && n != 0x0806 &&
		    n != 0x86DD && n != 0x8100 && n != 0x88A8;

	if (good)
		p->ethertype = (uint16_t)n;
	return good;
}

static bool bs_take_endpoints(struct bs_policy *p, const char *value)
{
	uint64_t n;

	if (!bs_number(value, 1, BS_ENDPOINTS, &n))
		return false;
	p->endpoints = (uint32_t)n;
	return true;
}

static bool bs_take_attempts(struct bs_policy *p, const char *value)
{
	uint64_t n;

	if (!bs_number(value, 1, 100000, &n))
		return false;
	p->attempts = (uint32_t)n;
	return true;
}

static bool bs_bytes(const char *value, uint64_t *bytes)
{
	char text[32], *unit;
	unsigned int shift;
	uint64_t n;

	if (!*value || strlen(value) >= sizeof(text))
		return false;
	memcpy(text, value, strlen(value) + 1);
	unit = text + strlen(text) - 1;
	shift = *unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0;
	if (shift)
		*unit = 0;
	if (!bs_number(text, 1, 1ull << 40 >> shift, &n) || n << shift < 1u << 20)
		return false;
	*bytes = n << shift;
	return true;
}

static bool bs_take_rings(struct bs_policy *p, const char *value)
{
	return bs_bytes(value, &p->ring_bytes);
}

static bool bs_take_total(struct bs_policy *p, const char *value)
{
	return bs_bytes(value, &p->ring_total);
}

static bool bs_take_key(struct bs_policy *p, const char *value)
{
	if (*value != '/' || strlen(value) >= sizeof(p->key_file))
		return false;
	memcpy(p->key_file, value, strlen(value) + 1);
	return true;
}

static bool bs_take_encrypt(struct bs_policy *p, const char *value)
{
	p->encrypts = !strcmp(value, "yes");
	return p->encrypts || !strcmp(value, "no");
}

static const struct bs_key bs_keys[] = {
	{"users", "users of this node, by name or number, or * for all", bs_take_user},
	{"groups", "groups of this node, by name or number", bs_take_group},
	{"interfaces", "names of up to 8 interfaces, each once", bs_take_interface},
	{"ethertype", "0x0600 to 0xFFFF, and none of IP, ARP or VLAN", bs_take_ethertype},
	{"endpoints", "1 to 4096", bs_take_endpoints},
	{"ring-memory", "1M to 1024G, in bytes or with K, M or G", bs_take_rings},
	{"ring-memory-total", "1M to 1024G, in bytes or with K, M or G", bs_take_total},
	{"attempts", "1 to 100000", bs_take_attempts},
	{"key", "the path of a file, from / on, of at most 127 bytes", bs_take_key},
	{"encrypt", "yes or no", bs_take_encrypt},
};

#define BS_KEYS (sizeof(bs_keys) / sizeof(bs_keys[0]))

/* Half of the node's memory. */
static uint64_t bs_ring_total(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes / 2 : BS_RINGS_OF;
}

void bs_policy_init(struct bs_policy *p)
{
	*p = (struct bs_policy){
		.ethertype = BW_ETHERTYPE,
		.endpoints = BS_ENDPOINTS_OF,
		.ring_bytes = BS_RINGS_OF,
		.ring_total = bs_ring_total(),
		.attempts = BS_ATTEMPTS_OF,
	};
}

/* The text without blanks around it. */
static char *bs_trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = 0;
	return text + strspn(text, " \t");
}

static int bs_values(struct bs_policy *p, const struct bs_key *key, char *values,
		     char why[BS_POLICY_WHY])
{
	bool list = key - bs_keys < 3;

	do {
		char *next = list ? strchr(values, ',') : NULL, *value;

		if (next)
			*next++ = 0;
		value = bs_trim(values);
		if (!*value || !key->take(p, value)) {
			snprintf(why, BS_POLICY_WHY, "%s: '%.40s' is not taken; give %s", key->name,
				 value, key->like);
			return -EINVAL;
		}
		values = next;
	} while (values);
	return 0;
}

int bs_policy_line(struct bs_policy *p, char *line, char why[BS_POLICY_WHY])
{
	char *name = bs_trim(line), *value = strchr(name, '=');

	if (!*name || *name == '#')
		return 0;
	if (!value) {
		snprintf(why, BS_POLICY_WHY, "'%.40s' is no 'key = value'", name);
		return -EINVAL;
	}
	*value++ = 0;
	name = bs_trim(name);
	for (unsigned int i = 0; i < BS_KEYS; i++) {
		if (strcmp(name, bs_keys[i].name))
			continue;
		if (p->set & 1u << i) {
			snprintf(why, BS_POLICY_WHY, "%s is there twice", name);
			return -EINVAL;
		}
		p->set |= 1u << i;
		return bs_values(p, &bs_keys[i], value, why);
	}
	snprintf(why, BS_POLICY_WHY,
		 "there is no key '%.40s'; keys are users, groups, interfaces, ethertype, "
		 "endpoints, ring-memory, ring-memory-total, attempts, key, encrypt",
		 name);
	return -EINVAL;
}

int bs_policy_check(const struct bs_policy *p, char why[BS_POLICY_WHY])
{
	if (!p->users.n && !p->groups.n && !p->everybody)
		snprintf(why, BS_POLICY_WHY, "nobody is allowed; add 'groups = NAME' or 'users'");
	else if (!p->interfaces)
		snprintf(why, BS_POLICY_WHY, "no interface is named; add 'interfaces = NAME'");
	else if (p->encrypts && !p->key_file[0])
		snprintf(why, BS_POLICY_WHY, "encrypt needs a key; add 'key = FILE'");
	else
		return 0;
	return -EINVAL;
}

static int bs_policy_lines(struct bs_policy *p, FILE *f, const char *path, char why[BS_POLICY_WHY])
{
	char line[BS_POLICY_LINE], cause[BS_POLICY_WHY];
	unsigned int number = 0;
	size_t n;

	while (fgets(line, sizeof(line), f)) {
		number++;
		n = strcspn(line, "\n");
		if (line[n] || feof(f)) {
			line[n] = 0;
			if (!bs_policy_line(p, line, cause))
				continue;
		} else {
			snprintf(cause, sizeof(cause), "the line is too long, or has a zero byte");
		}
		snprintf(why, BS_POLICY_WHY, "%.80s:%u: %.150s", path, number, cause);
		return -EINVAL;
	}
	if (!bs_policy_check(p, cause))
		return 0;
	snprintf(why, BS_POLICY_WHY, "%.80s: %.150s", path, cause);
	return -EINVAL;
}

/* What cannot be read must not be taken for none. */
static int bs_policy_key(struct bs_policy *p, const char *path, char why[BS_POLICY_WHY])
{
	char cause[BS_POLICY_WHY];
	int error;

	if (!p->key_file[0])
		return 0;
	error = bw_key_load(p->key_file, p->key, cause, sizeof(cause));
	if (error)
		snprintf(why, BS_POLICY_WHY,
			 "%.80s: key: %.370s; it is to be a file of root's with mode 0600", path,
			 cause);
	return error;
}

int bs_policy_read(struct bs_policy *p, const char *path, char why[BS_POLICY_WHY])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), error = -errno;
	struct stat told;
	FILE *f;

	if (fd < 0) {
		snprintf(why, BS_POLICY_WHY,
			 "%.80s cannot be read: %s; beowired(8) says what it is to hold", path,
			 strerror(-error));
		return error;
	}
	if (fstat(fd, &told) || !S_ISREG(told.st_mode) || (told.st_mode & (S_IWGRP | S_IWOTH)) ||
	    (told.st_uid && told.st_uid != geteuid())) {
		snprintf(why, BS_POLICY_WHY,
			 "%.80s must be a file of root's that nobody else may write to; fix: "
			 "chown root, chmod 644",
			 path);
		close(fd);
		return -EPERM;
	}
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	bs_policy_init(p);
	error = bs_policy_lines(p, f, path, why);
	fclose(f);
	if (!error)
		bs_subuids_read(&p->subuids, BS_SUBUID_FILE);
	/* At the end: what looks up names of users has nothing to do with it. */
	return error ? error : bs_policy_key(p, path, why);
}

static bool bs_ids_have(const struct bs_ids *ids, uint32_t id)
{
	for (unsigned int i = 0; i < ids->n; i++) {
		if (ids->id[i] == id)
			return true;
	}
	return false;
}

bool bs_policy_allows(const struct bs_policy *p, uid_t user, const gid_t *group, unsigned int n)
{
	if (p->everybody || bs_ids_have(&p->users, user))
		return true;
	for (unsigned int i = 0; i < n; i++) {
		if (bs_ids_have(&p->groups, group[i]))
			return true;
	}
	return false;
}
