/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves the bytes of one client, which may be slow, rude or gone. Nothing here blocks, and no client can
 * keep the master busy: the work of one call is bounded. Its bytes are input and never asserted on. */
#include "control/client.h"

#include "control/reply.h"
#include "process/channel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 16
#define REQUESTS_MAX 16 /* of one client in one call */
#define PATIENCE_MS 30000

/* Returns why this peer may not use the socket, or NULL. */
static const char *refuse_peer(struct control *control, int fd, pid_t *pid)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1) {
        fb_log(control->log, FB_ERROR, errno, "a client of the control socket is unknown");
        return "who asks could not be found out";
    }
    *pid = peer.pid;
    if (peer.uid != 0 && peer.uid != geteuid()) {
        fb_log(control->log, FB_WARN, 0,
            "process %d of user %u may not use the control socket, refused", (int)peer.pid,
            (unsigned)peer.uid);
        return "permission denied: only root and the daemon's own user may ask";
    }
    if (control->client_n > CLIENTS_MAX)
        return "too many clients at once, try again";
    return NULL;
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
    assert(!waits || !fb_timer_is_set(&client->patience));
}

void control_client_set(struct control_client *client, enum client_phase phase)
{
    static const unsigned next[CLIENT_PHASES] = {
        [CLIENT_READING] = 1u << CLIENT_WAITING | 1u << CLIENT_REPLYING | 1u << CLIENT_LAST_REPLY |
                           1u << CLIENT_CLOSING,
        [CLIENT_WAITING] = 1u << CLIENT_REPLYING | 1u << CLIENT_CLOSING,
        [CLIENT_REPLYING] = 1u << CLIENT_READING | 1u << CLIENT_HELD | 1u << CLIENT_CLOSING,
        [CLIENT_LAST_REPLY] = 1u << CLIENT_CLOSING,
        [CLIENT_HELD] = 1u << CLIENT_CLOSING,
    };

    assert(phase < CLIENT_PHASES);
    assert((next[client->phase] & 1u << phase) != 0);
    client->phase = phase;
    if (phase == CLIENT_REPLYING || phase == CLIENT_LAST_REPLY)
        timers_arm(client->control->timers, &client->patience, PATIENCE_MS);
    else if (phase != CLIENT_READING) /* which goes by the time of the reply before it */
        timers_disarm(client->control->timers, &client->patience);
}

void control_client_destroy(struct control_client *client)
{
    struct control *control = client->control;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    assert(control->client_n > 0);
    TAILQ_REMOVE(&control->clients, client, link);
    control->client_n--;
    timers_disarm(control->timers, &client->patience);
    if (client->fd != -1)
        close(client->fd);
    free(client->out);
    client->kind = 0;
    free(client);
}

void control_client_wait(struct control_client *client, enum control_wait waiting_for)
{
    assert(waiting_for != CONTROL_WAIT_NONE && waiting_for != CONTROL_WAIT_EXIT);
    client->waiting_for = waiting_for;
    control_client_set(client, CLIENT_WAITING);
}

void control_client_reply(struct control_client *client, char *line, size_t n, bool last)
{
    assert(client->out == NULL);
    if (client->waiting_for != CONTROL_WAIT_EXIT)
        client->waiting_for = CONTROL_WAIT_NONE;
    client->out = line;
    client->out_n = line != NULL ? n : 0;
    client->out_sent = 0;
    control_client_set(client, line == NULL ? CLIENT_CLOSING
                               : last       ? CLIENT_LAST_REPLY
                                            : CLIENT_REPLYING);
}

enum step { STEP_DONE, STEP_BLOCKED, STEP_GONE };

static enum step send_reply(struct control_client *client)
{
    while (client->out_sent < client->out_n) {
        ssize_t n = send(client->fd, client->out + client->out_sent,
            client->out_n - client->out_sent, MSG_NOSIGNAL);

        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1)
            return errno == EAGAIN ? STEP_BLOCKED : STEP_GONE;
        client->out_sent += (size_t)n;
    }
    free(client->out);
    client->out = NULL;
    client->out_n = client->out_sent = 0;
    if (client->phase == CLIENT_LAST_REPLY)
        control_client_set(client, CLIENT_CLOSING);
    else if (client->waiting_for == CONTROL_WAIT_EXIT)
        control_client_set(client, CLIENT_HELD);
    else
        control_client_set(client, CLIENT_READING);
    return STEP_DONE;
}

