/* SPDX-License-Identifier: BSD-2-Clause */
/* The session of proxy_starttls between the connect to a server and the pipe: client and server
 * talk in lines, a command and its reply after the other, until the client has TLS and all that
 * follows is between the two.
 *
 * Responsible for both connections' callbacks meanwhile, which are the proxy's again afterwards.
 * Never gives the server what a client has sent in plain along with STARTTLS: fb_start_tls() has
 * taken it for the handshake. */
#include "protocols/proxy/proxy.h"

#include <assert.h>
#include <string.h>

struct proxy_dialogue {
    struct starttls_state state;
    const struct starttls_dialect *dialect;
    fb_conn *client, *server;
    struct proxy *proxy; /* the client's state before, and afterwards */
    fb_pipe_options options;
    bool awaits; /* the rest of a reply */
};

/* Our reply to a command, before it is sent. */
struct dialogue_reply {
    struct starttls_out out; /* the first member */
    size_t n;
    char text[256];
};

static void add_to_reply(struct starttls_out *out, const void *p, size_t n)
{
    struct dialogue_reply *reply = (struct dialogue_reply *)out;

    assert(n <= sizeof(reply->text) - reply->n);
    memcpy(reply->text + reply->n, p, n);
    reply->n += n;
}

/* Part of a server's line that a client is to see. */
struct dialogue_line {
    struct starttls_out out; /* the first member */
    fb_conn *client;
};

static void write_to_client(struct starttls_out *out, const void *p, size_t n)
{
    fb_write(((struct dialogue_line *)out)->client, p, n);
}

/* ---- The end of the dialogue ---- */

/* Leaves everything to client and server. */
static void join_both(struct proxy_dialogue *dialogue)
{
    fb_conn *client = dialogue->client, *server = dialogue->server;
    const fb_pipe_options options = dialogue->options;

    fb_set_timeout(client, 0);
    if (fb_become(client, &proxy_session_ops, dialogue->proxy) == -1 ||
        fb_become(server, &proxy_server_ops, client) == -1)
        return;
    fb_temp_reset(client); /* the dialogue */
    fb_pipe(client, server, &options);
}

static void fail_dialogue(fb_conn *client, fb_conn *server, uint32_t status)
{
    const struct proxy_worker *own = fb_worker_state(client);

    own->stream->set_status(client, status);
    fb_close(client);
    fb_close(server);
}

static void dialogue_server_closed(fb_conn *server, void *state, fb_reason reason)
{
    const struct proxy_dialogue *dialogue = state;
    const struct proxy_worker *own = fb_worker_state(server);

    (void)reason;
    own->upstreams->end(dialogue->client, server, FB_TRY_SERVED);
    fb_close(dialogue->client); /* after what the server has said last */
}

/* ---- The client ---- */

static void start_client_tls(struct proxy_dialogue *dialogue, const struct dialogue_reply *reply)
{
    const fb_tls_options options = { .size = sizeof(options),
        .reply = { (const uint8_t *)reply->text, reply->n } };

    if (fb_start_tls(dialogue->client, &options) == -1)
        fail_dialogue(dialogue->client, dialogue->server, 500);
}

static void dialogue_tls_started(fb_conn *client, void *state)
{
    struct proxy_dialogue *dialogue = state;

    assert(dialogue->client == client && !dialogue->awaits);
    dialogue->state.secured = true;
    if (dialogue->dialect->speaks_first)
        join_both(dialogue);
}

/* Carries out what a command asks for; false: the line is not consumed. */
static bool run_client_command(struct proxy_dialogue *dialogue, fb_bytes line)
{
    struct dialogue_reply reply = { .out.add = add_to_reply };

    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    switch (dialogue->dialect->command(&dialogue->state, line, &reply.out)) {
    case STARTTLS_FORWARDS:
        fb_write(dialogue->server, line.p, line.n);
        fb_write(dialogue->server, "\r\n", 2);
        dialogue->awaits = true;
        fb_stop(dialogue->client);
        return true;
    case STARTTLS_ANSWERS:
        fb_write(dialogue->client, reply.text, reply.n);
        return true;
    case STARTTLS_BEGINS:
        start_client_tls(dialogue, &reply);
        return true;
    default:
        join_both(dialogue);
        return false;
    }
}

static size_t take_client_lines(struct proxy_dialogue *dialogue, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = STARTTLS_COMMAND_MOST };
    fb_conn *client = dialogue->client; /* outlives the dialogue */
    fb_bytes rest = in, line = { NULL, 0 };

    while (fb_frame_until(client, &rest, "\n", 1, &limit, &line))
        if (!run_client_command(dialogue, line))
            return (size_t)(line.p - in.p);
    return in.n - rest.n;
}

