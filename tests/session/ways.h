/* SPDX-License-Identifier: BSD-2-Clause */
/* Two servers, made by hand, the first of which may pass its clients to the second. Clients come
 * behind a PROXY header or not, are counted by a limit of both servers, judged by rules, and have a
 * lifetime and a rate. A test begins with begin() and ends with end(), which fails where a protocol
 * was told of more ends than beginnings, or a count has not returned. */
#pragma once
#include "features/lifetime/lifetime.h"
#include "features/limit_conn/limit_conn.h"
#include "features/pass/pass.h"
#include "features/proxy_protocol/proxy_protocol.h"
#include "session/conn.h"
#include "session/timeouts.h"
#include "shm/limits.h"
#include "support/fixture.h"
#include "support/server_defaults.h"
#include "text/variable.h"

#include <forkbeard/forkbeard.h>
#include <string.h>

#define LINE "PROXY TCP4 203.0.113.9 198.51.100.7 4321 443\r\n"
#define SECOND_SERVER "192.0.2.80:81"
#define CLIENTS 6

static struct ways_test {
    struct fixture *fixture;
    struct scripted_server *servers[2];
    struct scripted_server second;
    struct arena *arena, *defaults;
    struct variables variables;
    struct variable *addr, *own, *server, *limit;
    bool tells;
    char told[64]; /* from the last session's log line */
    /* address that clients are passed to */
    struct template_part address;
    struct template text;
    struct binding_place places[1];
    struct binding_list bindings;
    struct fb_listener listener;
    /* handlers of phases */
    struct phase_handler handlers[2][5];
    unsigned logs;
    /* a limit of both servers */
    struct template_part key_part;
    struct template key;
    struct limit_zone zone;
    struct limit_rule rules[2], rates[2];
    void *memory;
    struct lifetime_setting lifetime;
    struct rate_setting rate;
    unsigned values;
} test;

static const struct shm_limit_shape shape = { .size = 1 << 15 };
static const struct slot_id limit_id = { .slot = 1, .serial = 1 };

/* ---- Parts ---- */

static int tell_own(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out)
{
    (void)conn;
    (void)variable;
    ck_assert_ptr_nonnull(state);
    test.values++;
    *out = (fb_bytes) { state, 1 };
    return 0;
}

static const fb_variable_definition own_variables[] = { { .name = "own", .value = tell_own } };

static unsigned note_log(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    test.logs++;
    variable_value(conn, test.addr);
    variable_value(conn, test.own);
    if (test.tells) {
        const struct value *server = variable_value(conn, test.server),
                           *limit = variable_value(conn, test.limit);

        snprintf(test.told, sizeof(test.told), "%.*s %.*s", (int)server->n, server->p,
            limit->state == VALUE_FOUND ? (int)limit->n : 1,
            limit->state == VALUE_FOUND ? limit->p : "-");
    }
    return 0;
}

static inline unsigned refuse(struct fb_conn *conn, const void *arg)
{
    (void)conn;
    (void)arg;
    return STATUS_FORBIDDEN;
}

static struct variable *use(const char *name)
{
    struct variable *variable = variables_add(&test.variables, test.arena, name, strlen(name));

    ck_assert_ptr_nonnull(variable);
    variables_use(&test.variables, variable, NULL);
    return variable;
}

static void add_before(unsigned i, enum stream_phase phase,
    unsigned (*run)(struct fb_conn *, const void *), const void *arg)
{
    struct phase_handler **at = &test.servers[i]->server.before;
    unsigned n = 0;

    for (; *at != NULL; at = &(*at)->next)
        n++;
    ck_assert_uint_lt(n, countof(test.handlers[i]));
    test.handlers[i][n] = (struct phase_handler) { .phase = phase, .run = run, .arg = arg };
    *at = &test.handlers[i][n];
}

