/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of a session's tried servers: lists, in the order of the tries. A try that has not
 * come so far has "-". */
#include "backends/tries.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of an item without an address: a number of 64 bits, and ", ". */
#define ITEM 32

typedef int item_writer(char *p, size_t size, const struct session_try *run);

static int write_time(char *p, size_t size, uint64_t ms)
{
    if (ms == FB_NO_TIME)
        return snprintf(p, size, "-");
    return snprintf(p, size, "%" PRIu64 ".%03u", ms / 1000, (unsigned)(ms % 1000));
}

/* Writes a time of 32 bits, as of a choice. */
static int write_early_time(char *p, size_t size, uint32_t ms)
{
    return write_time(p, size, ms != CHOICE_NO_TIME ? ms : FB_NO_TIME);
}

static int write_address(char *p, size_t size, const struct session_try *run)
{
    return snprintf(p, size, "%s", run->address);
}

static int write_connect_time(char *p, size_t size, const struct session_try *run)
{
    return write_early_time(p, size, run->connected_ms);
}

static int write_first_byte_time(char *p, size_t size, const struct session_try *run)
{
    return write_early_time(p, size, run->first_byte_ms);
}

static int write_session_time(char *p, size_t size, const struct session_try *run)
{
    return write_time(p, size, run->lasted_ms);
}

static int write_sent(char *p, size_t size, const struct session_try *run)
{
    return snprintf(p, size, "%" PRIu64, run->sent);
}

static int write_received(char *p, size_t size, const struct session_try *run)
{
    return snprintf(p, size, "%" PRIu64, run->received);
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

static item_writer *const item_writers[] = {
    [LIST_ADDRESSES] = write_address,
    [LIST_CONNECT_TIMES] = write_connect_time,
    [LIST_FIRST_BYTE_TIMES] = write_first_byte_time,
    [LIST_SESSION_TIMES] = write_session_time,
    [LIST_SENT] = write_sent,
    [LIST_RECEIVED] = write_received,
};

/* Sets the value to the list of the variable's numbers, try by try. */
static int get_tries_list(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tries *tries = conn->outgoing ? NULL : tries_of(conn);
    const struct session_try *run, *first;
    struct session_try running;
    size_t size = 0, used = 0;
    char *text;

    assert(variable->number < countof(item_writers));
    first = tries != NULL ? tries_first(tries, &running) : NULL;
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
        length = item_writers[variable->number](text + used, size - used, run);
        assert(length >= 0 && (size_t)length + 2 < size - used);
        used += (size_t)length;
    }
    *value = value_found(text, used);
    return 0;
}

/* Sets the value to the session's waiting time for the variable's reason, if any. */
static int get_wait_time(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tries *tries = conn->outgoing ? NULL : tries_of(conn);
    const struct choice_more *more = tries != NULL ? tries->choice.more : NULL;
    char text[ITEM];

    if (more == NULL || more->waited_ms[variable->number] == CHOICE_NO_TIME)
        return 0;
    return value_copy(conn, value, text,
        (size_t)write_time(text, sizeof(text), more->waited_ms[variable->number]));
}

static int get_group_name(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct session_tries *tries = conn->outgoing ? NULL : tries_of(conn);

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
    { "upstream_first_byte_time", get_tries_list, .flags = VARIABLE_VOLATILE | VARIABLE_FIRST_BYTE,
        .number = LIST_FIRST_BYTE_TIMES },
    { "upstream_name", get_group_name, .flags = VARIABLE_VOLATILE },
    { "upstream_name_time", get_wait_time, .flags = VARIABLE_VOLATILE, .number = WAIT_FOR_NAME },
    { "upstream_queue_time", get_wait_time, .flags = VARIABLE_VOLATILE, .number = WAIT_FOR_ROOM },
    { "upstream_session_time", get_tries_list, .flags = VARIABLE_VOLATILE,
        .number = LIST_SESSION_TIMES },
    { .name = NULL },
};
