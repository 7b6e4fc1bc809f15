/* SPDX-License-Identifier: BSD-2-Clause */
/* Echoes to the workers that have connected. */
#include "plays/server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS_MAX 512

struct play_server {
    int listener;
    unsigned n;
    int connections[CONNECTIONS_MAX];
};

struct play_server *play_server_create(const struct play *play, const char *name)
{
    struct play_server *server = calloc(1, sizeof(*server));
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    test_require(server != NULL);
    strcpy(address.sun_path, play_path(play, name));
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    test_require(server->listener != -1);
    test_require(bind(server->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    test_require(listen(server->listener, CONNECTIONS_MAX) == 0);
    return server;
}

void play_server_destroy(struct play_server **server)
{
    for (unsigned i = 0; i < (*server)->n; i++)
        close((*server)->connections[i]);
    close((*server)->listener);
    free(*server);
    *server = NULL;
}

static bool accept_worker(struct play_server *server)
{
    int fd;

    if (server->n == CONNECTIONS_MAX)
        return false;
    fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd == -1)
        return false;
    server->connections[server->n++] = fd;
    return true;
}

bool play_server_step(struct play_server *server)
{
    bool any = accept_worker(server);

    for (unsigned i = 0; i < server->n; i++) {
        char bytes[1024];
        ssize_t n = recv(server->connections[i], bytes, sizeof(bytes), 0);

        if (n > 0)
            test_require(send(server->connections[i], bytes, (size_t)n, MSG_NOSIGNAL) == n ||
                         errno == EPIPE);
        any = any || n >= 0;
        if (n > 0 || (n == -1 && errno == EAGAIN))
            continue;
        close(server->connections[i]);
        server->connections[i--] = server->connections[--server->n];
    }
    return any;
}

unsigned play_server_count(const struct play_server *server)
{
    return server->n;
}
