/* SPDX-License-Identifier: BSD-2-Clause */
/* No sessions of TLS, in a build without OpenSSL: see tls_client.h. */
#include "daemon/tls_client.h"

void tls_client_make_files(struct daemon *daemon)
{
    (void)daemon;
}

bool tls_client_begin(struct tls_client *client, in_port_t port)
{
    (void)port;
    *client = (struct tls_client) { .fd = -1 };
    return true;
}

bool tls_client_begin_on(struct tls_client *client, int fd)
{
    *client = (struct tls_client) { .fd = fd };
    return true;
}

void tls_client_echo(const struct tls_client *client, const char *text)
{
    (void)client;
    (void)text;
}

void tls_client_end(struct tls_client *client)
{
    (void)client;
}
