/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture's level of a worker. Listeners have real descriptors, closed by the worker, and stand
 * for simulated ones. */
#include "support/fixture_worker.h"

#include "net/address_parse.h"
#include "net/listener_open.h"
#include "net/listener_options.h"
#include "net/listener_set.h"

#include <unistd.h>

#define TURNS_MAX 10000

void fixture_note(struct fixture *fixture, char letter)
{
    size_t n = strlen(fixture->order);

    ck_assert_uint_lt(n, sizeof(fixture->order) - 1);
    fixture->order[n] = letter;
}

static struct fixture *fixture_of_conn(fb_conn *conn)
{
    return fixture_of(&conn->net->loop);
}

static int note_opened(fb_conn *conn, void *state)
{
    (void)state;
    fixture_note(fixture_of_conn(conn), 'o');
    return 0;
}

static void note_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    fixture_note(fixture_of_conn(conn), 'c');
}

static void note_wait(struct loop *loop, int timeout)
{
    (void)timeout;
    fixture_note(fixture_of(loop), 'w');
}

static void build_server(struct scripted_server *server)
{
    scripted_server_init(server, "192.0.2.7:77");
    server->protocol.conn_state = 0;
    server->script.opened = note_opened;
    server->script.data = scripted_echo;
    server->script.closed = note_closed;
}

static void build_cycle(struct fixture *fixture, const struct fixture_worker_options *options)
{
    struct cycle *cycle = &fixture->cycle;

    cycle->arena = arena_create();
    cycle->stream.variables = &fixture->variables;
    ck_assert_ptr_nonnull(cycle->arena);
    cycle->core = (struct core_settings) {
        .worker_processes = options->processes > 0 ? options->processes : 1,
        .worker_shutdown_timeout = options->shutdown_timeout,
        .rlimit_nofile = -1,
        .rlimit_core = -1,
        .logs = &fixture->log.target,
        .log_n = 1,
    };
    cycle->events = (struct events_settings) {
        .worker_connections = options->connections,
        .multi_accept = options->multi_accept,
        .accept_mutex = options->mutex,
        .accept_share = options->share,
        .accept_mutex_delay = WORKER_DELAY_MS,
        .mechanism = options->mechanism != NULL ? options->mechanism
                                                : fixture_mechanism(fixture, options->events),
    };
    cycle->events.mechanism_values = mechanism_defaults(cycle->events.mechanism);
    STAILQ_INIT(&cycle->stream.servers);
    listener_set_init(&cycle->stream.listeners);
}

/* Opens real sockets, closed by the worker, and simulated sockets with the same descriptors. */
static void build_listener(struct fixture *fixture, const struct fixture_worker_options *options)
{
    struct listener_options listen = listener_defaults;
    unsigned slots = options->reuseport > 0 ? options->reuseport : 1;
    struct log *log = &fixture->log.log;
    struct address address;

    ck_assert_ptr_null(address_parse("127.0.0.1", 0, &address));
    listen.reuseport = options->reuseport > 0;
    fixture->listener = listener_create(fixture->cycle.arena, &address, &listen);
    ck_assert_ptr_nonnull(fixture->listener);
    ck_assert_int_eq(listener_open(fixture->listener, NULL, slots, log), 0);
    ck_assert_int_eq(listener_commit(fixture->listener, &(struct listener_system) { 0 }, log), 0);
    ck_assert_uint_le(fixture->listener->fd_n, FIXTURE_LISTENERS);
    for (unsigned i = 0; i < fixture->listener->fd_n; i++)
        fixture->listening[i] = sim_listener(fixture->sim, fixture->listener->fds[i]);
    fixture->listener->owner = &fixture->server.port;
    listener_set_add(&fixture->cycle.stream.listeners, fixture->listener);
}

