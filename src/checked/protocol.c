/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol's descriptor in the checked mode: what the daemon is given has a wrapper for each
 * callback without a connection, and room for red zones behind the states. Names, directives and
 * metrics stay the protocol's. */
#include "settings/protocol.h"
#include "checked/calls.h"
#include "configuration/configuration.h"
#include "settings/apply.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const struct checked_protocol *protocol_of_worker(const fb_worker *worker)
{
    assert(checked_protocol_of(worker->protocol) != NULL);
    return checked_protocol_of(worker->protocol);
}

/* ---- The worker ---- */

/* Wrappers of callbacks without a result; the callback is called with the arguments. */
#define WORKER_CALLBACK(name, signature, ...)                                                      \
    static void signature                                                                          \
    {                                                                                              \
        struct checked_scope scope;                                                                \
                                                                                                   \
        checked_enter_worker(&scope, worker, "worker_ops." #name);                                 \
        protocol_of_worker(worker)->own_worker_ops.name(worker, state, __VA_ARGS__);               \
        checked_leave_worker(&scope, worker);                                                      \
    }

WORKER_CALLBACK(timer, worker_ops_timer(fb_worker *worker, void *state, uint32_t id), id)
WORKER_CALLBACK(
    draining, worker_ops_draining(fb_worker *worker, void *state, uint64_t deadline), deadline)
WORKER_CALLBACK(worker_came, worker_ops_worker_came(fb_worker *worker, void *state, fb_ref id), id)
WORKER_CALLBACK(worker_gone, worker_ops_worker_gone(fb_worker *worker, void *state, fb_ref id), id)
WORKER_CALLBACK(answered,
    worker_ops_answered(fb_worker *worker, void *state, const fb_answer *answer),
    (const void *)checked_block_lend(
        &scope, CHECKED_ANSWER, (fb_bytes) { (const void *)answer, sizeof(*answer) })
        .p)
WORKER_CALLBACK(map_changed,
    worker_ops_map_changed(
        fb_worker *worker, void *state, fb_map *map, fb_bytes key, fb_map_change what),
    map, what != FB_MAP_LOST ? checked_block_lend(&scope, CHECKED_KEY, key) : key, what)

static int worker_ops_message(fb_worker *worker, void *state, fb_ref from, fb_bytes message)
{
    struct checked_scope scope;
    int result;

    checked_enter_worker(&scope, worker, "worker_ops.message");
    message = checked_block_lend(&scope, CHECKED_MESSAGE, message);
    result = protocol_of_worker(worker)->own_worker_ops.message(worker, state, from, message);
    checked_leave_worker(&scope, worker);
    return result;
}

/* ---- The configuration ---- */

static void enter_conf(struct checked_scope *scope, fb_conf *conf, const char *callback)
{
    *scope = (struct checked_scope) {
        .place = CHECKED_CONF,
        .callback = callback,
        .protocol = conf->protocol,
        .conf = conf,
    };
    checked_scope_enter(scope);
}

static int leave_conf(struct checked_scope *scope, int result)
{
    checked_scope_leave(scope);
    return scope->mistakes > 0 ? -1 : result;
}

static int protocol_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const struct checked_protocol *protocol = checked_protocol_of(conf->protocol);
    struct checked_scope scope;
    uint32_t i = 0;

    while (strcmp(protocol->own.directives[i].name, conf->directive->name.text) != 0)
        i++;
    assert(i < protocol->own.directive_n);
    enter_conf(&scope, conf, "`set`");
    return leave_conf(&scope, protocol->own.directives[i].set(conf, value, args, n));
}

static int protocol_conf_done(fb_conf *conf, void *value, const void *parent)
{
    const struct checked_protocol *protocol = checked_protocol_of(conf->protocol);
    struct checked_scope scope;

    enter_conf(&scope, conf, "conf_done");
    return leave_conf(&scope, protocol->own.conf_done(conf, value, parent));
}

#define CONF_HOOK(name, signature)                                                                 \
    static void signature                                                                          \
    {                                                                                              \
        struct checked_scope scope = {                                                             \
            .place = CHECKED_MASTER,                                                               \
            .callback = #name,                                                                     \
            .protocol = master->protocol,                                                          \
            .master = master,                                                                      \
        };                                                                                         \
                                                                                                   \
        checked_scope_enter(&scope);                                                               \
        checked_protocol_of(master->protocol)->own.name(master, conf);                             \
        checked_scope_leave(&scope);                                                               \
    }

