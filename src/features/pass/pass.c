/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the binding of an address, reads addresses for protocols, and passes a client to another
 * server of the worker. The connection keeps the descriptor, the number, and the bytes not taken.
 * Called only from the first protocol's `opened`, and from the loop after `opened` has returned. */
#include "features/pass/pass.h"

#include "base/compiler.h"
#include "features/features.h"
#include "net/address_parse.h"
#include "session/conn_end.h"
#include "session/record.h"
#include "session/secure.h"
#include "session/session.h"
#include "settings/apply.h"
#include "settings/calls.h"
#include "settings/lookup.h"
#include "settings/protocol.h"
#include "settings/template.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Bindings ---- */

static int compare_bindings(const void *a, const void *b)
{
    const struct binding_place *left = a, *right = b;

    return address_compare(&left->binding->address, &right->binding->address);
}

static const struct binding_place *find_exact(
    const struct binding_list *list, const struct address *address)
{
    struct binding wanted = { .address = *address };
    const struct binding_place place = { .binding = &wanted };

    assert(list->places != NULL && address->length > 0);
    return bsearch(&place, list->places, list->n, sizeof(*list->places), compare_bindings);
}

static const struct binding_place *find_wildcard(
    const struct binding_list *list, sa_family_t family, in_port_t port)
{
    struct address wide = {
        .length = family == AF_INET ? sizeof(wide.in) : sizeof(wide.in6),
        .any.sa_family = family,
    };

    assert(family == AF_INET || family == AF_INET6);
    address_set_port(&wide, port);
    return find_exact(list, &wide);
}

struct binding *pass_bindings_find(const struct binding_list *list, const struct address *address)
{
    const struct binding_place *found = list->n > 0 ? find_exact(list, address) : NULL;
    sa_family_t family = address->any.sa_family;

    if (found == NULL && list->n > 0 && family != AF_UNIX)
        found = find_wildcard(list, family, address_port(address));
    if (found == NULL && list->n > 0 && family == AF_INET) {
        found = find_wildcard(list, AF_INET6, address_port(address));
        if (found != NULL && !found->takes_ipv4)
            found = NULL;
    }
    return found != NULL ? found->binding : NULL;
}

static unsigned count_bindings(const struct listeners *listeners)
{
    const struct listener *listener;
    const struct binding *binding;
    unsigned n = 0;

    STAILQ_FOREACH (listener, &listeners->list, link)
        STAILQ_FOREACH (binding, &((const struct port *)listener->owner)->bindings, link)
            n++;
    return n;
}

int pass_bindings_list(struct apply *apply, struct binding_list *list)
{
    struct listeners *listeners = &apply->cycle->stream.listeners;
    struct listener *listener;
    struct binding *binding;

    list->places = apply_alloc(apply, (count_bindings(listeners) + 1) * sizeof(*list->places));
    if (list->places == NULL)
        return -1;
    STAILQ_FOREACH (listener, &listeners->list, link)
        STAILQ_FOREACH (binding, &((struct port *)listener->owner)->bindings, link)
            list->places[list->n++] = (struct binding_place) {
                .binding = binding,
                .takes_ipv4 = address_is_wildcard(&binding->address) && !listener->options.ipv6only,
            };
    qsort(list->places, list->n, sizeof(*list->places), compare_bindings);
    return 0;
}

/* Reads an address without variables; -1 after a report. */
static int set_listener_address(
    fb_conf *conf, const char *directive, const char *text, struct address *address)
{
    const char *whole = apply_address(conf->apply, text), *wrong;
    struct fb_target target;

    if (whole == NULL)
        return -1;
    wrong = lookup_target(conf->apply, whole, &target);
    if (wrong != NULL)
        return settings_report(conf, directive, "invalid address \"%s\": %s", text, wrong);
    *address = target.address;
    return 0;
}

const fb_listener *pass_listener_of_conf(fb_conf *conf, const char *directive, const char *text)
{
    const struct conf_word *word = settings_word(conf, directive, text);
    struct fb_listener *listener = apply_alloc(conf->apply, sizeof(*listener));
    struct pass_use *use = apply_alloc(conf->apply, sizeof(*use));
    struct pass_conf *passes = feature_conf(conf->apply, FEATURE_PASS);
    struct value constant;

    if (word == NULL || listener == NULL || use == NULL)
        return NULL;
    listener->text = template_of(conf->apply, word, word->text);
    if (listener->text == NULL)
        return NULL;
    if (template_is_constant(listener->text, &constant) &&
        set_listener_address(conf, directive, text, &listener->address) == -1)
        return NULL;
    *use = (struct pass_use) { .listener = listener, .word = word, .protocol = conf->protocol };
    STAILQ_INSERT_TAIL(&passes->uses, use, link);
    return listener;
}

