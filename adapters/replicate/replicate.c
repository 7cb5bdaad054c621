/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The preload library of `beowire replicate`: before main(), the text and the constant data of
 * the program and its libraries become copies in memory of the NUMA node on which the process runs.
 * Addresses stay the same. Left as they are: the dynamic loader, where debuggers stop; this
 * library, which runs meanwhile; what differs from its file (relocated, a breakpoint, a probe);
 * libraries that are opened later.
 */
#include "replicate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPS_BYTES	(1u << 20)
#define MAX_MIB_DEFAULT 512
#define MAX_MIB_MOST	(1u << 20)
#define MIB		(1u << 20)

/* A file, and what becomes of its areas. */
struct file {
	const char *path;
	struct bwrp_area *areas;
	size_t count;
	int fd;
	int copy; /* that is shared, or -1 */
	bool shared;
	uint64_t size;	  /* of the copy: the end of its last area */
	uint64_t on_huge; /* a bit for each of the first areas: it goes to large pages */
	uint64_t copied[2], huge, left;
	size_t here, elsewhere;
};

static void say(const char *format, ...)
{
	char line[PATH_MAX + 256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n > 0)
		dprintf(STDERR_FILENO, "beowire-replicate: %s\n", line);
}

static uint64_t max_bytes(void)
{
	const char *text = getenv("BEOWIRE_REPLICATE_MAX");
	char *end;
	unsigned long mib = text ? strtoul(text, &end, 10) : MAX_MIB_DEFAULT;

	if (text && (end == text || *end || mib > MAX_MIB_MOST)) {
		say("BEOWIRE_REPLICATE_MAX is %s, which is no number of MiB", text);
		mib = MAX_MIB_DEFAULT;
	}
	return (uint64_t)mib * MIB;
}

/* False: nothing is to be done. */
static bool settings_read(struct bwrp_settings *s)
{
	const char *mode = getenv("BEOWIRE_REPLICATE"), *text = getenv("BEOWIRE_REPLICATE_PAGES");
	const char *explain = getenv("BEOWIRE_REPLICATE_EXPLAIN");
	unsigned int cpu;

	*s = (struct bwrp_settings){.keeper = getenv("BEOWIRE_REPLICATE_KEEPER"),
				    .explain = explain && !strcmp(explain, "on"),
				    .dry = mode && !strcmp(mode, "dry"),
				    .max_bytes = max_bytes()};
	if (mode && !strcmp(mode, "off"))
		return false;
	if (text && !strcmp(text, "small"))
		s->pages = BWRP_PAGES_SMALL;
	else if (text && !strcmp(text, "huge"))
		s->pages = BWRP_PAGES_HUGE;
	return getcpu(&cpu, &s->node) == 0;
}

