/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and frees session records, with memory and parts. */
#include "session/record.h"

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

static void end_part(struct fb_conn *conn, struct session_part *part)
{
    if (part->kind->ended != NULL)
        part->kind->ended(conn, part);
}

void session_record_free(struct session_conn *session)
{
    struct session_record *record = session_own_record(session);
    struct session_part *part;

    CHECK_KIND(record, SESSION_RECORD_KIND);
    while ((part = record->parts) != NULL) {
        record->parts = part->next;
        end_part(session->conn, part);
    }
    net_release(session->conn->net, &record->kept);
    session->known = NULL;
    record->kind = 0;
    spares_give(&stream_of(session->conn)->records, record);
}

void session_record_reset(struct session_conn *session)
{
    struct session_record *record = session_own_record(session);
    struct session_part **at = &record->parts, *part;

    CHECK_KIND(record, SESSION_RECORD_KIND);
    while ((part = *at) != NULL) {
        if (part->kind->stays || part->kind->left != NULL) {
            if (!part->kind->stays)
                part->kind->left(part);
            at = &part->next;
            continue;
        }
        *at = part->next;
        end_part(session->conn, part);
    }
    record->values = NULL;
    record->captures = NULL;
    record->more_received = record->more_sent = 0;
}

void *session_keep(struct fb_conn *conn, size_t n)
{
    struct fb_conn *root = session_client_of(conn);
    struct session_record *record = session_record_make(root);

    return record == NULL ? NULL : net_alloc(root->net, &record->kept, n);
}

void session_part_add(
    struct session_record *record, struct session_part *part, const struct session_part_kind *kind)
{
    part->kind = kind;
    part->next = record->parts;
    record->parts = part;
}

void *session_part_make(struct fb_conn *conn, size_t n, const struct session_part_kind *kind)
{
    struct session_part *part = session_keep(conn, n);

    if (part == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    memory_clear(part, n);
    session_part_add(session_record_of(conn), part, kind);
    return part;
}

void *session_part_of(const struct fb_conn *conn, const struct session_part_kind *kind)
{
    const struct session_record *record = session_record_of(conn);
    struct session_part *part = record != NULL ? record->parts : NULL;

    while (part != NULL && part->kind != kind)
        part = part->next;
    return part;
}
