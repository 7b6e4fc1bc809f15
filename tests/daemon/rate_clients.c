/* SPDX-License-Identifier: BSD-2-Clause */
/* Drives clients at a rate from one thread: short sessions on time, and long sessions. A failure
 * delays no other client. */
#include "daemon/rate_clients.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHORT_MAX 2000 /* at once */
#define BURST_MAX 400  /* short sessions begun in one go: delayed clients do not make up for all */
#define EVENTS_MAX 256
#define MESSAGE 64

enum state { FREE, CONNECTS, WAITS, RESTS };

struct session {
    enum state state;
    int fd;
    bool stays, ends; /* a long session; to be ended after the current exchange */
    unsigned number;  /* number of the exchange */
    size_t received;
    int64_t since_ms, next_ms;
    char bytes[MESSAGE];
};

struct drive {
    struct rate_clients *clients;
    int epoll;
    int64_t begun_ms, now_ms;
    uint64_t due; /* short sessions that were begun or skipped */
    unsigned short_n, number, oldest, session_n;
    struct session *sessions; /* the long ones first */
    unsigned free_n;
    unsigned *free; /* free places of short sessions */
};

static void fail_session(struct drive *drive, struct session *s, atomic_uint *why, int error)
{
    atomic_fetch_add(why, 1);
    if (error != 0)
        atomic_store(&drive->clients->error, error);
    if (s->fd != -1)
        close(s->fd);
    s->fd = -1;
    s->state = FREE;
    if (!s->stays) {
        drive->short_n--;
        drive->free[drive->free_n++] = (unsigned)(s - drive->sessions);
    }
}

static void send_message(struct drive *drive, struct session *s)
{
    char message[MESSAGE];

    s->number = ++drive->number;
    s->received = 0;
    memset(message, (int)(s->number % 251), sizeof(message));
    memcpy(message, &s->number, sizeof(s->number));
    s->state = WAITS;
    if (s->stays)
        s->since_ms = drive->now_ms;
    if (send(s->fd, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
        fail_session(
            drive, s, s->stays ? &drive->clients->long_ended : &drive->clients->reset, errno);
}

static void begin_session(struct drive *drive, struct session *s)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(drive->clients->options.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = s };

    s->state = CONNECTS;
    s->ends = false;
    s->since_ms = drive->now_ms;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd == -1 || epoll_ctl(drive->epoll, EPOLL_CTL_ADD, s->fd, &event) == -1) {
        fail_session(drive, s, &drive->clients->skipped, errno);
        return;
    }
    atomic_fetch_add(&drive->clients->connected, 1);
    if (atomic_load(&drive->clients->told) != NULL)
        atomic_fetch_add(atomic_load(&drive->clients->told), 1);
    if (connect(s->fd, (struct sockaddr *)&address, sizeof(address)) == -1 && errno != EINPROGRESS)
        fail_session(drive, s, &drive->clients->refused, errno);
}

static void finish_connect(struct drive *drive, struct session *s)
{
    int error = 0;
    socklen_t length = sizeof(error);

    getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0)
        fail_session(drive, s, &drive->clients->refused, error);
    else
        send_message(drive, s);
}

/* Short sessions end mostly with a reset, which leaves no TIME_WAIT behind to fill the kernel's
 * tables. */
static void end_session(struct session *s)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    if (!s->stays && s->number % 16 != 0)
        setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(s->fd);
    s->fd = -1;
    s->state = FREE;
}

static void finish_exchange(struct drive *drive, struct session *s)
{
    struct rate_clients *clients = drive->clients;

    atomic_fetch_add(&clients->exchanges, 1);
    s->state = RESTS;
    s->next_ms = drive->now_ms + clients->options.talk_ms;
    if (!s->ends)
        return;
    end_session(s);
    atomic_fetch_add(&clients->renewed, 1);
    if (!atomic_load(&clients->stops))
        begin_session(drive, s);
}

static void check_reply(struct drive *drive, struct session *s)
{
    char expected[MESSAGE];
    int64_t took = drive->now_ms - s->since_ms;

    memset(expected, (int)(s->number % 251), sizeof(expected));
    memcpy(expected, &s->number, sizeof(s->number));
    if (memcmp(expected, s->bytes, sizeof(expected)) != 0) {
        fail_session(drive, s, &drive->clients->wrong, 0);
        return;
    }
    if (s->stays) {
        finish_exchange(drive, s);
        return;
    }
    if (took > atomic_load(&drive->clients->slowest_ms))
        atomic_store(&drive->clients->slowest_ms, (unsigned)took);
    end_session(s);
    drive->short_n--;
    drive->free[drive->free_n++] = (unsigned)(s - drive->sessions);
    atomic_fetch_add(&drive->clients->echoed, 1);
}

/* The other side may end a session only after us, and says nothing unasked. */
static void read_session(struct drive *drive, struct session *s)
{
    while (s->state == WAITS || s->state == RESTS) {
        char unasked;
        bool rests = s->state == RESTS;
        ssize_t n = rests ? recv(s->fd, &unasked, 1, 0)
                          : recv(s->fd, s->bytes + s->received, sizeof(s->bytes) - s->received, 0);

        if (n == -1 && errno == EAGAIN)
            return;
        if (n <= 0)
            fail_session(drive, s, s->stays ? &drive->clients->long_ended : &drive->clients->reset,
                n == 0 ? 0 : errno);
        else if (rests)
            fail_session(drive, s, &drive->clients->wrong, 0);
        else if ((s->received += (size_t)n) == sizeof(s->bytes))
            check_reply(drive, s);
    }
}