CONF_HOOK(conf_accepted, protocol_conf_accepted(fb_master *master, const void *conf))
CONF_HOOK(conf_gone, protocol_conf_gone(fb_master *master, const void *conf))

/* ---- Variables ---- */

/* Reports a value with a lifetime shorter than the session's. */
static void check_variable_value(const fb_variable_definition *definition, const fb_bytes *out)
{
    const struct checked_block *block = out->n > 0 ? checked_block_at(out->p) : NULL;

    if (block != NULL && (block->kind != CHECKED_ALLOC || block->ended != NULL))
        checked_report(NULL, "gave %s as the value of $%s, which has to last until \"closed\"",
            checked_block_name(block), definition->name);
}

static int protocol_value(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out)
{
    const struct checked_protocol *protocol =
        checked_protocol_of(session_server_of(conn)->protocol);
    const fb_variable_definition *definition = &protocol->own.variables[variable];
    struct checked_scope scope;
    int result;

    checked_enter_conn(&scope, conn, "value");
    result = definition->value(checked_handle_of(conn), state, variable, out);
    if (result == 0 && conn->net != NULL)
        check_variable_value(definition, out);
    checked_leave_conn(&scope, conn);
    return result;
}

/* ---- The descriptor ---- */

static void wrap_worker_ops(struct checked_protocol *made, const fb_worker_ops *from)
{
    made->own_worker_ops = *from;
    made->worker_ops = (fb_worker_ops) {
        .size = sizeof(made->worker_ops),
        .timer = from->timer != NULL ? worker_ops_timer : NULL,
        .draining = from->draining != NULL ? worker_ops_draining : NULL,
        .message = from->message != NULL ? worker_ops_message : NULL,
        .answered = from->answered != NULL ? worker_ops_answered : NULL,
        .worker_came = from->worker_came != NULL ? worker_ops_worker_came : NULL,
        .worker_gone = from->worker_gone != NULL ? worker_ops_worker_gone : NULL,
        .map_changed = from->map_changed != NULL ? worker_ops_map_changed : NULL,
    };
    made->protocol.worker_ops = &made->worker_ops;
}

/* Gives directives with a `set`, and variables with a `value`, the wrapper; -1 without memory. */
static int wrap_lists(struct arena *arena, struct checked_protocol *made)
{
    uint32_t directive_n = made->own.directive_n, variable_n = made->own.variable_n;
    fb_directive *directives = arena_alloc(arena, (directive_n + 1) * sizeof(*directives));
    fb_variable_definition *variables = arena_alloc(arena, (variable_n + 1) * sizeof(*variables));

    if (directives == NULL || variables == NULL)
        return -1;
    memcpy(directives, made->own.directives, directive_n * sizeof(*directives));
    memcpy(variables, made->own.variables, variable_n * sizeof(*variables));
    for (uint32_t i = 0; i < directive_n; i++)
        if (directives[i].set != NULL)
            directives[i].set = protocol_set;
    for (uint32_t i = 0; i < variable_n; i++)
        if (variables[i].value != NULL)
            variables[i].value = protocol_value;
    made->protocol.directives = directives;
    made->protocol.variables = variables;
    return 0;
}

const fb_protocol *checked_protocol_make(struct arena *arena, const fb_protocol *copy)
{
    struct checked_protocol *made = arena_alloc(arena, sizeof(*made));
    fb_protocol *p;

    assert(copy->size == sizeof(*copy) && copy->ops->size == sizeof(*copy->ops));
    if (made == NULL)
        return NULL;
    memset(made, 0, sizeof(*made));
    made->own = made->protocol = *copy;
    if (wrap_lists(arena, made) == -1)
        return NULL;
    checked_ops_make(&made->ops, copy->ops, made);
    p = &made->protocol;
    p->ops = &made->ops.ops;
    p->worker_start = checked_worker_start;
    p->worker_stop = checked_worker_stop;
    p->conf_done = copy->conf_done != NULL ? protocol_conf_done : NULL;
    p->conf_accepted = copy->conf_accepted != NULL ? protocol_conf_accepted : NULL;
    p->conf_gone = copy->conf_gone != NULL ? protocol_conf_gone : NULL;
    if (copy->worker_ops != NULL)
        wrap_worker_ops(made, copy->worker_ops);
    if (copy->conn_state > 0)
        p->conn_state += CHECKED_ZONE;
    if (copy->worker_state > 0)
        p->worker_state += CHECKED_ZONE;
    return p;
}
