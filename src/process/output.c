/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines that a worker writes to its standard error, where that would lead nowhere and no log is a
 * file that takes them: the panic of a library, the assertion of a module. They come by a pipe, of
 * which neither end waits, and are log lines of the master's. What a worker says is input: a
 * wake-up's work is bounded, and the lines are rationed with all that is about the worker. */
#include "process/output.h"

#include "os/descriptor.h"
#include "process/logs.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Reads of one worker before the others, and other work, have their turn. */
#define READS_A_TURN 8
/* ... when it has died: more than a pipe holds. */
#define READS_AT_THE_END 256

const char *output_open(struct output *output, const struct core_settings *core, int *theirs)
{
    int ends[2];

    assert(role_is(ROLE_MASTER) && output->fd == -1 && output->n == 0);
    *theirs = -1;
    if (!logs_need_output(core))
        return NULL;
    if (descriptor_pipe(ends, O_NONBLOCK) == -1)
        return "pipe";
    output->fd = ends[0];
    *theirs = ends[1];
    return process_ops->wakeup_add(output->fd) == -1 ? "fcntl" : NULL;
}

int output_take_over(const struct output *output)
{
    return output->fd == -1 ? 0 : process_ops->wakeup_add(output->fd);
}

static void log_text(struct log_quota *lines, pid_t pid, const char *text, unsigned n)
{
    if (n > 0)
        log_quota_write(lines, LEVEL_ERROR, 0, "process %d wrote to standard error: %.*s", (int)pid,
            (int)n, text);
}

/* Logs the lines that are whole, and one that has no end within the room. */
static void log_lines(struct output *output, struct log_quota *lines, pid_t pid)
{
    unsigned begin = 0;

    for (unsigned i = 0; i < output->n; i++)
        if (output->text[i] == '\n') {
            log_text(lines, pid, output->text + begin, i - begin);
            begin = i + 1;
        }
    if (begin == 0 && output->n == sizeof(output->text)) {
        log_text(lines, pid, output->text, output->n);
        begin = output->n;
    }
    output->n -= begin;
    memmove(output->text, output->text + begin, output->n);
}

bool output_read(struct output *output, struct log_quota *lines, pid_t pid, bool all)
{
    unsigned most = all ? READS_AT_THE_END : READS_A_TURN;

    for (unsigned i = 0; i < most && output->fd != -1; i++) {
        ssize_t n = read(output->fd, output->text + output->n, sizeof(output->text) - output->n);

        if (n == -1 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (n > 0) {
            output->n += (unsigned)n;
            log_lines(output, lines, pid);
        } else {
            output_close(output, lines, pid);
        }
    }
    return output->fd != -1;
}

void output_close(struct output *output, struct log_quota *lines, pid_t pid)
{
    if (output->fd == -1)
        return;
    log_text(lines, pid, output->text, output->n); /* a line without its end */
    process_ops->wakeup_remove(output->fd);
    descriptor_close(output->fd);
    *output = (struct output) { .fd = -1 };
}
