/* SPDX-License-Identifier: BSD-2-Clause */
/* tail PATH: sends each client the lines that are appended to a file from now on, as "tail -F".
 * Inotify tells of the file's changes, by a descriptor that is watched on the worker's loop while
 * there are clients. */
#include <errno.h>
#include <fcntl.h>
#include <forkbeard/forkbeard.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_SIZE 65536

/* Lines sent to many clients without a copy for each. */
struct block {
    unsigned users;
    char bytes[BLOCK_SIZE];
};

struct tail_conf {
    const char *path;
};

/* The file of a server. */
struct tail {
    const struct tail_conf *conf;
    int inotify, fd; /* fd is -1 while there is no file */
    off_t at;        /* end of what was sent */
    fb_watch *watch;
    LIST_HEAD(, client) clients;
};

struct client {
    fb_conn *conn;
    struct tail *tail;
    int lags; /* takes less than is appended */
    LIST_ENTRY(client) link;
};

struct tail_worker {
    struct tail *tails; /* of each server */
    size_t n;
};

static void release(void *arg)
{
    struct block *block = arg;

    if (--block->users == 0)
        free(block);
}

/* Sends the next whole lines, or a part of a line that is longer. Returns 0 if there are none. */
static int send_lines(struct tail *tail)
{
    struct block *block = malloc(sizeof(*block));
    ssize_t most = block != NULL ? pread(tail->fd, block->bytes, BLOCK_SIZE, tail->at) : 0;
    ssize_t n = most;
    struct client *client;

    while (n > 0 && block->bytes[n - 1] != '\n')
        n--;
    if (n == 0 && most == BLOCK_SIZE)
        n = most;
    if (n <= 0) {
        free(block);
        return 0;
    }
    tail->at += n;
    block->users = 1;
    LIST_FOREACH (client, &tail->clients, link)
        if (!client->lags &&
            fb_write_ref(client->conn, block->bytes, (size_t)n, release, block) == 0)
            block->users++;
    release(block);
    return 1;
}

/* Opens the file if it was replaced, and begins again if it is shorter. */
static void look(struct tail *tail)
{
    struct stat old = { .st_size = 0 }, new;

    if (tail->fd != -1 && fstat(tail->fd, &old) == 0 && old.st_size < tail->at)
        tail->at = 0;
    if (stat(tail->conf->path, &new) != 0 || (old.st_ino == new.st_ino &&old.st_dev == new.st_dev))
        return;
    if (tail->fd != -1)
        close(tail->fd);
    tail->fd = open(tail->conf->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tail->at = 0;
}

/* The watch calls again in the next turn while there are notices: many lines are sent in pieces,
 * for the sake of further connections. */
static void file_changed(fb_worker *worker, fb_watch *watch, unsigned events, void *arg)
{
    struct tail *tail = arg;
    char notices[4096];

    (void)worker, (void)watch, (void)events;
    if (send_lines(tail))
        return;
    while (read(tail->inotify, notices, sizeof(notices)) > 0)
        continue;
    look(tail);
    while (send_lines(tail))
        continue;
}

/* ---- Clients ---- */

static int client_opened(fb_conn *conn, void *state)
{
    struct tail_worker *own = fb_worker_state(conn);
    struct client *client = state;
    struct tail *tail = own->tails;

    while (tail->conf != fb_conf_of(conn))
        tail++;
    if (LIST_EMPTY(&tail->clients)) {
        look(tail);
        tail->at = tail->fd != -1 ? lseek(tail->fd, 0, SEEK_END) : 0;
        fb_watch_set(tail->watch, FB_WATCH_READ);
    }
    client->conn = conn;
    client->tail = tail;
    LIST_INSERT_HEAD(&tail->clients, client, link);
    return 0;
}

static void client_unwritable(fb_conn *conn, void *state)
{
    (void)conn;
    ((struct client *)state)->lags = 1;
}

static void client_writable(fb_conn *conn, void *state)
{
    struct client *client = state;

    if (client->lags)
        fb_write(conn, "[...]\n", 6);
    client->lags = 0;
}

static void client_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)state, (void)deadline;
    fb_close(conn);
}

static void client_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct client *client = state;

    (void)conn, (void)reason;
    LIST_REMOVE(client, link);
    if (LIST_EMPTY(&client->tail->clients))
        fb_watch_set(client->tail->watch, 0);
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = client_opened,
    .writable = client_writable,
    .draining = client_draining,
    .closed = client_closed,
    .unwritable = client_unwritable,
};

/* ---- The worker ---- */

/* Watches the file's directory, because the file may be replaced, or not be there yet. */
static int start(fb_worker *worker, struct tail *tail)
{
    const char *path = tail->conf->path;
    char directory[4096];

    snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path + 1), path);
    tail->fd = -1;
    tail->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify_add_watch(tail->inotify, directory, IN_MODIFY | IN_CREATE | IN_MOVED_TO) != -1)
        tail->watch = fb_watch_fd(worker, tail->inotify, 0, file_changed, tail);
    if (tail->watch != NULL)
        return 0;
    fb_worker_logf(worker, FB_LOG_ERROR, "cannot watch \"%s\": %s", directory, strerror(errno));
    if (tail->inotify != -1)
        close(tail->inotify);
    return -1;
}

static void worker_stop(fb_worker *worker, void *state)
{
    struct tail_worker *own = state;

    (void)worker;
    for (size_t i = 0; i < own->n; i++) {
        fb_unwatch(own->tails[i].watch);
        close(own->tails[i].inotify);
        if (own->tails[i].fd != -1)
            close(own->tails[i].fd);
    }
    free(own->tails);
}

/* Runs before the worker enters its sandbox, which forbids new inotify descriptors. A failed start
 * has no worker_stop(). */
static int worker_start(fb_worker *worker, void *state)
{
    struct tail_worker *own = state;
    size_t n = 0;

    while (fb_worker_conf(worker, n) != NULL)
        n++;
    own->tails = calloc(n, sizeof(*own->tails));
    for (; own->tails != NULL && own->n < n; own->n++) {
        own->tails[own->n].conf = fb_worker_conf(worker, own->n);
        if (start(worker, &own->tails[own->n]) != 0)
            break;
    }
    if (own->tails != NULL && own->n == n)
        return 0;
    worker_stop(worker, state);
    return -1;
}

static const fb_directive directives[] = {
    { .name = "tail",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_HANDLER | FB_DIRECTIVE_READS | FB_DIRECTIVE_REPLACED,
        .offset = offsetof(struct tail_conf, path) },
};

FB_PROTOCOL(tail) = {
    FB_PROTOCOL_HEADER,
    .name = "tail",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct client),
    .conf_state = sizeof(struct tail_conf),
    .worker_state = sizeof(struct tail_worker),
    .output_limit = 4 * 1024 * 1024,
    .ops = &ops,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
};
