/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies what variables need of a handshake to memory of exactly that size: the session's arena
 * would take a page for an idle client. */
#include "session/tls.h"

#include "tls/verify_text.h"

#include <string.h>

/* Client, record and copy, beside the keys of the layer, are what an idle session may cost. */
static_assert(sizeof(struct session_tls_info) <= 40, "a TLS session has become dearer");

static void tls_info_ended(struct fb_conn *conn, struct session_part *part)
{
    memory_release(conn->net->memory, part);
}

static const struct session_part_kind tls_info_kind = { .stays = true, .ended = tls_info_ended };

const struct session_tls_info *session_tls_of(const struct fb_conn *conn)
{
    return session_part_of(conn, &tls_info_kind);
}

static void copy_texts(struct session_tls_info *info, const struct tls_reply *reply)
{
    const struct tls_session *session = &reply->session;
    char *end = info->texts;

    memcpy(end, session->session_id, session->session_id_n);
    end += session->session_id_n;
    memcpy(end, session->alpn, session->alpn_n);
    end += session->alpn_n;
    memcpy(end, session->name, session->name_n);
    end += session->name_n;
    if (info->facts_n > 0)
        memcpy(end, reply->facts, info->facts_n);
    if (info->peer_n > 0)
        memcpy(end + info->facts_n, reply->peer, info->peer_n);
}

void session_tls_set(struct fb_conn *conn, const struct tls_reply *reply)
{
    const struct tls_session *session = &reply->session;
    size_t peer_n = session_server_of(conn)->keeps_certificate ? reply->peer_n : 0;
    size_t n = (size_t)session->session_id_n + session->alpn_n + session->name_n + reply->facts_n;
    struct session_record *record;
    struct session_tls_info *info;

    assert(!conn->outgoing && session_tls_of(conn) == NULL);
    assert(session->session_id_n <= sizeof(session->session_id));
    assert(reply->facts_n <= TLS_FACTS_MOST && peer_n <= TLS_PEER_MOST);
    if (!session_server_of(conn)->keeps_tls)
        return;
    record = session_record_make(conn);
    if (record == NULL)
        return;
    info = memory_alloc(conn->net->memory, sizeof(*info) + n + peer_n);
    if (info == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return;
    }
    *info = (struct session_tls_info) {
        .version = session->version,
        .suite = session->suite,
        .group = session->group,
        .resumed = session->resumed != 0,
        .verify = session->verify,
        .verify_code = session->verify_code,
        .session_id_n = session->session_id_n,
        .alpn_n = session->alpn_n,
        .name_n = session->name_n,
        .facts_n = (uint16_t)reply->facts_n,
        .peer_n = (uint16_t)peer_n,
    };
    copy_texts(info, reply);
    session_part_add(record, &info->part, &tls_info_kind);
}

/* ---- Verification ---- */

/* Whether the client's certificate is wanted even so: for `optional_no_ca` an authority may be
 * unknown, by nginx's list of errors. */
static bool is_wanted_unverified(enum tls_verify wanted, int32_t code)
{
    return wanted == TLS_VERIFY_OPTIONAL_NO_CA && ((code >= 18 && code <= 21) || code == 27);
}

bool session_tls_accepts(const struct fb_conn *conn, const struct tls_profile *profile,
    const struct tls_session *session)
{
    enum tls_verify wanted = profile->verify;
    const char *why;

    if (wanted == TLS_VERIFY_OFF)
        return true;
    if (session->verify == TLS_VERIFY_FAILED &&
        !is_wanted_unverified(wanted, session->verify_code)) {
        why = tls_verify_text(session->verify_code);
        conn_log(conn, LEVEL_INFO, 0, "client SSL certificate verify error: (%d:%s)",
            (int)session->verify_code, why != NULL ? why : "unknown");
        return false;
    }
    if (session->verify == TLS_VERIFIED_NONE && wanted == TLS_VERIFY_ON) {
        conn_log(conn, LEVEL_INFO, 0, "client sent no required SSL certificate");
        return false;
    }
    return true;
}
