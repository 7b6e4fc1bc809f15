/* SPDX-License-Identifier: BSD-2-Clause */
/* Echoes datagrams: a protocol with clients without connections. Workers have separate sockets. A
 * call takes a single datagram, and sends the echo when there is room. The datagram "close" is a
 * mistake: the socket is closed while watched; "hang" stays in the callback. */
#include <arpa/inet.h>
#include <errno.h>
#include <forkbeard/forkbeard.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct udp_conf {
    int64_t port;
};

struct udp_worker {
    fb_watch *watch;
    int fd;
    struct sockaddr_in from;
    char bytes[2048];
    size_t n; /* to be sent back */
};

static void echo_ready(fb_worker *worker, fb_watch *watch, unsigned events, void *arg)
{
    struct udp_worker *udp = arg;
    socklen_t length = sizeof(udp->from);
    ssize_t n;

    if (events & FB_WATCH_READ) {
        n = recvfrom(
            udp->fd, udp->bytes, sizeof(udp->bytes), 0, (struct sockaddr *)&udp->from, &length);
        if (n <= 0)
            return;
        udp->n = (size_t)n;
    }
    if (udp->n == 5 && memcmp(udp->bytes, "close", 5) == 0) {
        close(udp->fd);
        return;
    }
    if (udp->n == 4 && memcmp(udp->bytes, "hang", 4) == 0)
        usleep(300 * 1000); /* longer than the test's stall_threshold */
    n = sendto(udp->fd, udp->bytes, udp->n, 0, (struct sockaddr *)&udp->from, sizeof(udp->from));
    if (n == -1 && errno == EAGAIN) {
        fb_watch_set(watch, FB_WATCH_WRITE);
        return;
    }
    udp->n = 0;
    if (events & FB_WATCH_WRITE)
        fb_watch_set(watch, FB_WATCH_READ);
    (void)worker;
}

static int udp_start(fb_worker *worker, void *state)
{
    const struct udp_conf *conf = fb_worker_conf(worker, 0);
    struct udp_worker *udp = state;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((in_port_t)conf->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int yes = 1;

    udp->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (udp->fd == -1 || setsockopt(udp->fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) == -1 ||
        bind(udp->fd, (struct sockaddr *)&address, sizeof(address)) == -1)
        return -1;
    udp->watch = fb_watch_fd(worker, udp->fd, FB_WATCH_READ, echo_ready, udp);
    return udp->watch == NULL ? -1 : 0;
}

static void udp_stop(fb_worker *worker, void *state)
{
    struct udp_worker *udp = state;

    (void)worker;
    fb_unwatch(udp->watch);
    close(udp->fd);
}

/* Clients serve only to keep their worker. */
static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    return in.n;
}

static const fb_directive directives[] = {
    { .name = "udp_echo",
        .value = FB_VALUE_NUMBER,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct udp_conf, port),
        .least = 1,
        .greatest = 65535 },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = client_data };

FB_PROTOCOL(udp_echo) = {
    FB_PROTOCOL_HEADER,
    .name = "udp_echo",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct udp_conf),
    .worker_state = sizeof(struct udp_worker),
    .ops = &ops,
    .worker_start = udp_start,
    .worker_stop = udp_stop,
};
