/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor of the protocol, and its sessions. */
#include "resp.h"

/* Bytes of replies before the turn passes to other connections. */
#define REPLIES_A_TURN (256 * 1024)

/* The timer of a command that has begun to arrive. */
#define COMMAND_TIMER 0

struct resp_session {
    size_t need; /* least bytes needed by a partly received command; 0: none */
};

static int resp_opened(fb_conn *conn, void *state)
{
    (void)state;
    fb_metric_add(conn, RESP_CONNECTIONS, 1);
    fb_metric_add(conn, RESP_CLIENTS, 1);
    fb_set_idle(conn, 1);
    return 0;
}

static void resp_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    fb_metric_add(conn, RESP_CLIENTS, -1);
}

static void resp_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)state;
    (void)id;
    resp_error(conn, "ERR the command took too long to arrive");
    fb_close(conn);
}

static int run_command(fb_conn *conn, const struct resp_parser *parser)
{
    struct resp_request request = {
        .conn = conn,
        .worker = fb_worker_of(conn),
        .conf = fb_conf_of(conn),
        .room = parser->room,
        .words = parser->room->words,
        .n = parser->n,
    };

    if (request.n > 0)
        resp_run(&request);
    return request.ended;
}

/* Notes the bytes needed by the partly received command, and gives the whole command a timeout that
 * no further byte prolongs. */
static void await_rest(fb_conn *conn, struct resp_session *session, size_t need, int is_new)
{
    const struct resp_conf *conf = fb_conf_of(conn);

    if (need > 0 && is_new && conf->command_timeout > 0)
        fb_timer(conn, COMMAND_TIMER, (uint64_t)conf->command_timeout);
    else if (need == 0 && session->need > 0)
        fb_timer_cancel(conn, COMMAND_TIMER);
    session->need = need;
}

/* Runs the commands that have arrived completely, and consumes nothing else. */
static size_t resp_data(fb_conn *conn, void *state, fb_bytes in)
{
    const struct resp_conf *conf = fb_conf_of(conn);
    struct resp_parser parser = { .room = fb_worker_state(conn) };
    struct resp_session *session = state;
    size_t used = 0, need = 0;

    if (in.n < session->need)
        return 0;
    parser.bulk_max = (size_t)(conf->value_max > conf->key_max ? conf->value_max : conf->key_max);
    while (used < in.n) {
        enum resp_parsed parsed = resp_parse(&parser, (fb_bytes) { in.p + used, in.n - used });

        if (parsed == RESP_PARTIAL) {
            need = parser.need;
            break;
        }
        if (parsed == RESP_BROKEN)
            resp_error(conn, "ERR %s", parser.error);
        else
            used += parser.used;
        if (parsed == RESP_BROKEN || run_command(conn, &parser)) {
            fb_close(conn);
            return in.n;
        }
        if (fb_unsent(conn) > REPLIES_A_TURN) { /* the rest is offered again after the send */
            fb_stop(conn);
            fb_resume(conn);
            break;
        }
    }
    await_rest(conn, session, need, used > 0 || session->need == 0);
    fb_set_idle(conn, used == in.n);
    return used;
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = resp_opened,
    .data = resp_data,
    .timer = resp_timer,
    .closed = resp_closed,
};

static int resp_conf_done(fb_conf *conf, void *own, const void *parent)
{
    struct resp_conf *resp = own;
    const fb_map_options options = {
        .size = sizeof(options),
        .name = "keys",
        .version = 1,
        .capacity = (uint32_t)resp->keys,
        .key_max = (uint32_t)resp->key_max,
        .value_max = (uint32_t)resp->value_max,
        .memory = (uint64_t)resp->memory,
    };

    (void)parent;
    resp->map = fb_conf_map(conf, &options);
    return resp->map != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "resp", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "resp_keys",
        .value = FB_VALUE_NUMBER,
        .offset = offsetof(struct resp_conf, keys),
        .least = 1,
        .greatest = 1073741824,
        .initial = "100000" },
    { .name = "resp_key_max",
        .value = FB_VALUE_SIZE,
        .offset = offsetof(struct resp_conf, key_max),
        .least = 1,
        .greatest = 65535,
        .initial = "256" },
    { .name = "resp_value_max",
        .value = FB_VALUE_SIZE,
        .offset = offsetof(struct resp_conf, value_max),
        .least = 1,
        .greatest = RESP_VALUE_GREATEST,
        .initial = "4k" },
    { .name = "resp_memory",
        .value = FB_VALUE_SIZE,
        .offset = offsetof(struct resp_conf, memory),
        .greatest = INT64_C(1) << 43,
        .initial = "off" },
    { .name = "resp_command_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct resp_conf, command_timeout),
        .initial = "10s" },
};

static const fb_metric metrics[] = {
    [RESP_COMMANDS] = { .name = "commands", .kind = FB_COUNTER },
    [RESP_CONNECTIONS] = { .name = "connections", .kind = FB_COUNTER },
    [RESP_CLIENTS] = { .name = "clients", .kind = FB_GAUGE },
};

FB_PROTOCOL(resp) = {
    FB_PROTOCOL_HEADER,
    .name = "resp",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics),
    .conn_state = sizeof(struct resp_session),
    .conf_state = sizeof(struct resp_conf),
    .worker_state = sizeof(struct resp_worker),
    .input_limit = RESP_INPUT_MAX,
    .ops = &ops,
    .conf_done = resp_conf_done,
};
