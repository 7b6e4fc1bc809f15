/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/bed.h"

#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINGERING_MS 5000
/* More turns without time passing than this many are a loop that spins. */
#define TURNS_MAX 100000

const struct mechanism *const bed_mechanisms[] = { &fake_edge, &fake_level };

static struct owner *enter(struct fb_conn *conn)
{
    struct owner *owner = conn->owner;

    test_require(!owner->bed->inside); /* no callback is run within another, or within a call */
    test_require(owner->conn == conn);
    owner->bed->inside = true;
    return owner;
}

static void leave(struct owner *owner)
{
    owner->bed->inside = false;
}

static void owner_opened(struct fb_conn *conn)
{
    struct owner *owner = enter(conn);

    owner->openings++;
    if (owner->opened != NULL)
        owner->opened(owner);
    leave(owner);
}

static void remember(struct owner *owner, fb_bytes in)
{
    size_t n = in.n < sizeof(owner->last) - 1 ? in.n : sizeof(owner->last) - 1;

    if (n > 0)
        memcpy(owner->last, in.p, n);
    owner->last[n] = '\0';
    owner->last_n = in.n;
    owner->last_p = in.p;
}

static size_t owner_data(struct fb_conn *conn, fb_bytes in)
{
    struct owner *owner = enter(conn);
    size_t used = in.n;

    test_require(in.n > 0 && owner->eofs == 0);
    owner->datas++;
    remember(owner, in);
    if (owner->data != NULL)
        used = owner->data(owner, in);
    leave(owner);
    return used;
}

static void owner_eof(struct fb_conn *conn, fb_bytes rest)
{
    struct owner *owner = enter(conn);

    owner->eofs++;
    remember(owner, rest);
    if (owner->eof != NULL)
        owner->eof(owner, rest);
    else
        conn_close(conn);
    leave(owner);
}

static void owner_writable(struct fb_conn *conn)
{
    struct owner *owner = enter(conn);

    owner->writables++;
    if (owner->writable != NULL)
        owner->writable(owner);
    leave(owner);
}

static void owner_moved(struct fb_conn *conn)
{
    struct owner *owner = enter(conn);

    owner->moves++;
    leave(owner);
}

static void owner_expired(struct fb_conn *conn)
{
    struct owner *owner = enter(conn);

    owner->expirations++;
    if (owner->expired != NULL)
        owner->expired(owner);
    leave(owner);
}

static void owner_closed(struct fb_conn *conn, fb_reason reason)
{
    struct owner *owner = enter(conn);

    ck_assert(owner->openings == 1 || (owner->outgoing && owner->openings == 0));
    owner->closings++;
    owner->reason = reason;
    if (owner->closed != NULL)
        owner->closed(owner);
    /* the calls do nothing any more */
    conn_write(conn, "late", 4);
    conn_stop(conn);
    conn_resume(conn);
    conn_close(conn);
    leave(owner);
    owner->conn = NULL;
}

static void owner_describe(
    const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT])
{
    (void)conn;
    (void)client;
    line->server = "bed";
}

static const struct conn_ops owner_ops = {
    .opened = owner_opened,
    .data = owner_data,
    .eof = owner_eof,
    .writable = owner_writable,
    .moved = owner_moved,
    .expired = owner_expired,
    .closed = owner_closed,
    .describe = owner_describe,
};

static void released(struct net *net)
{
    container_of(net, struct bed, net)->released++;
}

static void *alloc(const struct memory *memory, size_t n)
{
    struct bed *bed = container_of(memory, struct bed, memory);

    if (bed->until_failure == 0) {
        bed->failures++;
        errno = ENOMEM;
        return NULL;
    }
    if (bed->until_failure != UINT_MAX)
        bed->until_failure--;
    bed->blocks++;
    return malloc(n);
}

static void release(const struct memory *memory, void *p)
{
    container_of(memory, struct bed, memory)->blocks -= p != NULL;
    free(p);
}

struct bed *bed_set_up(const struct mechanism *mechanism, uint32_t connections)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct net_options options = {
        .connections_max = connections,
        .mechanism = mechanism,
        .lingering_timeout = LINGERING_MS,
    };

    ck_assert_ptr_nonnull(bed);
    fake_start();
    bed->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(bed->target.fd, -1);
    bed->target.level = LEVEL_INFO;
    log_init(&bed->log, &bed->target, 1);
    bed->log.plain = "t";
    options.log = &bed->log;
    options.counters = &bed->counters;
    bed->memory = (struct memory) { .alloc = alloc, .release = release };
    bed->until_failure = UINT_MAX;
    options.memory = &bed->memory;
    ck_assert_int_eq(net_init(&bed->net, &options), 0);
    bed->net.released = released;
    return bed;
}

