/* SPDX-License-Identifier: BSD-2-Clause */
/* badge $VARIABLE: a door whose keeper is the configuration. The first line of a client is its
 * name, $badge_name from then on; it is let in unless the variable, a `map` of that name for
 * instance, is empty or "0". Each further line is sent back. The access log can have the name, the
 * number of lines ($badge_lines), and the status: 403 for who was not let in. */
#include <forkbeard/forkbeard.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct badge_conf {
    const fb_variable *admits, *name;
    const fb_template *welcome, *refusal;
};

struct badge_worker {
    const fb_stream *stream;
};

struct badge_conn {
    int is_in;
    uint64_t lines;
};

static const fb_frame_limit limit = { .most = 255, .timeout = 30000 };

/* ---- The session ---- */

static const fb_stream *stream_of(const fb_conn *conn)
{
    const struct badge_worker *own = fb_worker_state(conn);

    return own->stream;
}

static void send_text(fb_conn *conn, const fb_template *text)
{
    fb_bytes bytes;

    if (stream_of(conn)->evaluate(conn, text, &bytes) == 0)
        fb_write(conn, bytes.p, bytes.n);
    fb_write(conn, "\n", 1);
}

/* Asks the configuration about the name. A map is looked up only now, and finds the name. */
static int is_admitted(fb_conn *conn)
{
    const struct badge_conf *conf = fb_conf_of(conn);
    fb_bytes value;

    return stream_of(conn)->get(conn, conf->admits, &value) == 0 && value.n > 0 &&
           !(value.n == 1 && value.p[0] == '0');
}

static void take_name(fb_conn *conn, struct badge_conn *state, fb_bytes name)
{
    const struct badge_conf *conf = fb_conf_of(conn);

    if (stream_of(conn)->set(conn, conf->name, name) == 0)
        state->is_in = is_admitted(conn);
    send_text(conn, state->is_in ? conf->welcome : conf->refusal);
    if (state->is_in)
        return;
    stream_of(conn)->set_status(conn, 403);
    fb_close(conn);
}

static size_t badge_data(fb_conn *conn, void *state, fb_bytes in)
{
    struct badge_conn *own = state;
    fb_bytes rest = in, line;

    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line)) {
        if (!own->is_in) {
            take_name(conn, own, line);
            continue;
        }
        own->lines++;
        fb_write(conn, line.p, line.n + 1); /* with its newline */
        fb_count_request(conn);
    }
    return in.n - rest.n;
}

/* The value of $badge_lines, which the access log asks for once: at the end. */
static int badge_lines(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out)
{
    const struct badge_conn *own = state;
    char *text = fb_alloc(conn, 24);

    (void)variable;
    if (text == NULL)
        return -1;
    *out = (fb_bytes) { (const uint8_t *)text, (size_t)snprintf(text, 24, "%" PRIu64, own->lines) };
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .data = badge_data };

/* ---- The worker and the configuration ---- */

static int badge_worker_start(fb_worker *worker, void *state)
{
    struct badge_worker *own = state;

    own->stream = fb_interface(worker, "stream", 1);
    if (own->stream == NULL)
        fb_worker_logf(worker, FB_LOG_ERROR, "badge needs the interface \"stream\", version 1");
    return own->stream == NULL;
}

static int badge_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_variable **admits = value;

    (void)n;
    *admits = fb_conf_variable(conf, "badge", args[0]);
    return *admits != NULL ? 0 : -1;
}

static int badge_conf_done(fb_conf *conf, void *own, const void *parent)
{
    struct badge_conf *badge = own;

    (void)parent;
    badge->name = fb_conf_variable(conf, NULL, "badge_name");
    badge->refusal = fb_conf_template(conf, NULL, "no entry for \"$badge_name\"");
    return badge->name != NULL && badge->refusal != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "badge",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct badge_conf, admits),
        .room = sizeof(const fb_variable *),
        .set = badge_set,
        .args_least = 1,
        .args_most = 1 },
    { .name = "badge_welcome",
        .value = FB_VALUE_TEMPLATE,
        .offset = offsetof(struct badge_conf, welcome),
        .initial = "welcome, $badge_name" },
};

static const fb_variable_definition variables[] = {
    { .name = "badge_name" }, /* set by take_name() */
    { .name = "badge_lines", .value = badge_lines },
};

FB_PROTOCOL(badge) = {
    FB_PROTOCOL_HEADER,
    .name = "badge",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_VARIABLES(variables),
    .conn_state = sizeof(struct badge_conn),
    .conf_state = sizeof(struct badge_conf),
    .worker_state = sizeof(struct badge_worker),
    .ops = &ops,
    .conf_done = badge_conf_done,
    .worker_start = badge_worker_start,
};
