/* SPDX-License-Identifier: BSD-2-Clause */
/* balance ADDRESS...: connects every client with one of several servers. A single worker regularly
 * checks for failed servers, and notes them in a map. The rest of the workers hear of changes. */
#include <forkbeard/forkbeard.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

struct balance_conf {
    const char *const *names;
    const fb_target **targets;
    uint32_t n;
    int64_t check, check_timeout, sticky;
    fb_map *down; /* the names of servers without an answer */
};

/* A server as a worker knows it. */
struct server {
    const struct balance_conf *conf;
    fb_bytes name;
    const fb_target *target;
    int is_down, is_checked;
};

struct balance_worker {
    struct server *servers; /* of all configurations */
    size_t n;
};

struct session {
    fb_conn *client;
    struct server *servers; /* of its configuration */
    uint32_t first, tried;
    int connected;
};

/* ---- Clients ---- */

static const fb_ops server_ops;

/* Tries the answering servers, in turn from a random start, and at last the failed servers. */
static void connect_next(struct session *session)
{
    uint32_t n = session->servers->conf->n;

    while (session->tried < 2 * n) {
        struct server *server = &session->servers[(session->first + session->tried) % n];
        int is_last_hope = session->tried++ >= n;

        if (server->is_down == is_last_hope &&
            fb_connect(session->client, server->target, &server_ops, session) != NULL)
            return;
    }
    fb_close(session->client);
}

static int server_opened(fb_conn *server, void *state)
{
    struct session *session = state;

    session->connected = 1;
    fb_pipe(session->client, server, NULL);
    return 0;
}

static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    struct session *session = state;

    (void)server, (void)reason;
    if (!session->connected)
        connect_next(session);
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops), .opened = server_opened, .closed = server_closed
};

/* Chooses the server to begin with: at random, or the same for all clients of an address. */
static uint32_t choose_first(fb_conn *client, const struct balance_conf *conf)
{
    struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
    const uint8_t *p = NULL;
    size_t n = 0;
    uint32_t first = 0;

    if (!conf->sticky) {
        fb_random(fb_worker_of(client), &first, sizeof(first));
        return first % conf->n;
    }
    fb_peer_address(client, &address);
    if (address.ss_family == AF_INET) {
        p = (const uint8_t *)&((const struct sockaddr_in *)&address)->sin_addr;
        n = 4;
    } else if (address.ss_family == AF_INET6) {
        p = (const uint8_t *)&((const struct sockaddr_in6 *)&address)->sin6_addr;
        n = 16;
    }
    for (size_t i = 0; i < n; i++)
        first = first * 31 + p[i];
    return first % conf->n;
}

static int client_opened(fb_conn *client, void *state)
{
    struct session *session = state;
    struct balance_worker *own = fb_worker_state(client);

    session->client = client;
    session->servers = own->servers;
    while (session->servers->conf != fb_conf_of(client))
        session->servers++;
    session->first = choose_first(client, session->servers->conf);
    fb_stop(client); /* early input waits in the kernel until the server is there */
    connect_next(session);
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = client_opened };

/* ---- Which servers answer ---- */

static int check_opened(fb_conn *conn, void *state)
{
    const struct server *server = state;

    if (fb_map_delete(fb_worker_of(conn), server->conf->down, server->name) == FB_MAP_OK)
        fb_conn_logf(conn, FB_LOG_NOTICE, "the server answers again");
    fb_close(conn);
    return 0;
}

/* The end of the worker is no error. */
static void check_closed(fb_conn *conn, void *state, fb_reason reason)
{
    static const fb_bytes nothing = { (const uint8_t *)"", 0 };
    struct server *server = state;

    (void)reason;
    server->is_checked = 0;
    if (fb_error_of(conn) == 0 || server->is_down)
        return;
    fb_conn_logf(conn, FB_LOG_WARN, "the server does not answer: %s", strerror(fb_error_of(conn)));
    fb_map_set(fb_worker_of(conn), server->conf->down, server->name, nothing, 0);
}

static const fb_ops check_ops = {
    .size = sizeof(fb_ops), .opened = check_opened, .closed = check_closed
};

/* Looks at the servers of the configuration with number `id`. */
static void worker_timer(fb_worker *worker, void *state, uint32_t id)
{
    struct balance_worker *own = state;

    const struct balance_conf *conf = fb_worker_conf(worker, id);

    for (size_t i = 0; i < own->n; i++) {
        struct server *server = &own->servers[i];
        const fb_connect_options options = {
            .size = sizeof(options),
            .timeout = (uint64_t)server->conf->check_timeout,
            .log_level = FB_LOG_DEBUG,
        };

        if (server->conf == conf && !server->is_checked)
            server->is_checked =
                fb_connect_with(worker, server->target, &check_ops, server, &options) != NULL;
    }
    fb_worker_timer(worker, id, (uint64_t)conf->check);
}

static void look_up(fb_worker *worker, struct server *server)
{
    fb_item item = { .room = 0 };

    server->is_down = fb_map_get(worker, server->conf->down, server->name, &item) == FB_MAP_OK;
}

