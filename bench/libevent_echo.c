/* SPDX-License-Identifier: BSD-2-Clause */
/* libevent_echo PORT: an echo server in the usual style of libevent's buffered events. */
#include <err.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

static void on_read(struct bufferevent *client, void *state)
{
    (void)state;
    evbuffer_add_buffer(bufferevent_get_output(client), bufferevent_get_input(client));
}

static void on_event(struct bufferevent *client, short events, void *state)
{
    (void)state;
    if (events & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
        bufferevent_free(client);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
    int length, void *state)
{
    struct bufferevent *client =
        bufferevent_socket_new(evconnlistener_get_base(listener), fd, BEV_OPT_CLOSE_ON_FREE);
    const struct timeval idle = { .tv_sec = 600 };
    int on = 1;

    (void)from;
    (void)length;
    (void)state;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    bufferevent_setcb(client, on_read, NULL, on_event, NULL);
    bufferevent_set_timeouts(client, &idle, NULL);
    bufferevent_enable(client, EV_READ | EV_WRITE);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct event_base *base = event_base_new();

    if (argc != 2)
        errx(2, "usage: libevent_echo PORT");
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (evconnlistener_new_bind(base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE,
            4096, (struct sockaddr *)&address, sizeof(address)) == NULL)
        err(1, "port %s", argv[1]);
    return event_base_dispatch(base);
}
