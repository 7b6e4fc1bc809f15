/* SPDX-License-Identifier: BSD-2-Clause */
/* One process of the load generator: its connections, in one epoll loop. At a fixed rate an
 * operation has an intended time, and the latency counts from there, even after a later beginning:
 * a stalling server is charged for every delayed operation. */
#include "bench/load.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 512
/* Connections of all processes waiting for their first echo: fewer than a server's backlog. */
#define OPENING_MAX 256

/* Connections from one source address: with many more the kernel has long to search for a free
 * port. */
#define PER_ADDRESS 4000

#define SILENCE_NS 30000000000ull
#define WAIT_NS 50000000ull /* between looks at the phase */
#define RECEIVE_MAX (256 * 1024)

struct client {
    int fd;                  /* -1: none */
    bool greeted;            /* the first echo opens the connection */
    bool writes;             /* EPOLLOUT is armed */
    uint64_t due;            /* messages begun */
    uint64_t sent, received; /* bytes */
    uint64_t *begun_ns;      /* of the last `depth` messages, where no rate intends their times */
};

struct run {
    const struct load *load;
    struct load_shared *shared;
    struct load_process *own;
    unsigned index;
    int epoll;
    struct client *clients;
    unsigned client_n, opened, opening;
    uint64_t budget, issued, done; /* operations: of this process, begun, ended */
    uint64_t begun_ns, interval_ns, progress_ns;
    uint64_t sources; /* connections opened so far; they choose the source address */
    char *out, *in;
};

uint64_t load_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static enum load_phase phase_of(const struct run *run)
{
    return (enum load_phase)atomic_load_explicit(&run->shared->phase, memory_order_relaxed);
}

static void count_operation(struct run *run, uint64_t since_ns, uint64_t now_ns)
{
    run->done++;
    run->progress_ns = now_ns;
    atomic_store_explicit(&run->own->operations, run->done, memory_order_relaxed);
    if (phase_of(run) == LOAD_MEASURES || run->load->operations != 0)
        histogram_add(&run->own->histogram, now_ns > since_ns ? now_ns - since_ns : 0);
}

static void watch(struct run *run, struct client *client, bool writes)
{
    struct epoll_event event = { .events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = client };

    client->writes = writes;
    if (epoll_ctl(run->epoll, EPOLL_CTL_MOD, client->fd, &event) == -1)
        err(1, "epoll_ctl");
}

/* The processes have separate addresses 127.I.x.y; the kernel chooses the ports. */
static void bind_source(struct run *run, int fd)
{
    uint64_t k = run->load->kind == LOAD_ECHO ? run->sources / PER_ADDRESS : run->sources % 64;
    struct sockaddr_in from = { .sin_family = AF_INET };
    int on = 1;

    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + ((run->index + 1) << 16) + (uint32_t)k);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == -1)
        err(1, "bind");
    run->sources++;
}

static void open_client(struct run *run, struct client *client)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    if (fd == -1)
        err(1, "socket");
    bind_source(run, fd);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (const struct sockaddr *)&run->load->to, sizeof(run->load->to)) == -1 &&
        errno != EINPROGRESS)
        err(1, "connect");
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &event) == -1)
        err(1, "epoll_ctl");
    client->fd = fd;
    client->sent = client->received = client->due = 0;
    client->greeted = client->writes = false;
}

static void close_client(struct client *client)
{
    close(client->fd);
    client->fd = -1;
}

static void fail_client(struct run *run, struct client *client)
{
    atomic_fetch_add_explicit(&run->own->errors, 1, memory_order_relaxed);
    if (!client->greeted && run->load->kind == LOAD_ECHO)
        err(1, "connection %u failed before its first echo", run->opened);
    close_client(client);
}

/* Sends what the begun messages have left; the rest when there is room. */
static void send_due(struct run *run, struct client *client)
{
    uint64_t total = client->due * run->load->size;

    while (client->sent < total) {
        size_t n = total - client->sent < RECEIVE_MAX ? total - client->sent : RECEIVE_MAX;
        ssize_t sent = send(client->fd, run->out, n, MSG_NOSIGNAL);

        if (sent == -1 && errno != EAGAIN && errno != ENOTCONN) {
            fail_client(run, client);
            return;
        }
        if (sent == -1) {
            if (!client->writes)
                watch(run, client, true);
            return;
        }
        client->sent += (uint64_t)sent;
    }
    if (client->writes)
        watch(run, client, false);
}

