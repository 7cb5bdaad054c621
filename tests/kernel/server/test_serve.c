/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The loop of beowire-server: rings and instances are stand-ins. */
#include "serve.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "instance.h"

#define ENOUGH 100000 /* records that come faster than they are read, before the test fails */

static struct {
	uint32_t left[BEOWIRE_RINGS]; /* records that are still to come */
	uint32_t read[BEOWIRE_RINGS]; /* since the last turn */
	uint32_t most;		      /* read of a ring in one turn */
	uint32_t turns, waits;	      /* of these the ones that wait */
} kernel;

int rings_open(struct rings *r, uint32_t number, const char *name)
{
	return 0;
}

const struct beowire_record *rings_next(struct rings *r, enum beowire_ring_number number)
{
	static const struct beowire_record frame = {.type = BEOWIRE_FRAME, .socket = 1};
	static const struct beowire_record request = {.type = BEOWIRE_CLOSE, .socket = 1};

	if (!kernel.left[number])
		return NULL;
	return number == BEOWIRE_FRAMES_IN ? &frame : &request;
}

void rings_consume(struct rings *r, enum beowire_ring_number number,
		   const struct beowire_record *record)
{
	kernel.left[number]--;
	kernel.read[number]++;
	if (kernel.read[number] > kernel.most)
		kernel.most = kernel.read[number];
}

/* The last turn is the first one that waits. */
int rings_turn(struct rings *r, int64_t timeout_ns)
{
	kernel.turns++;
	kernel.waits += timeout_ns != 0;
	for (int i = 0; i < BEOWIRE_RINGS; i++)
		kernel.read[i] = 0;
	return kernel.waits ? -ENODEV : 0;
}

struct instance *instance_open(struct rings *rings, const struct bw_protocol *protocol,
			       const struct beowire_record *open)
{
	return NULL;
}

void instance_send(struct instance *in, const struct beowire_record *send)
{
}

void instance_press(struct instance *in, bool on)
{
}

void instance_frame(struct instance *in, const struct beowire_record *frame)
{
}

void instance_run(struct instance *in)
{
}

void instance_close(struct instance *in)
{
}

bool instance_over(const struct instance *in)
{
	return false;
}

void instance_end(struct instance *in)
{
}

void instance_answer(struct rings *rings, uint32_t id, uint16_t type, int status, uint32_t bytes)
{
}

/* What comes as fast as it is read keeps nothing else from its turn, and what is left is not waited
 * for. */
static void records__of_one_ring_leave_room_for_the_rest(void **state)
{
	static const struct bw_protocol protocol = {.name = "none"};

	assert_int_equal(serve_open(2, &protocol, false), 0);
	for (int number = BEOWIRE_REQUESTS; number <= BEOWIRE_FRAMES_IN; number++) {
		kernel.most = kernel.turns = kernel.waits = 0;
		kernel.left[number] = ENOUGH;
		assert_int_equal(serve_loop(), -ENODEV);
		assert_int_equal(kernel.left[number], 0);
		assert_in_range(kernel.most, 1, 1000);
		assert_in_range(kernel.turns, ENOUGH / kernel.most, ENOUGH);
		assert_int_equal(kernel.waits, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records__of_one_ring_leave_room_for_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
