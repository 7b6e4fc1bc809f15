/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of a configuration, and their values in a session. A session's values are an array in
 * its own memory, made when the first is asked for. */
#include "text/variable.h"

#include "session/record.h"

#include <ctype.h>
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
        variable->text = variables_find_text(variable->name);
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
    if (variable->flags & VARIABLE_FIRST_BYTE)
        variables->uses_first_byte = true;
    if (variable->used_at == NULL)
        variable->used_at = where;
}

struct variable *variables_next(struct variables *variables, struct variable *variable)
{
    return variable == NULL ? RB_MIN(variable_tree, &variables->all)
                            : RB_NEXT(variable_tree, &variables->all, variable);
}

/* Returns the place of the value in the client's session, made where there is none; NULL without
 * memory. */
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
            "variable \"%s\" is not evaluated: %d others wait for its value", variable->name,
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