static inline void add_limit(unsigned i, uint32_t most)
{
    struct limit_values *values = server_feature(&test.servers[i]->server, FEATURE_LIMIT_CONN);

    test.rules[i] = (struct limit_rule) { .zone = &test.zone, .most = most };
    values->conns = &test.rules[i];
    add_before(i, PHASE_PREACCESS, limit_conn_run, values);
}

static void begin(void)
{
    static struct phase_handler log = { .phase = PHASE_LOG, .run = note_log };

    memset(&test, 0, sizeof(test));
    test.arena = arena_create();
    ck_assert_ptr_nonnull(test.arena);
    RB_INIT(&test.variables.all);
    test.variables.tables = variable_tables();
    test.addr = use("binary_remote_addr");
    test.own = use("own");
    test.server = use("server_addr");
    test.limit = use("limit_conn_status");
    test.variables.uses_proxy = true;
    test.fixture = fixture_start_stream(2 * CLIENTS);
    test.servers[0] = &test.fixture->server;
    test.servers[1] = &test.second;
    scripted_server_init(&test.second, SECOND_SERVER);
    test.defaults = server_defaults(&test.second.server);
    for (unsigned i = 0; i < 2; i++) {
        test.servers[i]->protocol.variables = own_variables;
        test.servers[i]->protocol.variable_n = 1;
        test.servers[i]->script.data = scripted_echo;
        test.servers[i]->server.variables = &test.variables;
        test.servers[i]->server.after = &log;
        test.servers[i]->server.protocol = &test.servers[0]->protocol;
    }
    test.own->get = variables_protocol_get;
    test.own->arg = &test.servers[0]->protocol;

    test.address.text = value_found(SECOND_SERVER, strlen(SECOND_SERVER));
    test.text = (struct template) { &test.address, 1 };
    test.places[0].binding = &test.second.binding;
    test.bindings = (struct binding_list) { test.places, 1 };
    test.listener = (struct fb_listener) {
        .text = &test.text, .address = test.second.binding.address, .bindings = &test.bindings
    };

    test.memory = limit_memory(&shape);
    test.key_part.variable = test.addr;
    test.key = (struct template) { &test.key_part, 1 };
    test.zone = (struct limit_zone) { .name = "zone", .key = &test.key, .key_text = "key" };
    test.zone.handle = limit_open(test.memory, &shape, limit_id.slot, limit_id.serial);
}

static void end(void)
{
    fixture_end_all(test.fixture);
    fixture_run(test.fixture);
    fixture_logged(test.fixture);
    ck_assert_uint_eq(test.second.record.openings, test.second.record.closings);
    ck_assert_uint_eq(test.zone.handle->mended.recounted, 0);
    ck_assert(RB_EMPTY(&test.zone.handle->counts));
    limit_close(&test.zone.handle);
    limit_unmap(test.memory, &shape);
    fixture_stop(test.fixture);
    arena_destroy(&test.defaults);
    arena_destroy(&test.arena);
}

static inline int pass(fb_conn *conn, void *state)
{
    (void)state;
    return pass_client(conn, &test.listener);
}

static inline void pass_clients(int (*opened)(fb_conn *conn, void *state))
{
    test.servers[0]->server.passes = true;
    test.servers[0]->server.proceed = pass_begin_client;
    test.servers[0]->script.opened = opened;
    if (test.servers[0]->binding.ops == &session_conn_ops)
        test.servers[0]->binding.ops = &pass_conn_ops;
}

static inline void set_times(struct server *server, bool rate)
{
    unsigned i = server == &test.second.server;

    test.lifetime = (struct lifetime_setting) { .time = 10000, .grace = 5000 };
    test.rate = (struct rate_setting) { .bytes = 100, .grace = 2000 };
    server->settings.receive_timeout = 60000;
    add_before(i, PHASE_POST_ACCEPT, lifetime_begin, &test.lifetime);
    if (rate)
        add_before(i, PHASE_POST_ACCEPT, session_receive_begin_rate, &test.rate);
}
