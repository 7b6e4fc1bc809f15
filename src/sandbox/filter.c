/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter of system calls for the kernel, made in a child of the master's once a configuration,
 * without the library's memory in master and workers. Workers install the code that the master has
 * read, with their pid in place of SANDBOX_OWN_PID. */
#include "sandbox/confine.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct sandbox_filter {
    unsigned short n;
    struct sock_filter code[];
};

/* Reads until the end, for a bounded time, and at most `size` bytes; -1 with errno. */
static ssize_t read_filter(int fd, char *bytes, size_t size)
{
    struct clock clock = { .mono_ms = 0 };
    uint64_t until;
    struct pollfd state = { .fd = fd, .events = POLLIN };
    size_t n = 0;

    clock_read(&clock);
    until = clock.mono_ms + SANDBOX_FILTER_MS;
    for (; n < size && clock.mono_ms < until; clock_read(&clock)) {
        ssize_t got = poll(&state, 1, (int)(until - clock.mono_ms));

        if (got > 0)
            got = read(fd, bytes + n, size - n);
        else if (got == 0)
            continue;
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? (ssize_t)n : -1;
        n += (size_t)got;
    }
    errno = n < size ? ETIMEDOUT : E2BIG; /* a filter is shorter */
    return -1;
}

/* Waits for the child; returns the errno of its exit status, or 0. */
static int child_error(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) == -1)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

/* Returns the bytes written by the child; -1 with errno. Kills a child without an end. */
static ssize_t build_in_child(const struct cycle *cycle, struct sock_filter *code, size_t size)
{
    int ends[2], error, told;
    ssize_t n;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) == -1)
        return -1;
    pid = fork();
    if (pid == 0)
        _exit(sandbox_seccomp_build(cycle, ends[1]) == -1 ? errno : EXIT_SUCCESS);
    error = errno;
    close(ends[1]);
    if (pid == -1) {
        close(ends[0]);
        errno = error;
        return -1;
    }
    n = read_filter(ends[0], (char *)code, size);
    error = n == -1 ? errno : 0;
    if (n == -1)
        kill(pid, SIGKILL);
    close(ends[0]);
    told = child_error(pid);
    errno = error != 0 ? error : told;
    return errno == 0 ? n : -1;
}

/* Keeps the code in memory of the configuration. */
static int keep_filter(struct cycle *cycle, const struct sock_filter *code, size_t size)
{
    struct sandbox_filter *filter = arena_alloc(cycle->arena, sizeof(*filter) + size);

    if (filter == NULL)
        return -1;
    filter->n = (unsigned short)(size / sizeof(*code));
    memcpy(filter->code, code, size);
    cycle->filter = filter;
    return 0;
}

/* Pages for as long as a call: of the heap or the stack they would stay with the process. */
static void *map_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return pages != MAP_FAILED ? pages : NULL;
}

static void unmap_pages(void *pages, size_t size)
{
    int error = errno;

    munmap(pages, size);
    errno = error;
}

int sandbox_filter_prepare(struct cycle *cycle)
{
    size_t size = (BPF_MAXINSNS + 1) * sizeof(struct sock_filter);
    struct sock_filter *code = map_pages(size);
    ssize_t n;
    int status = -1;

    assert(cycle->core.sandbox != SANDBOX_OFF);
    if (code == NULL)
        return -1;
    n = build_in_child(cycle, code, size);
    if (n != -1)
        status = keep_filter(cycle, code, (size_t)n);
    unmap_pages(code, size);
    return status;
}

/* Installs it for all threads. */
static int install_filter(struct sock_filter *code, unsigned short n)
{
    struct sock_fprog program = { .len = n, .filter = code };
    long thread;

    for (unsigned i = 0; i < n; i++)
        if (BPF_CLASS(code[i].code) == BPF_JMP && code[i].k == SANDBOX_OWN_PID)
            code[i].k = (uint32_t)getpid();
    thread = syscall(
        SYS_seccomp, SECCOMP_SET_MODE_FILTER, (unsigned long)SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (thread > 0)
        errno = ESRCH; /* the thread has a separate filter */
    return thread == 0 ? 0 : -1;
}

int sandbox_filter_enter(const struct cycle *cycle, struct log *log)
{
    const struct sandbox_filter *filter = cycle->filter;
    struct sock_filter *code;
    size_t size;
    int status;

    (void)log;
    if (filter == NULL) { /* never made */
        errno = EINVAL;
        return -1;
    }
    size = filter->n * sizeof(filter->code[0]);
    code = map_pages(size);
    if (code == NULL)
        return -1;
    memcpy(code, filter->code, size);
    status = install_filter(code, filter->n);
    unmap_pages(code, size);
    return status;
}
