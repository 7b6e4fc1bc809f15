/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses to connect to, from text. Never accepts forms for `listen` alone. Invariant: a parsed
 * target has a port, or a unix path. */
#include "net/target.h"

#include "net/address_parse.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* Parses a name and port in the form of `listen`. */
static const char *resolve_target(const char *text, struct address *out)
{
    in_port_t last;
    unsigned n;
    const char *wrong;

    if (*text == '*')
        return "expected a host";
    wrong = address_parse_listen(text, out, 1, &n, &last);
    if (wrong == NULL && last != address_port(out))
        return "invalid port";
    return wrong;
}

const char *target_parse(const char *text, bool names, struct fb_target *out)
{
    bool is_unix = strncasecmp(text, "unix:", 5) == 0;
    struct address address;
    const char *wrong = address_parse(text, 0, &address);

    if (!is_unix && *text != '[' && strchr(text, ':') == NULL)
        return "expected a port";
    if (wrong != NULL && names && !is_unix && *text != '[')
        wrong = resolve_target(text, &address);
    if (wrong != NULL)
        return strcmp(wrong, "no port") == 0 ? "expected a port" : wrong;
    if (!is_unix && address_port(&address) == 0)
        return "expected a port";
    assert(is_unix == (address.any.sa_family == AF_UNIX));
    *out = (struct fb_target) { .address = address };
    address_format(&address, true, out->text);
    return NULL;
}
