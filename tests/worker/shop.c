/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/shop.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void shop_note(struct shop *shop, char letter)
{
    size_t n = strlen(shop->order);

    ck_assert_uint_lt(n, sizeof(shop->order) - 1);
    shop->order[n] = letter;
}

/* The protocol finds its shop where others have their configuration. */
static struct shop *shop_of(const fb_conn *conn)
{
    return (struct shop *)fb_conf_of(conn);
}

static int echo_opened(fb_conn *conn, void *state)
{
    struct shop *shop = shop_of(conn);

    (void)state;
    shop->openings++;
    shop->conn = conn;
    shop_note(shop, 'o');
    return 0;
}

static size_t echo_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    return in.n;
}

static void echo_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct shop *shop = shop_of(conn);

    (void)state;
    shop->closings++;
    shop->reason = reason;
    shop_note(shop, 'c');
}

static const fb_ops echo_ops = {
    .size = sizeof(fb_ops),
    .opened = echo_opened,
    .data = echo_data,
    .closed = echo_closed,
};

static const fb_protocol echo = {
    FB_PROTOCOL_HEADER,
    .name = "echo",
    .ops = &echo_ops,
};

static void waits(struct loop *loop, int timeout)
{
    (void)timeout;
    shop_note((struct shop *)worker_of_loop(loop), 'w');
}

static void build_cycle(struct shop *shop, const struct shop_options *options)
{
    struct cycle *cycle = &shop->cycle;

    shop->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(shop->target.fd, -1);
    shop->target.level = LEVEL_INFO;
    cycle->arena = arena_create();
    ck_assert_ptr_nonnull(cycle->arena);
    cycle->core = (struct core_settings) {
        .worker_processes = options->processes > 0 ? options->processes : 1,
        .worker_shutdown_timeout = options->shutdown_timeout,
        .rlimit_nofile = -1,
        .rlimit_core = -1,
        .logs = &shop->target,
        .log_n = 1,
    };
    cycle->events = (struct events_settings) {
        .worker_connections = options->connections,
        .multi_accept = options->multi_accept,
        .accept_mutex = options->mutex,
        .accept_mutex_delay = SHOP_DELAY,
        .mechanism = options->mechanism != NULL ? options->mechanism : &fake_edge,
    };
    cycle->events.mechanism_option = cycle->events.mechanism->option.initial;
    STAILQ_INIT(&cycle->stream.servers);
    STAILQ_INIT(&cycle->stream.listeners);
    shop->server = (struct server) { .protocol = &echo, .protocol_conf = shop };
    shop->binding = (struct binding) { .server = &shop->server, .text = "192.0.2.7:77" };
    STAILQ_INIT(&shop->port.bindings);
    STAILQ_INSERT_TAIL(&shop->port.bindings, &shop->binding, link);
}

/* Real sockets, which the worker closes, and simulated ones of the same descriptors. */
static void build_listener(struct shop *shop, const struct shop_options *options)
{
    struct listener_options listen = listener_defaults;
    unsigned slots = options->reuseport > 0 ? options->reuseport : 1;
    struct log log;

    ck_assert_ptr_null(address_parse("127.0.0.1", 0, &shop->binding.address));
    log_init(&log, &shop->target, 1);
    listen.reuseport = options->reuseport > 0;
    shop->listener = listener_create(shop->cycle.arena, &shop->binding.address, &listen);
    ck_assert_ptr_nonnull(shop->listener);
    ck_assert_int_eq(listener_open(shop->listener, NULL, slots, &log), 0);
    ck_assert_int_eq(listener_commit(shop->listener, &log), 0);
    ck_assert_uint_le(shop->listener->fd_n, SHOP_LISTENERS);
    for (unsigned i = 0; i < shop->listener->fd_n; i++)
        shop->doors[i] = fake_listener(shop->listener->fds[i]);
    shop->listener->owner = &shop->port;
    STAILQ_INSERT_TAIL(&shop->cycle.stream.listeners, shop->listener, link);
}

struct shop *shop_prepare(const struct shop_options *options)
{
    struct shop *shop = calloc(1, sizeof(*shop));
    int ends[2] = { -1, -1 };

    ck_assert_ptr_nonnull(shop);
    fake_start();
    build_cycle(shop, options);
    build_listener(shop, options);
    shop->shared = shared_create();
    ck_assert_ptr_nonnull(shop->shared);
    shop->heritage = (struct heritage) {
        .cycle = &shop->cycle,
        .shared = shop->shared,
        .index = options->index,
    };
    ck_assert(slot_acquire(shop->shared, &shop->heritage.slot));
    if (options->processes > 0)
        ck_assert_int_eq(channel_open(ends), 0);
    shop->master = ends[0];
    shop->heritage.channel = ends[1];
    ck_assert_int_eq(worker_init(&shop->worker, &shop->heritage,
                         options->processes > 0 ? ROLE_WORKER : ROLE_SINGLE),
        0);
    shop->worker.log.plain = "t";
    fake_on_wait(waits);
    return shop;
}

struct shop *shop_open(const struct shop_options *options)
{
    struct shop *shop = shop_prepare(options);

    accept_open(&shop->worker);
    return shop;
}

const char *shop_logged(struct shop *shop)
{
    ssize_t n = pread(shop->target.fd, shop->text, sizeof(shop->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    shop->text[n] = '\0';
    ck_assert_int_eq(ftruncate(shop->target.fd, 0), 0);
    ck_assert_int_eq(lseek(shop->target.fd, 0, SEEK_SET), 0);
    return shop->text;
}

void shop_close(struct shop *shop)
{
    uint64_t totals[COUNTERS];

    ck_assert_str_eq(shop_logged(shop), "");
    worker_done(&shop->worker);
    ck_assert_uint_eq(shop->openings, shop->closings);
    ck_assert(!shop_holds_mutex(shop));
    shared_totals(shop->shared, totals);
    ck_assert_uint_eq(totals[COUNTER_ACTIVE], 0);
    for (unsigned i = 0; i < shop->listener->fd_n; i++)
        ck_assert_int_eq(shop->listener->fds[i], -1);
    if (shop->master != -1)
        close(shop->master);
    shared_destroy(&shop->shared);
    arena_destroy(&shop->cycle.arena);
    close(shop->target.fd);
    fake_stop();
    free(shop);
}

struct fake_socket *shop_visit(struct shop *shop)
{
    return fake_client(shop->doors[0]);
}

void shop_crowd(struct shop *shop, unsigned n)
{
    while (n-- > 0)
        shop_visit(shop);
}

void shop_turn(struct shop *shop)
{
    shop->order[0] = '\0';
    memset(shop->order, 0, sizeof(shop->order));
    worker_turn(&shop->worker);
    stream_check(&shop->worker.stream);
}

void shop_turn_until_open(struct shop *shop, unsigned n)
{
    for (int turns = 0; shop->openings - shop->closings < n; turns++) {
        ck_assert_int_lt(turns, 10000);
        shop_turn(shop);
    }
}

struct slot_id shop_rival(struct shop *shop)
{
    struct slot_id id;

    ck_assert(slot_acquire(shop->shared, &id));
    return id;
}

unsigned shop_told(struct shop *shop)
{
    struct channel_message message;

    if (channel_receive(shop->master, &message) != CHANNEL_DONE)
        return 0;
    ck_assert_int_eq(message.fd, -1);
    return message.kind;
}
