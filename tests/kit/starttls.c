/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol of lines: "tls" begins TLS, "who" tells of the client's TLS, others come back. */
#include "kit/starttls.h"

#include <stdio.h>
#include <string.h>

struct starttls_session {
    unsigned started;
};

static const fb_frame_limit starttls_limit = { .most = 100 };

static void tell_who(fb_conn *conn)
{
    fb_tls tls = { .size = sizeof(tls) }, begin = { .size = offsetof(fb_tls, group) };
    char text[300];

    if (fb_tls_info(conn, &tls) == -1) {
        fb_write(conn, "nobody\n", 7);
        return;
    }
    fb_tls_info(conn, &begin); /* a caller with a shorter header */
    if (begin.cipher != tls.cipher || begin.cipher_name != NULL || begin.sni.n != 0)
        fb_write(conn, "more than asked for\n", 20);
    snprintf(text, sizeof(text), "%#x %s sni=%.*s alpn=%.*s verify=%u %d %.*s\n",
        (unsigned)tls.version, tls.cipher_name, (int)tls.sni.n, (const char *)tls.sni.p,
        (int)tls.alpn.n, (const char *)tls.alpn.p, (unsigned)tls.verify, (int)tls.verify_code,
        (int)tls.certificate.n, (const char *)tls.certificate.p);
    fb_write(conn, text, strlen(text));
}

static void begin_tls(fb_conn *conn)
{
    static const fb_tls_options options = { .size = sizeof(options),
        .reply = { (const uint8_t *)"go\n", 3 } };

    if (!fb_can_start_tls(conn)) {
        fb_write(conn, "cannot\n", 7);
    } else if (fb_start_tls(conn, &options) == -1) {
        fb_write(conn, "no\n", 3);
    } else {
        fb_write(conn, "welcome\n", 8);
    }
}

static size_t starttls_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_bytes rest = in, line;

    (void)state;
    while (fb_frame_until(conn, &rest, "\n", 1, &starttls_limit, &line) == 1) {
        if (line.n == 3 && memcmp(line.p, "tls", 3) == 0) {
            begin_tls(conn);
        } else if (line.n == 3 && memcmp(line.p, "who", 3) == 0) {
            tell_who(conn);
        } else {
            fb_write(conn, line.p, line.n);
            fb_write(conn, "\n", 1);
        }
    }
    return in.n - rest.n;
}

static void starttls_started(fb_conn *conn, void *state)
{
    struct starttls_session *session = state;

    session->started++;
    fb_write(conn, "started\n", 8);
}

static void starttls_closed(fb_conn *conn, void *state, fb_reason reason)
{
    const struct starttls_session *session = state;

    fb_conn_logf(conn, FB_LOG_NOTICE, "started %u, reason %d", session->started, (int)reason);
}

static const fb_directive starttls_directives[] = {
    { .name = "starttls", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER }
};

static const fb_ops starttls_ops = { .size = sizeof(fb_ops),
    .data = starttls_data,
    .closed = starttls_closed,
    .tls_started = starttls_started };

FB_PROTOCOL(starttls) = { FB_PROTOCOL_HEADER, .name = "starttls",
    FB_PROTOCOL_DIRECTIVES(starttls_directives), .conn_state = sizeof(struct starttls_session),
    .flags = FB_KEEPS_TLS, .ops = &starttls_ops };
