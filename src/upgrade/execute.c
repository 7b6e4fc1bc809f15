/* SPDX-License-Identifier: BSD-2-Clause */
/* Executes the new binary in the child of an upgrade, and reports where that fails. */
#include "upgrade/execute.h"

#include "base/diag.h"
#include "process/signals.h"
#include "upgrade/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes what has failed, with errno. The list of what is handed over is one variable, whose length
 * the kernel bounds, and that of all of them. */
static void describe_failure(
    const struct binary *binary, const struct exec_state_writer *state, char *text, size_t size)
{
    int error = errno;
    size_t n = (size_t)snprintf(
        text, size, "execve() \"%s\" failed (%d: %s)", binary->path, error, strerror(error));

    if (error == E2BIG && n < size)
        snprintf(text + n, size - n,
            ", the environment has no room for the list of %u descriptors: restart the daemon "
            "instead",
            state->fd_n);
}

void upgrade_execute(const struct binary *binary, int link, const struct exec_state_writer *state)
{
    struct diag *diag = diag_create();
    char text[1024];

    signals_reset(); /* the new binary need not do it */
    binary_execute(binary, state->text, state->fds, state->fd_n);
    describe_failure(binary, state, text, sizeof(text));
    if (diag != NULL)
        diag_add(diag, diag_begin(diag),
            &(struct diag_text) { .level = LEVEL_EMERG, .text = text, .text_n = -1 });
    upgrade_report(link, diag);
    _exit(EXIT_FAILURE);
}
