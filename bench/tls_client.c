/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of the TLS load generator: OpenSSL's own socket BIO over a non-blocking socket. */
#include "bench/tls_client.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Called for each ticket, in TLS 1.3 twice a connection with most servers; takes the reference. */
static int keep_ticket(SSL *ssl, SSL_SESSION *ticket)
{
    struct tls_client *client = SSL_get_app_data(ssl);

    SSL_SESSION_free(client->ticket);
    client->ticket = ticket;
    return 1;
}

SSL_CTX *tls_client_context(const char *version)
{
    SSL_CTX *context;
    int number = strcmp(version, "1.2") == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;

    if (strcmp(version, "plain") == 0)
        return NULL;
    if (number == TLS1_3_VERSION && strcmp(version, "1.3") != 0)
        errx(2, "the version is 1.2, 1.3 or plain");
    context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || !SSL_CTX_set_min_proto_version(context, number) ||
        !SSL_CTX_set_max_proto_version(context, number) ||
        !SSL_CTX_set1_groups_list(context, "X25519:P-256") ||
        !SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set_cipher_list(
            context, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"))
        errx(1, "libssl refuses version %s", version);
    SSL_CTX_set_session_cache_mode(
        context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(context, keep_ticket);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
    return context;
}

static void begin_handshake(struct tls_client *client, SSL_CTX *context, bool resumes)
{
    client->ssl = SSL_new(context);
    if (client->ssl == NULL || !SSL_set_fd(client->ssl, client->fd))
        errx(1, "memory");
    SSL_set_app_data(client->ssl, client);
    if (resumes && client->ticket != NULL && !SSL_set_session(client->ssl, client->ticket))
        errx(1, "libssl refuses to offer a ticket");
}

void tls_client_open(struct tls_client *client, SSL_CTX *context, const struct sockaddr_in *to,
    int epoll, bool resumes)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client };
    int on = 1;

    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd == -1)
        err(1, "socket");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(client->fd, (const struct sockaddr *)to, sizeof(*to)) == -1)
        err(1, "connect");
    if (fcntl(client->fd, F_SETFL, O_NONBLOCK) == -1 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &event) == -1)
        err(1, "epoll_ctl");
    client->open = context == NULL;
    client->resumed = false;
    if (context != NULL)
        begin_handshake(client, context, resumes);
}

/* The result of a call of libssl or of the kernel that moved no byte. */
static long failure_of(struct tls_client *client, int result)
{
    int error;

    if (client->ssl == NULL)
        return result == -1 && errno == EAGAIN ? 0 : -1;
    error = SSL_get_error(client->ssl, result);
    ERR_print_errors_fp(stderr);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

bool tls_client_shake(struct tls_client *client)
{
    int result = SSL_connect(client->ssl);

    if (result != 1)
        return failure_of(client, result) == 0;
    client->open = true;
    client->resumed = SSL_session_reused(client->ssl) == 1;
    return true;
}

long tls_client_read(struct tls_client *client, void *bytes, size_t n)
{
    int result = client->ssl == NULL ? (int)recv(client->fd, bytes, n, 0)
                                     : SSL_read(client->ssl, bytes, (int)n);

    return result > 0 ? result : failure_of(client, result);
}

long tls_client_write(struct tls_client *client, const void *bytes, size_t n)
{
    int result = client->ssl == NULL ? (int)send(client->fd, bytes, n, MSG_NOSIGNAL)
                                     : SSL_write(client->ssl, bytes, (int)n);

    return result > 0 ? result : failure_of(client, result);
}

void tls_client_close(struct tls_client *client)
{
    if (client->ssl != NULL) {
        if (client->open)
            SSL_shutdown(client->ssl);
        SSL_free(client->ssl);
        ERR_clear_error();
    }
    client->ssl = NULL;
    close(client->fd);
    client->fd = -1;
}
