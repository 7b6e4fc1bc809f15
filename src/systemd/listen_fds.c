/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the variables and adds the sockets. An unusable descriptor of the store is closed with a
 * warning, because every further start would get it again; any unusable descriptor else is an
 * error. */
#include "systemd/listen_fds.h"

#include "base/number.h"
#include "systemd/fdstore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The service manager's name for a descriptor without a name. */
#define UNNAMED "unknown"
#define NAME_MAX_BYTES 255

/* Removes a variable from the environment and returns a copy of its value, or NULL. */
static char *take_variable(const char *name)
{
    const char *value = getenv(name);
    char *copy = value != NULL ? strdup(value) : NULL;

    unsetenv(name);
    return copy;
}

/* Removes the name of the next descriptor from the list and returns it. */
static const char *next_fd_name(char **names, char name[NAME_MAX_BYTES + 1])
{
    const char *next = *names != NULL ? strsep(names, ":") : NULL;

    strncpy(name, next != NULL ? next : UNNAMED, NAME_MAX_BYTES);
    name[NAME_MAX_BYTES] = '\0';
    return name;
}

static int add_passed_socket(
    struct adopted *adopted, const struct adopted_socket *passed, struct log *log)
{
    const char *wrong = adopted_add(adopted, passed);

    if (wrong == NULL)
        return 0;
    if (passed->from == ADOPTED_FROM_STORE) { /* an error would fail every further start */
        log_write(log, LEVEL_WARN, errno,
            "descriptor %d (\"%s\") from the service manager's store cannot be used: %s; it was "
            "closed",
            passed->fd, passed->name, wrong);
        close(passed->fd);
        return 0;
    }
    log_write(log, LEVEL_EMERG, errno,
        "descriptor %d (\"%s\") from the service manager cannot be used: %s", passed->fd,
        passed->name, wrong);
    return -1;
}

static int add_passed_sockets(struct adopted *adopted, int64_t n, char *names, struct log *log)
{
    char name[NAME_MAX_BYTES + 1];

    for (int fd = ADOPTED_PASSED_FIRST; fd < ADOPTED_PASSED_FIRST + n; fd++) /* first of all */
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1) {
            log_write(log, LEVEL_EMERG, errno,
                "LISTEN_FDS announces %d descriptors, but number %d is not open", (int)n, fd);
            return -1;
        }
    for (int fd = ADOPTED_PASSED_FIRST; fd < ADOPTED_PASSED_FIRST + n; fd++) {
        struct adopted_socket passed = { .fd = fd, .number = fd };

        passed.name = next_fd_name(&names, name);
        passed.from = fdstore_is_name(name) ? ADOPTED_FROM_STORE : ADOPTED_FROM_MANAGER;
        if (add_passed_socket(adopted, &passed, log) == -1)
            return -1;
    }
    return 0;
}

/* Whether the text is our pid: the variables may be left from a parent process. */
static bool is_pid(const char *text, pid_t self)
{
    int64_t pid;

    return text != NULL && number_parse(text, 1, INT_MAX, &pid) == NUMBER_OK && pid == self;
}

int listen_fds_adopt(struct adopted *adopted, pid_t self, struct log *log)
{
    char *pid = take_variable("LISTEN_PID"), *fds = take_variable("LISTEN_FDS"),
         *names = take_variable("LISTEN_FDNAMES");
    int status = 0;
    int64_t n;

    unsetenv("LISTEN_PIDFDID");
    if (is_pid(pid, self) && fds != NULL) {
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
