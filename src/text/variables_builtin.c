/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables that are there without a definition: a row each, with what works it out. A subject
 * with several of its own has a table of its own, and a feature that names it. */
#include "session/end.h"
#include "session/record.h"
#include "session/time_text.h"
#include "text/variable.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

GETTER(get_remote_port)
{
    struct address peer;

    (void)variable;
    conn_peer_address(conn, &peer);
    return value_port(conn, value, &peer);
}

GETTER(get_binary_remote_addr)
{
    struct address peer;

    (void)variable;
    conn_peer_address(conn, &peer);
    if (peer.any.sa_family == AF_INET)
        return value_copy(conn, value, (const char *)&peer.in.sin_addr, sizeof(peer.in.sin_addr));
    if (peer.any.sa_family == AF_INET6)
        return value_copy(
            conn, value, (const char *)&peer.in6.sin6_addr, sizeof(peer.in6.sin6_addr));
    return value_address(conn, value, &peer);
}

/* The binding's address, or of a wildcard the one that the client has connected, or was passed
 * to. */
static const struct address *local_address(struct fb_conn *conn, struct address *room)
{
    const struct address *bound = &session_binding_of(conn)->address;
    const struct session_record *record = session_record_of(conn);

    if (record != NULL && record->passed_to != NULL)
        return record->passed_to;
    room->length = sizeof(room->un);
    if (!address_is_wildcard(bound) ||
        getsockname(conn->source.fd, &room->any, &room->length) == -1)
        return bound;
    return room;
}

GETTER(get_server_addr)
{
    struct address room;

    (void)variable;
    return value_address(conn, value, local_address(conn, &room));
}

GETTER(get_server_port)
{
    (void)variable;
    return value_port(conn, value, &session_binding_of(conn)->address);
}

/* Keeps the text that a log would have. */
GETTER(get_text)
{
    char text[VARIABLE_TEXT_MAX];
    const char *end = variable->text(conn, text);

    assert(end <= text + sizeof(text));
    return value_copy(conn, value, text, (size_t)(end - text));
}

static char *write_digits(char *p, uint64_t n, unsigned least)
{
    char digits[20];
    unsigned i = 0;

    do
        digits[i++] = (char)('0' + n % 10);
    while ((n /= 10) != 0 || i < least);
    assert(i <= sizeof(digits));
    while (i > 0)
        *p++ = digits[--i];
    return p;
}

static char *write_number(char *p, uint64_t n)
{
    return write_digits(p, n, 1);
}

static char *write_ms(char *p, uint64_t ms)
{
    p = write_number(p, ms / 1000);
    *p++ = '.';
    return write_digits(p, ms % 1000, 3);
}

static char *write_string(char *p, const char *text)
{
    size_t n = strlen(text);

    assert(n <= VARIABLE_TEXT_MAX);
    memcpy(p, text, n);
    return p + n;
}

static char *write_remote_addr(struct fb_conn *conn, char *p)
{
    char text[ADDRESS_TEXT];
    struct address peer;
    const uint8_t *in;

    conn_peer_address(conn, &peer);
    if (peer.any.sa_family != AF_INET)
        return write_string(p, address_format(&peer, false, text));
    in = (const uint8_t *)&peer.in.sin_addr;
    for (unsigned i = 0; i < 4; i++) {
        p = write_number(p, in[i]);
        *p++ = '.';
    }
    return p - 1;
}

static char *write_bytes_received(struct fb_conn *conn, char *p)
{
    const struct session_record *record = session_record_of(conn);

    return write_number(p, conn->received + (record != NULL ? record->more_received : 0));
}

static char *write_bytes_sent(struct fb_conn *conn, char *p)
{
    const struct session_record *record = session_record_of(conn);

    return write_number(p, conn->sent + (record != NULL ? record->more_sent : 0));
}

static char *write_connection(struct fb_conn *conn, char *p)
{
    return write_number(p, conn->number);
}

static char *write_session_time(struct fb_conn *conn, char *p)
{
    return write_ms(p, conn->net->loop.clock.mono_ms - conn->opened_ms);
}

static char *write_status(struct fb_conn *conn, char *p)
{
    return write_digits(p, session_status(conn), 3);
}

static char *write_msec(struct fb_conn *conn, char *p)
{
    return write_ms(p, (uint64_t)conn->net->loop.clock.wall_ms);
}

static char *write_time_local(struct fb_conn *conn, char *p)
{
    return write_string(p, time_text_of(stream_of(conn))->local);
}

static char *write_time_iso8601(struct fb_conn *conn, char *p)
{
    return write_string(p, time_text_of(stream_of(conn))->iso8601);
}

static char *write_pid(struct fb_conn *conn, char *p)
{
    return write_number(p, (uint64_t)conn->net->log->pid);
}

static char *write_protocol(struct fb_conn *conn, char *p)
{
    (void)conn;
    return write_string(p, "TCP");
}

GETTER(get_hostname)
{
    const struct variables *variables = variable->arg;

    (void)conn;
    *value = value_found(variables->hostname, strlen(variables->hostname));
    return 0;
}

GETTER(get_nginx_version)
{
    (void)conn;
    (void)variable;
    *value = value_found(BUILD_VERSION, strlen(BUILD_VERSION));
    return 0;
}

GETTER(get_session_end)
{
    const char *text = session_end_text(conn);

    (void)variable;
    *value = text != NULL ? value_found(text, strlen(text)) : value_missing();
    return 0;
}

static const struct {
    const char *name;
    variable_text *text;
} texts[] = {
    { "bytes_received", write_bytes_received },
    { "bytes_sent", write_bytes_sent },
    { "connection", write_connection },
    { "msec", write_msec },
    { "pid", write_pid },
    { "protocol", write_protocol },
    { "remote_addr", write_remote_addr },
    { "session_time", write_session_time },
    { "status", write_status },
    { "time_iso8601", write_time_iso8601 },
    { "time_local", write_time_local },
};

variable_text *variables_find_text(const char *name)
{
    for (size_t i = 0; i < countof(texts); i++)
        if (strcasecmp(texts[i].name, name) == 0)
            return texts[i].text;
    return NULL;
}

const struct variable_row variables_builtin[] = {
    { "binary_remote_addr", get_binary_remote_addr, 0 },
    { "bytes_received", get_text, VARIABLE_VOLATILE },
    { "bytes_sent", get_text, VARIABLE_VOLATILE },
    { "connection", get_text, VARIABLE_COUNTED },
    { "hostname", get_hostname, 0 },
    { "msec", get_text, VARIABLE_VOLATILE },
    { "nginx_version", get_nginx_version, 0 },
    { "pid", get_text, 0 },
    { "protocol", get_text, 0 },
    { "remote_addr", get_text, 0 },
    { "remote_port", get_remote_port, 0 },
    { "server_addr", get_server_addr, 0 },
    { "server_port", get_server_port, 0 },
    { "session_end", get_session_end, VARIABLE_VOLATILE },
    { "session_time", get_text, VARIABLE_VOLATILE },
    { "status", get_text, VARIABLE_VOLATILE },
    { "time_iso8601", get_text, VARIABLE_VOLATILE },
    { "time_local", get_text, VARIABLE_VOLATILE },
    { .name = NULL },
};
