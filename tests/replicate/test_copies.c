/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the preload library that copies text: areas, copies, and what takes their place. */
#include "replicate.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE (3 * 4096ul)

/* A file of three pages, and its mapping. */
struct fixture {
	int file;
	uint8_t *memory;
	struct bwrp_area area;
};

static struct fixture fixture_make(size_t size)
{
	char name[] = "/tmp/beowire-copies-XXXXXX";
	struct fixture f = {.file = mkstemp(name)};
	uint8_t *bytes = malloc(size);

	assert_true(f.file >= 0 && bytes);
	unlink(name);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 16);
	assert_int_equal(write(f.file, bytes, size), size);
	free(bytes);
	f.memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, f.file, 0);
	assert_true(f.memory != MAP_FAILED);
	f.area = (struct bwrp_area){(uintptr_t)f.memory, (uintptr_t)f.memory + size, 0, PROT_READ,
				    "/somewhere/library.so"};
	return f;
}

static void fixture_end(struct fixture *f)
{
	munmap(f->memory, bwrp_length(&f->area));
	close(f->file);
}

/* What /proc/self/maps says of an address. */
static void maps_of(const void *address, char *found, size_t n)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];

	assert_non_null(maps);
	*found = 0;
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && (uintptr_t)address >= start &&
		    (uintptr_t)address < end)
			snprintf(found, n, "%s", line);
	fclose(maps);
}

static void test_only_private_mappings_of_files_that_nobody_writes(void **state)
{
	char text[] = "1000-3000 r-xp 00002000 fe:00 12 /usr/lib/a b.so\n"
		      "3000-4000 r--p 00004000 fe:00 12 /usr/lib/a b.so\n"
		      "4000-5000 rw-p 00005000 fe:00 12 /usr/lib/a b.so\n"
		      "5000-6000 rwxp 00005000 fe:00 12 /usr/lib/a b.so\n"
		      "6000-7000 r--s 00000000 fe:00 13 /usr/lib/cache\n"
		      "7000-8000 r-xp 00000000 00:01 14 /memfd:code (deleted)\n"
		      "8000-9000 r-xp 00000000 00:00 0 [vdso]\n"
		      "9000-a000 r-xp 00000000 00:00 0 \n"
		      "a000-9000 r-xp 00000000 fe:00 15 /turned\n"
		      "b000-c000 ---p 00000000 fe:00 15 /none\n"
		      "c000-d000 r-xp 0000000\n"
		      "\n"
		      "-1-5 r-xp 00000000 fe:00 15 /minus\n"
		      "d000-e000 r-xp 00000000 fe:00 16 /cut of";
	struct bwrp_area areas[8];

	assert_int_equal(bwrp_maps_parse(text, areas, 8), 2);
	assert_int_equal(areas[0].start, 0x1000);
	assert_int_equal(areas[0].end, 0x3000);
	assert_int_equal(areas[0].offset, 0x2000);
	assert_int_equal(areas[0].prot, PROT_READ | PROT_EXEC);
	assert_string_equal(areas[0].path, "/usr/lib/a b.so");
	assert_int_equal(areas[1].prot, PROT_READ);
}

static void test_there_is_no_more_than_room(void **state)
{
	char text[] = "1000-2000 r-xp 00000000 fe:00 1 /a\n2000-3000 r-xp 00000000 fe:00 2 /b\n";
	struct bwrp_area areas[2] = {{0}};

	assert_int_equal(bwrp_maps_parse(text, areas, 1), 1);
	assert_int_equal(areas[1].start, 0);
}

static void test_a_large_page_fits_at_its_place_only(void **state)
{
	struct bwrp_area area = {.start = BWRP_HUGE, .end = 2 * BWRP_HUGE};

	assert_true(bwrp_area_fits_huge(&area));
	area.end -= 4096;
	assert_false(bwrp_area_fits_huge(&area));
	area = (struct bwrp_area){.start = BWRP_HUGE + 4096, .end = 3 * BWRP_HUGE - 4096};
	assert_false(bwrp_area_fits_huge(&area));
	area.end += 4096;
	assert_true(bwrp_area_fits_huge(&area));
	area = (struct bwrp_area){.start = UINTPTR_MAX - 8191, .end = UINTPTR_MAX - 4095};
	assert_false(bwrp_area_fits_huge(&area));
}

