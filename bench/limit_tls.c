/* SPDX-License-Identifier: BSD-2-Clause */
/* limit_tls PORT CERTIFICATE KEY: the smallest echo server over TLS on epoll and libssl. Buffers are
 * released while a session is idle; all else is as libssl has it. */
#include "bench/limit.h"

#include <err.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static SSL_CTX *context_of(const char *certificate, const char *key)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    if (context == NULL || SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
        ERR_print_errors_fp(stderr);
        errx(1, "certificate %s, key %s", certificate, key);
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return context;
}

static void accept_one(SSL_CTX *context, int listener, int epoll)
{
    struct epoll_event event = { .events = EPOLLIN };
    SSL *ssl = SSL_new(context);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (ssl == NULL || fd == -1 || !SSL_set_fd(ssl, fd))
        err(1, "accept");
    limit_no_delay(fd);
    SSL_set_accept_state(ssl);
    event.data.ptr = ssl;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Tries again and again while the socket has no room, as nothing smaller is right. */
static void write_all(SSL *ssl, const char *bytes, int n)
{
    int result = SSL_write(ssl, bytes, n);

    while (result <= 0 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_WRITE)
        result = SSL_write(ssl, bytes, n);
}

static void echo(SSL *ssl)
{
    static char bytes[16384];
    int n, error, fd = SSL_get_fd(ssl);

    while ((n = SSL_read(ssl, bytes, sizeof(bytes))) > 0)
        write_all(ssl, bytes, n);
    error = SSL_get_error(ssl, n);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return;
    if (error == SSL_ERROR_ZERO_RETURN)
        SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

int main(int argc, char **argv)
{
    struct epoll_event events[512], event = { .events = EPOLLIN };
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener;
    SSL_CTX *context;

    if (argc != 4)
        errx(2, "usage: limit_tls PORT CERTIFICATE KEY");
    signal(SIGPIPE, SIG_IGN);
    context = context_of(argv[2], argv[3]);
    listener = limit_listen(argv[1]);
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, 512, -1);

        for (int i = 0; i < n; i++)
            if (events[i].data.ptr == NULL)
                accept_one(context, listener, epoll);
            else
                echo(events[i].data.ptr);
    }
}
