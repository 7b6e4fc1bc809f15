/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of libssl's client: see tls_client.h. */
#include "daemon/tls_client.h"

#include "daemon/client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void tls_client_make_files(struct daemon *daemon)
{
    int code = daemon_run(daemon, "certificate", "--self-signed", "tls.example", NULL);

    ck_assert_msg(code == 0, "%s", daemon->err);
    daemon_owns(daemon, "tls.example.crt");
    daemon_owns(daemon, "tls.example.key");
}

bool tls_client_begin(struct tls_client *client, in_port_t port)
{
    return tls_client_begin_on(client, client_open(port));
}

bool tls_client_begin_on(struct tls_client *client, int fd)
{
    const struct timeval patience = { .tv_sec = TEST_PATIENCE_MS / 1000 };

    *client = (struct tls_client) { .fd = fd };
    ck_assert_int_eq(
        setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    client->context = SSL_CTX_new(TLS_client_method());
    client->ssl = SSL_new(client->context);
    ck_assert_ptr_nonnull(client->ssl);
    SSL_set_fd(client->ssl, client->fd);
    ERR_clear_error();
    if (SSL_connect(client->ssl) == 1)
        return true;
    tls_client_end(client);
    return false;
}

void tls_client_echo(const struct tls_client *client, const char *text)
{
    int n = (int)strlen(text);
    char back[64];

    ck_assert_int_eq(SSL_write(client->ssl, text, n), n);
    for (int got = 0; got < n;) {
        int more = SSL_read(client->ssl, back + got, n - got);

        ck_assert_int_gt(more, 0);
        got += more;
    }
    ck_assert_mem_eq(back, text, (size_t)n);
}

void tls_client_end(struct tls_client *client)
{
    if (client->ssl == NULL)
        return;
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    close(client->fd);
    *client = (struct tls_client) { .fd = -1 };
}
