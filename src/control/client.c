/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifies a client, keeps its phase, and writes and sends its replies. A reply is an object on a
 * line that begins with "ok", and has "error" when "ok" is false. Phases are asserted, received
 * bytes never; a lack of memory cuts the client off. */
#include "control/client.h"

#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "os/sockets.h"
#include "pool/worker.h"
#include "process/process_ops.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

bool control_is_waiting_full(const struct control_client *client)
{
    const struct control_client *other;
    unsigned n = 0;

    TAILQ_FOREACH (other, &client->control->clients, link)
        n += other->waiting_for != CONTROL_WAIT_NONE;
    assert(n <= CONTROL_WAITING_MAX);
    return n >= (client->read_only ? CONTROL_WAITING_MAX / 2 : CONTROL_WAITING_MAX);
}

void control_client_check(const struct control_client *client)
{
    bool replies = client->phase == CLIENT_REPLYING || client->phase == CLIENT_LAST_REPLY;
    bool waits = client->phase == CLIENT_WAITING || client->phase == CLIENT_HELD;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    assert(client->phase < CLIENT_PHASES);
    assert(client->in_n <= CONTROL_REQUEST_MAX);
    assert((client->out != NULL) == replies);
    assert(client->out_sent <= client->out_n);
    assert(!waits || client->waiting_for != CONTROL_WAIT_NONE);
    assert(client->phase != CLIENT_HELD || client->waiting_for == CONTROL_WAIT_EXIT);
    assert(client->phase != CLIENT_READING || client->waiting_for == CONTROL_WAIT_NONE);
    assert(!waits || !timer_is_set(&client->patience));
}

void control_client_set(struct control_client *client, enum client_phase phase)
{
    static const unsigned next[CLIENT_PHASES] = {
        [CLIENT_READING] = 1u << CLIENT_WAITING | 1u << CLIENT_REPLYING | 1u << CLIENT_LAST_REPLY |
                           1u << CLIENT_CLOSING,
        [CLIENT_WAITING] = 1u << CLIENT_REPLYING | 1u << CLIENT_CLOSING,
        [CLIENT_REPLYING] =
            1u << CLIENT_READING | 1u << CLIENT_WAITING | 1u << CLIENT_HELD | 1u << CLIENT_CLOSING,
        [CLIENT_LAST_REPLY] = 1u << CLIENT_CLOSING,
        [CLIENT_HELD] = 1u << CLIENT_CLOSING,
    };
    static const enum wakeup_event awaited[CLIENT_PHASES] = {
        [CLIENT_READING] = WAKEUP_INPUT,
        [CLIENT_WAITING] = WAKEUP_END,
        [CLIENT_REPLYING] = WAKEUP_OUTPUT,
        [CLIENT_LAST_REPLY] = WAKEUP_OUTPUT,
        [CLIENT_HELD] = WAKEUP_END,
        [CLIENT_CLOSING] = WAKEUP_END,
    };

    assert(phase < CLIENT_PHASES);
    assert((next[client->phase] & 1u << phase) != 0);
    client->phase = phase;
    process_ops->wakeup_expect(client->fd, awaited[phase]);
    client->activity = ++client->control->activity;
    if ((phase == CLIENT_REPLYING || phase == CLIENT_LAST_REPLY) &&
        client->waiting_for != CONTROL_WAIT_EVENTS) /* a slow follower has all time */
        timers_arm(client->control->pool->timers, &client->patience, CONTROL_PATIENCE_MS);
    else if (phase != CLIENT_READING) /* READING keeps the deadline of the reply */
        timers_disarm(client->control->pool->timers, &client->patience);
}

void control_client_destroy(struct control_client *client)
{
    struct control *control = client->control;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    assert(control->client_n > 0);
    TAILQ_REMOVE(&control->clients, client, link);
    control->client_n--;
    timers_disarm(control->pool->timers, &client->patience);
    if (client->fd != -1) {
        process_ops->wakeup_remove(client->fd);
        close(client->fd);
    }
    descriptor_close(client->passed);
    free(client->out);
    client->kind = 0;
    free(client);
}