const char *bed_logged(struct bed *bed)
{
    ssize_t n = pread(bed->target.fd, bed->text, sizeof(bed->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    bed->text[n] = '\0';
    ck_assert_int_eq(ftruncate(bed->target.fd, 0), 0);
    ck_assert_int_eq(lseek(bed->target.fd, 0, SEEK_SET), 0);
    return bed->text;
}

uint64_t bed_count(const struct bed *bed, enum counter counter)
{
    return bed->counters.n[counter];
}

void bed_tear_down(struct bed *bed)
{
    bed_run(bed);
    ck_assert_str_eq(bed_logged(bed), "");
    ck_assert_uint_eq(bed->net.connection_n, 0);
    for (int i = COUNTER_GAUGES; i < COUNTERS; i++)
        ck_assert_msg(bed->counters.n[i] == 0, "gauge %d has not returned to zero", i);
    ck_assert_uint_eq(bed_held(bed), 0);
    net_done(&bed->net);
    ck_assert_uint_eq(bed->blocks, 0);
    fake_stop();
    close(bed->target.fd);
    free(bed);
}

struct owner *bed_create(struct bed *bed, const struct owner *like)
{
    static const struct owner plain;
    struct owner *owner = malloc(sizeof(*owner));
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(1234) };

    ck_assert_ptr_nonnull(owner);
    *owner = like != NULL ? *like : plain;
    owner->bed = bed;
    owner->socket = fake_connection();
    peer.sin_addr.s_addr = inet_addr("192.0.2.1");
    owner->conn =
        conn_create(&bed->net, owner->socket->fd, (struct sockaddr *)&peer, &owner_ops, owner);
    ck_assert_ptr_nonnull(owner->conn);
    return owner;
}

struct owner *bed_open(struct bed *bed)
{
    struct owner *owner = bed_create(bed, NULL);

    bed_run(bed);
    ck_assert_uint_eq(owner->openings, 1);
    return owner;
}

static const struct address *server_address(void)
{
    static struct address address;

    ck_assert_ptr_null(address_parse("192.0.2.9:80", 0, &address));
    return &address;
}

struct sim_server *bed_server(void)
{
    return sim_server(fake_sim, &server_address()->any, server_address()->length);
}

struct owner *bed_connect(struct bed *bed, const struct owner *like)
{
    static const struct owner plain;
    struct owner *owner = malloc(sizeof(*owner));

    ck_assert_ptr_nonnull(owner);
    *owner = like != NULL ? *like : plain;
    owner->bed = bed;
    owner->outgoing = true;
    owner->conn = conn_connect(
        &bed->net, NULL, &server_address()->any, server_address()->length, &owner_ops, owner, NULL);
    return owner;
}

struct owner *bed_accept(struct sim_server *server, struct owner *owner)
{
    owner->socket = sim_server_take(server);
    ck_assert_ptr_nonnull(owner->socket);
    ck_assert(owner->conn == NULL || owner->socket->fd == owner->conn->source.fd);
    return owner;
}

void bed_free(struct owner **owner)
{
    ck_assert_ptr_null((*owner)->conn);
    ck_assert((*owner)->openings == 1 || (*owner)->outgoing);
    ck_assert_uint_eq((*owner)->closings, 1);
    free(*owner);
    *owner = NULL;
}

void bed_turn(struct bed *bed)
{
    struct loop *loop = &bed->net.loop;

    loop_promote(loop);
    loop_wait(loop, 0);
    timers_expire(loop);
    loop_run(loop, QUEUE_NORMAL);
    net_check(&bed->net);
}

void bed_run(struct bed *bed)
{
    unsigned turns = 0;

    do {
        bed_turn(bed);
        test_require(++turns < TURNS_MAX); /* it does not spin */
    } while (fake_reported() > 0 || !sim_idle(&bed->net.loop));
}

void bed_pass(struct bed *bed, uint64_t ms)
{
    fake_pass(ms);
    bed_run(bed);
}

unsigned bed_held(const struct bed *bed)
{
    return bed->blocks - 1 /* the scratch buffer */ - chunk_pool_spare_n(&bed->net.chunks);
}

const char *bed_sent(const struct owner *owner)
{
    return owner->socket->sent != NULL ? (const char *)owner->socket->sent : "";
}

size_t bed_echo(struct owner *owner, fb_bytes in)
{
    conn_write(owner->conn, in.p, in.n);
    return in.n;
}

size_t bed_leave(struct owner *owner, fb_bytes in)
{
    (void)owner;
    (void)in;
    return 0;
}

void bed_stay(struct owner *owner, fb_bytes rest)
{
    (void)owner;
    (void)rest;
}

void bed_abort(struct owner *owner)
{
    conn_fail(owner->conn, FB_ABORTED);
}

/* The period is prime, so that a shifted piece is noticed. */
static uint8_t pattern(size_t at)
{
    return (uint8_t)(at % 251);
}

void bed_write_pattern(struct owner *owner, size_t n)
{
    uint8_t *bytes = malloc(n);
    size_t at = owner->socket->sent_n + owner->conn->unsent;

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = pattern(at + i);
    conn_write(owner->conn, bytes, n);
    free(bytes);
}

void bed_check_pattern(const struct owner *owner, size_t n)
{
    size_t i = 0;

    ck_assert_uint_eq(owner->socket->sent_n, n);
    while (i < n && owner->socket->sent[i] == pattern(i))
        i++;
    ck_assert_uint_eq(i, n);
}
