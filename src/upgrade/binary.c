/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps how this process was executed, and executes it again in the child of an upgrade. A path
 * without a directory is looked for as a shell does; links are kept, because links lead to the
 * newest binary. */
#include "upgrade/binary.h"

#include "os/descriptor.h"
#include "os/process.h"
#include "pool/layout.h"
#include "process/environment.h"
#include "process/process_ops.h"
#include "process/signals.h"
#include "systemd/notify.h"
#include "upgrade/link.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a variable was meant for our pid alone, or given by the service manager. */
static bool is_left_out(const char *text, char *const variables[NOTIFY_VARIABLES])
{
    static const char *const names[] = { "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=",
        "LISTEN_PIDFDID=", "WATCHDOG_PID=", EXEC_STATE_VARIABLE "=" };

    for (size_t i = 0; i < countof(names); i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0)
            return true;
    for (size_t i = 0; i < NOTIFY_VARIABLES && variables[i] != NULL; i++)
        if (strncmp(text, variables[i], strcspn(variables[i], "=") + 1) == 0)
            return true;
    return false;
}

/* Lists the environment for the new process: that of our own start without variables for our pid
 * alone, with the service manager's, and with another "NAME=value". The caller frees the list, not
 * the strings; NULL without memory. */
static char **list_environment(const struct binary *binary, char *variable)
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
        if (!is_left_out(environment[i], variables))
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
static char *resolve_binary_path(const char *directory, const char *name)
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
        .path = directory != NULL ? resolve_binary_path(directory, argv[0]) : NULL,
        .directory = directory,
        .arguments = process_copy_list(argv),
        .environment = environment,
    };
    return binary->path == NULL || binary->arguments == NULL ? -1 : 0;
}

void binary_forget(struct binary *binary)
{
    free(binary->path);
    free(binary->directory);
    free(binary->arguments);
    *binary = (struct binary) { .path = NULL };
}

int binary_prepare(struct execution *execution, const struct binary *binary,
    const struct pool *pool, int lock, int link)
{
    unsigned side = 1 - pool->shared->half;

    /* a killed master process may have left numbers in the slots that the new process gets */
    for (uint32_t i = 0; i < SLOT_MAX; i++)
        zones_slot_released(
            &pool->serving->cycle->zones, (struct slot_id) { .slot = side * SLOT_MAX + i });
    if (exec_state_write(&execution->state, pool, lock, link) == -1)
        return -1;
    assert(execution->environment == NULL && link != -1);
    execution->environment = list_environment(binary, execution->state.text);
    execution->binary = binary;
    execution->link = link;
    return execution->environment != NULL ? 0 : -1;
}

void binary_release(struct execution *execution)
{
    exec_state_destroy(&execution->state);
    free(execution->environment);
    execution->environment = NULL;
}

void binary_run(void *arg)
{
    const struct execution *execution = arg;
    const struct exec_state_writer *state = &execution->state;
    const struct binary *binary = execution->binary;
    bool inherited = true;
    struct diag *diag = diag_create();
    char text[1024];
    int error;
    size_t n;

    process_ops->reset_handlers(); /* the new binary need not do it */
    for (unsigned i = 0; i < state->fd_n && inherited; i++)
        inherited = descriptor_set_inherited(state->fds[i], true) != -1;
    if (inherited && chdir(binary->directory) == 0)
        process_ops->execute(binary->path, binary->arguments, execution->environment);
    error = errno;
    n = (size_t)snprintf(text, sizeof(text), "execve() \"%s\" failed (%d: %s)", binary->path, error,
        strerror(error));
    if (error == E2BIG && n < sizeof(text)) /* the state of the hand-over is a variable */
        snprintf(text + n, sizeof(text) - n,
            ", the environment has no room for the list of %u descriptors: restart the daemon "
            "instead",
            state->fd_n);
    if (diag != NULL)
        diag_add(diag, diag_begin(diag),
            &(struct diag_text) { .level = LEVEL_EMERG, .text = text, .text_n = -1 });
    upgrade_report(execution->link, diag);
    diag_destroy(&diag);
    process_ops->exit(EXIT_FAILURE);
}
