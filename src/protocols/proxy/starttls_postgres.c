/* SPDX-License-Identifier: BSD-2-Clause */
/* PostgreSQL before a client's TLS: SSLRequest, or a ClientHello at once, as libpq 17 can. */
#include "protocols/proxy/starttls.h"

#include <string.h>

#define REQUEST_SIZE 8
#define SSL_REQUEST 80877103u
#define GSSENC_REQUEST 80877104u
#define TLS_HANDSHAKE_BYTE 0x16

static uint32_t number_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void add_refusal(struct starttls_out *out)
{
    /* severity, its untranslated form, SQLSTATE, text; the length counts itself */
    static const char fields[] = "SFATAL\0VFATAL\0C28000\0Mthe connection needs TLS (sslmode)\0";
    const uint8_t head[] = { 'E', 0, 0, 0, 4 + sizeof(fields) };

    out->add(out, head, sizeof(head));
    out->add(out, fields, sizeof(fields));
}

enum starttls_act starttls_read_postgres(
    const struct starttls_state *state, fb_bytes in, size_t *used, struct starttls_out *out)
{
    uint32_t code;

    *used = 0;
    if (in.n > 0 && in.p[0] == TLS_HANDSHAKE_BYTE)
        return STARTTLS_BEGINS;
    if (in.n < REQUEST_SIZE)
        return STARTTLS_FORWARDS;
    code = number_at(in.p) == REQUEST_SIZE ? number_at(in.p + 4) : 0;
    if (code == SSL_REQUEST) {
        starttls_add_text(out, "S");
        *used = REQUEST_SIZE;
        return STARTTLS_BEGINS;
    }
    if (code == GSSENC_REQUEST) {
        starttls_add_text(out, "N");
        *used = REQUEST_SIZE;
        return STARTTLS_ANSWERS;
    }
    if (state->optional)
        return STARTTLS_PASSES;
    add_refusal(out);
    return STARTTLS_ANSWERS;
}

const struct starttls_dialect starttls_postgres = { .name = "postgres", .speaks_first = true };
