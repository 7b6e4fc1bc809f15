/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of a configuration, and the values in the session's memory, an array made at the first
 * use. A protocol's variable may be asked for within its callback, whose heartbeat goes on. Never
 * calls a protocol without the client. */
#include "text/variable.h"

#include "net/address.h"
#include "session/record.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int compare_names(const struct variable *a, const struct variable *b)
{
    return strcmp(a->name, b->name);
}

RB_GENERATE_INTERNAL(variable_tree, variable, node, compare_names, static __attribute__((unused)))

static bool row_is(const struct variable_row *row, const char *name)
{
    size_t n = strlen(row->name);

    if (row->name[n - 1] == '*')
        return strncmp(row->name, name, n - 1) == 0 && name[n - 1] != '\0';
    return strcmp(row->name, name) == 0;
}

static const struct variable_row *find_row(const struct variables *variables, const char *name)
{
    for (size_t i = 0; variables->tables[i] != NULL; i++)
        for (const struct variable_row *row = variables->tables[i]; row->name != NULL; row++)
            if (row_is(row, name))
                return row;
    return NULL;
}

struct variable *variables_add(
    struct variables *variables, struct arena *arena, const char *name, size_t n)
{
    char *lower = arena_strndup(arena, name, n);
    struct variable wanted = { .name = lower }, *variable;
    const struct variable_row *row;

    if (lower == NULL)
        return NULL;
    for (char *c = lower; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    variable = RB_FIND(variable_tree, &variables->all, &wanted);
    if (variable != NULL)
        return variable;
    variable = arena_alloc(arena, sizeof(*variable));
    if (variable == NULL)
        return NULL;
    variable->name = wanted.name;
    row = find_row(variables, variable->name);
    if (row != NULL) {
        variable->get = row->get;
        variable->flags = row->flags;
        variable->number = row->number;
        variable->text = row->text;
        variable->arg = variables;
    }
    RB_INSERT(variable_tree, &variables->all, variable);
    return variable;
}

void variables_use(
    struct variables *variables, struct variable *variable, const struct conf_word *where)
{
    if (variable->index == 0)
        variable->index = ++variables->used_n;
    if (variable->flags & VARIABLE_COUNTED)
        variables->uses_number = true;
    if (variable->used_at == NULL)
        variable->used_at = where;
}

struct variable *variables_next(struct variables *variables, struct variable *variable)
{
    return variable == NULL ? RB_MIN(variable_tree, &variables->all)
                            : RB_NEXT(variable_tree, &variables->all, variable);
}

/* Returns the place of the value in the session, made if missing; NULL without memory. */
static struct value *place_of(struct fb_conn *client, const struct variable *variable)
{
    const struct variables *variables = session_server_of(client)->variables;
    struct session_record *record = session_record_make(client);
    size_t size = (variables->used_n + 1) * sizeof(*record->values);

