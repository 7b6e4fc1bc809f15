/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of a client's TLS, of what the session keeps of the handshake.
 *
 * Responsible for nginx's forms: a fact that the handshake lacks is a missing value. A client whose
 * handshake is not finished has no value yet. The low half of a variable's
 * number is the set of texts that the engine has to make (tls/facts.h). */
#include "features/ssl/ssl.h"

#include "base/number.h"
#include "session/conn.h"
#include "session/tls.h"
#include "text/variable.h"
#include "tls/verify_text.h"

#include <assert.h>
#include <string.h>

/* The number of a variable with the certificate of the client. */
#define CERTIFICATE(form) (TLS_FACT_PEER | (uint64_t)(form) << 32)

/* Returns the facts of the session; NULL, with the value set: there are none, or none yet. */
static const struct session_tls_info *find_info(struct fb_conn *conn, struct value *value)
{
    const struct session_tls_info *info = session_tls_of(conn);

    if (info == NULL && (session_binding_of(conn)->ssl || session_server_of(conn)->tls != NULL))
        value->state = VALUE_UNKNOWN;
    return info;
}

static void set_bytes(struct value *value, fb_bytes bytes)
{
    if (bytes.n > 0)
        *value = value_found((const char *)bytes.p, bytes.n);
}

static int get_alpn(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);

    (void)variable;
    if (info != NULL)
        set_bytes(value, session_tls_alpn(info));
    return 0;
}

static int get_name(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);

    (void)variable;
    if (info != NULL)
        set_bytes(value, session_tls_name(info));
    return 0;
}

static int get_session_id(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);
    char text[2 * sizeof(((struct tls_session *)0)->session_id)];
    fb_bytes id;

    (void)variable;
    if (info == NULL || info->session_id_n == 0)
        return 0;
    id = session_tls_id(info);
    assert(2 * id.n <= sizeof(text));
    for (size_t i = 0; i < id.n; i++) {
        text[2 * i] = "0123456789abcdef"[id.p[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[id.p[i] & 0xf];
    }
    return value_copy(conn, value, text, 2 * id.n);
}

static int get_version(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);

    (void)variable;
    if (info != NULL)
        *value = value_found(info->version == TLS_1_3 ? "TLSv1.3" : "TLSv1.2", 7);
    return 0;
}

static int get_cipher(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);
    const struct tls_suite *suite = info != NULL ? tls_suite_find(info->suite) : NULL;

    (void)variable;
    if (suite != NULL)
        *value = value_found(suite->name, strlen(suite->name));
    return 0;
}

/* Names as OpenSSL has them, by IANA's numbers; a group without a name is shown as its number. */
static const struct {
    uint16_t id;
    const char *name;
} curve_names[] = {
    { 23, "prime256v1" },
    { 24, "secp384r1" },
    { 25, "secp521r1" },
    { 26, "brainpoolP256r1" },
    { 27, "brainpoolP384r1" },
    { 28, "brainpoolP512r1" },
    { 29, "X25519" },
    { 30, "X448" },
    { 256, "ffdhe2048" },
    { 257, "ffdhe3072" },
    { 258, "ffdhe4096" },
    { 259, "ffdhe6144" },
    { 260, "ffdhe8192" },
};

static int get_curve(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);

    (void)variable;
    if (info == NULL || info->group == 0)
        return 0;
    for (size_t i = 0; i < countof(curve_names); i++)
        if (curve_names[i].id == info->group) {
            *value = value_found(curve_names[i].name, strlen(curve_names[i].name));
            return 0;
        }
    return value_printf(conn, value, "0x%04x", info->group);
}

static int get_reused(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);

    (void)variable;
    if (info != NULL)
        *value = value_found(info->resumed ? "r" : ".", 1);
    return 0;
}