/* In the memory of the session, until the end of the connection. */
struct pass_part {
    struct session_part part; /* the first member */
    unsigned n;               /* times that the client was passed */
    struct address address;   /* the last address passed to, if any */
    struct address next;      /* that of `binding` */
    struct binding *binding;  /* the next binding; NULL: the client is there */
};

static const struct session_part_kind passage_kind = { .stays = true };

/* ---- The call ---- */

/* Parses the address from variables; NULL, or the text of a mistake. */
static const char *parse_text(const struct value *text, struct fb_target *target)
{
    char copy[ADDRESS_TEXT];

    assert(text->state == VALUE_FOUND);
    if (text->n >= sizeof(copy))
        return "the address is too long";
    memcpy(copy, text->p, text->n);
    copy[text->n] = '\0';
    return target_parse(copy, false, target);
}

/* Finds the server for this client; NULL after a line in the log. */
static struct binding *find_next_binding(
    struct fb_conn *conn, const struct fb_listener *listener, struct address *address)
{
    struct fb_target target = { .address = listener->address };
    struct binding *binding;
    struct value text;

    assert(listener->text != NULL && listener->bindings != NULL);
    if (template_value(conn, listener->text, &text) == -1)
        return NULL;
    if (listener->address.length == 0) {
        const char *wrong = parse_text(&text, &target);

        if (wrong != NULL) {
            conn_log(conn, LEVEL_ERROR, 0, "invalid address \"%.*s\" to pass a client to: %s",
                (int)text.n, text.p, wrong);
            return NULL;
        }
    }
    binding = pass_bindings_find(listener->bindings, &target.address);
    if (binding == NULL)
        conn_log(conn, LEVEL_ERROR, 0,
            "no server listens on \"%.*s\", the address to pass a client to", (int)text.n, text.p);
    *address = target.address;
    return binding;
}

int pass_client(struct fb_conn *conn, const struct fb_listener *listener)
{
    struct pass_part *passage = session_part_of(conn, &passage_kind);
    struct address address;
    struct binding *binding;

    assert(passage == NULL || passage->n <= FB_PASSES_MAX);
    assert(!conn->outgoing && listener != NULL);
    if (stream_of(conn)->opening != conn || !conn_is_active(conn) || conn->pipe != NULL ||
        session_is_securing(conn)) {
        conn_log(conn, LEVEL_ERROR, 0, "a client can be passed in \"opened\" alone");
        return -1;
    }
    binding = find_next_binding(conn, listener, &address);
    if (binding == NULL)
        return -1;
    if (passage == NULL) {
        passage = session_keep(conn, sizeof(*passage)); /* does not fail the connection */
        if (passage == NULL)
            return -1;
        *passage = (struct pass_part) { .n = 0 };
        session_part_add(session_record_of(conn), &passage->part, &passage_kind);
    }
    if (passage->n == FB_PASSES_MAX) {
        conn_log(conn, LEVEL_ERROR, 0,
            "a client was passed %u times, and is to be passed to %s: servers pass the client in a "
            "circle",
            passage->n, binding->text);
        return -1;
    }
    passage->next = address;
    passage->binding = binding;
    return 0;
}

bool pass_is_due(const struct fb_conn *conn)
{
    const struct pass_part *passage = session_part_of(conn, &passage_kind);

    return passage != NULL && passage->binding != NULL;
}

/* ---- The way ---- */

/* Opens a client's session, and passes the client if its protocol has asked for a pass. */
static void open_and_pass(struct fb_conn *conn, void (*open)(struct fb_conn *conn))
{
    struct stream *stream = stream_of(conn);
    struct pass_part *passage;

    assert(stream->opening == NULL);
    assert(conn->ops == &session_conn_ops || conn->session_phase == SESSION_TLS ||
           conn->session_phase == SESSION_PREREAD);
    stream->opening = conn;
    open(conn);
    stream->opening = NULL;
    if (!pass_is_due(conn) || !conn_is_active(conn) || conn->pipe != NULL ||
        session_is_securing(conn))
        return;
    passage = session_part_of(conn, &passage_kind);
    conn_debug(conn, "passed to %s", passage->binding->text);
    assert(passage->n < FB_PASSES_MAX);
    session_leave_server(conn);
    if (!conn_is_active(conn))
        return;
    session_move(conn, passage->binding);
    conn->ops = passage->binding->ops;
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

static void open_passing(struct fb_conn *conn)
{
    assert(conn->session_phase == SESSION_NEW && session_server_of(conn)->passes);
    conn->ops = &session_conn_ops;
    open_and_pass(conn, session_conn_ops.opened);
}

const struct conn_ops pass_conn_ops = {
    .opened = open_passing,
    .closed = session_closed,
    .failed = session_failed,
    .describe = session_describe,
};