static bool may_begin(const struct run *run)
{
    return run->issued < run->budget && phase_of(run) != LOAD_STOPS;
}

/* Begins a message of an open connection; the caller sends it. */
static void begin_message(struct run *run, struct client *client, uint64_t now_ns)
{
    run->issued++;
    if (client->begun_ns != NULL)
        client->begun_ns[client->due % run->load->depth] = now_ns;
    client->due++;
}

/* When message `number` of the client began, or should have. */
static uint64_t begun_of(const struct run *run, const struct client *client, uint64_t number)
{
    if (run->load->rate > 0) {
        uint64_t turn = number * run->client_n + (uint64_t)(client - run->clients);

        return run->begun_ns + turn * run->interval_ns;
    }
    return client->begun_ns[number % run->load->depth];
}

static void take_echo(struct run *run, struct client *client, size_t n, uint64_t now_ns)
{
    uint64_t number = client->received / run->load->size, end;

    client->received += n;
    if (!client->greeted) {
        if (client->received < run->load->size)
            return;
        client->greeted = true;
        client->due = client->sent = client->received = 0;
        run->opening--;
        run->opened++;
        run->progress_ns = now_ns;
        return;
    }
    end = client->received / run->load->size;
    for (; number < end; number++) {
        count_operation(run, begun_of(run, client, number), now_ns);
        if (run->load->rate <= 0 && may_begin(run))
            begin_message(run, client, now_ns);
    }
    send_due(run, client);
}

/* Begins a whole connection, as of `since_ns`. */
static void begin_connection(struct run *run, struct client *client, uint64_t since_ns)
{
    run->issued++;
    open_client(run, client);
    client->begun_ns[0] = since_ns;
    if (run->load->kind == LOAD_MESSAGE) {
        client->due = 1;
        send_due(run, client);
    }
}

static void end_connection(struct run *run, struct client *client, uint64_t now_ns)
{
    close_client(client);
    count_operation(run, client->begun_ns[0], now_ns);
    if (run->load->rate <= 0 && may_begin(run))
        begin_connection(run, client, load_now());
}

/* Every `size` bytes are an operation, timed from the operation before. */
static void take_bulk(struct run *run, struct client *client, size_t n, uint64_t now_ns)
{
    client->received += n;
    while (client->received >= run->load->size) {
        count_operation(run, client->begun_ns[0], now_ns);
        client->begun_ns[0] = now_ns;
        client->received -= run->load->size;
    }
}

/* One read, mostly enough; the rest is reported again. */
static void on_readable(struct run *run, struct client *client)
{
    ssize_t n = recv(client->fd, run->in, RECEIVE_MAX, 0);
    enum load_kind kind = run->load->kind;

    if (n == -1 && errno == EAGAIN)
        return;
    if (n == 0)
        errno = 0; /* the end, and no error */
    if (n == -1 || (n == 0 && kind != LOAD_RETURN)) {
        fail_client(run, client);
        if (kind >= LOAD_RETURN && run->load->rate <= 0 && may_begin(run))
            begin_connection(run, client, load_now());
    } else if (kind == LOAD_ECHO) {
        take_echo(run, client, (size_t)n, load_now());
    } else if (kind == LOAD_BULK) {
        take_bulk(run, client, (size_t)n, load_now());
    } else if (kind == LOAD_MESSAGE) {
        client->received += (uint64_t)n;
        if (client->received >= run->load->size)
            end_connection(run, client, load_now());
    } else if (n == 0) {
        end_connection(run, client, load_now());
    }
}

static void wait_events(struct run *run, uint64_t ns)
{
    struct timespec time = { .tv_sec = (time_t)(ns / 1000000000ull),
        .tv_nsec = (long)(ns % 1000000000ull) };
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_pwait2(run->epoll, events, EVENTS_MAX, &time, NULL);

    if (n == -1 && errno != EINTR)
        err(1, "epoll_pwait2");
    for (int i = 0; i < n; i++) {
        struct client *client = events[i].data.ptr;

        if (client->fd != -1 && (events[i].events & EPOLLOUT))
            send_due(run, client);
        if (client->fd != -1 && (events[i].events & ~(uint32_t)EPOLLOUT))
            on_readable(run, client);
    }
}

static void check_progress(const struct run *run)
{
    if (load_now() > run->progress_ns + SILENCE_NS)
        errx(1, "the server has not answered for %llu s", SILENCE_NS / 1000000000ull);
}

