/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepts clients, which may be slow, rude or gone, and exchanges requests and replies with them. A
 * request becomes a reply, or a command for the host; commands have the words of -s. Requests are
 * input and never asserted. Nothing here blocks, and the work of a call is bounded. */
#include "control/control.h"

#include "control/certificates.h"
#include "control/client.h"
#include "control/events.h"
#include "control/log_level.h"
#include "control/sessions.h"
#include "control/upstream.h"
#include "os/descriptor.h"
#include "process/process_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS_MAX 16 /* requests of a client in a call */
#define COMMANDS                                                                                   \
    "expected status, upstream, sessions, certificates, events, log, reload, reopen, upgrade, "    \
    "resume, quit, leave or stop"
#define RETRY_MS 500
#define ACCEPT_MAX 32 /* clients in a call: a bound on the master's time */

/* Requests */

/* Outcomes of commands; 0: the master's exit. */
static const enum control_wait outcomes[COMMAND_N] = {
    [COMMAND_RELOAD] = CONTROL_WAIT_RELOAD,
    [COMMAND_REOPEN] = CONTROL_WAIT_REOPEN,
    [COMMAND_UPGRADE] = CONTROL_WAIT_UPGRADE,
    [COMMAND_RESUME] = CONTROL_WAIT_RESUME,
    [COMMAND_QUIT] = CONTROL_WAIT_QUIT,
    [COMMAND_LEAVE] = CONTROL_WAIT_QUIT,
};

static void give_command(struct control_client *client, const struct signal_row *s)
{
    struct control *control = client->control;
    enum command command = s->commands[ROLE_MASTER];
    enum control_wait outcome = outcomes[command] != 0 ? outcomes[command] : CONTROL_WAIT_EXIT;
    bool full = control_is_waiting_full(client);
    const char *refused;
    struct json json;

    assert(command != COMMAND_NONE); /* the row has a command */
    if (full && outcome != CONTROL_WAIT_EXIT && outcome != CONTROL_WAIT_QUIT)
        refused = "too many clients wait for an outcome, try again";
    else
        refused = control->ops->command(control->host, command);
    if (refused != NULL) {
        control_reply_error(client, refused, false);
        return;
    }
    log_event(control->pool->log, "command", LEVEL_NOTICE, 0,
        "\"%s\" received from %d by the control socket, %s", s->command, (int)client->pid,
        s->doing);
    client->told = false;
    if (outcome != CONTROL_WAIT_EXIT && (!full || outcome != CONTROL_WAIT_QUIT)) {
        client->waiting_for = outcome;
        control_client_set(client, CLIENT_WAITING);
        return;
    }
    /* replies at once, and keeps as many clients as may wait connected until the exit */
    if (!full)
        client->waiting_for = CONTROL_WAIT_EXIT;
    control_reply_begin(&json, true);
    control_reply_end(&json, client, false);
}

/* Whether the request changes nothing, as all on a socket for reading must. */
static bool is_reading(const char *word, struct json_value request)
{
    if (strcmp(word, "upstream") == 0)
        return json_member(request, "state").text == NULL &&
               json_member(request, "server").text == NULL;
    return strcmp(word, "status") == 0 || strcmp(word, "certificates") == 0 ||
           strcmp(word, "events") == 0 || strcmp(word, "sessions") == 0;
}

