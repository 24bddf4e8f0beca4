/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* libaio that ends everything at once, and tells the latest first. */
#include <linux/aio_abi.h>
#include <time.h>

static struct io_event fake_event[16];
static long fake_events;

int io_submit(aio_context_t queue, long count, struct iocb **iocbs)
{
	(void)queue;
	for (long i = 0; i < count; i++)
		fake_event[fake_events++] = (struct io_event){
			.data = iocbs[i]->aio_data, .obj = (__u64)iocbs[i]};
	return (int)count;
}

int io_getevents(aio_context_t queue, long least, long room,
		 struct io_event *events, struct timespec *timeout)
{
	int told = 0;

	(void)queue;
	while (told < room && fake_events > 0)
		events[told++] = fake_event[--fake_events];
	if (told < least)
		nanosleep(timeout, NULL);
	return told;
}
