/* SPDX-License-Identifier: BSD-2-Clause */
/* Type-length-values by haproxy's "The PROXY protocol, versions 1 & 2", section 2.2: ALPN, the name
 * asked for, and TLS with its parts.
 *
 * Responsible for the room: every value has a longest, and a longer common name is left out. */
#include "features/ssl/tlvs.h"

#include "net/proxy_protocol.h"
#include "session/conn.h"
#include "session/tls.h"

#include <assert.h>
#include <string.h>

#define TLV_HEAD 3
#define TLV_SSL_HEAD (TLV_HEAD + 5)
/* The longest text of a value. */
#define TLV_TEXT_MOST 255

/* Bits of the first byte of PROXY_PROTOCOL_SSL. */
enum { TLV_CLIENT_SSL = 1, TLV_CLIENT_CERT_CONN = 2, TLV_CLIENT_CERT_SESS = 4 };

/* Two texts, the parts of PROXY_PROTOCOL_SSL, and the certificate. */
static_assert(2 * (TLV_HEAD + TLV_TEXT_MOST) + TLV_SSL_HEAD + 5 * (TLV_HEAD + TLV_TEXT_MOST) +
                      TLV_HEAD + TLS_PEER_MOST <=
                  FB_TLVS_MOST,
    "a block of type-length-values may be longer than a caller's room");

/* Writes an integer of n bytes. */
static void put_integer(uint8_t *to, unsigned n, uint32_t value)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = (uint8_t)(value >> 8 * (n - 1 - i));
}

/* Writes a value, unless empty or longer than `most`; returns the end. */
static uint8_t *put_tlv(uint8_t *to, unsigned type, fb_bytes value, size_t most)
{
    if (value.n == 0 || value.n > most)
        return to;
    to[0] = (uint8_t)type;
    put_integer(to + 1, 2, (uint32_t)value.n);
    memcpy(to + TLV_HEAD, value.p, value.n);
    return to + TLV_HEAD + value.n;
}

static uint8_t *put_tlv_text(uint8_t *to, unsigned type, const char *text)
{
    return put_tlv(to, type, (fb_bytes) { (const uint8_t *)text, strlen(text) }, TLV_TEXT_MOST);
}

static uint8_t *put_fact(
    uint8_t *to, unsigned type, const struct session_tls_info *info, enum tls_fact fact)
{
    return put_tlv(to, type, session_tls_fact(info, fact), TLV_TEXT_MOST);
}

/* Writes PROXY_PROTOCOL_SSL. A client without a certificate is not verified. */
static uint8_t *put_ssl(uint8_t *to, const struct session_tls_info *info, bool certificate)
{
    const struct tls_suite *suite = tls_suite_find(info->suite);
    uint8_t *begin = to;

    to[TLV_HEAD] = TLV_CLIENT_SSL;
    if (info->verify != TLS_VERIFIED_NONE)
        to[TLV_HEAD] |=
            info->resumed ? TLV_CLIENT_CERT_SESS : TLV_CLIENT_CERT_SESS | TLV_CLIENT_CERT_CONN;
    put_integer(
        to + TLV_HEAD + 1, 4, info->verify == TLS_VERIFIED_NONE ? 1 : (uint32_t)info->verify_code);
    to = put_tlv_text(to + TLV_SSL_HEAD, PROXY_PROTOCOL_SSL_VERSION,
        info->version == TLS_1_3 ? "TLSv1.3" : "TLSv1.2");
    to = put_fact(to, PROXY_PROTOCOL_SSL_CN, info, TLS_FACT_COMMON_NAME);
    if (suite != NULL)
        to = put_tlv_text(to, PROXY_PROTOCOL_SSL_CIPHER, suite->name);
    to = put_fact(to, PROXY_PROTOCOL_SSL_SIG_ALG, info, TLS_FACT_OWN_ALGORITHM);
    to = put_fact(to, PROXY_PROTOCOL_SSL_KEY_ALG, info, TLS_FACT_OWN_KEY);
    if (certificate)
        to = put_tlv(to, PROXY_PROTOCOL_SSL_CLIENT_CERT, session_tls_peer(info), TLS_PEER_MOST);
    begin[0] = PROXY_PROTOCOL_SSL;
    put_integer(begin + 1, 2, (uint32_t)(to - begin - TLV_HEAD));
    return to;
}

uint32_t ssl_tlvs_write(const struct fb_conn *client, uint8_t out[FB_TLVS_MOST])
{
    const struct session_tls_info *info = session_tls_of(client);
    const struct server *server = session_server_of(client);
    uint64_t needs = server->needs | (server->protocol != NULL ? server->protocol->needs : 0);
    uint8_t *end = out;

    if (info == NULL)
        return 0;
    end = put_tlv(end, PROXY_PROTOCOL_ALPN, session_tls_alpn(info), TLV_TEXT_MOST);
    end = put_tlv(end, PROXY_PROTOCOL_AUTHORITY, session_tls_name(info), TLV_TEXT_MOST);
    end = put_ssl(end, info, (needs & FB_NEEDS_CERTIFICATES) != 0);
    assert(end - out <= (ptrdiff_t)FB_TLVS_MOST);
    return (uint32_t)(end - out);
}