/* Handles the request in the first `n` bytes of the input; the client leaves CLIENT_READING. */
static void handle_client_request(struct control_client *client, size_t n)
{
    struct json_value request = json_parse(client->in, n);
    const struct signal_row *command;
    char word[32], error[192];
    struct json json;

    assert(client->phase == CLIENT_READING);
    assert(n <= client->in_n);
    if (request.text == NULL || *request.text != '{') {
        control_reply_error(client, "the request is no JSON object on a line", false);
        return;
    }
    if (!json_text(json_member(request, "command"), word, sizeof(word))) {
        control_reply_error(client, "the request has no \"command\": " COMMANDS, false);
        return;
    }
    if (client->read_only && !is_reading(word, request)) {
        control_reply_error(client,
            "this socket is for reading alone: status, upstream without a state, sessions, "
            "certificates and events",
            false);
        return;
    }
    client->progress = json_is_true(json_member(request, "progress"));
    command = signals_named(word);
    if (strcmp(word, "status") == 0) {
        control_reply_begin(&json, true);
        control_status_write(client->control, &json);
        control_reply_end(&json, client, false);
    } else if (strcmp(word, "upstream") == 0) {
        control_upstream_handle(client, request);
    } else if (strcmp(word, "certificates") == 0) {
        control_certificates_handle(client);
    } else if (strcmp(word, "events") == 0) {
        control_events_handle(client, request);
    } else if (strcmp(word, "log") == 0) {
        control_log_level_handle(client, request);
    } else if (strcmp(word, "sessions") == 0) {
        control_sessions_handle(client);
    } else if (command != NULL) {
        give_command(client, command);
    } else {
        snprintf(error, sizeof(error), "unknown command \"%s\", " COMMANDS, word);
        control_reply_error(client, error, false);
    }
}

/* Steps */

static enum client_step receive_input(struct control_client *client)
{
    ssize_t n;

    if (client->in_n == CONTROL_REQUEST_MAX) {
        control_reply_error(
            client, "the request is too long: 65536 bytes without a line's end", true);
        return CLIENT_DONE;
    }
    do
        n = recv(client->fd, client->in + client->in_n, CONTROL_REQUEST_MAX - client->in_n, 0);
    while (n == -1 && errno == EINTR);
    if (n == -1)
        return errno == EAGAIN ? CLIENT_BLOCKED : CLIENT_GONE;
    if (n == 0)
        client->ended = true;
    client->in_n += (size_t)n;
    return CLIENT_DONE;
}

/* Handles the next whole request; the last may lack its line's end. */
static enum client_step handle_next(struct control_client *client)
{
    const char *end = memchr(client->in, '\n', client->in_n);
    size_t n = end != NULL ? (size_t)(end - client->in) : client->in_n;

    if (end == NULL && !client->ended)
        return receive_input(client);
    if (end == NULL && n == 0)
        return CLIENT_GONE;
    handle_client_request(client, n);
    assert(client->phase != CLIENT_READING);
    n += end != NULL;
    client->in_n -= n;
    memmove(client->in, client->in + n, client->in_n);
    return CLIENT_DONE;
}

static enum client_step run_client_step(struct control_client *client)
{
    struct pollfd state = { .fd = client->fd };

    control_client_check(client);
    switch (client->phase) {
    case CLIENT_READING:
        return handle_next(client);
    case CLIENT_REPLYING:
    case CLIENT_LAST_REPLY:
        return control_client_send(client);
    case CLIENT_WAITING:
        if (control_events_are_due(client)) {
            control_events_send(client);
            return CLIENT_DONE;
        }
        /* fall through */
    case CLIENT_HELD: /* the end of the input alone does not count */
        return poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0
                   ? CLIENT_GONE
                   : CLIENT_BLOCKED;
    default: /* unread input would reset the connection, and the reply be lost */
        recv(client->fd, client->in, sizeof(client->in), 0);
        return CLIENT_GONE;
    }
}

/* Sends, receives and handles without waiting, and may destroy the client. */
static void run_client(struct control_client *client)
{
    enum client_step step = CLIENT_DONE;

    /* a request takes three steps: receiving, handling, sending */
    for (unsigned steps = 0; step == CLIENT_DONE && steps < 3 * REQUESTS_MAX; steps++)
        step = run_client_step(client);
    if (step == CLIENT_GONE)
        control_client_destroy(client);
    else if (step == CLIENT_DONE)
        process_ops->raise(SIGIO); /* the other clients come first */
}

/* Returns the client whose latest request or reply is longest ago, but for waiting clients. */
static struct control_client *longest_idle(
    const struct control *control, const struct control_client *except)
{
    struct control_client *client, *found = NULL;

    TAILQ_FOREACH (client, &control->clients, link)
        if (client != except && client->waiting_for == CONTROL_WAIT_NONE &&
            (found == NULL || client->activity < found->activity))
            found = client;
    return found;
}

/* Closes the longest idle client for a new client, if there are too many. Clients that have gone,
 * or have just sent a request, are found first. */
