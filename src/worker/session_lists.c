/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rows from a timer, a part of the loop's table at a time. Lines are gathered up to what a
 * pipe takes whole, so that workers share a pipe. A full pipe is tried again a little later, which
 * needs no slot of the loop: workers without a free slot list sessions, too. */
#include "worker/session_lists.h"

#include "base/json.h"
#include "worker/session_row.h"
#include "worker/worker.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most slots, and sessions among the slots, of a step; lists share the sessions. */
#define SLOTS_A_STEP 2048
#define ROWS_A_STEP 16
static_assert(ROWS_A_STEP >= SESSION_LISTS_MAX, "rows for all lists");
/* The time from one step to the next, and to the next try of a full pipe. */
#define STEP_MS 1
#define FULL_MS 5
/* The list of a reader that takes nothing for so long is given up. */
#define READER_MS 10000

struct session_list {
    LIST_ENTRY(session_list) link;
    struct worker *worker;
    struct timer timer;
    int fd;
    uint32_t index;    /* the next place of the loop's table */
    uint32_t n;        /* rows so far */
    uint32_t left_out; /* rows without memory, or too long for a pipe */
    bool ended;        /* the last line is among the bytes */
    uint64_t moved_ms; /* when the pipe has taken bytes last */
    size_t used;
    char bytes[PIPE_BUF]; /* whole lines that the pipe has not taken */
};

static void free_list(struct session_list *list)
{
    struct worker *worker = list->worker;

    assert(worker->session_lists.n > 0);
    timer_del(&worker->stream.net.loop, &list->timer);
    LIST_REMOVE(list, link);
    worker->session_lists.n--;
    close(list->fd);
    free(list);
}

/* Begins a line, which names the worker. */
static void begin_line(const struct session_list *list, struct json *json)
{
    json_begin(json);
    json_object(json, NULL);
    json_number(json, "worker", list->worker->log.pid);
}

enum gathered { GATHERED, GATHERED_LATER /* no room is left */, GATHERED_NEVER };

static enum gathered gather_line(struct session_list *list, struct json *json)
{
    enum gathered gathered = GATHERED;
    size_t n;
    char *line;

    json_close(json);
    line = json_end(json, &n);
    if (line == NULL || n > sizeof(list->bytes)) {
        gathered = GATHERED_NEVER;
    } else if (n > sizeof(list->bytes) - list->used) {
        gathered = GATHERED_LATER;
    } else {
        memcpy(list->bytes + list->used, line, n);
        list->used += n;
    }
    free(line);
    return gathered;
}

/* Adds a row; false: no room is left. */
static bool add_row(struct session_list *list, const struct fb_conn *client)
{
    struct json json;
    enum gathered gathered;

    begin_line(list, &json);
    session_row_write(client, &json);
    gathered = gather_line(list, &json);
    list->n += gathered == GATHERED;
    list->left_out += gathered == GATHERED_NEVER;
    return gathered != GATHERED_LATER;
}

static void add_last_line(struct session_list *list, bool busy)
{
    struct json json;

    begin_line(list, &json);
    json_number(&json, "sessions", list->n);
    json_number(&json, "left_out", list->left_out);
    json_bool(&json, "busy", busy);
    list->ended = gather_line(list, &json) != GATHERED_LATER;
}

/* Gathers rows until the bytes are full, the step is over, or no session is left. */
static void gather_rows(struct session_list *list)
{
    const struct net *net = &list->worker->stream.net;
    unsigned slots = 0, rows = 0, most = ROWS_A_STEP / list->worker->session_lists.n;

    while (list->index < net->loop.sources.used_n && slots++ < SLOTS_A_STEP && rows < most) {
        const struct fb_conn *conn = conn_at_index(net, list->index);

        if (conn != NULL && !conn->outgoing && conn_is_owned(conn)) {
            if (!add_row(list, conn))
                return;
            rows++;
        }
        list->index++;
    }
    if (list->index >= net->loop.sources.used_n)
        add_last_line(list, false);
}

/* Gives the pipe the gathered lines; false: the list is over. */
static bool send_lines(struct session_list *list)
{
    uint64_t now = list->worker->stream.net.loop.clock.mono_ms;
    struct pollfd room = { .fd = list->fd, .events = POLLOUT };
    ssize_t n = 0;

    /* without separate open files workers share O_NONBLOCK, and a hostile worker clears it */
    if (list->used > 0 && poll(&room, 1, 0) == 0)
        return now - list->moved_ms < READER_MS;
    if (list->used > 0)
        n = write(list->fd, list->bytes, list->used);
    if (n == -1)
        return (errno == EAGAIN || errno == EINTR) && now - list->moved_ms < READER_MS;
    list->moved_ms = now;
    list->used = 0; /* a pipe takes so few bytes whole */
    return !list->ended;
}

static void step_expired(struct loop *loop, struct timer *timer)
{
    struct session_list *list = container_of(timer, struct session_list, timer);

    if (!list->ended && list->used == 0)
        gather_rows(list);
    if (!send_lines(list))
        free_list(list);
    else
        timer_set(loop, timer, list->used > 0 ? FULL_MS : STEP_MS);
}

void session_lists_begin(struct worker *worker, int pipe)
{
    struct session_list *list = calloc(1, sizeof(*list));

    if (list == NULL) {
        close(pipe);
        return;
    }
    list->worker = worker;
    list->fd = pipe;
    list->timer.expired = step_expired;
    list->moved_ms = worker->stream.net.loop.clock.mono_ms;
    LIST_INSERT_HEAD(&worker->session_lists.all, list, link);
    worker->session_lists.n++;
    if (worker->session_lists.n <= SESSION_LISTS_MAX) {
        timer_set(&worker->stream.net.loop, &list->timer, STEP_MS);
        return;
    }
    add_last_line(list, true); /* in an empty pipe, or never: askers could hold all descriptors */
    send_lines(list);
    free_list(list);
}

void session_lists_done(struct worker *worker)
{
    struct session_list *list, *next;

    LIST_FOREACH_SAFE (list, &worker->session_lists.all, link, next)
        free_list(list);
    assert(worker->session_lists.n == 0);
}
