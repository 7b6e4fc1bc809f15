/* SPDX-License-Identifier: BSD-2-Clause */
/* A module whose connections are told of the changes of a map, line by line:
 *
 *     watch       says "watching", and from then on each change: "+KEY", "-KEY", "lost"
 *     set KEY     says "done"
 *     delete KEY  says "done" */
#include <forkbeard/forkbeard.h>

#include <stdio.h>
#include <string.h>

struct conf {
    fb_map *map;
};

/* A worker's state: the watching connections, few in tests. */
struct worker {
    fb_conn *conns[16];
};

static const fb_frame_limit limit = { .most = 100 };

static int watcher_opened(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return 0;
}

static void watch(fb_conn *conn)
{
    struct worker *worker = fb_worker_state(conn);
    const struct conf *conf = fb_conf_of(conn);

    for (size_t i = 0; i < 16; i++)
        if (worker->conns[i] == NULL) {
            worker->conns[i] = conn;
            break;
        }
    if (fb_map_watch(fb_worker_of(conn), conf->map, 1) == 0)
        fb_write(conn, "watching\n", 9);
}

/* Whether the line is a word and a key. */
static int is_line(fb_bytes line, const char *word, fb_bytes *key)
{
    size_t n = strlen(word);

    if (line.n <= n || memcmp(line.p, word, n) != 0)
        return 0;
    *key = (fb_bytes) { line.p + n, line.n - n };
    return 1;
}

static size_t watcher_data(fb_conn *conn, void *state, fb_bytes in)
{
    const struct conf *conf = fb_conf_of(conn);
    fb_worker *worker = fb_worker_of(conn);
    fb_bytes rest = in, line, key;

    (void)state;
    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line)) {
        if (is_line(line, "set ", &key))
            fb_map_set(worker, conf->map, key, key, 0);
        else if (is_line(line, "delete ", &key))
            fb_map_delete(worker, conf->map, key);
        else
            watch(conn);
        if (line.p[0] != 'w')
            fb_write(conn, "done\n", 5);
    }
    return in.n - rest.n;
}

static void watcher_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct worker *worker = fb_worker_state(conn);

    (void)state;
    (void)reason;
    for (size_t i = 0; i < 16; i++)
        if (worker->conns[i] == conn)
            worker->conns[i] = NULL;
}

static void watcher_changed(
    fb_worker *worker, void *state, fb_map *map, fb_bytes key, fb_map_change what)
{
    const struct worker *own = state;
    char text[128];
    int n = what == FB_MAP_LOST
                ? snprintf(text, sizeof(text), "lost\n")
                : snprintf(text, sizeof(text), "%c%.*s\n", "?+-?x"[what], (int)key.n, key.p);

    (void)worker;
    (void)map;
    for (size_t i = 0; i < 16; i++)
        if (own->conns[i] != NULL)
            fb_write(own->conns[i], text, (size_t)n);
}

static int watcher_conf_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = {
        .size = sizeof(options),
        .name = "keys",
        .version = 1,
        .capacity = 1000,
        .key_max = 64,
        .value_max = 64,
    };

    (void)parent;
    ((struct conf *)own)->map = fb_conf_map(conf, &options);
    return ((struct conf *)own)->map != NULL ? 0 : -1;
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = watcher_opened,
    .data = watcher_data,
    .closed = watcher_closed,
};

static const fb_worker_ops worker_ops = {
    .size = sizeof(fb_worker_ops),
    .map_changed = watcher_changed,
};

static const fb_directive directives[] = {
    { .name = "watcher", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(watcher) = {
    FB_PROTOCOL_HEADER,
    .name = "watcher",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct conf),
    .worker_state = sizeof(struct worker),
    .ops = &ops,
    .conf_done = watcher_conf_done,
    .worker_ops = &worker_ops,
};
