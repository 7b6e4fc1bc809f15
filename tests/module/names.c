/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks names up by c-ares, whose sockets are watched on the worker's loop: a library of a
 * protocol's own. Each line of a client is a name, and is answered with its address or the
 * library's error. The server of names is 127.0.0.1, at the port of the directive. */
#include <ares.h>
#include <arpa/inet.h>
#include <forkbeard/forkbeard.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define NAME_MAX_N 255
#define WATCHES 16
#define TIMER 1

struct names_conf {
    int64_t port;
    int64_t wait; /* for an answer, ms */
};

struct names_worker {
    ares_channel channel;
    fb_worker *worker;
    struct {
        fb_watch *watch;
        ares_socket_t fd;
    } watches[WATCHES];
};

static struct names_conf conf_used; /* the only server's */

/* Lets the library do pending work, and sets the timer of the library's timeout. */
static void rearm(fb_conn *conn)
{
    struct names_worker *names = fb_worker_state(conn);
    struct timeval room, *time = ares_timeout(names->channel, NULL, &room);

    if (time != NULL)
        fb_timer(conn, TIMER, (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_usec / 1000 + 1);
}

static void names_ready(fb_worker *worker, fb_watch *watch, unsigned events, void *arg)
{
    struct names_worker *names = arg;

    (void)worker;
    for (int i = 0; i < WATCHES; i++)
        if (names->watches[i].watch == watch) {
            ares_socket_t fd = names->watches[i].fd;

            ares_process_fd(names->channel, events & FB_WATCH_READ ? fd : ARES_SOCKET_BAD,
                events & FB_WATCH_WRITE ? fd : ARES_SOCKET_BAD);
            return;
        }
    abort(); /* a watch that has ended */
}

/* The library waits for something else, or is about to close the socket. */
static void names_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct names_worker *names = arg;
    unsigned events = (readable ? FB_WATCH_READ : 0u) | (writable ? FB_WATCH_WRITE : 0u);
    int i, free_one = -1;

    for (i = 0; i < WATCHES; i++) {
        if (names->watches[i].watch != NULL && names->watches[i].fd == fd)
            break;
        if (names->watches[i].watch == NULL)
            free_one = i;
    }
    if (i < WATCHES && events == 0) {
        fb_unwatch(names->watches[i].watch);
        names->watches[i].watch = NULL;
    } else if (i < WATCHES) {
        fb_watch_set(names->watches[i].watch, events);
    } else if (events != 0 && free_one != -1) {
        names->watches[free_one].fd = fd;
        names->watches[free_one].watch = fb_watch_fd(names->worker, fd, events, names_ready, names);
    }
}

static int names_start(fb_worker *worker, void *state)
{
    struct names_worker *names = state;
    struct ares_options options = {
        .flags = ARES_FLAG_NOSEARCH,
        .timeout = (int)conf_used.wait,
        .tries = 1,
        .sock_state_cb = names_state,
        .sock_state_cb_data = names,
    };
    char lookups[] = "b", server[32];

    names->worker = worker;
    options.lookups = lookups;
    snprintf(server, sizeof(server), "127.0.0.1:%d", (int)conf_used.port);
    return ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS &&
                   ares_init_options(&names->channel, &options,
                       ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                           ARES_OPT_SOCK_STATE_CB) == ARES_SUCCESS &&
                   ares_set_servers_ports_csv(names->channel, server) == ARES_SUCCESS
               ? 0
               : -1;
}

static void names_stop(fb_worker *worker, void *state)
{
    struct names_worker *names = state;

    (void)worker;
    ares_destroy(names->channel); /* ends the watches */
    ares_library_cleanup();
}

/* The client may have gone: the argument is a reference. */
struct question {
    fb_worker *worker;
    fb_ref asker;
};

static void names_found(void *arg, int status, int timeouts, struct hostent *host)
{
    struct question *question = arg;
    fb_conn *conn = status == ARES_EDESTRUCTION ? NULL : fb_find(question->worker, question->asker);
    char text[64];

    (void)timeouts;
    if (conn != NULL && status == ARES_SUCCESS &&
        inet_ntop(host->h_addrtype, host->h_addr_list[0], text, sizeof(text)) != NULL)
        fb_write(conn, text, strlen(text));
    else if (conn != NULL)
        fb_write(conn, ares_strerror(status), strlen(ares_strerror(status)));
    if (conn != NULL)
        fb_write(conn, "\n", 1);
    free(question);
}

static void ask(fb_conn *conn, const uint8_t *p, size_t n)
{
    struct names_worker *names = fb_worker_state(conn);
    struct question *question = n > NAME_MAX_N ? NULL : malloc(sizeof(*question));
    char name[NAME_MAX_N + 1];

    if (question == NULL) {
        fb_abort(conn);
        return;
    }
    memcpy(name, p, n);
    name[n] = '\0';
    *question = (struct question) { fb_worker_of(conn), fb_ref_of(conn) };
    ares_gethostbyname(names->channel, name, AF_INET, names_found, question);
}

static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    const uint8_t *end;
    size_t used = 0;

    (void)state;
    while ((end = memchr(in.p + used, '\n', in.n - used)) != NULL) {
        ask(conn, in.p + used, (size_t)(end - in.p) - used);
        used = (size_t)(end - in.p) + 1;
    }
    rearm(conn);
    return used;
}

static void client_timer(fb_conn *conn, void *state, uint32_t id)
{
    struct names_worker *names = fb_worker_state(conn);

    (void)state;
    (void)id;
    ares_process_fd(names->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    rearm(conn);
}

static int names_done(fb_conf *conf, void *own, const void *parent)
{
    (void)conf;
    (void)parent;
    conf_used = *(const struct names_conf *)own;
    return 0;
}

static const fb_directive directives[] = {
    { .name = "names",
        .value = FB_VALUE_NUMBER,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct names_conf, port),
        .least = 1,
        .greatest = 65535 },
    { .name = "names_wait",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct names_conf, wait),
        .initial = "10s" },
};

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = client_data,
    .timer = client_timer,
};

FB_PROTOCOL(names) = {
    FB_PROTOCOL_HEADER,
    .name = "names",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct names_conf),
    .worker_state = sizeof(struct names_worker),
    .needs = FB_NEEDS_UDP | FB_NEEDS_CONNECT,
    .ops = &ops,
    .conf_done = names_done,
    .worker_start = names_start,
    .worker_stop = names_stop,
};