static void make_control_room(struct control *control, const struct control_client *client)
{
    struct control_client *other, *next;

    if (control->client_n <= CONTROL_CLIENTS_MAX)
        return;
    TAILQ_FOREACH_SAFE (other, &control->clients, link, next)
        if (other != client)
            run_client(other);
    if (control->client_n <= CONTROL_CLIENTS_MAX)
        return;
    other = longest_idle(control, client);
    assert(other != NULL && control->client_n == CONTROL_CLIENTS_MAX + 1); /* fewer may wait */
    if (other->phase == CLIENT_READING) { /* the reply before is through */
        control_reply_error(other, "closed, for a new client: too many are connected", true);
        if (run_client_step(other) == CLIENT_DONE)
            run_client_step(other); /* takes what is unread */
    }
    control_client_destroy(other);
}

static void cut_off(struct loop *loop, struct timer *timer)
{
    struct control_client *client = container_of(timer, struct control_client, patience);

    assert(loop == NULL);
    control_client_check(client);
    control_client_destroy(client);
}

/* Begins with a new client. A process without permission gets an error and is cut off. */
static void begin_control_client(struct control *control, enum control_use use, int fd)
{
    struct control_client *client = malloc(sizeof(*client));
    const char *refused;

    assert(fd != -1);
    if (client == NULL || process_ops->wakeup_add(fd) == -1) {
        log_write(
            control->pool->log, LEVEL_ERROR, errno, "a client of the control socket is not served");
        free(client);
        close(fd);
        return;
    }
    memset(client, 0, offsetof(struct control_client, in));
    client->kind = CONTROL_CLIENT_KIND;
    client->control = control;
    client->fd = fd;
    client->passed = -1;
    client->read_only = use == CONTROL_READ;
    client->patience.expired = cut_off;
    timers_arm(control->pool->timers, &client->patience, CONTROL_PATIENCE_MS);
    TAILQ_INSERT_TAIL(&control->clients, client, link);
    control->client_n++;
    refused = control_client_refusal(control, &control->sockets[use].rights, fd, &client->pid);
    client->activity = ++control->activity;
    if (refused != NULL)
        control_reply_error(client, refused, true);
    else
        make_control_room(control, client);
    run_client(client); /* a client that has gone is not counted with the next */
    if (control->client_n > CONTROL_CLIENTS_MAX) /* a refused client that does not read */
        control_client_destroy(client);
}

/* Clients */

static void accept_again(struct loop *loop, struct timer *timer)
{
    struct control *control = container_of(timer, struct control, retry);

    CHECK_KIND(control, CONTROL_KIND);
    assert(loop == NULL);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        if (control->sockets[i].fd != -1)
            process_ops->wakeup_expect(control->sockets[i].fd, WAKEUP_INPUT);
    control_serve(control);
}

void control_init(struct control *control, const struct control_ops *ops, void *host,
    const struct pool *pool, const struct control_socket *sockets)
{
    assert(ops->write_head != NULL && ops->write_tail != NULL && ops->add_problems != NULL);
    assert(ops->command != NULL && ops->is_master != NULL);
    *control = (struct control) {
        .kind = CONTROL_KIND,
        .ops = ops,
        .host = host,
        .pool = pool,
        .sockets = sockets,
        .ticks = ticks_mark(),
        .retry = { .expired = accept_again },
    };
    TAILQ_INIT(&control->clients);
}

void control_check(const struct control *control)
{
    const struct control_client *client;
    unsigned n = 0;

    CHECK_KIND(control, CONTROL_KIND);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        assert((control->sockets[i].path == NULL) == (control->sockets[i].fd == -1));
    TAILQ_FOREACH (client, &control->clients, link) {
        control_client_check(client);
        assert(client->control == control);
        n++;
    }
    assert(n == control->client_n && n <= CONTROL_CLIENTS_MAX);
}

