/* SPDX-License-Identifier: BSD-2-Clause */
/* Executes the new binary in the child of an upgrade, and reports where that fails. */
#include "upgrade/execute.h"

#include "base/diag.h"
#include "process/process_ops.h"
#include "process/signals.h"
#include "upgrade/link.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes what has failed, with errno. The list of what is handed over is one variable, whose length
 * the kernel bounds, and that of all of them. */
static void describe_failure(const struct execution *execution, char *text, size_t size)
{
    int error = errno;
    size_t n = (size_t)snprintf(text, size, "execve() \"%s\" failed (%d: %s)",
        execution->binary->path, error, strerror(error));

    if (error == E2BIG && n < size)
        snprintf(text + n, size - n,
            ", the environment has no room for the list of %u descriptors: restart the daemon "
            "instead",
            execution->state.fd_n);
}

int execution_prepare(struct execution *execution, const struct binary *binary, int link)
{
    if (exec_state_end(&execution->state) == -1)
        return -1;
    assert(execution->environment == NULL);
    execution->environment = binary_environment(binary, execution->state.text);
    execution->binary = binary;
    execution->link = link;
    return execution->environment != NULL ? 0 : -1;
}

void execution_done(struct execution *execution)
{
    exec_state_destroy(&execution->state);
    free(execution->environment);
    execution->environment = NULL;
}

void execution_run(void *arg)
{
    const struct execution *execution = arg;
    const struct exec_state_writer *state = &execution->state;
    struct diag *diag = diag_create();
    char text[1024];

    signals_reset(); /* the new binary need not do it */
    binary_execute(execution->binary, execution->environment, state->fds, state->fd_n);
    describe_failure(execution, text, sizeof(text));
    if (diag != NULL)
        diag_add(diag, diag_begin(diag),
            &(struct diag_text) { .level = LEVEL_EMERG, .text = text, .text_n = -1 });
    upgrade_report(execution->link, diag);
    diag_destroy(&diag);
    process_ops->exit(EXIT_FAILURE);
}
