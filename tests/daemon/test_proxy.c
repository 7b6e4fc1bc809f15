/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon as a proxy, and a second daemon as the server behind it: much data both ways, and
 * reloads, ends and upgrades of the proxy while sessions go through it. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/load_clients.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORKERS 2
#define CLIENTS 4
#define MIB ((uint64_t)1024 * 1024)
/* A prime, so that no buffer or pipe repeats bytes at the old place. */
#define PERIOD 65521

struct proxied {
    struct daemon *server, *proxy;
    uint8_t bytes[2 * PERIOD];
};

/* A client with sends and receives at once. */
struct mover {
    int fd;
    uint64_t said, heard;
};

static void configure(struct proxied *proxied, const char *main, const char *server)
{
    daemon_configure(proxied->proxy,
        "worker_processes 2; %s events {} stream { server { listen 127.0.0.1:$0; "
        "proxy_pass 127.0.0.1:%u; %s } }",
        main, (unsigned)proxied->server->ports[0], server);
}

static void start(struct proxied *proxied, const char *main, const char *server)
{
    uint32_t random = 1;

    for (unsigned i = 0; i < PERIOD; i++) {
        random = random * 1664525 + 1013904223;
        proxied->bytes[i] = proxied->bytes[PERIOD + i] = (uint8_t)(random >> 24);
    }
    proxied->server = daemon_start_new(1, "%s",
        "worker_processes 1; events {} stream { server { listen 127.0.0.1:$0; "
        "error_log error.log info; echo; } }");
    proxied->proxy = daemon_create(1);
    configure(proxied, main, server);
    daemon_start(proxied->proxy);
}

static void finish(struct proxied *proxied)
{
    if (proxied->proxy->pid != 0)
        daemon_stop(proxied->proxy, SIGTERM);
    daemon_stop(proxied->server, SIGTERM);
    daemon_finish(proxied->proxy);
    daemon_finish(proxied->server);
}

static int open_client(const struct proxied *proxied)
{
    int client = client_open(proxied->proxy->ports[0]);

    client_echo(client, "begun");
    return client;
}

