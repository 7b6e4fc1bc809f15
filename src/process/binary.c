/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/binary.h"

#include "base/compiler.h"
#include "process/handover.h"
#include "process/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *path, *directory;
static char **arguments;
static const char *const *environment; /* the caller's */

/* NULL without memory. */
static char **copy(char **list)
{
    size_t n = 0;
    char **all;

    while (list[n] != NULL)
        n++;
    all = calloc(n + 1, sizeof(*all));
    for (size_t i = 0; i < n && all != NULL; i++) {
        all[i] = strdup(list[i]);
        if (all[i] == NULL)
            return NULL;
    }
    return all;
}

static bool is_for_us_alone(const char *text)
{
    static const char *const names[] = { "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=",
        "LISTEN_PIDFDID=", "WATCHDOG_PID=", FB_HANDOVER "=" };

    for (size_t i = 0; i < fb_countof(names); i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* What the binary is executed with: one variable more; NULL without memory. */
static char **list_environment(char *variable)
{
    size_t n = 0, m = 0;
    char **all;

    while (environment[n] != NULL)
        n++;
    all = calloc(n + 2, sizeof(*all));
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_for_us_alone(environment[i]))
            all[m++] = (char *)environment[i];
    all[m] = variable;
    return all;
}

/* Where a shell finds a command; NULL if nowhere. */
static char *search(const char *name)
{
    const char *all = getenv("PATH");
    char *found;

    for (const char *p = all; p != NULL; p = *p == ':' ? p + 1 : NULL) {
        int n = (int)strcspn(p, ":");

        if (asprintf(&found, "%.*s%s%s", n, p, n > 0 ? "/" : "./", name) == -1)
            return NULL;
        if (access(found, X_OK) == 0)
            return found;
        free(found);
        p += n;
    }
    return NULL;
}

/* What the kernel says was executed. */
static char *ask_kernel(void)
{
    char target[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", target, sizeof(target) - 1);

    if (n == -1)
        return NULL;
    target[n] = '\0';
    return strdup(target);
}

/* Absolute, but as it was written: a link leads to the newest binary. */
static char *resolve(const char *name)
{
    char *found = strchr(name, '/') != NULL ? strdup(name) : search(name), *absolute;

    if (found == NULL)
        return ask_kernel();
    if (*found == '/')
        return found;
    if (asprintf(&absolute, "%s/%s", directory, found) == -1)
        absolute = NULL;
    free(found);
    return absolute;
}

int fb_binary_remember(char **argv, const char *const *inherited)
{
    environment = inherited;
    directory = getcwd(NULL, 0);
    if (directory == NULL) /* one that was removed */
        directory = strdup("/");
    path = directory != NULL ? resolve(argv[0]) : NULL;
    arguments = copy(argv);
    return path == NULL || arguments == NULL ? -1 : 0;
}

const char *fb_binary_path(void)
{
    return path;
}

void fb_binary_execute(char *variable, const int *fds, unsigned n)
{
    char **list = list_environment(variable);

    if (list == NULL)
        return;
    for (unsigned i = 0; i < n; i++)
        if (fcntl(fds[i], F_SETFD, 0) == -1)
            return;
    if (chdir(directory) == -1)
        return;
    environ = list;
    if (fb_notify_hand_on() == 0)
        execve(path, arguments, environ);
}
