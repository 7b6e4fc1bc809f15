/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens very many idle connections from separate processes, and reopens ended ones. */
#include "daemon/idle_clients.h"

#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 256

struct member {
    int fd;
    in_port_t port;
};

static void connect_client(struct member *member, int epoll, struct idle_clients_counts *counts)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = member };

    member->fd = client_try(member->port);
    if (member->fd == -1 || epoll_ctl(epoll, EPOLL_CTL_ADD, member->fd, &event) == -1)
        atomic_fetch_add(&counts->refused, 1);
    else
        atomic_fetch_add(&counts->open, 1);
}

/* With a reset, which leaves no TIME_WAIT behind. */
static void disconnect_client(struct member *member, struct idle_clients_counts *counts)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(member->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(member->fd);
    atomic_fetch_sub(&counts->open, 1);
}

static void use_all_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
        _exit(1);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Until it is killed. */
static void be_clients(
    const in_port_t ports[IDLE_CLIENTS_PORTS], unsigned n, struct idle_clients_counts *counts)
{
    struct member *members = calloc(n, sizeof(*members));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS_MAX];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    use_all_descriptors();
    if (members == NULL || epoll == -1)
        _exit(1);
    for (unsigned i = 0; i < n; i++) {
        members[i].port = ports[i % IDLE_CLIENTS_PORTS];
        connect_client(&members[i], epoll, counts);
    }
    for (;;) {
        int event_n = epoll_wait(epoll, events, EVENTS_MAX, -1);

        for (int i = 0; i < event_n; i++) {
            disconnect_client(events[i].data.ptr, counts);
            connect_client(events[i].data.ptr, epoll, counts);
            atomic_fetch_add(&counts->returned, 1);
        }
    }
}

void idle_clients_start(
    struct idle_clients *clients, const in_port_t ports[IDLE_CLIENTS_PORTS], unsigned sessions)
{
    unsigned before;

    clients->counts = mmap(
        NULL, sizeof(*clients->counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(clients->counts, MAP_FAILED);
    for (unsigned i = 0; i < IDLE_CLIENTS_PROCESSES; i++) {
        clients->pids[i] = fork();
        ck_assert_int_ne(clients->pids[i], -1);
        if (clients->pids[i] == 0)
            be_clients(ports, sessions / IDLE_CLIENTS_PROCESSES, clients->counts);
    }
    while ((before = atomic_load(&clients->counts->open)) < sessions)
        WAIT_FOR(atomic_load(&clients->counts->open) > before);
}

void idle_clients_stop(struct idle_clients *clients)
{
    for (unsigned i = 0; i < IDLE_CLIENTS_PROCESSES; i++) {
        ck_assert_int_eq(kill(clients->pids[i], SIGKILL), 0);
        ck_assert_int_eq(proc_wait(clients->pids[i]), 128 + SIGKILL);
    }
    munmap(clients->counts, sizeof(*clients->counts));
}
