/* SPDX-License-Identifier: BSD-2-Clause */
/* The far ends of what is watched: of the real kernel, or of a simulation. */
#include "contract/contract.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* Ends of a simulation have numbers from here on. */
#define FIRST_END 100000000
#define ENDS_MAX 8192

struct sim *simulation;

static struct {
    struct sim_socket *socket;
    bool ended;
} ends[ENDS_MAX];
static int end_n;

static void fail_of_fault(void *arg, const char *text)
{
    (void)arg;
    ck_abort_msg("%s", text);
}

void start_simulation(void)
{
    simulation = sim_create();
    simulation->on_fault = fail_of_fault;
    simulation->auto_time = true;
    end_n = 0;
}

void end_simulation(void)
{
    sim_destroy(&simulation);
}

static int add_end(struct sim_socket *socket)
{
    ck_assert_int_lt(end_n, ENDS_MAX);
    ends[end_n].socket = socket;
    ends[end_n].ended = false;
    return FIRST_END + end_n++;
}

static struct sim_socket *end_of(int fd)
{
    ck_assert_int_lt(fd - FIRST_END, end_n);
    return ends[fd - FIRST_END].socket;
}

static void make_simulated_pair(int fds[2])
{
    struct sim_socket *socket = sim_connection(simulation);

    fds[0] = socket->fd;
    fds[1] = add_end(socket);
}

void make_pair(int fds[2])
{
    if (simulation != NULL) {
        make_simulated_pair(fds);
        return;
    }
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

/* The listener is a server too, by the same address. */
static int make_simulated_listener(struct sockaddr_in *address)
{
    struct sim_socket *socket = sim_listener(simulation, -1);

    *address = (struct sockaddr_in) {
        .sin_family = AF_INET,
        .sin_port = htons((in_port_t)(1 + add_end(socket) - FIRST_END)),
    };
    sim_server(simulation, (struct sockaddr *)address, sizeof(*address));
    return socket->fd;
}

int make_listener(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd;

    if (simulation != NULL)
        return make_simulated_listener(address);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in) { .sin_family = AF_INET };
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    ck_assert_int_eq(listen(fd, 128), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

void make_nobody(struct sockaddr_in *address)
{
    if (simulation != NULL)
        *address = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(65535) };
    else
        close(make_listener(address));
}

int make_client(const struct sockaddr_in *address)
{
    int fd;

    if (simulation != NULL)
        return add_end(sim_client(end_of(FIRST_END + ntohs(address->sin_port) - 1)));
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ne(fd, -1);
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == -1)
        ck_assert_int_eq(errno, EINPROGRESS);
    return fd;
}

void make_tcp_pair(int fds[2])
{
    struct sockaddr_in address;
    int listener;

    if (simulation != NULL) {
        make_simulated_pair(fds);
        return;
    }
    listener = make_listener(&address);
    fds[0] = make_client(&address);
    do /* the loopback may deliver a moment later */
        fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fds[1] == -1 && errno == EAGAIN);
    ck_assert_int_ne(fds[1], -1);
    close(listener);
}

void send_text(int fd, const char *text)
{
    if (simulation != NULL)
        sim_says(end_of(fd), text);
    else
        ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

void fill_socket(int fd)
{
    static const char bytes[65536];

    for (int i = 0; simulation != NULL && i < end_n; i++)
        if (ends[i].socket->fd == fd)
            sim_set_room(ends[i].socket, 0);
    if (simulation != NULL)
        return;
    while (write(fd, bytes, sizeof(bytes)) > 0)
        ;
    ck_assert_int_eq(errno, EAGAIN);
}

void drain_socket(int fd)
{
    static char bytes[65536];

    if (simulation != NULL)
        sim_set_room(end_of(fd), SIZE_MAX);
    while (simulation == NULL && read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

/* Ends a simulated end; false for a real end, or when it has ended before. */
static bool end_now(int fd)
{
    bool ended;

    if (simulation == NULL)
        return false;
    end_of(fd);
    ended = ends[fd - FIRST_END].ended;
    ends[fd - FIRST_END].ended = true;
    return !ended;
}

void close_end(int fd)
{
    if (end_now(fd))
        sim_end(end_of(fd));
    if (simulation != NULL)
        sim_break_output(end_of(fd), EPIPE);
    else
        close(fd);
}

void shut_end(int fd)
{
    if (end_now(fd))
        sim_end(end_of(fd));
    else if (simulation == NULL)
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
}

void reset_end(int fd)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    if (end_now(fd)) {
        sim_break(end_of(fd), ECONNRESET);
        sim_break_output(end_of(fd), ECONNRESET);
    } else if (simulation == NULL) {
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
        close(fd);
    }
}
