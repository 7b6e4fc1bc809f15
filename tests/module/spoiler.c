/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that spoils the shared state of accepting, by a client's letter: like a worker in an
 * attacker's hands. Knows the daemon's insides; unknown letters are echoed. */
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <forkbeard/forkbeard.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS 256
#define LINGER_S 3600     /* longer than any test waits */
#define FORGING_MS 120000 /* longer than any client of a test waits */

static atomic_bool stopped;

static bool is_listener(int fd)
{
    int listens = 0;
    socklen_t length = sizeof(listens);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens;
}

static void shut_listeners(int how)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (is_listener(fd))
            shutdown(fd, how);
}

/* The TCP listeners, and the address of each for clients. */
struct targets {
    int fds[DESCRIPTORS];
    struct sockaddr_storage addresses[DESCRIPTORS];
    unsigned n;
};

static void find_targets(struct targets *targets)
{
    targets->n = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct sockaddr_storage *address = &targets->addresses[targets->n];
        socklen_t length = sizeof(*address);

        if (!is_listener(fd) || getsockname(fd, (struct sockaddr *)address, &length) == -1 ||
            address->ss_family != AF_INET)
            continue;
        targets->fds[targets->n++] = fd;
    }
}

/* Makes any close of a connection accepted from now on wait for the client. */
static void make_linger(void)
{
    static const struct linger slow = { .l_onoff = 1, .l_linger = LINGER_S };
    static struct targets targets;

    find_targets(&targets);
    for (unsigned i = 0; i < targets.n; i++)
        setsockopt(targets.fds[i], SOL_SOCKET, SO_LINGER, &slow, sizeof(slow));
}

/* Makes every listener a client of the next, which does not read, and whose close waits. Connects
 * within the sandbox's rights: with a call, or with the first bytes. */
static void connect_listeners(void)
{
    static const struct linger slow = { .l_onoff = 1, .l_linger = LINGER_S };
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    static struct targets targets;
    static char bytes[1 << 16];

    find_targets(&targets);
    for (unsigned i = 0; i < targets.n; i++) {
        struct sockaddr *to = (struct sockaddr *)&targets.addresses[(i + 1) % targets.n];
        int fd = targets.fds[i];

        setsockopt(fd, SOL_SOCKET, SO_LINGER, &slow, sizeof(slow));
        if (connect(fd, &nowhere, sizeof(nowhere.sa_family)) == -1)
            shutdown(fd, SHUT_RD);
        if (connect(fd, to, sizeof(struct sockaddr_in)) == -1 && errno != EINPROGRESS)
            sendto(fd, bytes, 1, MSG_FASTOPEN | MSG_DONTWAIT | MSG_NOSIGNAL, to,
                sizeof(struct sockaddr_in));
        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            continue;
    }
}

/* Sets options that stop a listener, or harm the servers of inherited clients. */
static void set_options(void)
{
    static const struct linger slow = { .l_onoff = 1, .l_linger = LINGER_S };
    static const struct {
        int level, option, value;
    } options[] = {
        { SOL_SOCKET, SO_RCVLOWAT, 1 << 20 },
        { SOL_SOCKET, SO_MAX_PACING_RATE, 1 },
        { SOL_SOCKET, SO_RCVBUF, 1 },
        { SOL_SOCKET, SO_SNDBUF, 1 },
        { IPPROTO_TCP, TCP_DEFER_ACCEPT, 1000 },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, 1 },
        { IPPROTO_TCP, TCP_CORK, 1 },
        { IPPROTO_IP, IP_MINTTL, 255 },
    };
    static struct targets targets;

    find_targets(&targets);
    for (unsigned i = 0; i < targets.n; i++) {
        setsockopt(targets.fds[i], SOL_SOCKET, SO_LINGER, &slow, sizeof(slow));
        for (unsigned j = 0; j < sizeof(options) / sizeof(options[0]); j++)
            setsockopt(targets.fds[i], options[j].level, options[j].option, &options[j].value,
                sizeof(int));
        fcntl(targets.fds[i], F_SETFL, 0);
    }
}

