/* SPDX-License-Identifier: BSD-2-Clause */
/* The host of the control socket's test: a pool with a generation, of which no process runs, and
 * notes of the commands. Groups, zones and metrics have the values of this file. */
#pragma once

#include "control/control.h"
#include "session/stream.h"
#include "shm/metrics.h"
#include "support/test.h"
#include "upstream/addresses.h"
#include "upstream/status.h"
#include "upstream/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORKERS 2 /* and a resolver process, with has_names */
#define GROUPS_MOST 1000

struct host {
    char directory[32], path[64];
    struct log log;
    struct clock clock;
    struct timers timers;
    struct control_socket sockets[CONTROL_SOCKETS];
    struct control control;
    struct cycle cycle;
    struct pool pool;
    struct generation *generation;
    struct server servers[2];
    struct zone metrics;
    struct upstream_zone zone;
    struct fb_target target;
    struct upstream *groups;
    struct upstream_server *group_servers; /* three of each group */
    const char *refusal;
    const char *problem; /* of the host; NULL: none */
    unsigned reports_asked;
    unsigned levels_set; /* levels of the logs; the text of the latest */
    char level_text[128];
    pid_t master;
    enum command taken;            /* the latest command */
    enum upstream_operator set_to; /* set last */
    int set_error;                 /* errno of a failure */
    enum peer_health health;       /* of the first server */
    unsigned server_n;             /* more servers that each group has */
    bool has_names;
    unsigned group_ends; /* groups that were forgotten */
};

static struct host *current; /* the host of the test that runs */

static bool write_head(void *host, struct json *json)
{
    (void)host;
    json_string(json, "state", "running");
    return false;
}

static void add_problems(void *host, struct problems *problems)
{
    if (((struct host *)host)->problem != NULL)
        problem_add(problems, PROBLEM_WARNING, "what to do", "%s", ((struct host *)host)->problem);
}

static void write_tail(void *host, struct json *json)
{
    (void)host;
    json_null(json, "pending");
}

/* In place of the functions of zones: */

int64_t __wrap_shm_metrics_total(
    const struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t metric);
int __wrap_upstream_status_read(const struct upstream *upstream, uint64_t now_ms,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg);
void __wrap_upstream_status_forget(struct upstream_zone *zone);
enum upstream_operator __wrap_upstream_operator_said(
    const struct upstream_zone *zone, const struct upstream_place *place, uint64_t *since_ms);
int __wrap_upstream_operator_set(const struct upstream *upstream, const char *server,
    enum upstream_operator to, uint64_t now_ms);
struct addresses_key __wrap_addresses_key_of(
    const struct upstream *upstream, const struct upstream_server *server);
uint32_t __wrap_addresses_find(const struct zone *zone, const struct addresses_key *key);
bool __wrap_addresses_read_state(const struct zone *zone, uint32_t entry,
    const struct addresses_key *key, struct addresses_state *state);

int64_t __wrap_shm_metrics_total(
    const struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t metric)
{
    (void)metrics;
    (void)shape;
    return metric == 0 ? INT64_MAX : -2;
}

int __wrap_upstream_status_read(const struct upstream *upstream, uint64_t now_ms,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg)
{
    struct upstream_numbers numbers = { .server = STAILQ_FIRST(&upstream->servers),
        .address = "127.0.0.1:1",
        .is_used = true,
        .said = current->set_to,
        .health = current->health,
        .sessions = 3,
        .troubles = {
            [PEER_RESET] = 4, [PEER_TIMED_OUT] = 5, [PEER_REFUSED] = 6, [PEER_SLOW] = 7 } };

    ck_assert_uint_eq(now_ms, current->clock.mono_ms);
    if (upstream->zone == NULL)
        return -1;
    each(arg, &numbers);
    for (unsigned i = 0; i < current->server_n; i++) {
        char name[16];
        const struct upstream_server more = { .name = name };

        snprintf(name, sizeof(name), "s%u:1", i / 2);
        each(arg, &(struct upstream_numbers) { .server = &more });
    }
    return 0;
}

void __wrap_upstream_status_forget(struct upstream_zone *zone)
{
    ck_assert_ptr_eq(zone, &current->zone);
    current->group_ends++;
}

