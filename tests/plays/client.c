/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects clients, and receives their bytes. */
#include "plays/client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct play_client *connect_client(struct play *play, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct play_client *client = calloc(1, sizeof(*client));

    test_require(client != NULL);
    strcpy(address.sun_path, play_path(play, name));
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    test_require(client->fd != -1);
    if (connect(client->fd, (struct sockaddr *)&address, sizeof(address)) == -1) {
        close(client->fd);
        free(client);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&play->clients, client, link);
    return client;
}

struct play_client *play_request(struct play *play, const char *name, const char *line)
{
    struct play_client *client = connect_client(play, name);

    if (client == NULL)
        return NULL;
    client->of_control = true;
    dprintf(client->fd, "%s\n", line);
    return client;
}

struct play_client *play_control(struct play *play, const char *name, const char *command)
{
    char line[64];

    snprintf(line, sizeof(line), "{\"command\":\"%s\"}", command);
    return play_request(play, name, line);
}

struct play_client *play_connect(struct play *play)
{
    struct play_client *client = connect_client(play, "socket");

    if (client != NULL)
        test_require(send(client->fd, "\n", 1, MSG_NOSIGNAL) == 1);
    return client;
}

void play_client_close(struct play *play, struct play_client *client)
{
    TAILQ_REMOVE(&play->clients, client, link);
    close(client->fd);
    free(client);
}

void play_client_close_all(struct play *play)
{
    while (!TAILQ_EMPTY(&play->clients))
        play_client_close(play, TAILQ_FIRST(&play->clients));
}

static bool has_reply(const struct play_client *client)
{
    const char *reply = client->of_control ? strstr(client->line, "{\"ok\":") : client->line;

    return reply != NULL && strchr(reply, '\n') != NULL;
}

static bool receive(struct play_client *client)
{
    ssize_t n;

    if (client->ended || client->n == sizeof(client->line) - 1)
        return false;
    n = recv(client->fd, client->line + client->n, sizeof(client->line) - 1 - client->n, 0);
    if (n == -1 && errno == EAGAIN)
        return false;
    if (n <= 0)
        client->ended = true;
    else
        client->n += (size_t)n;
    client->replied = has_reply(client);
    return true;
}

bool play_client_step(struct play *play)
{
    struct play_client *client;
    bool any = false;

    TAILQ_FOREACH (client, &play->clients, link)
        any = receive(client) || any;
    return any;
}

bool play_client_is_ok(const struct play_client *client)
{
    return client->replied && strstr(client->line, "\"ok\":true") != NULL;
}