static void begin_due(struct drive *drive)
{
    uint64_t due =
        (uint64_t)(drive->now_ms - drive->begun_ms) * drive->clients->options.rate / 1000;

    for (unsigned n = 0; drive->due < due; n++) {
        drive->due++;
        if (n >= BURST_MAX || drive->free_n == 0) {
            atomic_fetch_add(&drive->clients->skipped, 1);
            continue;
        }
        drive->short_n++;
        begin_session(drive, &drive->sessions[drive->free[--drive->free_n]]);
    }
}

static void renew_due(struct drive *drive)
{
    struct rate_clients *clients = drive->clients;

    for (; atomic_load(&clients->renewals) > 0; atomic_fetch_sub(&clients->renewals, 1)) {
        drive->sessions[drive->oldest].ends = true;
        drive->oldest = (drive->oldest + 1) % clients->options.long_n;
    }
}

static void check_sessions(struct drive *drive)
{
    for (unsigned i = 0; i < drive->session_n; i++) {
        struct session *s = &drive->sessions[i];

        if (s->state == RESTS && s->next_ms <= drive->now_ms &&
            !atomic_load(&drive->clients->stops))
            send_message(drive, s);
        if ((s->state == CONNECTS || s->state == WAITS) &&
            drive->now_ms - s->since_ms > patience_ms())
            fail_session(drive, s, &drive->clients->late, 0);
    }
}

static void handle_events(struct drive *drive)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(drive->epoll, events, EVENTS_MAX, 1);

    drive->now_ms = now_ms();
    for (int i = 0; i < n; i++) {
        struct session *s = events[i].data.ptr;

        if (s->state == CONNECTS && (events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
            finish_connect(drive, s);
        if ((events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
            read_session(drive, s);
    }
}

static bool is_any_busy(const struct drive *drive)
{
    for (unsigned i = 0; i < drive->session_n; i++)
        if (drive->sessions[i].state == CONNECTS || drive->sessions[i].state == WAITS)
            return true;
    return false;
}

static void init_drive(struct drive *drive, struct rate_clients *clients)
{
    *drive = (struct drive) { .clients = clients, .begun_ms = now_ms(), .now_ms = now_ms() };
    drive->epoll = epoll_create1(EPOLL_CLOEXEC);
    drive->session_n = clients->options.long_n + SHORT_MAX;
    drive->sessions = calloc(drive->session_n, sizeof(drive->sessions[0]));
    drive->free = calloc(SHORT_MAX, sizeof(drive->free[0]));
    if (drive->epoll == -1 || drive->sessions == NULL || drive->free == NULL)
        abort();
    for (unsigned i = 0; i < drive->session_n; i++) {
        drive->sessions[i].fd = -1;
        drive->sessions[i].stays = i < clients->options.long_n;
        if (!drive->sessions[i].stays)
            drive->free[drive->free_n++] = i;
    }
}

static void *run_clients(void *arg)
{
    struct drive drive;
    int64_t looked_ms = 0;

    init_drive(&drive, arg);
    for (unsigned i = 0; i < drive.clients->options.long_n; i++)
        begin_session(&drive, &drive.sessions[i]);
    while (!atomic_load(&drive.clients->stops) || is_any_busy(&drive)) {
        handle_events(&drive);
        if (!atomic_load(&drive.clients->stops)) {
            begin_due(&drive);
            renew_due(&drive);
        }
        if (drive.now_ms - looked_ms < 10)
            continue;
        looked_ms = drive.now_ms;
        check_sessions(&drive);
    }
    for (unsigned i = 0; i < drive.session_n; i++)
        if (drive.sessions[i].fd != -1)
            end_session(&drive.sessions[i]);
    close(drive.epoll);
    free(drive.sessions);
    free(drive.free);
    return NULL;
}

/* Allows as many descriptors as possible: all sessions may be open at once. */
static void raise_limit(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void rate_clients_start(struct rate_clients *clients, const struct rate_clients_options *options)
{
    memset(clients, 0, sizeof(*clients));
    clients->options = *options;
    raise_limit();
    ck_assert_int_eq(pthread_create(&clients->thread, NULL, run_clients, clients), 0);
    WAIT_FOR(atomic_load(&clients->exchanges) >= options->long_n);
}

void rate_clients_wait(struct rate_clients *clients, unsigned sessions)
{
    unsigned from = atomic_load(&clients->echoed);

    WAIT_FOR(atomic_load(&clients->echoed) - from >= sessions);
}

void rate_clients_renew(struct rate_clients *clients, unsigned n)
{
    atomic_fetch_add(&clients->renewals, n);
}

void rate_clients_stop(struct rate_clients *clients)
{
    atomic_store(&clients->stops, true);
    ck_assert_int_eq(pthread_join(clients->thread, NULL), 0);
}

void rate_clients_check(const struct rate_clients *clients)
{
    const char *why = strerror(atomic_load(&clients->error));

    unsigned refused = atomic_load(&clients->refused), reset = atomic_load(&clients->reset);

    ck_assert_msg(refused + reset <= clients->options.missed, "%u refused, %u reset, %s", refused,
        reset, why);
    ck_assert_msg(atomic_load(&clients->long_ended) == 0, "%u long sessions cut off, %s",
        clients->long_ended, why);
    ck_assert_uint_eq(clients->wrong, 0);
    ck_assert_uint_eq(clients->late, 0);
}