/* Takes the requests of a client of PostgreSQL. */
static size_t take_client_requests(struct proxy_dialogue *dialogue, fb_bytes in)
{
    struct dialogue_reply reply = { .out.add = add_to_reply };
    size_t all = 0, used;

    for (;;) {
        const fb_bytes rest = { in.p + all, in.n - all };
        enum starttls_act act = starttls_read_postgres(&dialogue->state, rest, &used, &reply.out);

        all += used;
        if (act == STARTTLS_BEGINS)
            start_client_tls(dialogue, &reply);
        else if (act == STARTTLS_PASSES)
            join_both(dialogue);
        else if (act == STARTTLS_ANSWERS)
            fb_write(dialogue->client, reply.text, reply.n);
        if (act == STARTTLS_ANSWERS && used == 0)
            fail_dialogue(dialogue->client, dialogue->server, 403);
        if (act != STARTTLS_ANSWERS || used == 0)
            return all;
        reply.n = 0;
    }
}

static size_t dialogue_client_data(fb_conn *client, void *state, fb_bytes in)
{
    struct proxy_dialogue *dialogue = state;

    assert(dialogue->client == client && !dialogue->awaits);
    return dialogue->dialect->speaks_first ? take_client_requests(dialogue, in)
                                           : take_client_lines(dialogue, in);
}

/* ---- The server ---- */

static size_t dialogue_server_data(fb_conn *server, void *state, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = STARTTLS_REPLY_MOST };
    struct proxy_dialogue *dialogue = state;
    struct dialogue_line to = { .out.add = write_to_client, .client = dialogue->client };
    const struct proxy_worker *own = fb_worker_state(server);
    fb_bytes rest = in, line;
    int status = 0;

    own->upstreams->first_byte(dialogue->client);
    if (dialogue->dialect->speaks_first) /* before the client: for the pipe */
        return 0;
    while (status != -1 && fb_frame_until(server, &rest, "\n", 1, &limit, &line)) {
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        status = dialogue->dialect->reply(&dialogue->state, line, &to.out);
        if (status == 1 && dialogue->awaits) {
            dialogue->awaits = false;
            fb_resume(dialogue->client);
        }
    }
    if (status == -1) {
        fb_conn_logf(dialogue->client, FB_LOG_ERROR, "the server's reply is none of \"%s\"",
            dialogue->dialect->name);
        fail_dialogue(dialogue->client, dialogue->server, 502);
    }
    return in.n - rest.n;
}

/* ---- The begin ---- */

static const fb_ops dialogue_client_ops = {
    .size = sizeof(fb_ops), .data = dialogue_client_data, .tls_started = dialogue_tls_started
};

static const fb_ops dialogue_server_ops = {
    .size = sizeof(fb_ops), .data = dialogue_server_data, .closed = dialogue_server_closed
};

void proxy_dialogue_begin(fb_conn *client, fb_conn *server, const fb_pipe_options *options)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    struct proxy_dialogue *dialogue = fb_temp_alloc(client, sizeof(*dialogue));

    assert(conf->starttls.dialect != NULL);
    if (dialogue == NULL || fb_become(server, &dialogue_server_ops, dialogue) == -1) {
        fail_dialogue(client, server, 500);
        return;
    }
    *dialogue = (struct proxy_dialogue) {
        .state = { .reply = STARTTLS_GREETING,
            .secured = !fb_can_start_tls(client), /* since the connect */
            .optional = conf->starttls.optional },
        .dialect = conf->starttls.dialect,
        .client = client,
        .server = server,
        .proxy = fb_state_of(client),
        .options = *options,
        .awaits = !conf->starttls.dialect->speaks_first,
    };
    if (fb_become(client, &dialogue_client_ops, dialogue) == -1)
        return;
    fb_set_timeout(client, (uint64_t)conf->timeout);
    if (!dialogue->awaits && dialogue->state.secured)
        join_both(dialogue);
    else if (!dialogue->awaits)
        fb_resume(client);
}

int proxy_starttls_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    static const struct starttls_dialect *const dialects[] = { &starttls_smtp, &starttls_imap,
        &starttls_pop3, &starttls_postgres };
    struct proxy_starttls *starttls = value;

    *starttls = (struct proxy_starttls) { .optional = n == 2 };
    if (n == 2 && strcmp(args[1], "optional") != 0)
        return fb_conf_errorf(conf, "proxy_starttls", "expected optional, not \"%s\"", args[1]);
    if (n == 1 && strcmp(args[0], "off") == 0)
        return 0;
    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
        if (strcmp(args[0], dialects[i]->name) == 0)
            starttls->dialect = dialects[i];
    if (starttls->dialect == NULL)
        return fb_conf_errorf(conf, "proxy_starttls",
            "expected off, smtp, imap, pop3 or postgres, not \"%s\"", args[0]);
    return 0;
}
