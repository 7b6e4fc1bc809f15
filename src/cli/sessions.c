/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads lines of many workers from one pipe. A worker may write anything, or nothing: lines of no
 * asked worker are ignored, and lines without an end; the wait ends with a second of silence, after
 * a minute, and with more lines than any daemon has sessions. */
#include "cli/sessions.h"

#include "cli/command.h"
#include "cli/exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SILENCE_MS 1000
/* The longest wait for a worker that writes little and never ends. */
#define WHOLE_MS 60000

struct asked_worker {
    int64_t pid;
    bool asked; /* reads its messages */
    bool busy;  /* has too many askers */
    bool done;  /* has written the last line */
};

struct collection {
    struct session_rows *rows;
    struct asked_worker *workers;
    size_t worker_n, left;  /* workers; of these: asked, and not done */
    size_t lines, left_out; /* lines so far; rows that workers could not write */
    size_t n;               /* bytes */
    char bytes[64 * 1024];
};

static bool list_workers(struct collection *collection, struct json_value workers)
{
    struct json_value worker = { NULL, 0 };

    while ((worker = json_next(workers, worker)).text != NULL) {
        size_t n = collection->worker_n;
        struct asked_worker *larger =
            realloc(collection->workers, (n + 1) * sizeof(*collection->workers));

        if (larger == NULL)
            return false;
        collection->workers = larger;
        larger[n] = (struct asked_worker) { .pid = json_integer(json_member(worker, "pid"), 0),
            .asked = json_is_true(json_member(worker, "asked")) };
        collection->worker_n++;
        collection->left += larger[n].asked;
    }
    return true;
}

/* Returns the asked worker of a line, before the last line; or NULL. */
static struct asked_worker *worker_of_line(
    const struct collection *collection, struct json_value line)
{
    int64_t pid = json_integer(json_member(line, "worker"), 0);

    for (size_t i = 0; i < collection->worker_n; i++)
        if (collection->workers[i].pid == pid && collection->workers[i].asked &&
            !collection->workers[i].done)
            return &collection->workers[i];
    return NULL;
}

static void take_line(struct collection *collection, const char *text, size_t n)
{
    struct json_value line = json_parse(text, n);
    struct asked_worker *worker = worker_of_line(collection, line);
    int64_t left_out;

    collection->lines++;
    if (worker == NULL)
        return;
    if (json_member(line, "sessions").text == NULL) {
        session_rows_add(collection->rows, line);
        return;
    }
    worker->done = true;
    worker->busy = json_is_true(json_member(line, "busy"));
    left_out = json_integer(json_member(line, "left_out"), 0);
    collection->left_out += left_out > 0 && left_out <= UINT32_MAX ? (size_t)left_out : 0;
    collection->left--;
}

/* Takes whole lines. A line longer than all bytes is dropped. */
static void take_lines(struct collection *collection)
{
    const char *from = collection->bytes, *end;
    size_t left = collection->n;

    while ((end = memchr(from, '\n', left)) != NULL) {
        take_line(collection, from, (size_t)(end - from));
        left -= (size_t)(end + 1 - from);
        from = end + 1;
    }
    if (left == sizeof(collection->bytes))
        left = 0;
    memmove(collection->bytes, from, left);
    collection->n = left;
}

static void read_pipe(struct collection *collection, int pipe)
{
    struct pollfd ready = { .fd = pipe, .events = POLLIN };
    int64_t deadline = cli_now_ms() + WHOLE_MS;
    ssize_t n = 1;

    while (collection->left > 0 && n != 0 && collection->lines <= 2 * SESSION_ROWS_MAX &&
           cli_now_ms() < deadline) {
        if (poll(&ready, 1, SILENCE_MS) == 0)
            return;
        n = read(
            pipe, collection->bytes + collection->n, sizeof(collection->bytes) - collection->n);
        if (n == -1 && errno != EAGAIN && errno != EINTR)
            return;
        collection->n += n > 0 ? (size_t)n : 0;
        take_lines(collection);
    }
}

/* Says which rows are missing; returns the exit code. */
static int report_missing(const struct collection *collection, struct log *log)
{
    size_t left_out = collection->left_out + collection->rows->left_out;
    int status = EXIT_SUCCESS;

    for (size_t i = 0; i < collection->worker_n; i++) {
        const struct asked_worker *worker = &collection->workers[i];

        if (worker->done && !worker->busy)
            continue;
        log_write(log, LEVEL_WARN, 0, "sessions of worker process %d are missing: %s",
            (int)worker->pid,
            worker->busy    ? "too many list sessions, try again"
            : worker->asked ? "silent for a second, or ended, see forkbeard status"
                            : "no messages are read, see forkbeard status");
        status = EXIT_NO_REPLY;
    }
    if (left_out > 0)
        log_write(log, LEVEL_WARN, 0, "%zu sessions are left out, for want of memory", left_out);
    return status;
}

int sessions_collect(struct session_rows *rows, struct json_value reply, int pipe, struct log *log)
{
    struct collection *collection = calloc(1, sizeof(*collection));
    int status = EXIT_FAILURE;

    if (collection == NULL || !list_workers(collection, json_member(reply, "workers"))) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the sessions");
    } else {
        collection->rows = rows;
        if (pipe != -1)
            read_pipe(collection, pipe);
        status = report_missing(collection, log);
    }
    if (collection != NULL)
        free(collection->workers);
    free(collection);
    return status;
}
