/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol with a mistake of every kind found by the kit; a directive chooses the mistake. */
#include "kit/faulty.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int faulty_descriptor = -1;

enum mistake {
    NONE,
    LEAKS_DESCRIPTOR,
    CLOSES_DESCRIPTOR,
    USES_ENDED,        /* writes to a connection after its `closed` */
    TAKES_CALLS,       /* answers each call of `data` as if for a line */
    DROPS_REST,        /* consumes what it has not understood */
    CONSUMES_TOO_MUCH, /* more than there was */
    CHANGES_LENT,      /* changes lent output before it was sent */
    GIVES_UP,          /* says nothing while something is unsent */
    ANSWERS_SHORTAGE,  /* says something else without memory */
    ANSWERS_TWICE,     /* bytes received again after a pause, once */
    NEVER_RESTS,
    LOGS_ALERT,
    FAILS_TO_START,
    FORGETS_TO_CLOSE, /* when the peer has ended its half */
    OVERRUNS_STATE,
    OVERRUNS_MEMORY, /* of fb_alloc() */
    LEAKS_AT_START,  /* a descriptor, without memory for a timer */
    USES_TEMPORARY,  /* memory of fb_temp_alloc() after fb_temp_reset() */
};

static const char *const names[] = { "none", "leaks_descriptor", "closes_descriptor", "uses_ended",
    "takes_calls", "drops_rest", "consumes_too_much", "changes_lent", "gives_up",
    "answers_shortage", "answers_twice", "never_rests", "logs_alert", "fails_to_start",
    "forgets_to_close", "overruns_state", "overruns_memory", "leaks_at_start", "uses_temporary",
    NULL };

struct conf {
    int64_t mistake;
};

struct worker {
    fb_conn *ended;
    char line[128];
};

/* A connection's; only some mistakes use it. */
struct state {
    char text[21]; /* not empty: paused */
};

/* The byte behind n bytes, in a way that no compiler sees. */
static volatile size_t one = 1;

static char *behind(char *p, size_t n)
{
    return p + n + one - 1;
}

static enum mistake mistake_of(const fb_conn *conn)
{
    const struct conf *conf = fb_conf_of(conn);

    return (enum mistake)conf->mistake;
}

static int faulty_opened(fb_conn *conn, void *state)
{
    struct worker *worker = fb_worker_state(conn);
    char *p;

    switch (mistake_of(conn)) {
    case LEAKS_DESCRIPTOR:
        faulty_descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
        break;
    case CLOSES_DESCRIPTOR:
        close(faulty_descriptor);
        break;
    case USES_ENDED:
        if (worker->ended != NULL)
            fb_write(worker->ended, "hello", 5);
        break;
    case NEVER_RESTS:
        fb_send_message(conn, fb_ref_of(conn), "", 0);
        break;
    case LOGS_ALERT:
        fb_conn_logf(conn, FB_LOG_ALERT, "this must not be");
        break;
    case OVERRUNS_STATE:
        *behind(((struct state *)state)->text, sizeof(struct state)) = 'x';
        break;
    case OVERRUNS_MEMORY:
        p = fb_alloc(conn, 21);
        if (p != NULL)
            *behind(p, 21) = 'x';
        break;
    case USES_TEMPORARY:
        p = fb_temp_alloc(conn, 21);
        fb_temp_reset(conn);
        if (p != NULL)
            *behind(p, 0) = 'x';
        break;
    default:
        break;
    }
    return 0;
}

static void send_answer(fb_conn *conn, fb_bytes line)
{
    struct worker *worker = fb_worker_state(conn);
    size_t n = line.n < sizeof(worker->line) ? line.n : sizeof(worker->line);

    for (size_t i = 0; i < n; i++)
        worker->line[i] = (char)toupper(line.p[i]);
    switch (mistake_of(conn)) {
    case CHANGES_LENT:
        fb_write_ref(conn, worker->line, n, free, NULL);
        fb_flush(conn);
        break;
    case GIVES_UP:
        if (fb_unsent(conn) == 0)
            fb_write(conn, worker->line, n);
        fb_flush(conn);
        break;
    case ANSWERS_SHORTAGE:
        if (fb_alloc(conn, n) != NULL)
            fb_write(conn, worker->line, n);
        else
            fb_write(conn, "no memory\n", 10);
        break;
    default:
        fb_write(conn, worker->line, n);
    }
}

static size_t faulty_data(fb_conn *conn, void *state, fb_bytes in)
{
    enum mistake mistake = mistake_of(conn);
    const uint8_t *end = in.p;
    struct state *own = state;
    size_t used = 0;

    if (mistake == TAKES_CALLS) {
        send_answer(conn, in);
        if (in.p[in.n - 1] != '\n')
            fb_write(conn, "\n", 1);
        return in.n;
    }
    while ((end = memchr(in.p + used, '\n', in.n - used)) != NULL) {
        size_t n = (size_t)(end + 1 - in.p) - used;

        send_answer(conn, (fb_bytes) { in.p + used, n });
        used += n;
        if (mistake == ANSWERS_TWICE && used < in.n && own->text[0] == '\0') {
            own->text[0] = 'x';
            fb_stop(conn);
            fb_resume(conn);
            return used - n;
        }
    }
    if (mistake == DROPS_REST)
        return in.n;
    return mistake == CONSUMES_TOO_MUCH && used == in.n ? in.n + 1 : used;
}

static void faulty_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    (void)state;
    (void)rest;
    if (mistake_of(conn) != FORGETS_TO_CLOSE)
        fb_close(conn);
}

static int faulty_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)state;
    fb_send_message(conn, from, message.p, message.n);
    return 0;
}

static void faulty_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct worker *worker = fb_worker_state(conn);

    (void)state;
    (void)reason;
    worker->ended = conn;
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = faulty_opened,
    .data = faulty_data,
    .eof = faulty_eof,
    .message = faulty_message,
    .closed = faulty_closed,
};

static int faulty_start(fb_worker *worker, void *state)
{
    const struct conf *conf = fb_worker_conf(worker, 0);
    int fd;

    (void)state;
    if (conf->mistake != LEAKS_AT_START)
        return 0;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fb_worker_timer(worker, 1, 1000) == -1)
        return -1;
    fb_worker_timer_cancel(worker, 1);
    return close(fd);
}

static int faulty_done(fb_conf *conf, void *own, const void *parent)
{
    const struct conf *c = own;

    (void)parent;
    if (c->mistake == FAILS_TO_START)
        return fb_conf_errorf(conf, "faulty", "it does not want to");
    return 0;
}

static const fb_directive directives[] = {
    { .name = "faulty",
        .value = FB_VALUE_NAME,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct conf, mistake),
        .names = names },
};

FB_PROTOCOL(faulty) = {
    FB_PROTOCOL_HEADER,
    .name = "faulty",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct state),
    .conf_state = sizeof(struct conf),
    .worker_state = sizeof(struct worker),
    .ops = &ops,
    .conf_done = faulty_done,
    .worker_start = faulty_start,
};