static void map_changed(
    fb_worker *worker, void *state, fb_map *map, fb_bytes key, fb_map_change what)
{
    struct balance_worker *own = state;

    (void)map;
    for (size_t i = 0; i < own->n; i++) {
        struct server *server = &own->servers[i];

        if (what == FB_MAP_LOST ||
            (key.n == server->name.n && memcmp(key.p, server->name.p, key.n) == 0))
            look_up(worker, server);
    }
}

/* The next worker of this number looks after the servers already. */
static void worker_draining(fb_worker *worker, void *state, uint64_t deadline)
{
    (void)state, (void)deadline;
    for (uint32_t i = 0; fb_worker_conf(worker, i) != NULL; i++)
        fb_worker_timer_cancel(worker, i);
}

static const fb_worker_ops worker_ops = {
    .size = sizeof(fb_worker_ops),
    .timer = worker_timer,
    .draining = worker_draining,
    .map_changed = map_changed,
};

/* Lists the servers of all configurations, and watches their states. */
static int list_servers(fb_worker *worker, struct balance_worker *own)
{
    const struct balance_conf *conf;

    for (size_t i = 0; (conf = fb_worker_conf(worker, i)) != NULL; i++) {
        for (uint32_t k = 0; k < conf->n; k++)
            own->servers[own->n++] = (struct server) {
                .conf = conf,
                .name = { (const uint8_t *)conf->names[k], strlen(conf->names[k]) },
                .target = conf->targets[k],
            };
        if (fb_map_watch(worker, conf->down, 1) != 0)
            return -1;
        if (fb_worker_number(worker) == 0 && fb_worker_timer(worker, (uint32_t)i, 1) != 0)
            return -1;
    }
    for (size_t i = 0; i < own->n; i++)
        look_up(worker, &own->servers[i]);
    return 0;
}

static void worker_stop(fb_worker *worker, void *state)
{
    (void)worker;
    free(((struct balance_worker *)state)->servers);
}

/* A start that fails has no worker_stop(). */
static int worker_start(fb_worker *worker, void *state)
{
    struct balance_worker *own = state;
    const struct balance_conf *conf;
    size_t n = 0;

    for (size_t i = 0; (conf = fb_worker_conf(worker, i)) != NULL; i++)
        n += conf->n;
    own->servers = calloc(n, sizeof(*own->servers));
    if (own->servers != NULL && list_servers(worker, own) == 0)
        return 0;
    worker_stop(worker, state);
    return -1;
}

/* ---- The configuration ---- */

/* The values of "balance" are the first fields of the configuration. */
static int set_servers(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    struct balance_conf *own = value;

    own->names = fb_conf_alloc(conf, n * sizeof(*own->names));
    own->targets = fb_conf_alloc(conf, n * sizeof(*own->targets));
    if (own->names == NULL || own->targets == NULL)
        return -1;
    memcpy((const char **)own->names, args, n * sizeof(*args));
    for (; own->n < n; own->n++) {
        own->targets[own->n] = fb_conf_target(conf, NULL, args[own->n]);
        if (own->targets[own->n] == NULL)
            return -1;
    }
    return 0;
}

static int conf_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = {
        .size = sizeof(options),
        .name = "down",
        .version = 1,
        .capacity = 10000,
        .key_max = 255,
        .value_max = 1,
    };

    (void)parent;
    ((struct balance_conf *)own)->down = fb_conf_map(conf, &options);
    return ((struct balance_conf *)own)->down != NULL ? 0 : -1;
}

static void conf_accepted(fb_master *master, const void *own)
{
    const struct balance_conf *conf = own;

    fb_master_logf(master, FB_LOG_NOTICE, "%u servers are balanced, the first is %s",
        (unsigned)conf->n, conf->names[0]);
}

static void conf_gone(fb_master *master, const void *own)
{
    const struct balance_conf *conf = own;

    fb_master_logf(master, FB_LOG_NOTICE, "%u servers are balanced no more, the first was %s",
        (unsigned)conf->n, conf->names[0]);
}

static const fb_directive directives[] = {
    { .name = "balance",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .room = offsetof(struct balance_conf, check),
        .set = set_servers,
        .args_least = 1,
        .args_most = 64 },
    { .name = "balance_check",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct balance_conf, check),
        .least = 1,
        .greatest = INT64_MAX,
        .initial = "5s" },
    { .name = "balance_check_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct balance_conf, check_timeout),
        .least = 1,
        .greatest = INT64_MAX,
        .initial = "2s" },
    { .name = "balance_sticky",
        .value = FB_VALUE_FLAG,
        .offset = offsetof(struct balance_conf, sticky),
        .initial = "off" },
};

FB_PROTOCOL(balance) = {
    FB_PROTOCOL_HEADER,
    .name = "balance",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct session),
    .conf_state = sizeof(struct balance_conf),
    .worker_state = sizeof(struct balance_worker),
    .ops = &ops,
    .conf_done = conf_done,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .worker_ops = &worker_ops,
    .conf_accepted = conf_accepted,
    .conf_gone = conf_gone,
};