    assert(variable->index > 0 && variable->index <= variables->used_n);
    if (record == NULL)
        return NULL;
    if (record->values == NULL) {
        record->values = net_alloc(client->net, &record->kept, size);
        if (record->values == NULL)
            return NULL;
        memset(record->values, 0, size);
    }
    return &record->values[variable->index];
}

/* Asks the variable's definer for the value; -1 without memory. */
static int work_out(struct fb_conn *client, const struct variable *variable, struct value *value)
{
    struct session_record *record = session_record_of(client);
    int rc;

    assert(variable->get != NULL);
    if (record->variable_depth == VARIABLE_DEPTH_MAX) {
        conn_log(client, LEVEL_ERROR, 0,
            "variable \"%s\" is not evaluated: %d variables wait for the value", variable->name,
            VARIABLE_DEPTH_MAX);
        *value = (struct value) { .state = VALUE_UNKNOWN };
        return 0;
    }
    record->variable_depth++;
    rc = variable->get(client, variable, value);
    record->variable_depth--;
    return rc;
}

const struct value *variable_value(struct fb_conn *conn, const struct variable *variable)
{
    static const struct value missing = { .p = "", .state = VALUE_MISSING };
    struct fb_conn *client = session_client_of(conn);
    struct value *place = place_of(client, variable), value = missing;

    if (place == NULL) {
        conn_fail(client, FB_NO_MEMORY);
        return &missing;
    }
    if (place->state == VALUE_BEGUN) {
        conn_log(client, LEVEL_ERROR, 0, "cycle while evaluating variable \"%s\"", variable->name);
        return &missing;
    }
    if (place->state != VALUE_UNKNOWN && !(variable->flags & VARIABLE_VOLATILE))
        return place;
    place->state = VALUE_BEGUN;
    if (work_out(client, variable, &value) == -1) {
        conn_fail(client, FB_NO_MEMORY);
        value = missing;
    }
    assert(value.state != VALUE_BEGUN);
    *place = value;
    return value.state != VALUE_UNKNOWN ? place : &missing;
}

int variable_set(struct fb_conn *conn, const struct variable *variable, struct value value)
{
    struct value *place;

    assert(value.state != VALUE_UNKNOWN);
    if (variable->index == 0)
        return 0;
    place = place_of(session_client_of(conn), variable);
    if (place == NULL)
        return -1;
    *place = value;
    return 0;
}

int value_copy(struct fb_conn *conn, struct value *value, const char *p, size_t n)
{
    char *copy = session_keep(conn, n);

    assert(n <= VALUE_MOST);
    if (copy == NULL)
        return -1;
    memcpy(copy, p, n);
    *value = value_found(copy, n);
    return 0;
}

int value_printf(struct fb_conn *conn, struct value *value, const char *format, ...)
{
    char text[256];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof(text));
    return value_copy(conn, value, text, (size_t)n);
}

int value_address(struct fb_conn *conn, struct value *value, const struct address *address)
{
    char text[ADDRESS_TEXT];

    address_format(address, false, text);
    return value_copy(conn, value, text, strlen(text));
}

int value_port(struct fb_conn *conn, struct value *value, const struct address *address)
{
    unsigned port = address_port(address);

    *value = value_found("", 0);
    return port == 0 ? 0 : value_printf(conn, value, "%u", port);
}

bool variables_protocol_has(const struct server *server, const struct variable *variable)
{
    return variable->get == variables_protocol_get && variable->arg == server->protocol;
}

/* Calls the protocol; whether the variable is found. */
static bool call_value(struct fb_conn *conn, uint32_t i, fb_bytes *out)
{
    const struct server *server = session_server_of(conn);
    const fb_variable_definition *definition = &server->protocol->variables[i];
    bool within = heartbeat_running_protocol(conn->net->heartbeat) != HEARTBEAT_NO_PROTOCOL;
    int result;

    assert(!conn->outgoing && definition->value != NULL);
    if (!within)
        session_callback_begin(conn, CALLBACK_VALUE);
    result = definition->value(conn, stream_state_at(conn, server), i, out);
    if (!within)
        session_callback_end(conn);
    else if (unlikely(conn->net == NULL)) /* a child of fork() */
        os_wiped_end();
    return result == 0;
}

int variables_protocol_get(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct server *server = session_server_of(conn);
    uint32_t i = (uint32_t)variable->number;
    fb_bytes out = { .p = NULL };

    assert(variable->get == variables_protocol_get && variable->arg != NULL);
    *value = value_missing();
    if (!variables_protocol_has(server, variable))
        return 0;
    assert(i < server->protocol->variable_n);
    if (conn->session_phase <= SESSION_PREREAD || server->protocol->variables[i].value == NULL)
        value->state = VALUE_UNKNOWN;
    else if (call_value(conn, i, &out) && out.n <= VALUE_MOST)
        *value = value_found(out.n > 0 ? (const char *)out.p : "", out.n);
    return 0;
}
