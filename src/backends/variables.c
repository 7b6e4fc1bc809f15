/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of a session's tried servers: lists in order of the tries, with "-" for no
 * value. */
#include "backends/tries.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of an item without an address: a number of 64 bits, and ", ". */
#define ITEM 32

static int write_ms_or_none(char *p, size_t size, uint64_t ms)
{
    if (ms == FB_NO_TIME)
        return snprintf(p, size, "-");
    return snprintf(p, size, "%" PRIu64 ".%03u", ms / 1000, (unsigned)(ms % 1000));
}

/* Numbers of the variables that are lists. */
enum {
    LIST_ADDRESSES,
    LIST_CONNECT_TIMES,
    LIST_FIRST_BYTE_TIMES,
    LIST_SESSION_TIMES,
    LIST_SENT,
    LIST_RECEIVED,
};

/* Writes the number of a try that the list has. */
static int write_try_item(char *p, size_t size, uint64_t list, const struct session_try *run)
{
    uint32_t early = list == LIST_CONNECT_TIMES ? run->connected_ms : run->first_byte_ms;

    switch (list) {
    case LIST_ADDRESSES:
        return snprintf(p, size, "%s", run->address);
    case LIST_CONNECT_TIMES:
    case LIST_FIRST_BYTE_TIMES:
        return write_ms_or_none(p, size, early != CHOICE_NO_TIME ? early : FB_NO_TIME);
    case LIST_SESSION_TIMES:
        return write_ms_or_none(p, size, run->lasted_ms);
    default:
        return snprintf(p, size, "%" PRIu64, list == LIST_SENT ? run->sent : run->received);
    }
}

/* Sets the value to the list of the variable's numbers, try by try. */
static int get_tries_list(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);
    const struct session_try *run, *first;
    struct session_try running;
    size_t size = 0, used = 0;
    char *text;

    assert(variable->number <= LIST_RECEIVED);
    first = tries != NULL ? tries_next(tries, NULL, &running) : NULL;
    if (first == NULL)
        return 0;
    for (run = first; run != NULL; run = tries_next(tries, run, &running))
        size += ITEM + strlen(run->address); /* an address, or a group's name */
    text = session_keep(conn, size);
    if (text == NULL)
        return -1;
    for (run = first; run != NULL; run = tries_next(tries, run, &running)) {
        int length;

        if (run != first) {
            memcpy(text + used, ", ", 2);
            used += 2;
        }
        length = write_try_item(text + used, size - used, variable->number, run);
        assert(length >= 0 && (size_t)length + 2 < size - used);
        used += (size_t)length;
    }
    *value = value_found(text, used);
    return 0;
}

/* Sets the value to the session's waiting time for the variable's reason, if any. */
static int get_wait_time(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);
    const struct choice_more *more = tries != NULL ? tries->choice.more : NULL;
    char text[ITEM];

    if (more == NULL || more->waited_ms[variable->number] == CHOICE_NO_TIME)
        return 0;
    return value_copy(conn, value, text,
        (size_t)write_ms_or_none(text, sizeof(text), more->waited_ms[variable->number]));
}

static int get_group_name(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);

    (void)variable;
    if (tries != NULL)
        *value = value_found(tries->choice.upstream->name, strlen(tries->choice.upstream->name));
    return 0;
}

const struct variable_row variables_upstream[] = {
    { "upstream_addr", get_tries_list, .flags = VARIABLE_VOLATILE, .number = LIST_ADDRESSES },
    { "upstream_bytes_received", get_tries_list, .flags = VARIABLE_VOLATILE,
        .number = LIST_RECEIVED },
    { "upstream_bytes_sent", get_tries_list, .flags = VARIABLE_VOLATILE, .number = LIST_SENT },
    { "upstream_connect_time", get_tries_list, .flags = VARIABLE_VOLATILE,
        .number = LIST_CONNECT_TIMES },
    { "upstream_first_byte_time", get_tries_list, .flags = VARIABLE_VOLATILE,
        .number = LIST_FIRST_BYTE_TIMES },
    { "upstream_name", get_group_name, .flags = VARIABLE_VOLATILE },
    { "upstream_name_time", get_wait_time, .flags = VARIABLE_VOLATILE, .number = WAIT_FOR_NAME },
    { "upstream_queue_time", get_wait_time, .flags = VARIABLE_VOLATILE, .number = WAIT_FOR_ROOM },
    { "upstream_session_time", get_tries_list, .flags = VARIABLE_VOLATILE,
        .number = LIST_SESSION_TIMES },
    { .name = NULL },
};
