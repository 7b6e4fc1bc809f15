/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of whole workers. Byte i of a session is i % 251, so that lost or doubled bytes show. */
#include "plays/sessions.h"

#include "plays/play_private.h"
#include "plays/whole.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATTERN 251
#define FIRST_PORT 10000
#define PORTS 20000

/* The end of a TCP client is always a reset: its port would stay taken for a minute. */
static int make_socket(int family)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    static const int on = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    test_require(fd != -1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return fd;
}

/* Gives a client a name, as the worker's key to the client. The kernel chooses the name of a unix
 * socket; ports are counted, because the port chooses a queue of reuseport: on one machine equal
 * seeds give equal queues. */
static void bind_name(struct play_sessions *sessions, int fd, const struct address *to)
{
    struct address name = *to;

    if (to->any.sa_family == AF_UNIX) {
        test_require(bind(fd, &name.any, sizeof(name.any.sa_family)) == 0);
        return;
    }
    do {
        name.in.sin_port = htons((uint16_t)(FIRST_PORT + sessions->port_n++ % PORTS));
    } while (bind(fd, &name.any, name.length) == -1 && errno == EADDRINUSE);
}

struct play_session *play_session_open(
    struct play *play, struct play_sessions *sessions, const struct address *address)
{
    struct play_session *session = &sessions->list[sessions->n];
    int family = address->any.sa_family, error;

    test_require(sessions->n < PLAY_SESSIONS_MAX);
    *session = (struct play_session) { .fd = make_socket(family) };
    bind_name(sessions, session->fd, address);
    if (connect(session->fd, &address->any, address->length) == -1) {
        error = errno;
        close(session->fd);
        errno = error;
        return NULL;
    }
    session->address.length = sizeof(session->address.un);
    test_require(getsockname(session->fd, &session->address.any, &session->address.length) == 0);
    sessions->n++;
    sessions->connected++;
    play_network_settle(play);
    play_watch_step(play);
    return session;
}

void play_session_send(struct play_session *session, size_t n)
{
    uint8_t bytes[512];
    ssize_t sent;

    n = n < sizeof(bytes) ? n : sizeof(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)((session->sent + i) % PATTERN);
    sent = send(session->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        session->sent += (size_t)sent;
    play_network_settle(play_now);
}

void play_session_receive(struct play_session *session)
{
    uint8_t bytes[2048];
    ssize_t n;

    while (!session->ended) {
        n = recv(session->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n == -1 && errno == EAGAIN)
            return;
        session->ended = n <= 0;
        session->error = n == -1 ? errno : 0;
        for (ssize_t i = 0; i < n; i++)
            if (bytes[i] != session->echoed++ % PATTERN)
                ck_abort_msg("a session gets byte %zu wrong", session->echoed - 1);
    }
}

void play_session_close(struct play_sessions *sessions, struct play_session *session)
{
    close(session->fd);
    play_network_settle(play_now);
    sessions->served += session->worker != 0 && play_session_is_served(session);
    *session = sessions->list[--sessions->n];
}

void play_session_close_all(struct play_sessions *sessions)
{
    while (sessions->n > 0)
        play_session_close(sessions, &sessions->list[0]);
}

static bool is_address(const struct address *address, const struct sockaddr *other, socklen_t n)
{
    const struct sockaddr_in *a = &address->in, *b = (const void *)other;

    if (address->any.sa_family != other->sa_family)
        return false;
    if (other->sa_family == AF_INET)
        return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
    return address->length == n && memcmp(&address->any, other, n) == 0;
}

void play_session_accepted(
    struct play_sessions *sessions, pid_t worker, const struct sockaddr *client, socklen_t length)
{
    for (unsigned i = 0; i < sessions->n; i++) {
        struct play_session *session = &sessions->list[i];

        if (!is_address(&session->address, client, length))
            continue;
        if (session->worker != 0)
            ck_abort_msg("a session is accepted by two workers");
        session->worker = worker;
        sessions->accepted++;
    }
}

bool play_session_is_served(const struct play_session *session)
{
    return session->echoed == session->sent;
}

unsigned play_sessions_of(const struct play_sessions *sessions, pid_t worker)
{
    unsigned n = 0;

    for (unsigned i = 0; i < sessions->n; i++)
        n += sessions->list[i].worker == worker;
    return n;
}
