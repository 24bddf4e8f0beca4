/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A kernel with pages of 16 KiB, as arm64 may have: what it says, where it maps,
 * and how much it takes back.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_PAGE 16384UL

long __real_sysconf(int name);
long __wrap_sysconf(int name);
int __real_madvise(void *addr, size_t length, int advice);
int __wrap_madvise(void *addr, size_t length, int advice);
void *__real_mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset);
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset);

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE ? (long)LARGE_PAGE : __real_sysconf(name);
}

int __wrap_madvise(void *addr, size_t length, int advice)
{
	if ((uintptr_t)addr % LARGE_PAGE != 0) {
		errno = EINVAL;
		return -1;
	}
	length = (length + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
	return __real_madvise(addr, length, advice);
}

/* The pages before and behind are left mapped. */
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset)
{
	uintptr_t at = (uintptr_t)__real_mmap64(addr, length + LARGE_PAGE, prot,
						flags, fd, offset);

	if ((void *)at == MAP_FAILED)
		return MAP_FAILED;
	return (void *)((at + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
}