/* Opens all connections, and has a message echoed on each. */
static void open_all(struct run *run)
{
    double rate = run->load->open_rate / run->load->processes;
    unsigned opening_max = OPENING_MAX / run->load->processes;
    uint64_t begun_ns = load_now();
    unsigned n = 0;

    run->progress_ns = begun_ns;
    while (run->opened < run->client_n) {
        uint64_t may =
            rate > 0 ? (uint64_t)((double)(load_now() - begun_ns) / 1e9 * rate) + 1 : run->client_n;

        for (; n < run->client_n && n < may && run->opening < opening_max; n++) {
            open_client(run, &run->clients[n]);
            run->opening++;
            run->clients[n].due = 1;
            send_due(run, &run->clients[n]);
        }
        wait_events(run, rate > 0 && n < run->client_n ? 200000 : WAIT_NS);
        check_progress(run);
    }
}

static struct client *idle_client(struct run *run)
{
    for (unsigned i = 0; i < run->client_n; i++)
        if (run->clients[i].fd == -1)
            return &run->clients[i];
    return NULL;
}

/* Begins all due operations; returns the nanoseconds until the next. */
static uint64_t begin_intended(struct run *run, uint64_t now_ns)
{
    while (may_begin(run)) {
        uint64_t intended = run->begun_ns + run->issued * run->interval_ns;
        struct client *client;

        if (intended > now_ns)
            return intended - now_ns < WAIT_NS ? intended - now_ns : WAIT_NS;
        client = run->load->kind == LOAD_ECHO ? &run->clients[run->issued % run->client_n]
                                              : idle_client(run);
        if (client == NULL)
            return WAIT_NS;
        if (run->load->kind != LOAD_ECHO) {
            begin_connection(run, client, intended);
        } else {
            begin_message(run, client, intended);
            if (client->fd != -1)
                send_due(run, client);
        }
    }
    return WAIT_NS;
}

static void begin_all(struct run *run)
{
    for (unsigned i = 0; i < run->client_n; i++) {
        struct client *client = &run->clients[i];

        if (run->load->kind != LOAD_ECHO) {
            if (may_begin(run))
                begin_connection(run, client, load_now());
            continue;
        }
        for (unsigned k = 0; k < run->load->depth && may_begin(run); k++)
            begin_message(run, client, load_now());
        send_due(run, client);
    }
}

static unsigned part_of(unsigned total, unsigned parts, unsigned index)
{
    return total / parts + (index < total % parts);
}

static void init(struct run *run)
{
    const struct load *load = run->load;

    run->own = &run->shared->processes[run->index];
    run->client_n = part_of(load->connections, load->processes, run->index);
    run->budget = load->operations == 0 ? UINT64_MAX
                                        : load->operations / load->processes +
                                              (run->index < load->operations % load->processes);
    if (load->rate > 0)
        run->interval_ns = (uint64_t)(1e9 * load->processes / load->rate);
    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    run->clients = calloc(run->client_n + 1, sizeof(*run->clients));
    run->out = malloc(RECEIVE_MAX);
    run->in = malloc(RECEIVE_MAX);
    if (run->epoll == -1 || run->clients == NULL || run->out == NULL || run->in == NULL)
        err(1, "epoll, memory");
    memset(run->out, 'x', RECEIVE_MAX);
    for (unsigned i = 0; i < run->client_n; i++) {
        run->clients[i].fd = -1;
        if (load->rate > 0 && load->kind == LOAD_ECHO)
            continue;
        run->clients[i].begun_ns = calloc(load->depth, sizeof(uint64_t));
        if (run->clients[i].begun_ns == NULL)
            err(1, "memory");
    }
}

void load_client_run(const struct load *load, struct load_shared *shared, unsigned index)
{
    struct run run = { .load = load, .shared = shared, .index = index };

    init(&run);
    if (load->kind == LOAD_ECHO)
        open_all(&run);
    atomic_store(&run.own->ready, true);
    while (phase_of(&run) == LOAD_OPENS)
        usleep(1000);
    if (load->holds || phase_of(&run) == LOAD_STOPS)
        return;
    run.progress_ns = load_now();
    run.begun_ns = atomic_load(&shared->begun) + index * run.interval_ns / load->processes;
    if (load->rate <= 0)
        begin_all(&run);
    while (phase_of(&run) != LOAD_STOPS && run.done < run.budget) {
        wait_events(&run, load->rate > 0 ? begin_intended(&run, load_now()) : WAIT_NS);
        check_progress(&run);
    }
}