static void forge_owner(fb_worker *worker, uint64_t word)
{
    atomic_store(&worker->worker->heritage->shared->common->accept_mutex.word, word);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Overwrites the owner in a tight loop: by names of all slots and varying turns. */
static void forge_on(void *job)
{
    fb_worker *worker = *(fb_worker **)job;
    uint64_t until = now_ms() + FORGING_MS;

    for (uint32_t turn = 0; now_ms() < until && !stopped; turn++)
        forge_owner(worker, (uint64_t)(1 + turn % 5) << 32 | turn << SLOT_BITS | turn % 4);
}

/* Overwrites the owner by the worker's own name: a forged endless turn. */
static void hold_on(void *job)
{
    fb_worker *worker = *(fb_worker **)job;
    uint64_t until = now_ms() + FORGING_MS;

    for (uint32_t turn = 0; now_ms() < until && !stopped; turn++)
        forge_owner(worker, shm_lock_word(worker->worker->heritage->slot, turn));
}

/* Claims that the worker takes clients and has `clients` of them, unchanged by clients, and has
 * left listeners to all workers; rings all workers, and fills the counts. */
static void lie_on(fb_worker *worker, uint64_t clients)
{
    const struct bells *bells = worker->worker->heritage->bells;
    struct slot *slot =
        shared_slot(worker->worker->heritage->shared, worker->worker->heritage->slot);
    uint64_t own = slot->counters.n[COUNTER_ACTIVE], until = now_ms() + FORGING_MS;
    static const uint64_t most = UINT64_MAX - 1;
    uint64_t count;

    for (uint32_t i = 0; now_ms() < until && !stopped; i++) {
        slot->counters.n[COUNTER_ACTIVE] = clients;
        slot->load.takes = UINT32_MAX;
        slot->load.to = i % 5;
        slot->load.passed = i % 3 == 0 ? UINT32_MAX : i % DESCRIPTORS;
        if (write(bells->fds[i % bells->n], &most, sizeof(most)) == -1 &&
            read(bells->fds[i % bells->n], &count, sizeof(count)) == -1)
            break;
        nanosleep(&(struct timespec) { .tv_nsec = 100000 }, NULL); /* others shall run, too */
    }
    slot->counters.n[COUNTER_ACTIVE] = own;
}

static void have_none(void *job)
{
    lie_on(*(fb_worker **)job, 0);
}

static void have_most(void *job)
{
    lie_on(*(fb_worker **)job, UINT64_MAX);
}

static void done_lying(fb_worker *worker, void *job)
{
    (void)worker;
    (void)job;
}

static void done_forging(fb_worker *worker, void *job)
{
    (void)job;
    forge_owner(worker, UINT64_MAX);
}

static void handle_command(fb_conn *conn, uint8_t letter)
{
    fb_worker *worker = fb_worker_of(conn);

    switch (letter) {
    case 'l':
        shut_listeners(SHUT_RDWR);
        break;
    case 'r':
        shut_listeners(SHUT_RD);
        break;
    case 'c':
        connect_listeners();
        break;
    case 'p':
        set_options();
        break;
    case 'g':
        make_linger();
        break;
    case 'k':
        kill(getpid(), SIGKILL);
        break;
    case 'o':
        forge_owner(worker, UINT64_MAX);
        break;
    case 'f':
        fb_run(worker, forge_on, done_forging, &worker, sizeof(worker));
        break;
    case 'h':
        fb_run(worker, hold_on, done_forging, &worker, sizeof(worker));
        break;
    case 'N':
        fb_run(worker, have_none, done_lying, &worker, sizeof(worker));
        break;
    case 'M':
        fb_run(worker, have_most, done_lying, &worker, sizeof(worker));
        break;
    case 's':
        stopped = true;
        break;
    default:
        break;
    }
    fb_write(conn, &letter, 1);
}

static size_t spoiler_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    for (size_t i = 0; i < in.n; i++)
        handle_command(conn, in.p[i]);
    return in.n;
}

static const fb_directive directives[] = {
    { .name = "spoiler", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = spoiler_data };

FB_PROTOCOL(spoiler) = {
    FB_PROTOCOL_HEADER,
    .name = "spoiler",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};
