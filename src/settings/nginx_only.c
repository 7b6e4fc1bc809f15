/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of these directives, in alphabetical order. */
#include "settings/nginx_only.h"

#include "base/compiler.h"

#include <string.h>

static const char *const names[] = { "access_log", "allow", "debug_points", "deny", "geo", "http",
    "js_import", "limit_conn", "limit_conn_zone", "lock_file", "log_format", "mail", "map",
    "pcre_jit", "preread_buffer_size", "preread_timeout", "proxy_connect_timeout", "proxy_pass",
    "proxy_protocol", "proxy_timeout", "resolver", "server_name", "set", "split_clients",
    "ssl_certificate", "ssl_certificate_key", "ssl_engine", "ssl_preread", "ssl_protocols",
    "upstream" };

bool nginx_only(const char *name)
{
    for (size_t i = 0; i < countof(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}