static void test_a_copy_is_the_file_and_cannot_be_changed(void **state)
{
	struct fixture f = fixture_make(SIZE);
	int copy = bwrp_copy_begin(f.area.path, SIZE, 0);
	char said[512];

	assert_true(bwrp_copy_fill(copy, f.file, &f.area));
	assert_false(bwrp_copy_sealed(copy, SIZE));
	assert_true(bwrp_copy_seal(copy));
	assert_true(bwrp_copy_sealed(copy, SIZE));
	assert_false(bwrp_copy_sealed(copy, SIZE - 4096));
	assert_false(bwrp_copy_sealed(f.file, SIZE));
	assert_int_equal(pwrite(copy, "x", 1, 0), -1);
	assert_int_equal(ftruncate(copy, 0), -1);
	assert_true(bwrp_copy_equal(copy, &f.area));
	assert_int_equal(bwrp_copy_map(copy, f.file, &f.area), 0);
	assert_true(bwrp_copy_equal(f.file, &f.area));
	maps_of(f.memory, said, sizeof(said));
	assert_non_null(strstr(said, "r--p"));
	assert_non_null(strstr(said, "/memfd:beowire-node0:library.so"));
	close(copy);
	fixture_end(&f);
}

static void test_what_differs_from_its_file_is_not_copied(void **state)
{
	struct fixture f = fixture_make(SIZE);
	int copy = bwrp_copy_begin(f.area.path, SIZE, 0);

	assert_int_equal(mprotect(f.memory, SIZE, PROT_READ | PROT_WRITE), 0);
	f.memory[SIZE - 1] ^= 0xcc;
	assert_false(bwrp_copy_fill(copy, f.file, &f.area));
	f.memory[SIZE - 1] ^= 0xcc;
	assert_true(bwrp_copy_fill(copy, f.file, &f.area));
	f.memory[4096] ^= 1;
	assert_false(bwrp_copy_equal(copy, &f.area));
	assert_int_equal(bwrp_copy_map_huge(f.file, &f.area, 0), -ESTALE);
	close(copy);
	fixture_end(&f);
}

/* There is nothing at the address that would take its place: the kernel refuses. */
static void test_an_area_that_cannot_be_replaced_stays(void **state)
{
	struct fixture f = fixture_make(SIZE);
	void *gone = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(gone, SIZE);
	assert_true(bwrp_replace(gone, f.file, &f.area) < 0);
	assert_true(bwrp_copy_equal(f.file, &f.area));
	/* The same if the kernel has taken the area away before. */
	munmap(f.memory, SIZE);
	assert_true(bwrp_replace(gone, f.file, &f.area) < 0);
	assert_true(bwrp_copy_equal(f.file, &f.area));
	fixture_end(&f);
}

static void test_large_pages_are_of_the_process_alone(void **state)
{
	size_t size = 3 * BWRP_HUGE;
	struct fixture f = fixture_make(size);
	int error;
	char said[512];

	f.area.prot = PROT_READ | PROT_EXEC;
	error = bwrp_copy_map_huge(f.file, &f.area, 0);
	if (error == -EINVAL) { /* this kernel has no large pages */
		fixture_end(&f);
		return;
	}
	assert_int_equal(error, 0);
	f.area.prot = PROT_READ;
	assert_true(bwrp_copy_equal(f.file, &f.area));
	maps_of(f.memory, said, sizeof(said));
	assert_non_null(strstr(said, "r-xp"));
	assert_non_null(strstr(said, " 00:00 0 "));
	fixture_end(&f);
}

static void test_there_may_be_no_keeper(void **state)
{
	char name[200];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(bwrp_keeper_connect(name), -1);
	assert_int_equal(bwrp_keeper_connect("/nowhere"), -1);
	assert_int_equal(bwrp_keeper_get(-1, "a"), -1);
	assert_int_equal(bwrp_keeper_put(-1, "a", 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_private_mappings_of_files_that_nobody_writes),
		cmocka_unit_test(test_there_is_no_more_than_room),
		cmocka_unit_test(test_a_large_page_fits_at_its_place_only),
		cmocka_unit_test(test_a_copy_is_the_file_and_cannot_be_changed),
		cmocka_unit_test(test_what_differs_from_its_file_is_not_copied),
		cmocka_unit_test(test_an_area_that_cannot_be_replaced_stays),
		cmocka_unit_test(test_large_pages_are_of_the_process_alone),
		cmocka_unit_test(test_there_may_be_no_keeper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
