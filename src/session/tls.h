/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts of a client's TLS handshake that its session keeps: values of variables, and no key.
 *
 * Responsible for a copy of a few dozen bytes, and of the texts and the certificate that variables
 * need, made only where a variable of TLS is used (server->keeps_tls). Invariant: nothing changes
 * the copy until the session's end, also of a client that is passed to another server. */
#pragma once

#include "session/record.h"
#include "tls/engine.h"

struct session_tls_info {
    struct session_part part; /* the first member */
    uint16_t version;         /* enum tls_version */
    uint16_t suite, group;    /* IANA's numbers; group 0: none */
    bool resumed;
    uint8_t verify;      /* enum tls_verified */
    int32_t verify_code; /* OpenSSL's X509_V_ERR_... */
    uint8_t session_id_n, alpn_n, name_n;
    uint16_t facts_n, peer_n;
    /* session id, protocol of ALPN, server name, facts (tls/facts.h), and the certificate of the
     * client, behind one another */
    char texts[];
};

/* Returns what is kept of the handshake of the connection's session; NULL: nothing. */
const struct session_tls_info *session_tls_of(const struct fb_conn *conn);
/* Keeps what variables need of a finished handshake, once a session. Without memory the connection
 * is failed. */
void session_tls_set(struct fb_conn *conn, const struct tls_reply *reply);

/* Whether the client's certificate is what the profile wants; else a line says why not. */
bool session_tls_accepts(const struct fb_conn *conn, const struct tls_profile *profile,
    const struct tls_session *session);

/* The texts, lent until the session has ended; n is 0 where the handshake had none. */
static inline fb_bytes session_tls_id(const struct session_tls_info *info)
{
    return (fb_bytes) { (const uint8_t *)info->texts, info->session_id_n };
}

static inline fb_bytes session_tls_alpn(const struct session_tls_info *info)
{
    return (fb_bytes) { (const uint8_t *)info->texts + info->session_id_n, info->alpn_n };
}

static inline fb_bytes session_tls_name(const struct session_tls_info *info)
{
    return (fb_bytes) { (const uint8_t *)info->texts + info->session_id_n + info->alpn_n,
        info->name_n };
}

static inline fb_bytes session_tls_fact(const struct session_tls_info *info, enum tls_fact fact)
{
    const char *facts = info->texts + info->session_id_n + info->alpn_n + info->name_n;

    return tls_facts_find((fb_bytes) { (const uint8_t *)facts, info->facts_n }, fact);
}

/* The certificate of the client, as DER; kept only where the server keeps certificates. */
static inline fb_bytes session_tls_peer(const struct session_tls_info *info)
{
    const char *peer =
        info->texts + info->session_id_n + info->alpn_n + info->name_n + info->facts_n;

    return (fb_bytes) { (const uint8_t *)peer, info->peer_n };
}