static int get_verify(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);
    const char *text;

    (void)variable;
    if (info == NULL)
        return 0;
    if (info->verify != TLS_VERIFY_FAILED) {
        *value = info->verify == TLS_VERIFIED ? value_found("SUCCESS", 7) : value_found("NONE", 4);
        return 0;
    }
    text = tls_verify_text(info->verify_code);
    if (text == NULL)
        return value_printf(conn, value, "FAILED:error %d", (int)info->verify_code);
    return value_printf(conn, value, "FAILED:%s", text);
}

/* A text of the engine's, the only one that the variable needs. */
static int get_fact(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);

    if (info != NULL)
        set_bytes(value,
            session_tls_fact(info, (enum tls_fact)__builtin_ctz((unsigned)variable->number)));
    return 0;
}

static int get_certificate(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);

    return info != NULL ? ssl_certificate_value(conn, value, session_tls_peer(info),
                              (enum ssl_pem)(variable->number >> 32))
                        : 0;
}

/* The days that are left to the certificate of the client. */
static int get_days(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tls_info *info = find_info(conn, value);
    fb_bytes end = { NULL, 0 };
    int64_t seconds = 0, left;
    char text[24];

    (void)variable;
    if (info != NULL)
        end = session_tls_fact(info, TLS_FACT_EXPIRY);
    if (end.n == 0 || end.n >= sizeof(text))
        return 0;
    memcpy(text, end.p, end.n);
    text[end.n] = '\0';
    if (number_parse(text, INT64_MIN / 2, INT64_MAX / 2, &seconds) != NUMBER_OK)
        return 0;
    left = seconds - conn->net->loop.clock.wall_ms / 1000;
    return value_printf(conn, value, "%lld", left > 0 ? (long long)left / 86400 : 0);
}

const struct variable_row variables_ssl[] = {
    { "ssl_alpn_protocol", .get = get_alpn },
    { "ssl_cipher", .get = get_cipher },
    { "ssl_ciphers", .get = get_fact, .number = TLS_FACT(TLS_FACT_CIPHERS) },
    { "ssl_client_cert", .get = get_certificate, .number = CERTIFICATE(SSL_PEM_INDENTED) },
    { "ssl_client_escaped_cert", .get = get_certificate, .number = CERTIFICATE(SSL_PEM_ESCAPED) },
    { "ssl_client_fingerprint", .get = get_fact, .number = TLS_FACT(TLS_FACT_FINGERPRINT) },
    { "ssl_client_i_dn", .get = get_fact, .number = TLS_FACT(TLS_FACT_ISSUER) },
    { "ssl_client_raw_cert", .get = get_certificate, .number = CERTIFICATE(SSL_PEM_RAW) },
    { "ssl_client_s_dn", .get = get_fact, .number = TLS_FACT(TLS_FACT_SUBJECT) },
    { "ssl_client_serial", .get = get_fact, .number = TLS_FACT(TLS_FACT_SERIAL) },
    { "ssl_client_sigalg", .get = get_fact, .number = TLS_FACT(TLS_FACT_PEER_SIGNATURE) },
    { "ssl_client_v_end", .get = get_fact, .number = TLS_FACT(TLS_FACT_NOT_AFTER) },
    { "ssl_client_v_remain", .get = get_days, .number = TLS_FACT(TLS_FACT_EXPIRY) },
    { "ssl_client_v_start", .get = get_fact, .number = TLS_FACT(TLS_FACT_NOT_BEFORE) },
    { "ssl_client_verify", .get = get_verify },
    { "ssl_curve", .get = get_curve },
    { "ssl_curves", .get = get_fact, .number = TLS_FACT(TLS_FACT_CURVES) },
    { "ssl_protocol", .get = get_version },
    { "ssl_server_name", .get = get_name },
    { "ssl_session_id", .get = get_session_id },
    { "ssl_session_reused", .get = get_reused },
    { "ssl_sigalg", .get = get_fact, .number = TLS_FACT(TLS_FACT_SIGNATURE) },
    { "ssl_sigalgs", .get = get_fact, .number = TLS_FACT(TLS_FACT_SIGNATURES) },
    { .name = NULL },
};
