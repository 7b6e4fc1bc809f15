/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/inherit.h"

#include "base/number.h"
#include "process/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a service manager names a descriptor that it has no name for. */
#define UNNAMED "unknown"
#define NAME_MAX_BYTES 255

/* Takes a variable out of the environment: a copy of its value, or NULL. */
static char *take(const char *name)
{
    const char *value = getenv(name);
    char *copy = value != NULL ? strdup(value) : NULL;

    unsetenv(name);
    return copy;
}

/* The name of the next descriptor, which the list gives up. */
static const char *next_name(char **names, char name[NAME_MAX_BYTES + 1])
{
    const char *next = *names != NULL ? strsep(names, ":") : NULL;

    strncpy(name, next != NULL ? next : UNNAMED, NAME_MAX_BYTES);
    name[NAME_MAX_BYTES] = '\0';
    return name;
}

static int take_passed(
    struct fb_inherited *inherited, const struct fb_inherited_socket *passed, struct fb_log *log)
{
    const char *wrong = fb_inherited_add(inherited, passed);

    if (wrong == NULL)
        return 0;
    if (passed->from == FB_FROM_STORE) { /* better no socket than no start ever again */
        fb_log(log, FB_WARN, errno,
            "descriptor %d (\"%s\"), which the service manager has kept, cannot be listened on: "
            "%s, it is closed",
            passed->fd, passed->name, wrong);
        close(passed->fd);
        return 0;
    }
    fb_log(log, FB_EMERG, errno,
        "descriptor %d (\"%s\"), which the service manager has passed, cannot be listened on: %s",
        passed->fd, passed->name, wrong);
    return -1;
}

static int take_all_passed(
    struct fb_inherited *inherited, int64_t n, char *names, struct fb_log *log)
{
    char name[NAME_MAX_BYTES + 1];

    for (int fd = FB_PASSED_FIRST; fd < FB_PASSED_FIRST + n; fd++) /* whatever else fails */
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1) {
            fb_log(log, FB_EMERG, errno,
                "LISTEN_FDS promises %d descriptors, but number %d is not open", (int)n, fd);
            return -1;
        }
    for (int fd = FB_PASSED_FIRST; fd < FB_PASSED_FIRST + n; fd++) {
        struct fb_inherited_socket passed = { .fd = fd, .number = fd };

        passed.name = next_name(&names, name);
        passed.from = fb_store_is_name(name) ? FB_FROM_STORE : FB_FROM_MANAGER;
        if (take_passed(inherited, &passed, log) == -1)
            return -1;
    }
    return 0;
}

/* The variables of another process, which it has not removed, are nobody's. */
static bool is_ours(const char *text)
{
    int64_t pid;

    return text != NULL && fb_parse_number(text, 1, INT_MAX, &pid) == FB_NUMBER_OK &&
           pid == getpid();
}

static int from_manager(struct fb_inherited *inherited, struct fb_log *log)
{
    char *pid = take("LISTEN_PID"), *fds = take("LISTEN_FDS"), *names = take("LISTEN_FDNAMES");
    int status = 0;
    int64_t n;

    unsetenv("LISTEN_PIDFDID");
    if (is_ours(pid) && fds != NULL) {
        if (fb_parse_number(fds, 0, INT_MAX - FB_PASSED_FIRST, &n) == FB_NUMBER_OK) {
            status = take_all_passed(inherited, n, names, log);
        } else {
            fb_log(log, FB_EMERG, 0, "LISTEN_FDS=\"%s\" is not a number of descriptors", fds);
            status = -1;
        }
    }
    free(pid);
    free(fds);
    free(names);
    return status;
}

static int from_master(struct fb_inheritance *inheritance, struct fb_log *log)
{
    char *text = take(FB_HANDOVER);
    int status = text == NULL ? 0 : fb_handover_read(inheritance, text, log);

    free(text);
    return status;
}

int fb_inherit(struct fb_inheritance *inheritance, struct fb_log *log)
{
    *inheritance = (struct fb_inheritance) { .link = -1, .lock = -1 };
    fb_zones_init(&inheritance->zones);
    inheritance->sockets = fb_inherited_create();
    if (inheritance->sockets == NULL) {
        fb_log(log, FB_EMERG, errno, "no memory for the sockets that were passed");
        return -1;
    }
    return from_manager(inheritance->sockets, log) == -1 || from_master(inheritance, log) == -1 ? -1
                                                                                                : 0;
}

void fb_inheritance_done(struct fb_inheritance *inheritance)
{
    fb_zones_close(&inheritance->zones);
    if (inheritance->link != -1)
        close(inheritance->link);
    if (inheritance->lock != -1)
        close(inheritance->lock);
    inheritance->link = inheritance->lock = -1;
    fb_inherited_destroy(&inheritance->sockets);
}
