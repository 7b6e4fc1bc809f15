/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that connect, echo a line, close, and begin again. */
#include "daemon/steady_clients.h"

#include "daemon/client.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 5000000 /* pause of a client between two sessions: they are steady, and no load */

/* Whether the line came back. */
static bool run_session(in_port_t port)
{
    struct timeval patience = { .tv_sec = patience_ms() / 1000 };
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    static const char line[] = "served?";
    char reply[sizeof(line)];
    int fd = client_try(port);
    bool served;

    if (fd == -1)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* leaves no TIME_WAIT behind */
    errno = 0;
    served = send(fd, line, sizeof(line), MSG_NOSIGNAL) == sizeof(line) &&
             recv(fd, reply, sizeof(reply), MSG_WAITALL) == sizeof(reply) &&
             memcmp(line, reply, sizeof(line)) == 0;
    close(fd);
    return served;
}

static void judge_session(struct steady_clients *clients, bool served, unsigned took)
{
    unsigned slowest = atomic_load(&clients->slowest_ms);

    if (!served) {
        atomic_store(&clients->error, errno);
        atomic_fetch_add(&clients->failed, 1);
        return;
    }
    atomic_fetch_add(&clients->served, 1);
    while (took > slowest && !atomic_compare_exchange_weak(&clients->slowest_ms, &slowest, took))
        ;
}

static void *run_sessions(void *arg)
{
    struct steady_clients *clients = arg;

    while (!atomic_load(&clients->stops)) {
        int64_t begun = now_ms(), watched;
        bool served = run_session(clients->port);

        watched = atomic_load(&clients->watched_ms); /* a watch may have ended meanwhile */
        if (watched != 0 && begun >= watched)
            judge_session(clients, served, (unsigned)(now_ms() - begun));
        nanosleep(&(struct timespec) { .tv_nsec = PAUSE_NS }, NULL);
    }
    return NULL;
}

void steady_clients_start(struct steady_clients *clients, in_port_t port)
{
    memset(clients, 0, sizeof(*clients));
    clients->port = port;
    for (int i = 0; i < STEADY_CLIENTS_THREADS; i++)
        ck_assert_int_eq(pthread_create(&clients->threads[i], NULL, run_sessions, clients), 0);
}

void steady_clients_watch(struct steady_clients *clients)
{
    atomic_store(&clients->watched_ms, 0);
    atomic_store(&clients->served, 0);
    atomic_store(&clients->failed, 0);
    atomic_store(&clients->slowest_ms, 0);
    atomic_store(&clients->watched_ms, now_ms() + 1); /* new sessions are not judged */
}

void steady_clients_check(struct steady_clients *clients, const char *what, unsigned most_ms)
{
    unsigned served = atomic_load(&clients->served), failed = atomic_load(&clients->failed),
             slowest = atomic_load(&clients->slowest_ms);

    atomic_store(&clients->watched_ms, 0);
    ck_assert_msg(failed == 0 && (most_ms == 0 || slowest <= most_ms) && served > 0,
        "%s: %u clients were served within %u ms, %u were not (%s)", what, served, slowest, failed,
        strerror(atomic_load(&clients->error)));
}

void steady_clients_stop(struct steady_clients *clients)
{
    atomic_store(&clients->stops, true);
    for (int i = 0; i < STEADY_CLIENTS_THREADS; i++)
        ck_assert_int_eq(pthread_join(clients->threads[i], NULL), 0);
}
