/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a client of the control socket, who may be slow, rude or gone: nothing waits for it. */
#include "master/master.h"

#include "process/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 16
#define REQUESTS_MAX 16 /* of one client at once */
#define PATIENCE_MS 30000

/* Why this peer may not ask, or NULL. */
static const char *refuse(struct master *master, int fd, pid_t *pid)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1) {
        fb_log(&master->log, FB_ERROR, errno, "a client of the control socket is unknown");
        return "who asks could not be found out";
    }
    *pid = peer.pid;
    if (peer.uid != 0 && peer.uid != geteuid()) {
        fb_log(&master->log, FB_WARN, 0,
            "process %d of user %u may not use the control socket, refused", (int)peer.pid,
            (unsigned)peer.uid);
        return "permission denied: only root and the daemon's own user may ask";
    }
    if (master->control.client_n >= CLIENTS_MAX)
        return "too many clients at once, try again";
    return NULL;
}

void fb_client_destroy(struct fb_control *control, struct fb_client *client)
{
    TAILQ_REMOVE(&control->clients, client, link);
    control->client_n--;
    if (client->fd != -1)
        close(client->fd);
    free(client->out);
    free(client);
}

void fb_client_answer(struct fb_client *client, char *line, size_t n)
{
    free(client->out); /* none, or it could not be told what it has waited for */
    client->out = line;
    client->out_n = line != NULL ? n : 0;
    client->out_sent = 0;
    if (client->awaits != FB_AWAITS_END)
        client->awaits = FB_AWAITS_NOTHING;
    if (line == NULL)
        client->closes = true;
}

void fb_client_answer_error(struct fb_client *client, const char *error)
{
    struct fb_json json;
    size_t n;
    char *line;

    fb_json_begin(&json);
    fb_json_object(&json, NULL);
    fb_json_bool(&json, "ok", false);
    fb_json_string(&json, "error", error);
    fb_json_close(&json);
    line = fb_json_end(&json, &n);
    fb_client_answer(client, line, n);
}

enum step { GOES_ON, WAITS, GONE };

static enum step send_answer(struct fb_client *client)
{
    while (client->out_sent < client->out_n) {
        ssize_t n = send(client->fd, client->out + client->out_sent,
            client->out_n - client->out_sent, MSG_NOSIGNAL);

        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1)
            return errno == EAGAIN ? WAITS : GONE;
        client->out_sent += (size_t)n;
    }
    free(client->out);
    client->out = NULL;
    client->out_n = client->out_sent = 0;
    return GOES_ON;
}

/* Who is kept waiting may have gone; who only sends nothing more has not. */
static enum step look_after(const struct fb_client *client)
{
    struct pollfd peer = { .fd = client->fd };

    return poll(&peer, 1, 0) == 1 && (peer.revents & (POLLHUP | POLLERR)) != 0 ? GONE : WAITS;
}

/* Drops the request that was obeyed. */
static void consume(struct fb_client *client, size_t n)
{
    client->in_n -= n;
    memmove(client->in, client->in + n, client->in_n);
}

static enum step receive(struct fb_client *client)
{
    ssize_t n;

    if (client->in_n == FB_REQUEST_MAX) {
        client->closes = true;
        fb_client_answer_error(client, "the request is too long: 65536 bytes without a line's end");
        return GOES_ON;
    }
    do
        n = recv(client->fd, client->in + client->in_n, FB_REQUEST_MAX - client->in_n, 0);
    while (n == -1 && errno == EINTR);
    if (n == -1)
        return errno == EAGAIN ? WAITS : GONE;
    if (n == 0)
        client->ended = true;
    client->in_n += (size_t)n;
    return GOES_ON;
}

/* Obeys the next request, if there is a whole one; the last may lack its end. */
static enum step obey_next(struct master *master, struct fb_client *client)
{
    const char *end = memchr(client->in, '\n', client->in_n);
    size_t n = end != NULL ? (size_t)(end - client->in) : client->in_n;

    if (end == NULL && !client->ended)
        return receive(client);
    if (end == NULL && n == 0)
        return GONE;
    fb_client_obey(master, client, n);
    consume(client, n + (end != NULL));
    client->deadline_ms = master->clock.mono_ms + PATIENCE_MS;
    return GOES_ON;
}

static enum step step(struct master *master, struct fb_client *client)
{
    if (client->out != NULL) {
        if (client->deadline_ms == 0) /* it was kept waiting until now */
            client->deadline_ms = master->clock.mono_ms + PATIENCE_MS;
        return send_answer(client);
    }
    if (client->awaits != FB_AWAITS_NOTHING) {
        client->deadline_ms = 0;
        return look_after(client);
    }
    if (client->closes) { /* what is unread would reset the connection */
        recv(client->fd, client->in, sizeof(client->in), 0);
        return GONE;
    }
    return obey_next(master, client);
}

void fb_client_go_on(struct master *master, struct fb_client *client)
{
    enum step next = GOES_ON;

    /* sending, receiving and obeying are a step each */
    for (unsigned steps = 0; next == GOES_ON && steps < 3 * REQUESTS_MAX; steps++)
        next = step(master, client);
    if (next == GONE)
        fb_client_destroy(&master->control, client);
    else if (next == GOES_ON)
        raise(SIGIO); /* the others first */
}

void fb_client_create(struct master *master, int fd)
{
    struct fb_control *control = &master->control;
    struct fb_client *client = malloc(sizeof(*client));
    const char *refused;

    if (client == NULL || fb_channel_wake(fd) == -1) {
        fb_log(&master->log, FB_ERROR, errno, "a client of the control socket is not served");
        free(client);
        close(fd);
        return;
    }
    memset(client, 0, offsetof(struct fb_client, in));
    client->fd = fd;
    client->deadline_ms = master->clock.mono_ms + PATIENCE_MS;
    refused = refuse(master, fd, &client->pid);
    TAILQ_INSERT_TAIL(&control->clients, client, link);
    control->client_n++;
    if (refused != NULL) {
        client->closes = true;
        fb_client_answer_error(client, refused);
    }
    fb_client_go_on(master, client); /* who has gone already is not counted with the next */
}