/* A client that has to wait may have gone; one that only sends nothing more has not. */
static enum step check_connected(const struct control_client *client)
{
    struct pollfd peer = { .fd = client->fd };

    return poll(&peer, 1, 0) == 1 && (peer.revents & (POLLHUP | POLLERR)) != 0 ? STEP_GONE
                                                                               : STEP_BLOCKED;
}

static void drop_request(struct control_client *client, size_t n)
{
    assert(n <= client->in_n);
    client->in_n -= n;
    memmove(client->in, client->in + n, client->in_n);
}

static enum step receive_input(struct control_client *client)
{
    ssize_t n;

    if (client->in_n == CONTROL_REQUEST_MAX) {
        control_reply_error(
            client, "the request is too long: 65536 bytes without a line's end", true);
        return STEP_DONE;
    }
    do
        n = recv(client->fd, client->in + client->in_n, CONTROL_REQUEST_MAX - client->in_n, 0);
    while (n == -1 && errno == EINTR);
    if (n == -1)
        return errno == EAGAIN ? STEP_BLOCKED : STEP_GONE;
    if (n == 0)
        client->ended = true;
    client->in_n += (size_t)n;
    return STEP_DONE;
}

/* Handles the next request, if there is a whole one; the last may lack its line's end. */
static enum step handle_next(struct control_client *client)
{
    const char *end = memchr(client->in, '\n', client->in_n);
    size_t n = end != NULL ? (size_t)(end - client->in) : client->in_n;

    if (end == NULL && !client->ended)
        return receive_input(client);
    if (end == NULL && n == 0)
        return STEP_GONE;
    control_command_handle(client, n);
    assert(client->phase != CLIENT_READING);
    drop_request(client, n + (end != NULL));
    return STEP_DONE;
}

static enum step run_step(struct control_client *client)
{
    control_client_check(client);
    switch (client->phase) {
    case CLIENT_READING:
        return handle_next(client);
    case CLIENT_REPLYING:
    case CLIENT_LAST_REPLY:
        return send_reply(client);
    case CLIENT_WAITING:
    case CLIENT_HELD:
        return check_connected(client);
    default: /* input that was left unread would reset the connection, and the reply be lost */
        recv(client->fd, client->in, sizeof(client->in), 0);
        return STEP_GONE;
    }
}

void control_client_run(struct control_client *client)
{
    enum step step = STEP_DONE;

    /* sending, receiving and handling are a step each */
    for (unsigned steps = 0; step == STEP_DONE && steps < 3 * REQUESTS_MAX; steps++)
        step = run_step(client);
    if (step == STEP_GONE)
        control_client_destroy(client);
    else if (step == STEP_DONE)
        raise(SIGIO); /* the other clients come first */
}

static void cut_off(struct fb_loop *loop, struct fb_timer *timer)
{
    struct control_client *client = fb_container(timer, struct control_client, patience);

    assert(loop == NULL);
    control_client_check(client);
    control_client_destroy(client);
}

void control_client_create(struct control *control, int fd)
{
    struct control_client *client = malloc(sizeof(*client));
    const char *refused;

    assert(fd != -1);
    if (client == NULL || fb_channel_wake(fd) == -1) {
        fb_log(control->log, FB_ERROR, errno, "a client of the control socket is not served");
        free(client);
        close(fd);
        return;
    }
    memset(client, 0, offsetof(struct control_client, in));
    client->kind = CONTROL_CLIENT_KIND;
    client->control = control;
    client->fd = fd;
    client->patience.expired = cut_off;
    timers_arm(control->timers, &client->patience, PATIENCE_MS);
    TAILQ_INSERT_TAIL(&control->clients, client, link);
    control->client_n++;
    refused = refuse_peer(control, fd, &client->pid);
    if (refused != NULL)
        control_reply_error(client, refused, true);
    control_client_run(client); /* a client that has gone already is not counted with the next */
}