enum upstream_operator __wrap_upstream_operator_said(
    const struct upstream_zone *zone, const struct upstream_place *place, uint64_t *since_ms)
{
    (void)zone;
    (void)place;
    (void)since_ms;
    return UPSTREAM_AUTO;
}

int __wrap_upstream_operator_set(
    const struct upstream *upstream, const char *server, enum upstream_operator to, uint64_t now_ms)
{
    (void)now_ms;
    ck_assert_ptr_nonnull(upstream->zone);
    ck_assert_str_eq(server, "127.0.0.1:1");
    errno = current->set_error;
    if (errno != 0)
        return -1;
    current->set_to = to;
    return 0;
}

struct addresses_key __wrap_addresses_key_of(
    const struct upstream *upstream, const struct upstream_server *server)
{
    (void)upstream;
    return (struct addresses_key) { { (uint64_t)server->name[0] } };
}

uint32_t __wrap_addresses_find(const struct zone *zone, const struct addresses_key *key)
{
    (void)zone;
    (void)key;
    return 0;
}

bool __wrap_addresses_read_state(const struct zone *zone, uint32_t entry,
    const struct addresses_key *key, struct addresses_state *state)
{
    (void)zone;
    (void)entry;
    if (key->part[0] == 'a')
        *state = (struct addresses_state) { .n = 2, .answered_ms = current->clock.mono_ms - 3000 };
    else
        *state = (struct addresses_state) { .failed_ms = current->clock.mono_ms - 5,
            .why = "b.test: no server has answered in time" };
    return true;
}

static const char *take_command(void *host, enum command command)
{
    struct host *self = host;

    if (self->refusal == NULL)
        self->taken = command;
    return self->refusal;
}

static bool is_master(void *host, pid_t pid)
{
    return ((struct host *)host)->master == pid;
}

static const char *ask_certificates(void *host)
{
    ((struct host *)host)->reports_asked++;
    return ((struct host *)host)->refusal;
}

static void set_log_level(void *host, uint32_t override, int64_t ms, const char *text)
{
    struct host *self = host;
    struct pool_log_level *level = &self->pool.log_level;

    self->levels_set++;
    snprintf(self->level_text, sizeof(self->level_text), "%s", text);
    level->override = override;
    level->until_ms = ms > 0 ? self->clock.wall_ms + ms : 0;
    level->end.deadline = ms > 0 ? self->clock.mono_ms + (uint64_t)ms : 0;
}

static bool list_sessions(void *host, pid_t worker, int pipe)
{
    struct host *self = host;

    ck_assert_int_ne(fcntl(pipe, F_GETFL) & O_NONBLOCK, 0);
    return worker == self->generation->workers[0].pid && write(pipe, "row\n", 4) == 4;
}

static const struct control_ops ops = { write_head, add_problems, write_tail, take_command,
    is_master, ask_certificates, set_log_level, list_sessions };

/* Adds groups, the first named "u", with a server each. */
static inline void add_groups(struct host *host, unsigned n)
{
    static char names[GROUPS_MOST][16];
    struct upstream_list *list = &host->cycle.stream.upstreams;
    unsigned i = 0;

    while (i < GROUPS_MOST && host->groups[i].name != NULL)
        i++;
    for (n += i; i < n; i++) {
        struct upstream *group = &host->groups[i];
        struct upstream_server *server = &host->group_servers[3 * i];

        ck_assert_uint_lt(i, GROUPS_MOST);
        snprintf(names[i], sizeof(names[i]), i > 0 ? "u%u" : "u", i);
        group->name = names[i];
        group->zone = &host->zone;
        STAILQ_INIT(&group->servers);
        *server = (struct upstream_server) {
            .name = "127.0.0.1:1", .target = &host->target, .weight = 2
        };
        STAILQ_INSERT_TAIL(&group->servers, server, link);
        STAILQ_INSERT_TAIL(list, group, link);
    }
}