static void reload(const struct proxied *proxied)
{
    ck_assert_int_eq(daemon_run(proxied->proxy, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
}

/* Sends as much as is taken at once, up to `total` bytes; false: the client can say no more. */
static bool say(const struct proxied *proxied, struct mover *mover, uint64_t total)
{
    uint64_t n = total - mover->said < PERIOD ? total - mover->said : PERIOD;
    ssize_t sent = n == 0 ? 0
                          : send(mover->fd, proxied->bytes + mover->said % PERIOD, (size_t)n,
                                MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent <= 0)
        return false;
    mover->said += (uint64_t)sent;
    return true;
}

/* Receives the available bytes, and compares; false: none now. */
static bool hear(const struct proxied *proxied, struct mover *mover)
{
    static uint8_t buffer[PERIOD];
    ssize_t n = recv(mover->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

    if (n <= 0)
        return false;
    ck_assert_int_eq(memcmp(buffer, proxied->bytes + mover->heard % PERIOD, (size_t)n), 0);
    mover->heard += (uint64_t)n;
    ck_assert_uint_le(mover->heard, mover->said);
    return true;
}

static bool move_all(const struct proxied *proxied, struct mover *movers, uint64_t total)
{
    struct pollfd polled[CLIENTS];
    bool done = true;

    for (unsigned i = 0; i < CLIENTS; i++) {
        struct mover *mover = &movers[i];

        polled[i] = (struct pollfd) { .fd = mover->fd,
            .events = mover->said < total ? POLLIN | POLLOUT : POLLIN };
        done = done && mover->heard == total;
    }
    if (done)
        return true;
    poll(polled, CLIENTS, 100);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if ((polled[i].revents & POLLOUT) != 0)
            say(proxied, &movers[i], total);
        if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            ck_assert(hear(proxied, &movers[i]));
    }
    return false;
}

static const char *const ways[] = { "", "proxy_buffer_size 512;", "proxy_half_close on;",
    "proxy_upload_rate 1000m; proxy_download_rate 1000m;" };
#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

/* Bytes go through memory first, and then through pipes of the kernel, if available. */
START_TEST(much_is_moved_both_ways)
{
    uint64_t total = is_wrapped() ? 2 * MIB : 24 * MIB;
    struct mover movers[CLIENTS];
    struct proxied proxied;
    int64_t until;

    start(&proxied, "", ways[_i]);
    for (unsigned i = 0; i < CLIENTS; i++)
        movers[i] = (struct mover) { .fd = client_open(proxied.proxy->ports[0]) };
    for (until = deadline_ms(); !move_all(&proxied, movers, total);)
        ck_assert_int_lt(now_ms(), until);
    for (unsigned i = 0; i < CLIENTS; i++) {
        ck_assert(client_is_quiet(movers[i].fd));
        client_echo(movers[i].fd, "and little");
        shutdown(movers[i].fd, SHUT_WR);
        client_expect_end(movers[i].fd);
        close(movers[i].fd);
    }
    finish(&proxied);
}
END_TEST

/* Fills all buffers between the client and itself, without reading. */
static struct mover fill(const struct proxied *proxied)
{
    struct mover mover = { .fd = client_open(proxied->proxy->ports[0]) };
    struct pollfd polled = { .fd = mover.fd, .events = POLLOUT };

    do
        while (say(proxied, &mover, UINT64_MAX))
            ;
    while (poll(&polled, 1, 200) == 1 || mover.said <= 256 * 1024);
    return mover;
}

/* The end of a waiting session loses no bytes under way. */
START_TEST(an_end_waits_for_what_is_on_the_way)
{
    struct proxied proxied;
    struct mover mover;

    start(&proxied, "", "proxy_half_close on;");
    mover = fill(&proxied);
    daemon_signal(proxied.proxy, SIGQUIT);
    WAIT_FOR(proc_child_n(proxied.proxy->pid) == 1);
    shutdown(mover.fd, SHUT_WR);
    WAIT_FOR(!hear(&proxied, &mover) && mover.heard == mover.said);
    client_expect_end(mover.fd);
    close(mover.fd);
    ck_assert_int_eq(daemon_wait(proxied.proxy), 0);
    finish(&proxied);
}
END_TEST

static bool is_gone(const struct proxied *proxied, struct mover *mover)
{
    uint8_t byte;

    while (hear(proxied, mover))
        ;
    return recv(mover->fd, &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EINTR);
}

/* The time holds for sessions at a standstill in the midst of much, and for silent ones; the server
 * is told, too. */
START_TEST(no_longer_than_the_worker_s_time)
{
    struct proxied proxied;
    struct mover mover;
    int silent, fresh;

    start(&proxied, "worker_shutdown_timeout 200ms;", "");
    mover = fill(&proxied);
    silent = open_client(&proxied);
    reload(&proxied);
    client_expect_gone(silent);
    WAIT_FOR(is_gone(&proxied, &mover));
    WAIT_FOR(proc_child_n(proxied.proxy->pid) == WORKERS);
    daemon_wait_log(proxied.server, "client disconnected, bytes from/to client:");
    daemon_wait_log(proxied.server, "client disconnected, bytes from/to client:");
    fresh = open_client(&proxied);
    close(silent);
    close(fresh);
    close(mover.fd);
    finish(&proxied);
}
END_TEST

/* Sessions go on with the current server, under any newer configuration. */
START_TEST(a_reload_leaves_sessions_where_they_are)
{
    struct proxied proxied;
    int client;

    start(&proxied, "", "");
    client = open_client(&proxied);
    daemon_configure(proxied.proxy, "worker_processes 2; events {} stream { server { "
                                    "listen 127.0.0.1:$0; return new; } }");
    reload(&proxied);
    WAIT_FOR(proc_child_n(proxied.proxy->pid) == WORKERS + 1);
    for (int i = 0; i < 5; i++)
        ck_assert_str_eq(client_read_all(client_open(proxied.proxy->ports[0])), "new");
    client_echo(client, "the server of before");
    close(client);
    WAIT_FOR(proc_child_n(proxied.proxy->pid) == WORKERS);
    finish(&proxied);
}
END_TEST

START_TEST(reloads_under_load)
{
    struct load_clients load = { 0 };
    struct proxied proxied;
    int held[CLIENTS];

    start(&proxied, "", "");
    for (unsigned i = 0; i < CLIENTS; i++)
        held[i] = open_client(&proxied);
    load_clients_start(&load, proxied.proxy->ports[0]);
    for (int i = 0; i < 4; i++) {
        configure(&proxied, "", i % 2 == 0 ? "proxy_half_close on;" : "");
        reload(&proxied);
        load_clients_wait(&load, 50);
        for (unsigned j = 0; j < CLIENTS; j++)
            client_echo(held[j], "still the same");
    }
    load_clients_stop_unharmed(&load);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(held[i]);
    WAIT_FOR(proc_child_n(proxied.proxy->pid) == WORKERS);
    finish(&proxied);
}
END_TEST

START_TEST(an_upgrade_under_load)
{
    struct load_clients load = { 0 };
    struct proxied proxied;
    int client;
    pid_t new;

    start(&proxied, "", "");
    client = open_client(&proxied);
    load_clients_start(&load, proxied.proxy->ports[0]);
    load_clients_wait(&load, 20);
    new = upgrade_start(proxied.proxy);
    load_clients_wait(&load, 50);
    daemon_signal(proxied.proxy, SIGQUIT);
    WAIT_FOR(proc_child_n(proxied.proxy->pid) == 2); /* the new one, and the session's worker */
    load_clients_wait(&load, 50);
    client_echo(client, "goes on");
    close(client);
    upgrade_wait_complete(proxied.proxy, new);
    load_clients_wait(&load, 20);
    load_clients_stop_unharmed(&load);
    finish(&proxied);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, much_is_moved_both_ways, 0, WAYS);
    tcase_add_test(tcase, an_end_waits_for_what_is_on_the_way);
    tcase_add_test(tcase, no_longer_than_the_worker_s_time);
    tcase_add_test(tcase, a_reload_leaves_sessions_where_they_are);
    tcase_add_test(tcase, reloads_under_load);
    tcase_add_test(tcase, an_upgrade_under_load);
}

TEST_MAIN("proxy", add_tests)
