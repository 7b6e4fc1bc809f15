/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients counting their own sessions. A client counts from the reply of the protocol until before
 * its close, or the sight of the worker's death: all within the daemon's own time of counting. */
#include "daemon/soak_limits.h"

#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "support/random.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_S 120
#define EVENTS 256
#define RELOAD_EVERY 10 /* kills */
#define WORKERS_MOST 64

struct guest {
    int fd;
    bool sent, inside;
};

struct crowd {
    struct daemon *daemon;
    const struct soak_limits_plan *plan;
    struct guest *guests;
    int epoll;
    unsigned inside;
    bool stays;                            /* nobody leaves */
    unsigned long admitted, refused, lost; /* attempts; lost ones had a session */
    uint64_t random;
};

static void watch(const struct crowd *crowd, uint32_t i, int operation, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.u32 = i };

    ck_assert_int_eq(epoll_ctl(crowd->epoll, operation, crowd->guests[i].fd, &event), 0);
}

/* Begins to connect. */
static void come(struct crowd *crowd, uint32_t i)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
        .sin_port = htons(crowd->daemon->ports[0]),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct guest *guest = &crowd->guests[i];

    *guest = (struct guest) { .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) };
    ck_assert_int_ne(guest->fd, -1);
    if (connect(guest->fd, (struct sockaddr *)&to, sizeof(to)) == -1)
        ck_assert_int_eq(errno, EINPROGRESS);
    watch(crowd, i, EPOLL_CTL_ADD, EPOLLOUT);
}

static void leave(struct crowd *crowd, uint32_t i)
{
    struct guest *guest = &crowd->guests[i];

    crowd->inside -= guest->inside;
    guest->inside = false;
    close(guest->fd);
    guest->fd = -1;
}

