/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions in libssl's own form, with the server's certificate: see client_session.h. */
#include "keeper/client_session.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

/* OpenSSL's own life of a session, in seconds. */
#define DEFAULT_LIFE 300

/* Computes the key of sessions; -1: the library failed. */
static int compute_session_key(uint8_t key[SESSION_KEY], const uint8_t identity[SESSION_CONTEXT],
    const struct tls_start *start)
{
    uint8_t bytes[SESSION_CONTEXT + sizeof(start->server) + TLS_NAME_MOST];
    size_t n = SESSION_CONTEXT;

    _Static_assert(SESSION_KEY == 32, "the size of SHA-256");
    assert(start->name.n <= TLS_NAME_MOST);
    memcpy(bytes, identity, n);
    memcpy(bytes + n, &start->server, sizeof(start->server));
    n += sizeof(start->server);
    if (start->name.n > 0)
        memcpy(bytes + n, start->name.p, start->name.n);
    return EVP_Digest(bytes, n + start->name.n, key, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

void client_session_begin(struct client_session *session, const struct context *context,
    const uint8_t identity[SESSION_CONTEXT], const struct session_table *table,
    const struct tls_start *start, SSL *ssl)
{
    const uint32_t timeout = context->profile->session_timeout;
    uint8_t bytes[SESSION_MOST];
    const uint8_t *p = bytes;
    size_t n;

    session->lib = context->lib;
    if (table == NULL || !context->profile->tickets || start->server == 0 ||
        compute_session_key(session->key, identity, start) < 0)
        return;
    session->table = table;
    session->life_ms = UINT64_C(1000) * (timeout > 0 ? timeout : DEFAULT_LIFE);
    n = session_table_find(table, session->key, tickets_clock(), bytes, &session->found);
    if (n == 0)
        return;
    session->offered = session->lib->d2i_SSL_SESSION(NULL, &p, (long)n);
    OPENSSL_cleanse(bytes, n);
    if (session->offered == NULL || session->lib->SSL_set_session(ssl, session->offered) != 1)
        client_session_fail(session);
    ERR_clear_error();
}

/* Returns when the life of a session ends that was made or renewed now. */
static uint64_t end_of_life(const struct client_session *session, SSL *ssl, uint64_t now_ms)
{
    const struct libssl *lib = session->lib;
    uint64_t ends = session->offered != NULL && lib->SSL_session_reused(ssl) == 1
                        ? session->found.ends_ms
                        : now_ms + session->life_ms;
    uint64_t hint = lib->SSL_SESSION_get_ticket_lifetime_hint(lib->SSL_get_session(ssl));

    return hint > 0 && now_ms + 1000 * hint < ends ? now_ms + 1000 * hint : ends;
}

void client_session_keep(struct client_session *session, SSL *ssl)
{
    const struct libssl *lib = session->lib;
    SSL_SESSION *own = session->table != NULL ? lib->SSL_get_session(ssl) : NULL;
    uint8_t bytes[SESSION_MOST], *p = bytes;
    uint64_t now = tickets_clock(), ends;
    int n;

    if (own == NULL || own == session->offered || lib->SSL_SESSION_is_resumable(own) != 1)
        return;
    ends = end_of_life(session, ssl, now);
    n = lib->i2d_SSL_SESSION(own, NULL);
    if (n <= 0 || n > SESSION_MOST || ends <= now)
        return;
    lib->i2d_SSL_SESSION(own, &p);
    assert(p == bytes + n);
    session_table_put(session->table, session->key, now, ends, bytes, (size_t)n);
    OPENSSL_cleanse(bytes, (size_t)n);
}

void client_session_fail(struct client_session *session)
{
    if (session->found.ends_ms != 0)
        session_table_drop(session->table, session->key, &session->found);
}

void client_session_end(struct client_session *session)
{
    if (session->offered != NULL)
        session->lib->SSL_SESSION_free(session->offered);
    session->offered = NULL;
}
