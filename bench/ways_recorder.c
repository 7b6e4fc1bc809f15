/* SPDX-License-Identifier: BSD-2-Clause */
/* Records the functions that a program enters, for bench/ways: a library to be preloaded, for
 * programs that are compiled with -finstrument-functions.
 *
 * Each process writes a file of its own, $WAYS_TRACES.PID: pairs of 64-bit numbers, the time in ns
 * and the function's place in the program; accept4() is place 1. The first pair is the number of
 * pairs behind it, and 0. Only a process's first thread is recorded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES_MAX (4u << 20)
#define PLACE_ACCEPT 1

struct entry {
    uint64_t ns;
    uint64_t place;
};

static struct entry *entries; /* NULL: nothing is recorded; the first operation counts all */
static char prefix[4000];     /* of the file's name; taken once, as a title may overwrite environ */
static pid_t recorded;        /* whose file it is */
static uintptr_t base;        /* where the program lies */

static int find_base(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    base = info->dlpi_addr;
    return 1; /* the program is the first */
}

/* Opens the file of this process; the records of the parent stay in the parent's. */
static void open_trace(void)
{
    char path[sizeof(prefix) + 32];
    size_t size = ENTRIES_MAX * sizeof(*entries);
    void *memory = MAP_FAILED;
    int fd;

    recorded = getpid();
    entries = NULL;
    if (prefix[0] == '\0') {
        if (getenv("WAYS_TRACES") == NULL)
            return;
        snprintf(prefix, sizeof(prefix), "%s", getenv("WAYS_TRACES"));
        dl_iterate_phdr(find_base, NULL);
    }
    snprintf(path, sizeof(path), "%s.%d", prefix, (int)recorded);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (ftruncate(fd, (off_t)size) == 0)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory != MAP_FAILED)
        entries = memory;
}

static void record(uint64_t place)
{
    struct timespec now;
    struct entry *entry;
    pid_t pid = getpid();

    if (pid != recorded || entries == NULL || entries[0].ns == ENTRIES_MAX - 1 ||
        syscall(SYS_gettid) != pid)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    entry = &entries[++entries[0].ns];
    entry->ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    entry->place = place;
}

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (getpid() != recorded)
        open_trace();
    record((uintptr_t)function - base);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}

int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict size, int flags)
{
    static int (*real)(int, struct sockaddr *, socklen_t *, int);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "accept4");
    record(PLACE_ACCEPT);
    return real(fd, address, size, flags);
}