enum client_step control_client_send(struct control_client *client)
{
    while (client->out_sent < client->out_n) {
        ssize_t n = fd_send(client->fd, client->out + client->out_sent,
            client->out_n - client->out_sent, client->passed);

        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1)
            return errno == EAGAIN ? CLIENT_BLOCKED : CLIENT_GONE;
        client->out_sent += (size_t)n;
        descriptor_close(client->passed);
        client->passed = -1;
    }
    free(client->out);
    client->out = NULL;
    client->out_n = client->out_sent = 0;
    if (client->phase == CLIENT_LAST_REPLY)
        control_client_set(client, CLIENT_CLOSING);
    else if (client->waiting_for == CONTROL_WAIT_EXIT)
        control_client_set(client, CLIENT_HELD);
    else if (client->waiting_for == CONTROL_WAIT_EVENTS)
        control_client_set(client, CLIENT_WAITING);
    else
        control_client_set(client, CLIENT_READING);
    return CLIENT_DONE;
}

/* Replies */

/* Begins to send the line; NULL cuts the client off; `last` closes the connection behind it. */
static void begin_sending(struct control_client *client, char *line, size_t n, bool last)
{
    assert(client->out == NULL);
    if (client->waiting_for != CONTROL_WAIT_EXIT && client->waiting_for != CONTROL_WAIT_EVENTS)
        client->waiting_for = CONTROL_WAIT_NONE;
    client->out = line;
    client->out_n = line != NULL ? n : 0;
    client->out_sent = 0;
    control_client_set(client, line == NULL ? CLIENT_CLOSING
                               : last       ? CLIENT_LAST_REPLY
                                            : CLIENT_REPLYING);
}

void control_reply_begin(struct json *json, bool ok)
{
    json_begin(json);
    json_object(json, NULL);
    json_bool(json, "ok", ok);
}

void control_reply_end(struct json *json, struct control_client *client, bool last)
{
    size_t n;
    char *line;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    assert(json->depth == 1); /* opened values are closed */
    json_close(json);
    line = json_end(json, &n);
    begin_sending(client, line, n, last);
}

void control_reply_error(struct control_client *client, const char *error, bool last)
{
    struct json json;

    control_reply_begin(&json, false);
    json_string(&json, "error", error);
    control_reply_end(&json, client, last);
}

void control_reply_waiting(struct control_client *client, const char *why)
{
    struct json json;
    size_t n;
    char *line;

    assert(client->phase == CLIENT_WAITING);
    json_begin(&json);
    json_object(&json, NULL);
    json_string(&json, "waiting", why);
    json_close(&json);
    line = json_end(&json, &n);
    /* a unix socket takes a short line whole or not at all */
    if (line != NULL && send(client->fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT) != -1)
        client->told = true;
    free(line);
}

void control_reply_outcome(struct control_client *client, const struct control_outcome *outcome)
{
    struct json json;

    assert(client->phase == CLIENT_WAITING);
    control_reply_begin(&json, outcome->ok);
    if (!outcome->ok)
        json_string(&json, "error", outcome->error);
    if (outcome->pid != 0)
        json_number(&json, "pid", outcome->pid);
    if (outcome->generation != 0)
        json_number(&json, "generation", outcome->generation);
    if (client->waiting_for != CONTROL_WAIT_EXIT) /* a quit */
        diag_to_json(&json, outcome->diag);
    if (outcome->in_force != NULL)
        json_string(&json, "in_force", outcome->in_force);
    control_reply_end(&json, client, false);
}

/* Permission. Operators are told from workers, and from children of workers, which have a master
 * among the ancestors, because a master adopts orphaned descendants. A gone or unknown client with
 * a worker's user counts as a worker's child. The kernel's pidfd excludes a later process with the
 * client's pid. Where the system tells no pid of a client, workers with the master's own user, and
 * workers' children, may ask. */

#define GENERATIONS_MAX 256 /* of ancestors */

