/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a session_record, its memory, and its end. */
#include "stream/session_record.h"

#include "base/compiler.h"
#include "stream/limit_conn.h"
#include "stream/session_lifetime.h"

struct session_record *session_record_create(struct session_conn *session)
{
    struct session_record *record = session_own_record(session);

    assert(!session->is_child);
    if (record != NULL)
        return record;
    record = spares_take(&stream_of(session->conn)->records);
    if (record != NULL)
        *record = (struct session_record) { .kind = SESSION_RECORD_KIND };
    return session->known = record;
}

struct session_record *session_record_make(struct fb_conn *conn)
{
    struct session_conn *session = session_conn_make(conn);
    struct session_record *record;

    if (session == NULL)
        return NULL;
    record = session_record_create(session);
    if (record == NULL)
        conn_fail(conn, FB_NO_MEMORY);
    return record;
}

void session_record_free(struct session_conn *session)
{
    struct session_record *record = session_own_record(session);

    session_record_reset(session);
    if (record->limits != NULL)
        limit_conn_release(session);
    net_release(session->conn->net, &record->kept);
    session->known = NULL;
    record->kind = 0;
    spares_give(&stream_of(session->conn)->records, record);
}

void session_record_reset(struct session_conn *session)
{
    struct session_record *record = session_own_record(session);

    CHECK_KIND(record, SESSION_RECORD_KIND);
    if (record->lifetime != NULL)
        session_lifetime_clear(session);
    record->values = NULL;
    record->preread = NULL;
    record->captures = NULL;
    record->limit_status = 0;
    record->more_received = record->more_sent = 0;
}

void *session_keep(struct fb_conn *conn, size_t n)
{
    struct fb_conn *root = session_client_of(conn);
    struct session_record *record = session_record_make(root);

    return record == NULL ? NULL : net_alloc(root->net, &record->kept, n);
}