/* Adds two servers with names to the first group, and a resolver process. */
static inline void add_names(struct host *host)
{
    host->has_names = true;
    host->generation->worker_n = WORKERS + 1;
    for (unsigned i = 1; i <= 2; i++) {
        host->group_servers[i].name = i == 1 ? "a.test:1" : "b.test:1";
        STAILQ_INSERT_TAIL(&host->groups[0].servers, &host->group_servers[i], link);
    }
}

/* The cycle with two protocols, the second with metrics. */
static inline void set_up_cycle(struct host *host)
{
    static const fb_metric metrics[] = { { .name = "hits", .kind = FB_COUNTER },
        { .name = "users", .kind = FB_GAUGE } };
    static const fb_protocol plain = { .name = "plain" };
    static const fb_protocol counts = { .name = "counts", .metrics = metrics, .metric_n = 2 };
    struct cycle *cycle = &host->cycle;

    STAILQ_INIT(&cycle->stream.listeners.list);
    STAILQ_INIT(&cycle->stream.servers);
    STAILQ_INIT(&cycle->stream.upstreams);
    host->servers[0].protocol = &plain;
    host->servers[1].protocol = &counts;
    host->servers[1].protocol_index = 1;
    host->servers[1].metrics = &host->metrics;
    for (unsigned i = 0; i < 2; i++)
        STAILQ_INSERT_TAIL(&cycle->stream.servers, &host->servers[i], link);
}

static inline void set_up_pool(struct host *host)
{
    size_t size = sizeof(struct generation) + (WORKERS + 1) * sizeof(struct pool_worker);

    host->pool = (struct pool) {
        .log = &host->log,
        .clock = &host->clock,
        .timers = &host->timers,
        .shared = shared_create(false),
    };
    TAILQ_INIT(&host->pool.generations);
    host->generation = calloc(1, size);
    ck_assert_ptr_nonnull(host->generation);
    host->generation->pool = &host->pool;
    host->generation->number = 7;
    host->generation->phase = GENERATION_SERVING;
    host->generation->cycle = &host->cycle;
    host->generation->worker_n = host->generation->serve_n = WORKERS;
    for (unsigned i = 0; i <= WORKERS; i++) {
        host->generation->workers[i].generation = host->generation;
        host->generation->workers[i].task = i < WORKERS ? TASK_SERVE : TASK_ASK;
    }
    host->pool.serving = host->generation;
    TAILQ_INSERT_TAIL(&host->pool.generations, host->generation, link);
}

static inline void set_up(struct host *host)
{
    memset(host, 0, sizeof(*host));
    signal(SIGIO, SIG_IGN);
    strcpy(host->directory, "/tmp/fb_control.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(host->directory));
    snprintf(host->path, sizeof(host->path), "%s/sock", host->directory);
    log_init(&host->log, NULL, 0);
    host->clock.mono_ms = 10000;
    timers_init(&host->timers, &host->clock, NULL);
    control_socket_init(&host->sockets[0]);
    control_socket_init(&host->sockets[1]);
    ck_assert_int_eq(control_socket_create(&host->sockets[0],
                         &(struct control_settings) { .path = host->path }, false, &host->log),
        0);
    host->groups = calloc(GROUPS_MOST, sizeof(*host->groups));
    host->group_servers = calloc(GROUPS_MOST, 3 * sizeof(*host->group_servers));
    ck_assert(host->groups != NULL && host->group_servers != NULL);
    host->zone.name = "z";
    strcpy(host->target.text, "127.0.0.1:1");
    set_up_cycle(host);
    set_up_pool(host);
    add_groups(host, 1);
    current = host;
    control_init(&host->control, &ops, host, &host->pool, host->sockets);
}

static inline void tear_down(struct host *host)
{
    control_end(&host->control);
    ck_assert_uint_eq(timers_check(&host->timers), 0);
    control_socket_remove(&host->sockets[0], &host->log);
    ck_assert_int_eq(access(host->path, F_OK), -1);
    ck_assert_int_eq(rmdir(host->directory), 0);
    free(host->generation);
    free(host->groups);
    free(host->group_servers);
    shared_destroy(&host->pool.shared);
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
    control_check(&host->control);
}

/* The received reply, or "" where there is none yet. */
static inline const char *received(int fd)
{
    static char text[4096];
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[n > 0 ? n : 0] = '\0';
    return text;
}
