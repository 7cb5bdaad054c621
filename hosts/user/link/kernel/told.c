/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads what the kernel module says of this node; see told.h. */
#include <stdio.h>
#include <string.h>

#include "link/kernel/told.h"
#include "link/watch.h"

#define BW_KERNEL_NODE BW_KERNEL_PROC "/node"
#define BW_KERNEL_KEY  "/proc/sys/net/beowire/key"
#define BW_KERNEL_SEAL "/proc/sys/net/beowire/encrypt"

/* `meant`: number of the interface that is wanted; 0: the first. */
static void bw_kernel_line(struct bw_kernel_told *t, const char *line, uint32_t meant)
{
	unsigned long long node;
	unsigned int mac[6], number, mtu;
	char name[IF_NAMESIZE];

	if (sscanf(line, "node %llx", &node) == 1)
		t->node = node;
	sscanf(line, "family %d", &t->family);
	sscanf(line, "cluster %u", &t->cluster);
	if (sscanf(line, "interface %15s %u %x:%x:%x:%x:%x:%x %u", name, &number, &mac[0], &mac[1],
		   &mac[2], &mac[3], &mac[4], &mac[5], &mtu) != 9)
		return;
	t->any = true;
	if (t->ifindex || (meant && meant != number))
		return;
	t->ifindex = number;
	t->mtu = mtu;
	memcpy(t->name, name, sizeof(t->name));
	for (int i = 0; i < 6; i++)
		t->mac[i] = (uint8_t)mac[i];
}

/* Does a file of the kernel's hold this word? */
static bool bw_kernel_says(const char *path, const char *word)
{
	FILE *f = fopen(path, "re");
	char line[160] = "";
	bool found;

	if (!f)
		return false;
	found = fgets(line, sizeof(line), f) && strstr(line, word);
	fclose(f);
	return found;
}

const char *bw_kernel_absent(void)
{
	/* Secure Boot locks the kernel down, which then takes signed modules only; it may also be
	 * told to take no others (kernel's admin-guide/module-signing). */
	if (bw_kernel_says("/sys/module/module/parameters/sig_enforce", "Y") ||
	    bw_kernel_says("/sys/kernel/security/lockdown", "[integrity]") ||
	    bw_kernel_says("/sys/kernel/security/lockdown", "[confidentiality]"))
		return "the kernel module is not loaded; fix, as root: modprobe beowire. This "
		       "kernel takes signed modules only (Secure Boot): if it refuses the key, "
		       "enrol the one that DKMS signs with: mokutil --import "
		       "/var/lib/dkms/mok.pub, then start the machine anew and confirm";
	return "the kernel module is not loaded; fix: modprobe beowire, as root";
}

void bw_kernel_key(char text[BW_KEY_FINGERPRINT])
{
	FILE *f = fopen(BW_KERNEL_KEY, "re");

	if (!f || !fgets(text, BW_KEY_FINGERPRINT, f))
		strcpy(text, "none");
	text[strcspn(text, "\n")] = '\0';
	if (f)
		fclose(f);
}

bool bw_kernel_encrypts(void)
{
	return bw_kernel_says(BW_KERNEL_SEAL, "1");
}

bool bw_kernel_ask(struct bw_kernel_told *t, uint32_t meant)
{
	FILE *f = fopen(BW_KERNEL_NODE, "re");
	char line[160];

	memset(t, 0, sizeof(*t));
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		bw_kernel_line(t, line, meant);
	fclose(f);
	return t->node != 0;
}