/* The whole text, or as much as there is room for, with a zero byte behind it. */
static char *maps_read(void)
{
	char *text =
		mmap(NULL, MAPS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t some;

	if (text != MAP_FAILED && fd >= 0)
		while (n < MAPS_BYTES - 1 && (some = read(fd, text + n, MAPS_BYTES - 1 - n)) > 0)
			n += (size_t)some;
	if (fd >= 0)
		close(fd);
	return text == MAP_FAILED ? NULL : text;
}

static bool holds(const struct file *file, uintptr_t address)
{
	for (size_t i = 0; i < file->count; i++)
		if (address >= file->areas[i].start && address < file->areas[i].end)
			return true;
	return false;
}

/* Why a file is left alone, or NULL. */
static const char *exempt(const struct file *file)
{
	bool text = false;

	for (size_t i = 0; i < file->count; i++)
		text |= (file->areas[i].prot & PROT_EXEC) != 0;
	if (!text)
		return "no text";
	if (holds(file, getauxval(AT_BASE)))
		return "the dynamic loader";
	if (holds(file, (uintptr_t)exempt))
		return "does the copying";
	return NULL;
}

/* Two files of the same name are the same to the kernel's caches only if these are. */
static bool name_make(const struct file *file, const struct bwrp_settings *s, char *name, size_t n)
{
	struct stat st;
	int used;

	if (fstat(file->fd, &st) || !S_ISREG(st.st_mode))
		return false;
	used = snprintf(name, n, "%u %" PRIu64 " %" PRIx64 " %ju %ju %jd.%09ld %s", s->node,
			file->size, file->on_huge, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
			(intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, file->path);
	return used > 0 && (size_t)used < n;
}

/* Whether a large page fits depends on the address, which differs from process to process. */
static void huge_choose(struct file *file, const struct bwrp_settings *s)
{
	if (s->pages == BWRP_PAGES_SMALL)
		return;
	for (size_t i = 0; i < file->count && i < 64; i++)
		if ((file->areas[i].prot & PROT_EXEC) && bwrp_area_fits_huge(&file->areas[i]))
			file->on_huge |= 1ull << i;
}

static bool wants_huge(const struct file *file, size_t i)
{
	return i < 64 && (file->on_huge >> i & 1);
}

static int copy_make(struct file *file, const struct bwrp_settings *s)
{
	int copy = bwrp_copy_begin(file->path, file->size, s->node);

	if (copy < 0)
		return -1;
	/* An area that differs is left out here, and found to differ again when it is mapped. */
	for (size_t i = 0; i < file->count; i++)
		if (!wants_huge(file, i))
			bwrp_copy_fill(copy, file->fd, &file->areas[i]);
	if (bwrp_copy_seal(copy))
		return copy;
	close(copy);
	return -1;
}

/* That of the keeper, or one of ours that it keeps from now on, or one of ours alone. */
static void copy_find(struct file *file, const struct bwrp_settings *s, int keeper)
{
	char name[PATH_MAX + 256];
	int kept;

	if (!name_make(file, s, name, sizeof(name)))
		return;
	file->copy = bwrp_keeper_get(keeper, name);
	file->shared = file->copy >= 0;
	if (file->shared && bwrp_copy_sealed(file->copy, file->size))
		return;
	if (file->shared)
		close(file->copy);
	file->shared = false;
	file->copy = copy_make(file, s);
	kept = file->copy >= 0 ? bwrp_keeper_put(keeper, name, file->copy) : -1;
	if (kept < 0)
		return;
	if (!bwrp_copy_sealed(kept, file->size)) {
		close(kept);
		return;
	}
	close(file->copy);
	file->copy = kept;
	file->shared = true;
}

static void area_replace(struct file *file, const struct bwrp_settings *s, size_t i)
{
	const struct bwrp_area *area = &file->areas[i];
	bool text = area->prot & PROT_EXEC, huge = wants_huge(file, i);
	size_t n = bwrp_length(area), here = 0, elsewhere = 0;
	int error = -ESTALE;

	if (huge && !s->dry)
		error = bwrp_copy_map_huge(file->fd, area, s->node);
	else if (s->dry ? bwrp_copy_equal(file->fd, area) : bwrp_copy_equal(file->copy, area))
		error = s->dry ? 0 : bwrp_copy_map(file->copy, file->fd, area);
	if (error) {
		file->left += n;
		return;
	}
	file->copied[text] += n;
	file->huge += huge ? n : 0;
	if (s->explain && !s->dry)
		bwrp_pages_count(area, s->node, &here, &elsewhere);
	file->here += here;
	file->elsewhere += elsewhere;
}

static void tell(const struct file *file, const struct bwrp_settings *s)
{
	const char *whose = file->huge ? "own, on large pages" : file->shared ? "shared" : "own";

	if (s->dry)
		say("%s: would copy %" PRIu64 " KiB of text and %" PRIu64
		    " KiB of data to node %u; %" PRIu64 " KiB differ from the file",
		    file->path, file->copied[1] / 1024, file->copied[0] / 1024, s->node,
		    file->left / 1024);
	else
		say("%s: %" PRIu64 " KiB of text and %" PRIu64 " KiB of data on node %u (%s), %zu"
		    " pages there, %zu elsewhere; %" PRIu64 " KiB left alone",
		    file->path, file->copied[1] / 1024, file->copied[0] / 1024, s->node, whose,
		    file->here, file->elsewhere, file->left / 1024);
}

static void file_replace(struct file *file, const struct bwrp_settings *s, int keeper)
{
	file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0) {
		if (s->explain)
			say("%s: left alone: %s", file->path, strerror(errno));
		return;
	}
	huge_choose(file, s);
	if (!s->dry)
		copy_find(file, s, keeper);
	for (size_t i = 0; i < file->count; i++)
		area_replace(file, s, i);
	if (s->explain || s->dry)
		tell(file, s);
	if (file->copy >= 0)
		close(file->copy);
	close(file->fd);
}

/* The areas of a file stand beside one another in the list: from `first` on. */
static struct file file_at(struct bwrp_area *areas, size_t count, size_t first)
{
	struct file file = {.path = areas[first].path, .areas = areas + first, .copy = -1};

	while (first + file.count < count && !strcmp(areas[first + file.count].path, file.path)) {
		const struct bwrp_area *area = &file.areas[file.count++];
		uint64_t end = area->offset + bwrp_length(area);

		file.size = end > file.size ? end : file.size;
	}
	return file;
}

static void all_replace(struct bwrp_area *areas, size_t count, const struct bwrp_settings *s,
			int keeper)
{
	uint64_t sum = 0;
	struct file file;

	for (size_t i = 0; i < count; i += file.count) {
		const char *why;

		file = file_at(areas, count, i);
		why = exempt(&file);
		if (!why && file.size > s->max_bytes - sum)
			why = "more than BEOWIRE_REPLICATE_MAX in all";
		if (!why) {
			sum += file.size;
			file_replace(&file, s, keeper);
		} else if (s->explain) {
			say("%s: left alone: %s", file.path, why);
		}
	}
}

static void __attribute__((constructor)) replicate(void)
{
	static struct bwrp_area areas[BWRP_AREAS_MAX];
	struct bwrp_settings settings;
	int error = errno, keeper = -1;
	char *text;

	/* A program with more rights than its user takes no part. */
	if (getauxval(AT_SECURE) || !settings_read(&settings))
		return;
	text = maps_read();
	if (!text)
		return;
	if (settings.keeper && !settings.dry)
		keeper = bwrp_keeper_connect(settings.keeper);
	all_replace(areas, bwrp_maps_parse(text, areas, BWRP_AREAS_MAX), &settings, keeper);
	munmap(text, MAPS_BYTES);
	if (keeper >= 0)
		close(keeper);
	if (settings.dry)
		_exit(0);
	errno = error;
}
