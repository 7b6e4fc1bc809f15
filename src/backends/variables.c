/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of the servers that a session has tried: lists, in the order of the tries. A try
 * that has not come so far has "-". */
#include "backends/tries.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of an item that is no address: a number of 64 bits, and ", ". */
#define ITEM 32

typedef int item_writer(char *p, size_t size, const struct session_try *run);

/* Sets the value to a list of what `write` says of each try. */
static int write_list(struct fb_conn *conn, struct value *value, item_writer *write)
{
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);
    const struct session_try *run, *first;
    struct session_try running;
    size_t size = 0, used = 0;
    char *text;

    *value = value_missing();
    first = tries != NULL ? session_tries_first(tries, &running) : NULL;
    if (first == NULL)
        return 0;
    for (run = first; run != NULL; run = session_tries_next(tries, run, &running))
        size += ITEM + strlen(run->address); /* an address, or a group's name */
    text = session_keep(conn, size);
    if (text == NULL)
        return -1;
    for (run = first; run != NULL; run = session_tries_next(tries, run, &running)) {
        int length;

        if (run != first) {
            memcpy(text + used, ", ", 2);
            used += 2;
        }
        length = write(text + used, size - used, run);
        assert(length >= 0 && (size_t)length + 2 < size - used);
        used += (size_t)length;
    }
    *value = value_found(text, used);
    return 0;
}

static int write_time(char *p, size_t size, uint64_t ms)
{
    if (ms == FB_NO_TIME)
        return snprintf(p, size, "-");
    return snprintf(p, size, "%" PRIu64 ".%03u", ms / 1000, (unsigned)(ms % 1000));
}

/* Writes a time of which a choice has 32 bits. */
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

GETTER(get_addr)
{
    (void)variable;
    return write_list(conn, value, write_address);
}

GETTER(get_connect_time)
{
    (void)variable;
    return write_list(conn, value, write_connect_time);
}

GETTER(get_first_byte_time)
{
    (void)variable;
    return write_list(conn, value, write_first_byte_time);
}

GETTER(get_session_time)
{
    (void)variable;
    return write_list(conn, value, write_session_time);
}

GETTER(get_bytes_sent)
{
    (void)variable;
    return write_list(conn, value, write_sent);
}

GETTER(get_bytes_received)
{
    (void)variable;
    return write_list(conn, value, write_received);
}

/* Sets the value to the time that the session has waited for this reason, if it has. */
static int write_wait(struct fb_conn *conn, struct value *value, enum wait_reason reason)
{
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);
    const struct choice_more *more = tries != NULL ? tries->choice.more : NULL;
    char text[ITEM];

    *value = value_missing();
    if (more == NULL || more->waited_ms[reason] == CHOICE_NO_TIME)
        return 0;
    return value_copy(
        conn, value, text, (size_t)write_time(text, sizeof(text), more->waited_ms[reason]));
}

GETTER(get_queue_time)
{
    (void)variable;
    return write_wait(conn, value, WAIT_FOR_ROOM);
}

GETTER(get_name_time)
{
    (void)variable;
    return write_wait(conn, value, WAIT_FOR_NAME);
}

GETTER(get_name)
{
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);

    (void)variable;
    *value = value_missing();
    if (tries != NULL)
        *value = value_found(tries->choice.upstream->name, strlen(tries->choice.upstream->name));
    return 0;
}

const struct variable_row variables_upstream[] = {
    { "upstream_addr", get_addr, VARIABLE_VOLATILE },
    { "upstream_bytes_received", get_bytes_received, VARIABLE_VOLATILE },
    { "upstream_bytes_sent", get_bytes_sent, VARIABLE_VOLATILE },
    { "upstream_connect_time", get_connect_time, VARIABLE_VOLATILE },
    { "upstream_first_byte_time", get_first_byte_time, VARIABLE_VOLATILE | VARIABLE_FIRST_BYTE },
    { "upstream_name", get_name, VARIABLE_VOLATILE },
    { "upstream_name_time", get_name_time, VARIABLE_VOLATILE },
    { "upstream_queue_time", get_queue_time, VARIABLE_VOLATILE },
    { "upstream_session_time", get_session_time, VARIABLE_VOLATILE },
    { .name = NULL },
};
