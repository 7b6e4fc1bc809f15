/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that was taken over, and that serves honestly where it is not told otherwise. Lines:
 *
 *     pid              says the worker's pid
 *     set KEY VALUE    in a map; says "ok"
 *     get KEY          says the value, or "-"
 *     count            adds one to a metric, and says its total
 *     ref              says the connection's reference
 *     send REF TEXT    sends a message; the receiver says "got TEXT"
 *     attack SEED N    makes N random writes, and uses this connection up (module/attack.h)
 *     reach            says how much memory of others is in reach (module/attack.h)
 *     servers          marks the servers of all groups as failed for ever (module/attack.h)
 *     block            has the listening sockets wait where nobody comes
 *     die              ends by SIGKILL
 *     stop             stops as by a debugger
 *     close NAME       closes its descriptors whose link in /proc begins so, or "all"; says ok
 *     fork             forks in the callback, and goes on in both processes; says 0 or an errno
 *     job SECONDS      has a job that takes so long */
#include "module/attack.h"

#include <forkbeard/forkbeard.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LINE_MOST 200
#define DESCRIPTOR_END 1024

struct conf {
    fb_map *map;
};

static void FB_SDK_PRINTF(2, 3) say(fb_conn *conn, const char *format, ...)
{
    char text[300];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fb_write(conn, text, strlen(text));
}

static fb_map *map_of(fb_conn *conn)
{
    return ((const struct conf *)fb_conf_of(conn))->map;
}

static fb_bytes text_bytes(const char *text)
{
    return (fb_bytes) { (const uint8_t *)text, strlen(text) };
}

static void set_key(fb_conn *conn, const char *key, const char *value)
{
    fb_map_status status =
        fb_map_set(fb_worker_of(conn), map_of(conn), text_bytes(key), text_bytes(value), 0);

    say(conn, status == FB_MAP_OK ? "ok\n" : "status %d\n", (int)status);
}

static void get_key(fb_conn *conn, const char *key)
{
    char value[LINE_MOST];
    fb_item item = { .value = value, .room = sizeof(value) };

    if (fb_map_get(fb_worker_of(conn), map_of(conn), text_bytes(key), &item) == FB_MAP_OK)
        say(conn, "%.*s\n", (int)item.n, value);
    else
        say(conn, "-\n");
}

static void close_like(const char *name)
{
    char path[64], target[128];
    ssize_t n;

    for (int fd = 0; fd < DESCRIPTOR_END; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strcmp(name, "all") == 0 || (n > 0 && strncmp(target, name, strlen(name)) == 0))
            close(fd);
    }
}

/* The flags belong to the sockets, shared by all workers. */
static void block_listeners(void)
{
    for (int fd = 0; fd < DESCRIPTOR_END; fd++) {
        int listens = 0;
        socklen_t length = sizeof(listens);

        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
        if (!listens)
            continue;
        fcntl(fd, F_SETFL, 0);
        ioctl(fd, FIONBIO, &(int) { 0 });
    }
}

/* Keeps a thread busy for as many seconds as the client has said. */
static void sleep_long(void *job)
{
    struct timespec left = { .tv_sec = *(const int *)job };

    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

static void finish_job(fb_worker *worker, void *job)
{
    (void)worker;
    (void)job;
}

static void attack_by(fb_conn *conn, const char *seed, const char *n)
{
    struct sockaddr_storage own = { .ss_family = AF_UNSPEC };

    fb_peer_address(conn, &own);
    attack_blindly(strtoull(seed, NULL, 10), (unsigned)strtoul(n, NULL, 10), &own);
}

static void say_reach(fb_conn *conn)
{
    struct attack_reach reach = attack_reach();

    say(conn, "%u descriptors, %u made writable, %u made longer\n", reach.descriptors,
        reach.writable, reach.longer);
}

static void handle_trouble(fb_conn *conn, const char *word, const char *first)
{
    int seconds;

    if (strcmp(word, "die") == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(word, "block") == 0) {
        block_listeners();
        say(conn, "ok\n");
    } else if (strcmp(word, "stop") == 0) {
        raise(SIGSTOP);
    } else if (strcmp(word, "close") == 0) {
        close_like(first);
        say(conn, "ok\n");
    } else if (strcmp(word, "fork") == 0) {
        say(conn, "%d\n", fork() == -1 ? errno : 0);
    } else if (strcmp(word, "job") == 0) {
        seconds = atoi(first);
        fb_run(fb_worker_of(conn), sleep_long, finish_job, &seconds, sizeof(seconds));
        say(conn, "ok\n");
    }
}

static void handle_line(fb_conn *conn, char *line)
{
    char *rest = line, *word = strsep(&rest, " "), *first = strsep(&rest, " ");

    if (strcmp(word, "pid") == 0) {
        say(conn, "%d\n", (int)getpid());
    } else if (strcmp(word, "count") == 0) {
        fb_metric_add(conn, 0, 1);
        say(conn, "%" PRId64 "\n", fb_metric_total(conn, 0));
    } else if (strcmp(word, "ref") == 0) {
        say(conn, "%" PRIx64 "\n", fb_ref_of(conn));
    } else if (strcmp(word, "reach") == 0) {
        say_reach(conn);
    } else if (strcmp(word, "servers") == 0) {
        say(conn, attack_servers() > 0 ? "ok\n" : "none\n");
    } else if (first == NULL) {
        handle_trouble(conn, word, "");
    } else if (strcmp(word, "get") == 0) {
        get_key(conn, first);
    } else if (strcmp(word, "set") == 0 && rest != NULL) {
        set_key(conn, first, rest);
    } else if (strcmp(word, "send") == 0 && rest != NULL) {
        fb_send_message(conn, strtoull(first, NULL, 16), rest, strlen(rest));
    } else if (strcmp(word, "attack") == 0 && rest != NULL) {
        attack_by(conn, first, rest);
    } else {
        handle_trouble(conn, word, first);
    }
}

static size_t attacker_data(fb_conn *conn, void *state, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = LINE_MOST };
    fb_bytes rest = in, frame;
    char line[LINE_MOST + 1];

    (void)state;
    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &frame)) {
        memcpy(line, frame.p, frame.n);
        line[frame.n] = '\0';
        handle_line(conn, line);
    }
    return in.n - rest.n;
}

static int attacker_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)state;
    (void)from;
    say(conn, "got %.*s\n", (int)message.n, (const char *)message.p);
    return 0;
}

static int attacker_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = { .size = sizeof(options),
        .name = "keys",
        .version = 1,
        .capacity = 256,
        .key_max = 64,
        .value_max = LINE_MOST };

    (void)parent;
    ((struct conf *)own)->map = fb_conf_map(conf, &options);
    return ((struct conf *)own)->map != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "attacker", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_metric metrics[] = { { "lines", FB_COUNTER, 0 }, { "depth", FB_GAUGE, 0 } };

static const char *const reads[] = { "/proc/self", NULL }; /* under `strict`, too */

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = attacker_data,
    .message = attacker_message,
};

FB_PROTOCOL(attacker) = {
    FB_PROTOCOL_HEADER,
    .name = "attacker",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct conf),
    FB_PROTOCOL_METRICS(metrics),
    .ops = &ops,
    .conf_done = attacker_done,
    .reads = reads,
};
