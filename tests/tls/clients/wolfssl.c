/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.2 and 1.3 by wolfSSL, for pump.c. */
#include <wolfssl/options.h>

#include "pump.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <wolfssl/error-ssl.h>
#include <wolfssl/ssl.h>

struct session {
    WOLFSSL *ssl;
};

/* Ends the program, unless the library waits for the socket. */
static int waits(struct session *session, const char *what, int result)
{
    int code = wolfSSL_get_error(session->ssl, result);
    char text[WOLFSSL_MAX_ERROR_SZ];

    if (code != WOLFSSL_ERROR_WANT_READ && code != WOLFSSL_ERROR_WANT_WRITE)
        errx(1, "wolfssl: %s: %s (%d)", what, wolfSSL_ERR_error_string((unsigned long)code, text),
            code);
    return SESSION_WAITS;
}

struct session *session_open(int fd, const char *name)
{
    struct session *session = calloc(1, sizeof(*session));
    WOLFSSL_CTX *context;
    int result;

    if (session == NULL)
        err(1, "calloc");
    wolfSSL_Init();
    context = wolfSSL_CTX_new(wolfSSLv23_client_method());
    if (context == NULL ||
        wolfSSL_CTX_load_verify_locations(context, "ca.pem", NULL) != WOLFSSL_SUCCESS)
        errx(1, "wolfssl: ca.pem");
    session->ssl = wolfSSL_new(context);
    if (session->ssl == NULL ||
        wolfSSL_UseSNI(session->ssl, WOLFSSL_SNI_HOST_NAME, name, (unsigned short)strlen(name)) !=
            WOLFSSL_SUCCESS ||
        wolfSSL_check_domain_name(session->ssl, name) != WOLFSSL_SUCCESS ||
        wolfSSL_set_fd(session->ssl, fd) != WOLFSSL_SUCCESS)
        errx(1, "wolfssl: no session");
    result = wolfSSL_connect(session->ssl);
    if (result != WOLFSSL_SUCCESS)
        waits(session, "handshake", result);
    wolfSSL_set_using_nonblock(session->ssl, 1);
    return session;
}

ssize_t session_read(struct session *session, void *p, size_t n)
{
    int result = wolfSSL_read(session->ssl, p, (int)n);

    if (result > 0)
        return result;
    if (wolfSSL_get_error(session->ssl, result) == WOLFSSL_ERROR_ZERO_RETURN)
        return 0;
    if (wolfSSL_get_error(session->ssl, result) == SOCKET_PEER_CLOSED_E)
        return SESSION_CUT;
    return waits(session, "read", result);
}

ssize_t session_write(struct session *session, const void *p, size_t n)
{
    int result = wolfSSL_write(session->ssl, p, (int)n);

    return result > 0 ? result : waits(session, "write", result);
}

int session_update_keys(struct session *session)
{
    int result;

    if (strcmp(wolfSSL_get_version(session->ssl), "TLSv1.3") != 0)
        return 0;
    result = wolfSSL_update_keys(session->ssl);
    return result == WOLFSSL_SUCCESS ? 0 : waits(session, "new keys", result);
}

int session_close(struct session *session)
{
    int result = wolfSSL_shutdown(session->ssl);

    return result == WOLFSSL_SUCCESS || result == WOLFSSL_SHUTDOWN_NOT_DONE
               ? 0
               : waits(session, "close", result);
}
