/* SPDX-License-Identifier: BSD-2-Clause */
/* The host of the control socket's test: a constant status, and notes of the commands. */
#pragma once

#include "control/control.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct host {
    char directory[32], path[64];
    struct log log;
    struct clock clock;
    struct timers timers;
    struct control_socket socket;
    struct control control;
    struct listeners listeners;
    const char *refusal;
    pid_t worker, master;
    enum command taken;       /* the latest command */
    const char *server_state; /* set last; NULL: none */
    enum control_set server_refusal;
    unsigned server_n; /* more servers that each group has */
    bool has_names;
    unsigned group_n;     /* more groups */
    unsigned group_steps; /* from group to group */
    unsigned group_ends;  /* commands about groups */
};

static void fill_status(void *host, struct control_status *out)
{
    out->state = "running";
    out->configuration = "test.conf";
    out->listeners = &((struct host *)host)->listeners;
}

static bool fill_generation(void *host, unsigned i, struct control_generation *out)
{
    (void)host;
    *out = (struct control_generation) { .number = 7, .state = "live" };
    return i == 0;
}

static bool fill_worker(void *host, unsigned i, unsigned j, struct control_worker *out)
{
    (void)host;
    *out =
        (struct control_worker) { .pid = j == 0 ? 42 : 0, .state = j == 0 ? "ready" : "waiting" };
    return i == 0 && j < 2;
}

static bool fill_resolver(void *host, unsigned i, struct control_worker *out)
{
    *out = (struct control_worker) { .pid = 43, .state = "resolving", .uptime_ms = 1 };
    return ((struct host *)host)->has_names && i == 0;
}

static const char *protocol_name(void *host, unsigned i)
{
    (void)host;
    return i == 0 ? "plain" : i == 1 ? "counts" : NULL;
}

static bool fill_metric(void *host, unsigned i, unsigned j, struct control_metric *out)
{
    (void)host;
    *out = j == 0 ? (struct control_metric) { "hits", "counter", INT64_MAX }
                  : (struct control_metric) { "users", "gauge", -2 };
    return i == 1 && j < 2;
}

static const char *take_command(void *host, enum command command)
{
    struct host *self = host;

    if (self->refusal == NULL)
        self->taken = command;
    return self->refusal;
}

static bool is_worker(void *host, pid_t pid)
{
    return ((struct host *)host)->worker == pid;
}

static bool is_worker_user(void *host, uid_t uid)
{
    (void)host;
    return uid == geteuid();
}

static bool is_master(void *host, pid_t pid)
{
    return ((struct host *)host)->master == pid;
}

/* Groups that the host may have. */
#define GROUPS_MOST 1000

/* Returns the group after `before`, of which only the number counts. The first is "u". */
static const void *next_upstream(void *host, const void *before, struct control_upstream *out)
{
    static const char groups[GROUPS_MOST];
    static char name[16];
    struct host *self = host;
    size_t i = before != NULL ? (size_t)((const char *)before - groups) + 1 : 0;

    self->group_steps++;
    if (i > self->group_n)
        return NULL;
    ck_assert_uint_lt(i, GROUPS_MOST);
    snprintf(name, sizeof(name), i > 0 ? "u%zu" : "u", i);
    *out = (struct control_upstream) { .name = name, .balancer = "round_robin", .zone = "z" };
    return &groups[i];
}

static void end_upstreams(void *host)
{
    ((struct host *)host)->group_ends++;
}

static void fill_upstream_servers(void *host, const void *group,
    void (*each)(void *arg, const struct control_server *server), void *arg)
{
    const struct host *self = host;
    const struct control_server server = { .name = "127.0.0.1:1",
        .address = "127.0.0.1:1",
        .state = "up",
        .set = self->server_state != NULL ? self->server_state : "auto",
        .weight = 2,
        .sessions = 3,
        .resets = 4,
        .timeouts = 5,
        .refusals = 6,
        .slow = 7 };

    ck_assert_ptr_nonnull(group);
    each(arg, &server);
    for (unsigned j = 0; j < self->server_n; j++) {
        char name[16];

        snprintf(name, sizeof(name), "s%u:1", j / 2);
        each(arg, &(struct control_server) { .name = name });
    }
}

static void fill_upstream_names(void *host, const void *group,
    void (*each)(void *arg, const struct control_name *name), void *arg)
{
    const struct control_name answered = {
        .server = "a.test:1", .addresses = 2, .age_ms = 3000, .failed_ms = -1
    };
    const struct control_name silent = { .server = "b.test:1",
        .age_ms = -1,
        .failed_ms = 5,
        .error = "b.test: no server has answered in time" };

    ck_assert_ptr_nonnull(group);
    if (!((struct host *)host)->has_names)
        return;
    each(arg, &answered);
    each(arg, &silent);
}

static enum control_set set_upstream(
    void *host, const void *group, const char *server, const char *state)
{
    struct host *self = host;

    ck_assert_ptr_nonnull(group);
    if (self->server_refusal != CONTROL_SET_DONE)
        return self->server_refusal;
    ck_assert_str_eq(server, "127.0.0.1:1");
    self->server_state = strcmp(state, "drain") == 0 ? "drain" : "up";
    return CONTROL_SET_DONE;
}

static const struct control_ops ops = { fill_status, fill_generation, fill_worker, fill_resolver,
    protocol_name, fill_metric, next_upstream, fill_upstream_servers, fill_upstream_names,
    set_upstream, end_upstreams, take_command, is_worker, is_worker_user, is_master };

static inline void set_up(struct host *host)
{
    memset(host, 0, sizeof(*host));
    signal(SIGIO, SIG_IGN);
    strcpy(host->directory, "/tmp/fb_control.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(host->directory));
    snprintf(host->path, sizeof(host->path), "%s/sock", host->directory);
    log_init(&host->log, NULL, 0);
    host->listeners = (struct listeners) { .list = STAILQ_HEAD_INITIALIZER(host->listeners.list) };
    host->clock.mono_ms = 1000;
    timers_init(&host->timers, &host->clock, NULL);
    control_socket_init(&host->socket);
    ck_assert_int_eq(control_socket_create(&host->socket, host->path, false, &host->log), 0);
    control_init(&host->control, &ops, host, &host->socket, &host->log, &host->timers);
}

static inline void tear_down(struct host *host)
{
    control_end(&host->control);
    ck_assert_uint_eq(timers_check(&host->timers), 0);
    control_socket_remove(&host->socket, &host->log);
    ck_assert_int_eq(access(host->path, F_OK), -1);
    ck_assert_int_eq(rmdir(host->directory), 0);
}

static inline int connect_client(const struct host *host)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strcpy(address.sun_path, host->path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void send_text(struct host *host, int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), 0), (int)strlen(text));
    control_serve(&host->control);
}

/* The reply that has come, or "" where there is none yet. */
static inline const char *received(int fd)
{
    static char text[4096];
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[n > 0 ? n : 0] = '\0';
    return text;
}
