/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in variables: rows with the getter or the writer of a log's text. */
#include "session/end.h"
#include "session/record.h"
#include "text/variable.h"

#include <bsd/string.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static int get_remote_port(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct address peer;

    (void)variable;
    conn_peer_address(conn, &peer);
    return value_port(conn, value, &peer);
}

static int get_binary_remote_addr(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
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

/* The binding's address, or for a wildcard the destination of the client, connected or passed. */
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

static int get_local_addr(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct address room;

    (void)variable;
    return value_address(conn, value, local_address(conn, &room));
}

static int get_local_port(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    (void)variable;
    return value_port(conn, value, &session_binding_of(conn)->address);
}

/* Keeps the text as written to a log. */
static int get_text(struct fb_conn *conn, const struct variable *variable, struct value *value)
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

static void make_time_texts(struct time_text *text, time_t now)
{
    char zone[8] = "";
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(text->local, sizeof(text->local), "%d/%b/%Y:%H:%M:%S %z", &tm);
    strftime(zone, sizeof(zone), "%z", &tm);
    memmove(zone + 4, zone + 3, 3); /* +0100 becomes +01:00 */
    zone[3] = ':';
    strftime(text->iso8601, sizeof(text->iso8601), "%Y-%m-%dT%H:%M:%S", &tm);
    strlcat(text->iso8601, zone, sizeof(text->iso8601));
    text->second = now;
}

/* Returns the texts of the present second, in the local time zone. */
static const struct time_text *time_text_of(struct stream *stream)
{
    int64_t now = stream->net.loop.clock.wall_ms / 1000;
    struct time_text *text = &stream->time;

    if (text->local[0] == '\0' || text->second != now)
        make_time_texts(text, (time_t)now);
    return text;
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

static int get_hostname(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct variables *variables = variable->arg;

    (void)conn;
    *value = value_found(variables->hostname, strlen(variables->hostname));
    return 0;
}

static int get_nginx_version(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    (void)conn;
    (void)variable;
    *value = value_found(BUILD_VERSION, strlen(BUILD_VERSION));
    return 0;
}

static int get_session_end(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const char *text = session_end_text(conn);

    (void)variable;
    *value = text != NULL ? value_found(text, strlen(text)) : value_missing();
    return 0;
}

const struct variable_row variables_builtin[] = {
    { "binary_remote_addr", .get = get_binary_remote_addr },
    { "bytes_received", get_text, .flags = VARIABLE_VOLATILE, .text = write_bytes_received },
    { "bytes_sent", get_text, .flags = VARIABLE_VOLATILE, .text = write_bytes_sent },
    { "connection", get_text, .flags = VARIABLE_COUNTED, .text = write_connection },
    { "hostname", .get = get_hostname },
    { "msec", get_text, .flags = VARIABLE_VOLATILE, .text = write_msec },
    { "nginx_version", .get = get_nginx_version },
    { "pid", get_text, .text = write_pid },
    { "protocol", get_text, .text = write_protocol },
    { "remote_addr", get_text, .text = write_remote_addr },
    { "remote_port", .get = get_remote_port },
    { "server_addr", .get = get_local_addr },
    { "server_port", .get = get_local_port },
    { "session_end", get_session_end, .flags = VARIABLE_VOLATILE },
    { "session_time", get_text, .flags = VARIABLE_VOLATILE, .text = write_session_time },
    { "status", get_text, .flags = VARIABLE_VOLATILE, .text = write_status },
    { "time_iso8601", get_text, .flags = VARIABLE_VOLATILE, .text = write_time_iso8601 },
    { "time_local", get_text, .flags = VARIABLE_VOLATILE, .text = write_time_local },
    { .name = NULL },
};
