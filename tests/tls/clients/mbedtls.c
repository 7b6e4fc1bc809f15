/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.2 by Mbed TLS, for pump.c. */
#include "pump.h"

#include <err.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <stdlib.h>

struct session {
    mbedtls_net_context net;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt trusted;
    mbedtls_ssl_config config;
    mbedtls_ssl_context ssl;
};

/* Returns the result, or SESSION_WAITS. */
static int checked(const char *what, int result)
{
    if (result == MBEDTLS_ERR_SSL_WANT_READ || result == MBEDTLS_ERR_SSL_WANT_WRITE)
        return SESSION_WAITS;
    if (result < 0)
        errx(1, "mbedtls: %s: -0x%04x", what, (unsigned)-result);
    return result;
}

struct session *session_open(int fd, const char *name)
{
    struct session *session = calloc(1, sizeof(*session));

    if (session == NULL)
        err(1, "calloc");
    session->net.fd = fd;
    mbedtls_entropy_init(&session->entropy);
    mbedtls_ctr_drbg_init(&session->random);
    mbedtls_x509_crt_init(&session->trusted);
    mbedtls_ssl_config_init(&session->config);
    mbedtls_ssl_init(&session->ssl);
    checked("seed",
        mbedtls_ctr_drbg_seed(&session->random, mbedtls_entropy_func, &session->entropy, NULL, 0));
    checked("ca.pem", mbedtls_x509_crt_parse_file(&session->trusted, "ca.pem"));
    checked("config", mbedtls_ssl_config_defaults(&session->config, MBEDTLS_SSL_IS_CLIENT,
                          MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT));
    mbedtls_ssl_conf_ca_chain(&session->config, &session->trusted, NULL);
    mbedtls_ssl_conf_rng(&session->config, mbedtls_ctr_drbg_random, &session->random);
    checked("setup", mbedtls_ssl_setup(&session->ssl, &session->config));
    checked("name", mbedtls_ssl_set_hostname(&session->ssl, name));
    mbedtls_ssl_set_bio(&session->ssl, &session->net, mbedtls_net_send, mbedtls_net_recv, NULL);
    checked("handshake", mbedtls_ssl_handshake(&session->ssl));
    return session;
}

ssize_t session_read(struct session *session, void *p, size_t n)
{
    int result = mbedtls_ssl_read(&session->ssl, p, n);

    if (result == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
        return 0;
    if (result == 0 || result == MBEDTLS_ERR_SSL_CONN_EOF)
        return SESSION_CUT;
    return checked("read", result);
}

ssize_t session_write(struct session *session, const void *p, size_t n)
{
    return checked("write", mbedtls_ssl_write(&session->ssl, p, n));
}

/* TLS 1.2 has no KeyUpdate. */
int session_update_keys(struct session *session)
{
    (void)session;
    return 0;
}

int session_close(struct session *session)
{
    return checked("close", mbedtls_ssl_close_notify(&session->ssl));
}
