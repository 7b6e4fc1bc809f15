/* SPDX-License-Identifier: BSD-2-Clause */
/* Values whose bytes are in the memory of the session. */
#include "text/value.h"

#include "net/address.h"
#include "session/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
