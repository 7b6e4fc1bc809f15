/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and removes the directories of a test program, reserves the ports, and ends leftover
 * processes. */
#include "daemon/resources.h"

#include "daemon/proc.h"

#include <bsd/stdlib.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAIL 8000

static char base[] = "/tmp/fb_daemon.XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    return remove(path);
}

static void remove_all(const char *directory)
{
    if (nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS) == -1)
        fprintf(stderr, "%s could not be removed: %s\n", directory, strerror(errno));
}

static void show_tail(const char *directory, const char *name)
{
    char path[512], text[TAIL + 1];
    struct stat st;
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
    if (file == NULL)
        return;
    if (fseek(file, -TAIL, SEEK_END) == -1)
        rewind(file);
    n = fread(text, 1, TAIL, file);
    if (n > 0)
        fprintf(stderr, "--- %s\n%.*s\n", path, (int)n, text);
    fclose(file);
}

/* Calls `each` for the names in a directory. */
static void list_files(const char *directory, void (*each)(const char *directory, const char *name))
{
    DIR *dir = opendir(directory);
    struct dirent *entry;

    if (dir == NULL)
        return;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            each(directory, entry->d_name);
    closedir(dir);
}

static void show_test(const char *directory, const char *name)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    list_files(path, show_tail);
    snprintf(path, sizeof(path), "%s/%s/" RESOURCES_REPORTS, directory, name);
    list_files(path, show_tail);
}

/* Failed tests leave children to the program, a child subreaper. */
static void end_orphans(void)
{
    pid_t children[64];
    unsigned n;

    while ((n = proc_children(getpid(), children, 64)) > 0) {
        for (unsigned i = 0; i < n; i++)
            kill(children[i], SIGKILL);
        for (unsigned i = 0; i < n; i++)
            waitpid(children[i], NULL, 0);
    }
}

static void make_base(void)
{
    if (mkdtemp(base) == NULL || chmod(base, 0755) == -1 || prctl(PR_SET_CHILD_SUBREAPER, 1) == -1)
        abort();
}

static void remove_base(void)
{
    end_orphans();
    list_files(base, show_test);
    remove_all(base);
}

void resources_fixture(TCase *tcase)
{
    tcase_add_unchecked_fixture(tcase, make_base, remove_base);
}

void resources_begin_test(char *directory, size_t size)
{
    static int number; /* parent of the test's directories */
    char reports[128];

    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    do /* left by a failed test with the same pid */
        snprintf(directory, size, "%s/%d.%d", base, (int)getpid(), number++);
    while (mkdir(directory, 0755) == -1 && errno == EEXIST);
    ck_assert_int_eq(chmod(directory, 0755), 0);
    snprintf(reports, sizeof(reports), "%s/" RESOURCES_REPORTS, directory);
    ck_assert_int_eq(mkdir(reports, 0755), 0);
    ck_assert_int_eq(chmod(reports, 01777), 0);
}

static bool is_owned(const char *name, const char *const *owned, unsigned owned_n)
{
    static const char *const harness[] = { ".", "..", "daemon.out", "daemon.err", "run.out",
        "run.err", RESOURCES_REPORTS, NULL };

    for (int i = 0; harness[i] != NULL; i++)
        if (strcmp(harness[i], name) == 0)
            return true;
    for (unsigned i = 0; i < owned_n; i++)
        if (strcmp(owned[i], name) == 0)
            return true;
    return false;
}

static void fail_for(const char *directory, const char *name)
{
    ck_abort_msg("there is a sanitizer's report: %s/%s", directory, name);
}

void resources_end_test(const char *directory, const char *const *owned, unsigned owned_n)
{
    char reports[128];
    DIR *dir = opendir(directory);
    struct dirent *entry;

    snprintf(reports, sizeof(reports), "%s/" RESOURCES_REPORTS, directory);
    list_files(reports, fail_for);
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL)
        ck_assert_msg(is_owned(entry->d_name, owned, owned_n), "%s is left behind", entry->d_name);
    closedir(dir);
    remove_all(directory);
}

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* A bound socket without listen(), or -1. The bind has no SO_REUSEADDR, so fails where another
 * program has the port, as a reservation too; the option then lets the daemon bind the port beside
 * the reservation. */
static int reserve_port(in_port_t port)
{
    static const int on = 1, off = 0;
    union address address = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd == -1) { /* a kernel without IPv6; the port has the same offset */
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        address.any.sa_family = AF_INET;
    } else {
        ck_assert_int_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    }
    if (bind(fd, &address.any, sizeof(address)) == -1) {
        close(fd);
        return -1;
    }
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    return fd;
}

/* Whether all n ports from `first` on could be reserved. */
static bool try_to_reserve(in_port_t first, in_port_t *ports, int *sockets, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ports[i] = (in_port_t)(first + i);
        sockets[i] = reserve_port(ports[i]);
        if (sockets[i] != -1)
            continue;
        while (i-- > 0)
            close(sockets[i]);
        return false;
    }
    return true;
}

void resources_reserve_ports(in_port_t *ports, int *sockets, unsigned n)
{
    in_port_t first;
    int tries = 0;

    do { /* below the kernel's range of client ports, because clients may be many */
        ck_assert_int_lt(tries++, 1000);
        first = (in_port_t)(10000 + arc4random_uniform(20000));
    } while (!try_to_reserve(first, ports, sockets, n));
}