/* The kin of a client with the daemon. */
enum kin { KIN_NONE, KIN_DESCENDANT, KIN_UNKNOWN };

/* Follows the parents of a process up to a master or to the first process. */
static enum kin find_kin(struct control *control, pid_t client)
{
    struct proc_stat stat;
    pid_t pid = client;

    for (int i = 0; i < GENERATIONS_MAX; i++) {
        bool lives = process_ops->proc_read(pid, &stat) && stat.state != 'Z' && stat.state != 'X';

        if (!lives && pid == client)
            return KIN_UNKNOWN;
        if (lives && control->ops->is_master(control->host, stat.parent))
            return KIN_DESCENDANT;
        if (lives && stat.parent <= 1)
            return KIN_NONE;
        pid = lives ? stat.parent : client; /* ancestor ended: children have a new parent */
    }
    return KIN_UNKNOWN;
}

/* Implements find_kin() for the client itself, not for a later process with the pid. */
static enum kin find_client_kin(struct control *control, int fd, pid_t pid)
{
    enum kin kin = KIN_UNKNOWN;
    int pidfd = os_socket_peer_handle(fd);
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };

    if (pidfd != -1 || errno != ESRCH)
        kin = find_kin(control, pid);
    if (kin == KIN_NONE && pidfd != -1 && poll(&ended, 1, 0) != 0)
        kin = KIN_UNKNOWN;
    if (pidfd != -1)
        close(pidfd);
    return kin;
}

static const char *refuse_peer(struct control *control, uid_t uid, pid_t pid, const char *why)
{
    char process[32] = "a process";

    if (pid != 0)
        snprintf(process, sizeof(process), "process %d", (int)pid);
    log_write(control->pool->log, LEVEL_WARN, 0,
        "%s of user %u may not use the control socket, refused: %s", process, (unsigned)uid, why);
    return why;
}

/* Whether workers run as the user. */
static bool is_worker_user(const struct pool *pool, uid_t uid)
{
    const struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link) {
        const struct core_settings *core = &generation->cycle->core;

        if (uid == (core->user != NULL ? core->uid : geteuid()))
            return true;
    }
    return false;
}

/* Returns the reason against a client of a user other than root and the daemon's, or NULL. Workers
 * with a user of their own may not ask, whatever their groups. */
static const char *refuse_user(
    const struct control *control, const struct control_rights *rights, int fd, uid_t uid)
{
    if (!rights->has_group)
        return "permission denied: only root and the daemon's own user may ask";
    if (is_worker_user(control->pool, uid))
        return "permission denied: the client has the user of the workers";
    if (!os_socket_peer_is_in(fd, rights->group))
        return "permission denied: only root, the daemon's own user and the socket's group may ask";
    return NULL;
}

const char *control_client_refusal(
    struct control *control, const struct control_rights *rights, int fd, pid_t *pid)
{
    const char *refused;
    uid_t uid;
    enum kin kin;

    CHECK_KIND(control, CONTROL_KIND);
    if (os_socket_peer(fd, &uid, pid) == -1) {
        log_write(
            control->pool->log, LEVEL_ERROR, errno, "a client of the control socket is unknown");
        return "the client could not be identified";
    }
    refused = uid != 0 && uid != geteuid() ? refuse_user(control, rights, fd, uid) : NULL;
    if (refused != NULL)
        return refuse_peer(control, uid, *pid, refused);
    if (*pid == 0 || *pid == process_ops->self())
        return NULL;
    if (pool_find_worker(control->pool, *pid) != NULL)
        return refuse_peer(control, uid, *pid, "permission denied: the client is a worker process");
    kin = find_client_kin(control, fd, *pid);
    if (kin == KIN_DESCENDANT)
        return refuse_peer(
            control, uid, *pid, "permission denied: a worker or module has started the client");
    if (kin == KIN_UNKNOWN && is_worker_user(control->pool, uid))
        return refuse_peer(control, uid, *pid,
            "permission denied: the client has ended before the check for a worker");
    return NULL;
}
