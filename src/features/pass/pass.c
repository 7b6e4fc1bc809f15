/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes a client from one server to another within the worker. The connection keeps the
 * descriptor, the number, and the bytes not taken by a protocol. Called only from the first
 * protocol's `opened`, and from the loop after `opened` has returned. */
#include "features/pass/pass.h"

#include "base/compiler.h"
#include "net/address_parse.h"
#include "session/conn_end.h"
#include "session/record.h"
#include "session/session.h"

#include <string.h>

/* In the memory of the session, until the end of the connection. */
struct pass_part {
    struct session_part part; /* the first member */
    unsigned n;               /* times that the client was passed */
    struct address address;   /* the last address passed to, if any */
    struct address next;      /* that of `binding` */
    struct binding *binding;  /* the next binding; NULL: the client is there */
};

static const struct session_part_kind passage_kind = { .left = session_part_stays };

/* Returns NULL where the client was not passed, and is not to be. */
static struct pass_part *passage_of(const struct fb_conn *conn)
{
    struct session_part *part = session_part_of(conn, &passage_kind);

    return part != NULL ? container_of(part, struct pass_part, part) : NULL;
}

/* ---- The call ---- */

/* Parses the address from variables; NULL, or the text of a mistake. */
static const char *parse_address(const struct value *text, struct fb_target *target)
{
    char copy[ADDRESS_TEXT];

    assert(text->state == VALUE_FOUND);
    if (text->n >= sizeof(copy))
        return "it is too long";
    memcpy(copy, text->p, text->n);
    copy[text->n] = '\0';
    return target_parse(copy, false, target);
}

/* Finds the server for this client; NULL after a line in the log. */
static struct binding *find_binding(
    struct fb_conn *conn, const struct fb_listener *listener, struct address *address)
{
    struct fb_target target = { .address = listener->address };
    struct binding *binding;
    struct value text;

    assert(listener->text != NULL && listener->bindings != NULL);
    if (template_value(conn, listener->text, &text) == -1)
        return NULL;
    if (listener->address.length == 0) {
        const char *wrong = parse_address(&text, &target);

        if (wrong != NULL) {
            conn_log(conn, LEVEL_ERROR, 0, "invalid address \"%.*s\" to pass a client to: %s",
                (int)text.n, text.p, wrong);
            return NULL;
        }
    }
    binding = pass_bindings_find(listener->bindings, &target.address);
    if (binding == NULL)
        conn_log(conn, LEVEL_ERROR, 0,
            "no server listens on \"%.*s\", which a client is to be passed to", (int)text.n,
            text.p);
    *address = target.address;
    return binding;
}

int pass_client(struct fb_conn *conn, const struct fb_listener *listener)
{
    struct pass_part *passage = passage_of(conn);
    struct address address;
    struct binding *binding;

    assert(passage == NULL || passage->n <= FB_PASSES_MAX);
    assert(!conn->outgoing && listener != NULL);
    if (stream_of(conn)->opening != conn || !conn_is_active(conn) || conn->pipe != NULL) {
        conn_log(conn, LEVEL_ERROR, 0, "a client can be passed in its \"opened\" alone");
        return -1;
    }
    binding = find_binding(conn, listener, &address);
    if (binding == NULL)
        return -1;
    if (passage == NULL) {
        passage = session_keep(conn, sizeof(*passage));
        if (passage == NULL)
            return -1;
        *passage = (struct pass_part) { .n = 0 };
        session_part_add(session_record_of(conn), &passage->part, &passage_kind);
    }
    if (passage->n == FB_PASSES_MAX) {
        conn_log(conn, LEVEL_ERROR, 0,
            "a client was passed %u times, and is to be passed to %s: servers pass it in a circle",
            passage->n, binding->text);
        return -1;
    }
    passage->next = address;
    passage->binding = binding;
    return 0;
}

bool pass_is_due(const struct fb_conn *conn)
{
    const struct pass_part *passage = passage_of(conn);

    return passage != NULL && passage->binding != NULL;
}

/* ---- The way ---- */

/* Opens a client's session, and passes the client if its protocol has asked for a pass. */
static void open_and_pass(struct fb_conn *conn, void (*open)(struct fb_conn *conn))
{
    struct stream *stream = stream_of(conn);
    struct pass_part *passage;

    assert(stream->opening == NULL);
    assert(conn->ops == &session_conn_ops || conn->session_phase == SESSION_PREREAD);
    stream->opening = conn;
    open(conn);
    stream->opening = NULL;
    if (!pass_is_due(conn) || !conn_is_active(conn) || conn->pipe != NULL)
        return;
    passage = passage_of(conn);
    conn_debug(conn, "passed to %s", passage->binding->text);
    assert(passage->n < FB_PASSES_MAX);
    session_leave_server(conn);
    if (!conn_is_active(conn))
        return;
    net_reserve(conn->net, -session_keeps_slot(conn));
    conn->owner = passage->binding;
    net_reserve(conn->net, session_keeps_slot(conn));
    conn->ops = passage->binding->ops;
    CHECK_KIND(session_binding_of(conn), BINDING_KIND);
    passage->address = passage->next;
    session_record_of(conn)->passed_to = &passage->address;
    passage->binding = NULL;
    passage->n++;
    if (conn_is_active(conn)) /* `closed` should not have ended it, and may have */
        conn->ops->opened(conn);
}

void pass_begin_client(struct fb_conn *conn)
{
    open_and_pass(conn, session_serve);
}

static void pass_opened(struct fb_conn *conn)
{
    assert(conn->session_phase == SESSION_NEW && session_server_of(conn)->passes);
    conn->ops = &session_conn_ops;
    open_and_pass(conn, session_conn_ops.opened);
}

const struct conn_ops pass_conn_ops = {
    .opened = pass_opened,
    .closed = session_closed,
    .failed = session_failed,
    .describe = session_describe,
};