/* Finds the guests inside without a worker; further guests may have taken their places. */
static void look_for_lost(struct crowd *crowd)
{
    char byte;

    for (uint32_t i = 0; i < crowd->plan->attempts; i++) {
        if (!crowd->guests[i].inside ||
            (recv(crowd->guests[i].fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN))
            continue;
        leave(crowd, i);
        crowd->lost++;
        come(crowd, i);
    }
}

static void enter(struct crowd *crowd, uint32_t i)
{
    crowd->guests[i].inside = true;
    crowd->admitted++;
    crowd->inside++;
    if (crowd->inside > crowd->plan->most)
        look_for_lost(crowd);
    ck_assert_uint_le(crowd->inside, crowd->plan->most);
}

static void serve_event(struct crowd *crowd, uint32_t i)
{
    struct guest *guest = &crowd->guests[i];
    char byte;

    if (!guest->sent) {
        if (send(guest->fd, "x", 1, MSG_NOSIGNAL) == 1) {
            guest->sent = true;
            watch(crowd, i, EPOLL_CTL_MOD, EPOLLIN);
            return;
        }
    } else {
        ssize_t n = recv(guest->fd, &byte, 1, MSG_DONTWAIT);

        if (n == -1 && errno == EAGAIN)
            return;
        if (n == 1 && !guest->inside) {
            enter(crowd, i);
            return;
        }
    }
    crowd->lost += guest->inside;
    crowd->refused += !guest->inside;
    leave(crowd, i);
    come(crowd, i);
}

/* Some of the guests inside leave, and come again. */
static void change_places(struct crowd *crowd)
{
    for (unsigned n = 0; n < 16; n++) {
        uint32_t i = random_below(&crowd->random, crowd->plan->attempts);

        if (!crowd->guests[i].inside)
            continue;
        leave(crowd, i);
        come(crowd, i);
    }
}

/* Lets clients come until so many more have had an answer. */
static void run(struct crowd *crowd, unsigned long answers)
{
    unsigned long until = crowd->admitted + crowd->refused + answers;
    time_t deadline = time(NULL) + DEADLINE_S;
    struct epoll_event events[EVENTS];

    while (crowd->admitted + crowd->refused < until) {
        int n = epoll_wait(crowd->epoll, events, EVENTS, 100);

        ck_assert_msg(time(NULL) < deadline, "clients get no answers");
        for (int e = 0; e < n; e++)
            if (crowd->guests[events[e].data.u32].fd != -1)
                serve_event(crowd, events[e].data.u32);
        if (!crowd->stays)
            change_places(crowd);
    }
}

/* Waits until as many are inside as the limit allows. */
static void fill(struct crowd *crowd)
{
    time_t deadline = time(NULL) + DEADLINE_S;

    crowd->stays = true;
    while (crowd->inside < crowd->plan->most) {
        ck_assert_msg(
            time(NULL) < deadline, "%u of %u are inside", crowd->inside, crowd->plan->most);
        run(crowd, 1);
    }
    crowd->stays = false;
}

static void kill_one(struct crowd *crowd)
{
    pid_t workers[WORKERS_MOST];
    unsigned n = proc_children(crowd->daemon->pid, workers, WORKERS_MOST);

    if (n > 0)
        kill(workers[random_below(&crowd->random, n)], SIGKILL);
}

/* Whether a client is admitted; it stays. */
static bool gets_in(const struct crowd *crowd, int *fd)
{
    char byte;

    *fd = client_open(crowd->daemon->ports[0]);
    if (send(*fd, "x", 1, MSG_NOSIGNAL) == 1 && recv(*fd, &byte, 1, 0) == 1)
        return true;
    close(*fd);
    return false;
}

/* Clients have gone: as many as the limit allows are let in again, and no more. */
static void check_room(struct crowd *crowd)
{
    int *fds = calloc(crowd->plan->most, sizeof(*fds)), other;

    ck_assert_ptr_nonnull(fds);
    for (unsigned i = 0; i < crowd->plan->most; i++)
        WAIT_FOR(gets_in(crowd, &fds[i]));
    for (unsigned i = 0; i < 20; i++)
        ck_assert(!gets_in(crowd, &other));
    for (unsigned i = 0; i < crowd->plan->most; i++) {
        client_echo(fds[i], "y"); /* none was closed for another */
        close(fds[i]);
    }
    free(fds);
}

static void start(struct crowd *crowd)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    crowd->daemon = daemon_create(1);
    daemon_expects(crowd->daemon, "exited on signal 9");
    daemon_expects(crowd->daemon, " about worker "); /* lines that were held back */
    daemon_configure(crowd->daemon,
        "worker_processes %u;\nevents { worker_connections %u; multi_accept on; }\n"
        "stream { limit_conn_zone $server_addr zone=all:1m; limit_conn_log_level info;\n"
        "server { listen 127.0.0.1:$0 backlog=4096; limit_conn all %u; echo; } }\n",
        crowd->plan->workers, crowd->plan->attempts + 100, crowd->plan->most);
    daemon_start(crowd->daemon);
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    crowd->guests = calloc(crowd->plan->attempts, sizeof(*crowd->guests));
    ck_assert_int_ne(crowd->epoll, -1);
    ck_assert_ptr_nonnull(crowd->guests);
    for (uint32_t i = 0; i < crowd->plan->attempts; i++)
        come(crowd, i);
}

void soak_limits(const struct soak_limits_plan *plan)
{
    struct crowd crowd = { .plan = plan, .random = random_seed() };

    start(&crowd);
    fill(&crowd);
    for (unsigned i = 0; i < plan->kills; i++) {
        kill_one(&crowd);
        if (i % RELOAD_EVERY ==
            RELOAD_EVERY - 1) /* no kill meanwhile: not all children are workers */
            ck_assert(control_is_ok(control_ask(crowd.daemon, "reload")));
        run(&crowd, plan->attempts / 5);
    }
    fill(&crowd);
    for (uint32_t i = 0; i < plan->attempts; i++)
        leave(&crowd, i);
    check_room(&crowd);
    ck_assert_uint_eq(daemon_count_log(crowd.daemon, "the limit was damaged"), 0);
    close(crowd.epoll);
    free(crowd.guests);
    daemon_stop(crowd.daemon, SIGQUIT);
    daemon_finish(crowd.daemon);
    printf("limits: %u workers killed, %lu sessions let in, %lu refused, %lu lost, never more than "
           "%u at once\n",
        plan->kills, crowd.admitted, crowd.refused, crowd.lost, plan->most);
}