/* The kernel announces a queued client only once: a failure is followed by a retry. */
static void accept_from(struct control *control, enum control_use use)
{
    int listening = control->sockets[use].fd;

    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = descriptor_accept(listening, NULL, NULL, O_NONBLOCK);

        if (fd == -1 && errno == EAGAIN)
            return;
        if (fd == -1 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd == -1) {
            if (!control->accept_failed)
                log_write(control->pool->log, LEVEL_ERROR, errno,
                    "accept4() for the control socket failed");
            control->accept_failed = true;
            process_ops->wakeup_expect(listening, WAKEUP_END);
            timers_arm(control->pool->timers, &control->retry, RETRY_MS);
            return;
        }
        control->accept_failed = false;
        begin_control_client(control, use, fd);
    }
    process_ops->raise(SIGIO); /* perhaps more wait */
}

void control_accept(struct control *control)
{
    CHECK_KIND(control, CONTROL_KIND);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        if (control->sockets[i].fd != -1)
            accept_from(control, i);
}

void control_serve(struct control *control)
{
    struct control_client *client, *next;

    CHECK_KIND(control, CONTROL_KIND);
    control_accept(control);
    TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
        run_client(client);
}

int control_take_over(struct control *control)
{
    const struct control_client *client;
    int status = 0;

    control_check(control);
    for (unsigned i = 0; i < CONTROL_SOCKETS; i++)
        if (control->sockets[i].fd != -1 && process_ops->wakeup_add(control->sockets[i].fd) == -1)
            status = -1;
    TAILQ_FOREACH (client, &control->clients, link)
        if (process_ops->wakeup_add(client->fd) == -1)
            status = -1;
    return status;
}

void control_wait_on(struct control *control, enum control_wait from, enum control_wait to)
{
    struct control_client *client;

    assert(from != CONTROL_WAIT_NONE && to != CONTROL_WAIT_NONE);
    assert(from != CONTROL_WAIT_EXIT && to != CONTROL_WAIT_EXIT);
    TAILQ_FOREACH (client, &control->clients, link)
        if (client->waiting_for == from)
            client->waiting_for = to;
}

void control_tell(
    struct control *control, enum control_wait waiting_for, const char *why, bool changed)
{
    struct control_client *client;

    CHECK_KIND(control, CONTROL_KIND);
    TAILQ_FOREACH (client, &control->clients, link)
        if (client->waiting_for == waiting_for && client->progress && (changed || !client->told))
            control_reply_waiting(client, why);
}

void control_reply(
    struct control *control, enum control_wait waiting_for, const struct control_outcome *outcome)
{
    struct control_client *client, *next;

    CHECK_KIND(control, CONTROL_KIND);
    assert(waiting_for != CONTROL_WAIT_NONE && waiting_for != CONTROL_WAIT_EXIT);
    assert(outcome->ok || outcome->error != NULL);
    TAILQ_FOREACH_SAFE (client, &control->clients, link, next) {
        if (client->waiting_for != waiting_for)
            continue;
        assert(client->phase == CLIENT_WAITING);
        if (waiting_for == CONTROL_WAIT_QUIT)
            client->waiting_for = CONTROL_WAIT_EXIT;
        control_reply_outcome(client, outcome);
        run_client(client);
    }
}

void control_report(struct control *control, const char *text, size_t n)
{
    struct control_client *client, *next;

    CHECK_KIND(control, CONTROL_KIND);
    TAILQ_FOREACH_SAFE (client, &control->clients, link, next) {
        if (client->waiting_for != CONTROL_WAIT_CERTIFICATES)
            continue;
        control_certificates_reply(client, text, n);
        run_client(client);
    }
}

void control_tell_events(struct control *control)
{
    const struct event_log *events = control->pool->log->event_log;
    struct control_client *client, *next;

    CHECK_KIND(control, CONTROL_KIND);
    if (events == NULL || control->event_n == events->n)
        return;
    control->event_n = events->n;
    TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
        if (client->waiting_for == CONTROL_WAIT_EVENTS)
            run_client(client);
}

void control_end(struct control *control)
{
    struct control_client *client;

    control_check(control);
    while ((client = TAILQ_FIRST(&control->clients)) != NULL) {
        if (client->waiting_for == CONTROL_WAIT_EXIT)
            client->fd = -1; /* closed by the exit */
        control_client_destroy(client);
    }
    timers_disarm(control->pool->timers, &control->retry);
}
