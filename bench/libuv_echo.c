/* SPDX-License-Identifier: BSD-2-Clause */
/* libuv_echo PORT: an echo server as one writes it with libuv: bytes are written at once where
 * there is room, and else from a copy. */
#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct rest {
    uv_write_t request;
    char bytes[];
};

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void on_written(uv_write_t *request, int status)
{
    (void)status;
    free(request);
}

/* A single buffer for all, as what is read is written before the next read. */
static void allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    static char bytes[65536];

    (void)handle;
    (void)wanted;
    *buffer = uv_buf_init(bytes, sizeof(bytes));
}

static void on_read(uv_stream_t *client, ssize_t n, const uv_buf_t *buffer)
{
    uv_buf_t bytes = uv_buf_init(buffer->base, n > 0 ? (unsigned)n : 0);
    struct rest *rest;
    int sent;

    if (n < 0)
        uv_close((uv_handle_t *)client, on_closed);
    if (n <= 0)
        return;
    sent = uv_try_write(client, &bytes, 1);
    if (sent == n)
        return;
    bytes =
        uv_buf_init(buffer->base + (sent > 0 ? sent : 0), (unsigned)(n - (sent > 0 ? sent : 0)));
    rest = malloc(sizeof(*rest) + bytes.len);
    if (rest == NULL)
        err(1, "memory");
    memcpy(rest->bytes, bytes.base, bytes.len);
    bytes.base = rest->bytes;
    uv_write(&rest->request, client, &bytes, 1, on_written);
}

static void on_connection(uv_stream_t *listener, int status)
{
    uv_tcp_t *client;

    if (status < 0)
        return;
    client = malloc(sizeof(*client));
    if (client == NULL)
        err(1, "memory");
    uv_tcp_init(listener->loop, client);
    if (uv_accept(listener, (uv_stream_t *)client) != 0) {
        uv_close((uv_handle_t *)client, on_closed);
        return;
    }
    uv_tcp_nodelay(client, 1);
    uv_read_start((uv_stream_t *)client, allocate, on_read);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct sockaddr_in address;
    uv_tcp_t listener;

    if (argc != 2)
        errx(2, "usage: libuv_echo PORT");
    uv_ip4_addr("127.0.0.1", atoi(argv[1]), &address);
    uv_tcp_init(loop, &listener);
    if (uv_tcp_bind(&listener, (struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)&listener, 4096, on_connection) != 0)
        errx(1, "port %s", argv[1]);
    return uv_run(loop, UV_RUN_DEFAULT);
}
