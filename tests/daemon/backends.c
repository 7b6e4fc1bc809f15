/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, stops and kills the processes that serve behind the daemon under test. */
#include "daemon/backends.h"

#include "daemon/client.h"
#include "daemon/proc.h"

#include <bsd/unistd.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 512
#define LISTENER 3
/* The sessions of backend_is_used(). */
#define ASKED 9

static int listen_at(unsigned number, in_port_t port)
{
    static const int on = 1;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + number);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, SOMAXCONN), 0);
    return fd;
}

/* ---- In the process of a backend ---- */

/* Returns the received bytes' answer; false: the end. */
static bool answer(int fd, char digit)
{
    char bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

    if (n <= 0)
        return false;
    if (n == 1 && bytes[0] == '?')
        bytes[0] = digit;
    return send(fd, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static _Noreturn void serve(char digit)
{
    static struct pollfd fds[CONNECTIONS_MAX + 1] = { { .fd = LISTENER, .events = POLLIN } };
    nfds_t n = 1;

    for (;;) {
        if (poll(fds, n, -1) == -1)
            continue; /* stopped, and continued */
        for (nfds_t i = n - 1; i > 0; i--)
            if (fds[i].revents != 0 && !answer(fds[i].fd, digit)) {
                close(fds[i].fd);
                fds[i] = fds[--n];
            }
        if (fds[0].revents != 0 && n <= CONNECTIONS_MAX) {
            int fd = accept(LISTENER, NULL, NULL);

            if (fd != -1)
                fds[n++] = (struct pollfd) { .fd = fd, .events = POLLIN };
        }
    }
}

/* ---- In the test ---- */

/* The process of a backend: closes all further descriptors of the test, because clients and
 * listening sockets would outlive their owners. */
static _Noreturn void run(const struct backend *backend)
{
    if (dup2(backend->listener, LISTENER) == -1)
        _exit(1);
    closefrom(LISTENER + 1);
    serve((char)('0' + backend->number));
}

void backend_start(struct backend *backend)
{
    int ready[2];
    char byte;

    ck_assert_int_eq(backend->pid, 0);
    ck_assert_int_eq(pipe(ready), 0);
    backend->listener = listen_at(backend->number, backend->port);
    backend->pid = fork();
    ck_assert_int_ne(backend->pid, -1);
    if (backend->pid == 0)
        run(backend);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 0); /* the other end is closed there, too */
    close(ready[0]);
}

void backend_kill(struct backend *backend)
{
    close(backend->listener);
    backend->listener = -1;
    ck_assert_int_eq(kill(backend->pid, SIGKILL), 0);
    ck_assert_int_eq(proc_wait(backend->pid), 128 + SIGKILL);
    backend->pid = 0;
}

void backends_start(struct backend *backends, unsigned n, in_port_t port)
{
    for (unsigned i = 0; i < n; i++) {
        backends[i] = (struct backend) { .number = i + 1, .port = port };
        backend_start(&backends[i]);
    }
}

void backends_kill(struct backend *backends, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (backends[i].pid != 0)
            backend_kill(&backends[i]);
}

void backend_thaw(const struct backend *backend)
{
    ck_assert_int_eq(kill(backend->pid, SIGCONT), 0);
}

bool backend_is_awaited(const struct backend *backend)
{
    struct pollfd listener = { .fd = backend->listener, .events = POLLIN };

    return poll(&listener, 1, 0) == 1;
}

void backend_set_queue(const struct backend *backend, int most)
{
    ck_assert_int_eq(listen(backend->listener, most), 0);
}

int backend_begin(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);
    ssize_t n = send(client, "?", 1, MSG_NOSIGNAL);

    ck_assert(n == 1 || errno == EPIPE || errno == ECONNRESET);
    return client;
}

char backend_answer(int client)
{
    char digit;
    ssize_t n = recv(client, &digit, 1, 0);

    ck_assert_msg(n >= 0 || errno == ECONNRESET, "recv() failed: %s", strerror(errno));
    ck_assert(n <= 0 || (digit >= '1' && digit <= '9'));
    return n == 1 ? digit : '-';
}

char backend_ask(const struct daemon *daemon)
{
    int client = backend_begin(daemon);
    char digit = backend_answer(client);

    close(client);
    return digit;
}

bool backend_is_used(const struct daemon *daemon, char digit)
{
    for (unsigned i = 0; i < ASKED; i++) {
        char server = backend_ask(daemon);

        ck_assert_int_ne(server, '-');
        if (server == digit)
            return true;
    }
    return false;
}
