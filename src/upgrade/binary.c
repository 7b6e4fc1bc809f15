/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps how this process was executed, and executes it again. A path without a directory is
 * looked for as a shell does; links are kept, because they lead to the newest binary. */
#include "upgrade/binary.h"

#include "base/compiler.h"
#include "os/descriptor.h"
#include "os/process.h"
#include "process/process_ops.h"
#include "systemd/notify.h"
#include "upgrade/exec_state.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void free_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

/* Copies a list that ends with NULL; NULL without memory. */
static char **copy_list(char **list)
{
    size_t n = 0;
    char **all;

    while (list[n] != NULL)
        n++;
    all = calloc(n + 1, sizeof(*all));
    for (size_t i = 0; i < n && all != NULL; i++) {
        all[i] = strdup(list[i]);
        if (all[i] == NULL) {
            free_list(all);
            return NULL;
        }
    }
    return all;
}

/* Whether a variable of the environment was meant for our pid alone. */
static bool is_for_us_alone(const char *text)
{
    static const char *const names[] = { "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=",
        "LISTEN_PIDFDID=", "WATCHDOG_PID=", EXEC_STATE_VARIABLE "=" };

    for (size_t i = 0; i < countof(names); i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Whether the variable is one of those that the service manager has given us. */
static bool is_handed_on(const char *text, char *const variables[NOTIFY_VARIABLES])
{
    for (size_t i = 0; i < NOTIFY_VARIABLES && variables[i] != NULL; i++)
        if (strncmp(text, variables[i], strcspn(variables[i], "=") + 1) == 0)
            return true;
    return false;
}

char **binary_environment(const struct binary *binary, char *variable)
{
    const char *const *environment = binary->environment;
    char *variables[NOTIFY_VARIABLES], **all;
    size_t n = 0, m = 0;

    assert(strncmp(variable, EXEC_STATE_VARIABLE "=", sizeof(EXEC_STATE_VARIABLE)) == 0);
    notify_hand_on(variables);
    while (environment[n] != NULL)
        n++;
    all = calloc(n + NOTIFY_VARIABLES + 2, sizeof(*all));
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_for_us_alone(environment[i]) && !is_handed_on(environment[i], variables))
            all[m++] = (char *)environment[i];
    for (size_t i = 0; i < NOTIFY_VARIABLES && variables[i] != NULL; i++)
        all[m++] = variables[i];
    all[m] = variable;
    return all;
}

/* Looks for a command in PATH, as a shell does; NULL where there is none. */
static char *search_path(const char *name)
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

/* Makes the path absolute without following links. */
static char *resolve_path(const char *directory, const char *name)
{
    char *found = strchr(name, '/') != NULL ? strdup(name) : search_path(name), *absolute;

    if (found == NULL)
        return os_process_binary();
    if (*found == '/')
        return found;
    if (asprintf(&absolute, "%s/%s", directory, found) == -1)
        absolute = NULL;
    free(found);
    return absolute;
}

int binary_remember(struct binary *binary, char **argv, const char *const *environment)
{
    char *directory = getcwd(NULL, 0);

    assert(argv[0] != NULL && environment != NULL);
    if (directory == NULL) /* it was removed */
        directory = strdup("/");
    *binary = (struct binary) {
        .path = directory != NULL ? resolve_path(directory, argv[0]) : NULL,
        .directory = directory,
        .arguments = copy_list(argv),
        .environment = environment,
    };
    return binary->path == NULL || binary->arguments == NULL ? -1 : 0;
}

void binary_forget(struct binary *binary)
{
    free(binary->path);
    free(binary->directory);
    free_list(binary->arguments);
    *binary = (struct binary) { .path = NULL };
}

void binary_execute(
    const struct binary *binary, char *const environment[], const int *fds, unsigned n)
{
    assert(binary->path != NULL && binary->directory != NULL);
    for (unsigned i = 0; i < n; i++)
        if (descriptor_set_inherited(fds[i], true) == -1)
            return;
    if (chdir(binary->directory) == 0)
        process_ops->execute(binary->path, binary->arguments, environment);
}
