/* SPDX-License-Identifier: BSD-2-Clause */
/* Records the callbacks of connections, and checks for nested callbacks and callbacks after
 * `closed`. */
#include "support/owner.h"

#include "net/address_parse.h"

#include <arpa/inet.h>
#include <string.h>

static struct owner *enter_callback(struct fb_conn *conn)
{
    struct owner *owner = conn->owner;

    test_require(!owner->fixture->inside); /* no callback runs within another, or within a call */
    test_require(owner->conn == conn);
    owner->fixture->inside = true;
    return owner;
}

static void leave_callback(struct owner *owner)
{
    owner->fixture->inside = false;
}

static void owner_opened(struct fb_conn *conn)
{
    struct owner *owner = enter_callback(conn);

    owner->openings++;
    if (owner->opened != NULL)
        owner->opened(owner);
    leave_callback(owner);
}

static void remember_input(struct owner *owner, fb_bytes in)
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
    struct owner *owner = enter_callback(conn);
    size_t used = in.n;

    test_require(in.n > 0 && owner->eofs == 0);
    owner->datas++;
    remember_input(owner, in);
    if (owner->data != NULL)
        used = owner->data(owner, in);
    leave_callback(owner);
    return used;
}

static void owner_eof(struct fb_conn *conn, fb_bytes rest)
{
    struct owner *owner = enter_callback(conn);

    owner->eofs++;
    remember_input(owner, rest);
    if (owner->eof != NULL)
        owner->eof(owner, rest);
    else
        conn_close(conn);
    leave_callback(owner);
}

static void owner_writable(struct fb_conn *conn)
{
    struct owner *owner = enter_callback(conn);

    owner->writables++;
    if (owner->writable != NULL)
        owner->writable(owner);
    leave_callback(owner);
}

static void owner_expired(struct fb_conn *conn)
{
    struct owner *owner = enter_callback(conn);

    owner->expirations++;
    if (owner->expired != NULL)
        owner->expired(owner);
    leave_callback(owner);
}

static void owner_closed(struct fb_conn *conn, fb_reason reason)
{
    struct owner *owner = enter_callback(conn);

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
    leave_callback(owner);
    owner->conn = NULL;
}

static const struct address *server_address(void)
{
    static struct address address;

    ck_assert_ptr_null(address_parse("192.0.2.9:80", 0, &address));
    return &address;
}

static void owner_connect_again(struct fb_conn *conn)
{
    struct owner *owner = conn->owner;

    test_require(owner->conn == conn && owner->outgoing);
    owner->connects_again++;
    conn_connect_again(conn, &server_address()->any, server_address()->length, NULL);
}

static void owner_first_byte(struct fb_conn *conn, conn_first_byte call)
{
    struct owner *owner = conn->owner;

    owner->first_bytes++;
    if (call == NULL)
        return;
    enter_callback(conn);
    call(conn, owner);
    leave_callback(owner);
}

static void owner_describe(
    const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT])
{
    (void)conn;
    (void)client;
    line->server = "fixture";
}

static const struct conn_ops owner_ops = {
    .opened = owner_opened,
    .data = owner_data,
    .eof = owner_eof,
    .writable = owner_writable,
    .expired = owner_expired,
    .closed = owner_closed,
    .connect_again = owner_connect_again,
    .first_byte = owner_first_byte,
    .describe = owner_describe,
};

static struct owner *create_on(struct fixture *fixture, const struct owner *like, int fd)
{
    static const struct owner plain;
    struct owner *owner = malloc(sizeof(*owner));
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(1234) };

    ck_assert_ptr_nonnull(owner);
    *owner = like != NULL ? *like : plain;
    owner->fixture = fixture;
    peer.sin_addr.s_addr = inet_addr("192.0.2.1");
    owner->conn = conn_create(fixture->net, fd, (struct sockaddr *)&peer, &owner_ops, owner);
    ck_assert_ptr_nonnull(owner->conn);
    conn_open_soon(owner->conn);
    return owner;
}

struct owner *owner_create(struct fixture *fixture, const struct owner *like)
{
    struct sim_socket *socket = sim_connection(fixture->sim);
    struct owner *owner = create_on(fixture, like, socket->fd);

    owner->socket = socket;
    return owner;
}

struct owner *owner_adopt(struct fixture *fixture, int fd)
{
    return create_on(fixture, NULL, fd);
}

struct owner *owner_open(struct fixture *fixture)
{
    struct owner *owner = owner_create(fixture, NULL);

    fixture_run(fixture);
    ck_assert_uint_eq(owner->openings, 1);
    return owner;
}

int owner_pipe(struct owner *a, struct owner *b, uint64_t timeout)
{
    const struct conn_pipe_options options = { .timeout = timeout };

    return conn_pipe(a->conn, b->conn, &options);
}

struct sim_server *owner_server(struct fixture *fixture)
{
    return sim_server(fixture->sim, &server_address()->any, server_address()->length);
}

struct owner *owner_connect(struct fixture *fixture, const struct owner *like)
{
    static const struct owner plain;
    struct owner *owner = malloc(sizeof(*owner));

    ck_assert_ptr_nonnull(owner);
    *owner = like != NULL ? *like : plain;
    owner->fixture = fixture;
    owner->outgoing = true;
    owner->conn = conn_connect(fixture->net, NULL, &server_address()->any, server_address()->length,
        NULL, &owner_ops, owner, NULL);
    return owner;
}

struct owner *owner_accept(struct sim_server *server, struct owner *owner)
{
    owner->socket = sim_server_take(server);
    ck_assert_ptr_nonnull(owner->socket);
    ck_assert(owner->conn == NULL || owner->socket->fd == owner->conn->source.fd);
    return owner;
}

void owner_free(struct owner **owner)
{
    ck_assert_ptr_null((*owner)->conn);
    ck_assert((*owner)->openings == 1 || (*owner)->outgoing);
    ck_assert_uint_eq((*owner)->closings, 1);
    free(*owner);
    *owner = NULL;
}

const char *owner_sent(const struct owner *owner)
{
    return sim_sent(owner->socket);
}

size_t owner_echo(struct owner *owner, fb_bytes in)
{
    conn_write(owner->conn, in.p, in.n);
    return in.n;
}

size_t owner_leave_input(struct owner *owner, fb_bytes in)
{
    (void)owner;
    (void)in;
    return 0;
}

void owner_ignore_eof(struct owner *owner, fb_bytes rest)
{
    (void)owner;
    (void)rest;
}

void owner_abort(struct owner *owner)
{
    conn_fail(owner->conn, FB_ABORTED);
}

/* The period is prime, so a shifted piece is noticed. */
static uint8_t pattern_byte(size_t at)
{
    return (uint8_t)(at % 251);
}

void owner_write_pattern(struct owner *owner, size_t n)
{
    uint8_t *bytes = malloc(n);
    size_t at = owner->socket->sent_n + owner->conn->unsent;

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = pattern_byte(at + i);
    conn_write(owner->conn, bytes, n);
    free(bytes);
}

void owner_check_pattern(const struct owner *owner, size_t n)
{
    size_t i = 0;

    ck_assert_uint_eq(owner->socket->sent_n, n);
    while (i < n && owner->socket->sent[i] == pattern_byte(i))
        i++;
    ck_assert_uint_eq(i, n);
}