static void build_heritage(struct fixture *fixture, const struct fixture_worker_options *options)
{
    int ends[2] = { -1, -1 };

    fixture->shared = shared_create(false);
    ck_assert_ptr_nonnull(fixture->shared);
    ck_assert(slot_acquire(fixture->shared, &fixture->slot));
    fixture->counters = &shared_slot(fixture->shared, fixture->slot)->counters;
    if (options->processes > 0)
        ck_assert_int_eq(channel_open(ends), 0);
    fixture->master = ends[0];
    if (options->bells)
        bells_open(&fixture->bells, options->processes);
    fixture->heritage = (struct heritage) {
        .cycle = &fixture->cycle,
        .shared = fixture->shared,
        .slot = fixture->slot,
        .index = options->index,
        .bells = options->bells ? &fixture->bells : NULL,
        .channel = ends[1],
        .memory = &fixture->memory.memory,
    };
}

static void turn_worker(struct fixture *fixture, int timeout)
{
    (void)timeout;
    memset(fixture->order, 0, sizeof(fixture->order));
    worker_turn(fixture->worker);
}

static void stop_worker(struct fixture *fixture)
{
    const struct scripted_record *record = &fixture->server.record;

    worker_done(fixture->worker);
    fixture_logged(fixture); /* the ends of sessions that were open */
    ck_assert_uint_eq(record->openings, record->closings);
    ck_assert(!fixture_holds_mutex(fixture));
    fixture_check_gauges(fixture);
    ck_assert_uint_eq(fixture->memory.blocks, 0);
    for (unsigned i = 0; i < fixture->listener->fd_n; i++)
        ck_assert_int_eq(fixture->listener->fds[i], -1);
    if (fixture->master != -1)
        close(fixture->master);
    bells_close(&fixture->bells);
    shared_destroy(&fixture->shared);
    arena_destroy(&fixture->cycle.arena);
}

struct fixture *fixture_prepare_worker(const struct fixture_worker_options *options)
{
    struct fixture *fixture = fixture_create(NULL);

    fixture->simulated = options->mechanism == NULL;
    fixture->sim->auto_time = true;
    fixture->sim->on_wait = note_wait;
    build_server(&fixture->server);
    build_cycle(fixture, options);
    build_listener(fixture, options);
    build_heritage(fixture, options);
    fixture->worker = &fixture->parts;
    fixture->stream = &fixture->worker->stream;
    fixture->net = &fixture->stream->net;
    ck_assert_int_eq(worker_init(fixture->worker, &fixture->heritage,
                         options->processes > 0 ? ROLE_WORKER : ROLE_SINGLE),
        0);
    fixture->worker->log.plain = "t";
    fixture->turn = turn_worker;
    fixture->stop_parts = stop_worker;
    return fixture;
}

struct fixture *fixture_start_worker(const struct fixture_worker_options *options)
{
    struct fixture *fixture = fixture_prepare_worker(options);

    accept_open(fixture->worker);
    return fixture;
}

struct sim_socket *fixture_connect_client(struct fixture *fixture)
{
    return sim_client(fixture->listening[0]);
}

void fixture_connect_clients(struct fixture *fixture, unsigned n)
{
    while (n-- > 0)
        fixture_connect_client(fixture);
}

void fixture_turn_until_open(struct fixture *fixture, unsigned n)
{
    const struct scripted_record *record = &fixture->server.record;

    for (int turns = 0; record->openings - record->closings < n; turns++) {
        ck_assert_int_lt(turns, TURNS_MAX);
        fixture_turn(fixture);
    }
}

struct slot_id fixture_take_slot(struct fixture *fixture)
{
    struct slot_id id;

    ck_assert(slot_acquire(fixture->shared, &id));
    return id;
}

void fixture_take_mutex(struct fixture *fixture, struct slot_id id)
{
    ck_assert(shm_lock_take(fixture_mutex(fixture), 0, shm_lock_word(id, ++fixture->rival_turn)));
}

void fixture_release_mutex(struct fixture *fixture, struct slot_id id)
{
    shm_lock_release(fixture_mutex(fixture), shm_lock_word(id, fixture->rival_turn));
}

unsigned fixture_receive_message(struct fixture *fixture)
{
    struct channel_message message;

    if (channel_receive(fixture->master, &message) != CHANNEL_DONE)
        return 0;
    ck_assert_int_eq(message.fd, -1);
    return message.kind;
}
