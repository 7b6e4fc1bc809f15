/* SPDX-License-Identifier: BSD-2-Clause */
/* Adopts passed sockets, stores copies of sockets in the service manager, and removes them. The
 * sockets of an address share a name, made from a hash of the address. */
#include "systemd/fdstore.h"

#include "base/number.h"
#include "net/listener_set.h"
#include "systemd/notify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_DIGITS "0123456789abcdef"
#define HASH_LENGTH 16
/* The service manager's name for a descriptor without a name. */
#define UNNAMED "unknown"
#define NAME_MAX_BYTES 255

/* Hashes the address (FNV-1a), which may be too long, or have forbidden characters. */
static void store_name_of(const struct listener *listener, char name[FDSTORE_NAME_MAX])
{
    uint64_t h = 0xcbf29ce484222325;

    for (const char *p = listener->text; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3;
    snprintf(name, FDSTORE_NAME_MAX, FDSTORE_NAME "-%016" PRIx64, h);
}

/* Whether a descriptor passed under this name was stored by us. */
static bool is_store_name(const char *name)
{
    size_t n = strlen(FDSTORE_NAME);

    if (strncmp(name, FDSTORE_NAME, n) != 0)
        return false;
    name += n;
    if (*name == '\0')
        return true;
    return *name == '-' && strspn(name + 1, HASH_DIGITS) == HASH_LENGTH &&
           name[1 + HASH_LENGTH] == '\0'; /* a unit "forkbeard-x.socket" is no name of ours */
}

/* Adopting */

/* Removes a variable from the environment and returns a copy of its value, or NULL. */
static char *take_variable(const char *name)
{
    const char *value = getenv(name);
    char *copy = value != NULL ? strdup(value) : NULL;

    unsetenv(name);
    return copy;
}

static int add_passed_sockets(struct adopted *adopted, int64_t n, char *names, struct log *log)
{
    char name[NAME_MAX_BYTES + 1];
    const char *wrong;

    for (int fd = ADOPTED_PASSED_FIRST; fd < ADOPTED_PASSED_FIRST + n; fd++) /* first of all */
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1) {
            log_write(log, LEVEL_EMERG, errno,
                "LISTEN_FDS announces %d descriptors, but number %d is not open", (int)n, fd);
            return -1;
        }
    for (int fd = ADOPTED_PASSED_FIRST; fd < ADOPTED_PASSED_FIRST + n; fd++) {
        struct adopted_socket passed = { .fd = fd, .number = fd, .name = name };
        const char *next = names != NULL ? strsep(&names, ":") : NULL;

        snprintf(name, sizeof(name), "%s", next != NULL ? next : UNNAMED);
        passed.from = is_store_name(name) ? ADOPTED_FROM_STORE : ADOPTED_FROM_MANAGER;
        wrong = adopted_add(adopted, &passed);
        if (wrong == NULL)
            continue;
        if (passed.from != ADOPTED_FROM_STORE) {
            log_write(log, LEVEL_EMERG, errno,
                "descriptor %d (\"%s\") from the service manager cannot be used: %s", fd, name,
                wrong);
            return -1;
        }
        /* an error would fail every further start */
        log_write(log, LEVEL_WARN, errno,
            "descriptor %d (\"%s\") from the service manager's store cannot be used: %s; the "
            "descriptor was closed",
            fd, name, wrong);
        close(fd);
    }
    return 0;
}

int fdstore_adopt(struct adopted *adopted, pid_t self, struct log *log)
{
    char *pid = take_variable("LISTEN_PID"), *fds = take_variable("LISTEN_FDS"),
         *names = take_variable("LISTEN_FDNAMES");
    int64_t n, for_pid;
    int status = 0;

    unsetenv("LISTEN_PIDFDID");
    /* the variables may be left from a parent process */
    if (pid != NULL && number_parse(pid, 1, INT_MAX, &for_pid) == NUMBER_OK && for_pid == self &&
        fds != NULL) {
        if (number_parse(fds, 0, INT_MAX - ADOPTED_PASSED_FIRST, &n) == NUMBER_OK) {
            status = add_passed_sockets(adopted, n, names, log);
        } else {
            log_write(log, LEVEL_EMERG, 0, "LISTEN_FDS=\"%s\" is not a number of descriptors", fds);
            status = -1;
        }
    }
    free(pid);
    free(fds);
    free(names);
    return status;
}

/* Storing */

void fdstore_add(struct listeners *listeners, struct log *log)
{
    struct listener *listener;
    char name[FDSTORE_NAME_MAX];

    if (!notify_is_on())
        return;
    STAILQ_FOREACH (listener, &listeners->list, link) {
        store_name_of(listener, name);
        for (; !listener->foreign && listener->stored_n < listener->fd_n; listener->stored_n++)
            if (notify_store(log, name, listener->fds[listener->stored_n]) == -1)
                return; /* avoids thousands of lines */
    }
}

void fdstore_drop(struct listener *listener, struct log *log)
{
    char name[FDSTORE_NAME_MAX];

    if (listener->stored_n == 0)
        return;
    store_name_of(listener, name);
    notify_store(log, name, -1);
    listener->stored_n = 0;
}

void fdstore_drop_unclaimed(
    struct adopted *adopted, const struct listeners *serving, struct log *log)
{
    struct listener *holder;

    assert(!adopted->finished);
    STAILQ_FOREACH (holder, &adopted->holders.list, link)
        if (listener_set_find(serving, holder) == NULL)
            fdstore_drop(holder, log);
}
