/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that connect, echo and end in a closed loop, and count the results of sessions. */
#include "daemon/load_clients.h"

#include "daemon/client.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 2

static in_port_t own_port(int fd)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    return getsockname(fd, (struct sockaddr *)&address, &length) == 0 ? ntohs(address.sin_port) : 0;
}

static void count_lost(struct load_clients *load, in_port_t port)
{
    unsigned n = atomic_fetch_add(&load->lost_n, 1);

    if (n < LOAD_CLIENTS_LOST_MAX)
        load->lost[n] = port;
}

/* 1: the same bytes came back, 0: the server ended the session, -1: neither. */
static int echo_once(int fd, unsigned number)
{
    char sent[64], received[sizeof(sent)];
    size_t n = 0;

    memset(sent, (int)(number % 251), sizeof(sent));
    memcpy(sent, &number, sizeof(number));
    if (send(fd, sent, sizeof(sent), MSG_NOSIGNAL) != sizeof(sent))
        return errno == ECONNRESET || errno == EPIPE ? 0 : -1;
    while (n < sizeof(received)) {
        ssize_t piece = recv(fd, received + n, sizeof(received) - n, 0);

        if (piece == 0 || (piece == -1 && errno == ECONNRESET))
            return 0;
        if (piece == -1)
            return -1;
        n += (size_t)piece;
    }
    return memcmp(sent, received, sizeof(sent)) == 0 ? 1 : -1;
}

/* Mostly with a reset, which leaves no TIME_WAIT behind to fill the kernel's tables. */
static void end_session(int fd, unsigned number)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    if (number % 8 != 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

static void one_session(struct load_clients *load)
{
    int fd = client_try(load->port), status = 1;
    unsigned number;
    in_port_t port;

    if (fd == -1) {
        atomic_fetch_add(&load->refused, 1);
        return;
    }
    number = atomic_fetch_add(&load->connected, 1);
    port = own_port(fd);
    for (int i = 0; i < ROUNDS && status == 1; i++)
        status = echo_once(fd, number + (unsigned)i);
    end_session(fd, number);
    if (status == 1)
        atomic_fetch_add(&load->echoed, 1);
    else if (status == 0)
        count_lost(load, port);
    else
        atomic_fetch_add(&load->wrong, 1);
}

static void *run_sessions(void *arg)
{
    struct load_clients *load = arg;

    while (!atomic_load(&load->stops)) {
        one_session(load);
        nanosleep(&(struct timespec) { .tv_nsec = 500000 }, NULL); /* the daemon needs a CPU, too */
    }
    return NULL;
}

void load_clients_start(struct load_clients *load, in_port_t port)
{
    memset(load, 0, sizeof(*load));
    load->port = port;
    for (int i = 0; i < LOAD_CLIENTS_THREADS; i++)
        ck_assert_int_eq(pthread_create(&load->threads[i], NULL, run_sessions, load), 0);
}

void load_clients_wait(struct load_clients *load, unsigned sessions)
{
    unsigned from = atomic_load(&load->echoed);

    WAIT_FOR(atomic_load(&load->echoed) - from >= sessions);
}

void load_clients_stop(struct load_clients *load)
{
    atomic_store(&load->stops, true);
    for (int i = 0; i < LOAD_CLIENTS_THREADS; i++)
        ck_assert_int_eq(pthread_join(load->threads[i], NULL), 0);
}

void load_clients_stop_unharmed(struct load_clients *load)
{
    load_clients_stop(load);
    ck_assert_uint_eq(load->refused, 0);
    ck_assert_uint_eq(load->lost_n, 0);
    ck_assert_uint_eq(load->wrong, 0);
}

unsigned load_clients_lost_beyond(const struct load_clients *load, const struct proc_ports *victims)
{
    unsigned all = atomic_load(&load->lost_n),
             n = all > LOAD_CLIENTS_LOST_MAX ? all - LOAD_CLIENTS_LOST_MAX : 0;

    for (unsigned i = 0; i < all && i < LOAD_CLIENTS_LOST_MAX; i++)
        if (!proc_ports_have(victims, load->lost[i]))
            n++;
    return n;
}
