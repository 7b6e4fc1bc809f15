/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets and the messages of the server of names. A question's additional records are left out
 * of the answer. */
#include "daemon/name_server.h"

#include "support/wait.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER 12
#define QUIET_MS 20
#define DATAGRAM_MAX 512
#define TAKEN 4
#define NO_SUCH_NAME 3

/* The latest questions: the resolver repeats a question without an answer within a second, with the
 * same number, from another socket. */
static struct question {
    size_t n;
    uint8_t bytes[DATAGRAM_MAX];
} taken[TAKEN];
static unsigned taken_n;

struct name_server name_server_start(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    struct name_server server;

    for (int i = 0; i < 50; i++) { /* until a port is free for both */
        address.sin_port = 0;
        server.tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        server.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(server.tcp, (struct sockaddr *)&address, length), 0);
        ck_assert_int_eq(listen(server.tcp, 5), 0);
        ck_assert_int_eq(getsockname(server.tcp, (struct sockaddr *)&address, &length), 0);
        server.port = ntohs(address.sin_port);
        if (bind(server.udp, (struct sockaddr *)&address, length) == 0)
            return server;
        close(server.tcp);
        close(server.udp);
    }
    ck_abort_msg("no port is free");
    return server;
}

void name_server_stop(const struct name_server *server)
{
    close(server->udp);
    close(server->tcp);
}

static void wait_readable(int fd)
{
    struct pollfd entry = { .fd = fd, .events = POLLIN };

    ck_assert_int_eq(poll(&entry, 1, (int)patience_ms()), 1);
}

static bool was_taken(const struct question *question)
{
    for (unsigned i = 0; i < TAKEN; i++)
        if (taken[i].n == question->n && memcmp(taken[i].bytes, question->bytes, question->n) == 0)
            return true;
    return false;
}

/* Whether the waiting question was taken already, to be dropped. */
static bool drop_again(int fd)
{
    struct question question;
    ssize_t n = recv(fd, question.bytes, sizeof(question.bytes), MSG_PEEK);

    ck_assert_int_gt(n, 0);
    question.n = (size_t)n;
    return was_taken(&question) && recv(fd, question.bytes, sizeof(question.bytes), 0) == n;
}

bool name_server_is_quiet(const struct name_server *server)
{
    struct pollfd entry = { .fd = server->udp, .events = POLLIN };

    while (poll(&entry, 1, QUIET_MS) == 1)
        if (!drop_again(server->udp))
            return false;
    return true;
}

/* Makes the question an answer, in place. */
static void begin_reply(struct name_reply *reply)
{
    size_t end = HEADER;

    ck_assert_uint_gt(reply->n, HEADER);
    while (end < reply->n && reply->bytes[end] != 0)
        end += reply->bytes[end] + 1u;
    end += 5; /* the last label, type and class */
    ck_assert_uint_le(end, reply->n);
    reply->n = end;
    reply->bytes[2] = 0x81;
    reply->bytes[3] = 0x80;
    memset(reply->bytes + 6, 0, 6);
}

void name_server_take(const struct name_server *server, struct name_reply *reply)
{
    struct question *question = &taken[taken_n++ % TAKEN];
    socklen_t length = sizeof(reply->from);
    ssize_t n;

    do
        wait_readable(server->udp);
    while (drop_again(server->udp));
    n = recvfrom(server->udp, question->bytes, sizeof(question->bytes), 0,
        (struct sockaddr *)&reply->from, &length);
    ck_assert_int_gt(n, 0);
    question->n = reply->n = (size_t)n;
    memcpy(reply->bytes, question->bytes, reply->n);
    reply->fd = -1;
    begin_reply(reply);
}

void name_server_accept(const struct name_server *server, struct name_reply *reply)
{
    uint8_t bytes[514];
    ssize_t n;

    wait_readable(server->tcp);
    reply->fd = accept4(server->tcp, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ne(reply->fd, -1);
    wait_readable(reply->fd);
    n = recv(reply->fd, bytes, sizeof(bytes), 0);
    ck_assert_int_gt(n, 2 + HEADER);
    reply->n = (size_t)n - 2;
    memcpy(reply->bytes, bytes + 2, reply->n);
    begin_reply(reply);
}

uint16_t name_reply_type(const struct name_reply *reply)
{
    size_t end = HEADER;

    while (reply->bytes[end] != 0)
        end += reply->bytes[end] + 1u;
    return (uint16_t)(reply->bytes[end + 1] << 8 | reply->bytes[end + 2]);
}

static void add(struct name_reply *reply, const void *p, size_t n)
{
    ck_assert_uint_le(reply->n + n, sizeof(reply->bytes));
    memcpy(reply->bytes + reply->n, p, n);
    reply->n += n;
}

void name_reply_add(struct name_reply *reply, const uint8_t *name, size_t name_n, uint16_t type,
    uint32_t ttl, const void *data, size_t n)
{
    const uint8_t head[] = { (uint8_t)(type >> 8), (uint8_t)type, 0, 1, (uint8_t)(ttl >> 24),
        (uint8_t)(ttl >> 16), (uint8_t)(ttl >> 8), (uint8_t)ttl, (uint8_t)(n >> 8), (uint8_t)n };

    add(reply, name, name_n);
    add(reply, head, sizeof(head));
    add(reply, data, n);
    reply->bytes[7]++;
}

void name_reply_add_a(struct name_reply *reply, uint32_t ttl, uint8_t last)
{
    name_reply_add(reply, NAME_ASKED, NAME_A, ttl, ((const uint8_t[]) { 192, 0, 2, last }), 4);
}

/* In two pieces, as possible in a network. */
static void send_stream(struct name_reply *reply)
{
    const uint8_t length[] = { (uint8_t)(reply->n >> 8), (uint8_t)reply->n };

    ck_assert_int_eq(send(reply->fd, length, 1, 0), 1);
    ck_assert_int_eq(send(reply->fd, length + 1, 1, 0), 1);
    ck_assert_int_eq(send(reply->fd, reply->bytes, reply->n, 0), (ssize_t)reply->n);
    close(reply->fd);
}

void name_server_send(const struct name_server *server, struct name_reply *reply, uint8_t code)
{
    reply->bytes[3] |= code;
    if (code != 0 && code != NO_SUCH_NAME)
        memset(taken, 0, sizeof(taken));
    if (reply->fd != -1)
        send_stream(reply);
    else
        ck_assert_int_eq(sendto(server->udp, reply->bytes, reply->n, 0,
                             (struct sockaddr *)&reply->from, sizeof(reply->from)),
            (ssize_t)reply->n);
}
