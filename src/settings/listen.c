/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `listen ADDRESS [PARAMETER ...];`: each address, and each port of a range, becomes an entry
 * of the server. Conflicts between addresses are detected in ports.c. */
#include "settings/listen.h"

#include "base/check.h"
#include "base/number.h"
#include "net/address_parse.h"
#include "net/listener_options.h"
#include "settings/apply.h"
#include "settings/lookup.h"
#include "settings/set_value.h"

#include <bsd/string.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#define FD_PREFIX "fd:"
#define DEFAULT_SERVER "default_server"

struct parameter {
    const char *name; /* "backlog=" takes a value, "reuseport" none */
    int (*set)(struct apply *apply, const struct conf_directive *directive, unsigned arg,
        const char *value, struct listen_address *listen);
    bool own_socket;
};

#define PARAMETER(name)                                                                            \
    static int name(struct apply *apply, const struct conf_directive *directive, unsigned arg,     \
        const char *value, struct listen_address *listen)

static int parse_count(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *value, int least, int *out)
{
    int64_t n;

    if (number_parse(value, least, INT_MAX, &n) != NUMBER_OK)
        return set_bad_value(apply, directive, arg, "expected a number, at least %d", least);
    *out = (int)n;
    return 0;
}

static int parse_bytes(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *value, int *out)
{
    int64_t n;

    if (number_parse_size(value, 1, INT_MAX, &n) != NUMBER_OK)
        return set_bad_value(apply, directive, arg, "expected a size such as 64k");
    *out = (int)n;
    return 0;
}

static int parse_flag(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *value, bool *out)
{
    *out = strcmp(value, "on") == 0;
    if (!*out && strcmp(value, "off") != 0)
        return set_bad_value(apply, directive, arg, "expected \"on\" or \"off\"");
    return 0;
}

PARAMETER(set_backlog)
{
    return parse_count(apply, directive, arg, value, -1, &listen->options.backlog);
}

PARAMETER(set_bind)
{
    (void)apply, (void)directive, (void)arg, (void)value;
    listen->options.bind = true;
    return 0;
}

PARAMETER(set_deferred)
{
    (void)apply, (void)directive, (void)arg, (void)value;
    listen->options.deferred = true;
    return 0;
}

PARAMETER(set_fastopen)
{
    return parse_count(apply, directive, arg, value, 1, &listen->options.fastopen);
}

PARAMETER(set_ipv6only)
{
    return parse_flag(apply, directive, arg, value, &listen->options.ipv6only);
}

PARAMETER(set_proxy_protocol)
{
    (void)apply, (void)directive, (void)arg, (void)value;
    listen->proxy_protocol = true;
    return 0;
}

PARAMETER(set_rcvbuf)
{
    return parse_bytes(apply, directive, arg, value, &listen->options.rcvbuf);
}

PARAMETER(set_sndbuf)
{
    return parse_bytes(apply, directive, arg, value, &listen->options.sndbuf);
}

PARAMETER(set_reuseport)
{
    (void)apply, (void)directive, (void)arg, (void)value;
    listen->options.reuseport = true;
    return 0;
}

/* Reads "on", "off", or "30m::10": idle time, interval and count, each optional. */
PARAMETER(set_keepalive)
{
    int *fields[] = { &listen->options.keepidle, &listen->options.keepintvl,
        &listen->options.keepcnt };
    char text[64];
    char *rest = text, *part;
    bool any = false;

    if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0) {
        listen->options.keepalive =
            value[1] == 'n' ? LISTENER_KEEPALIVE_ON : LISTENER_KEEPALIVE_OFF;
        return 0;
    }
    if (strlcpy(text, value, sizeof(text)) >= sizeof(text))
        return set_bad_value(apply, directive, arg, "too long");
    for (int i = 0; (part = strsep(&rest, ":")) != NULL; i++) {
        int64_t n = 0;
        enum number_status status = NUMBER_OK;

        if (i == 3)
            status = NUMBER_MALFORMED;
        else if (*part != '\0' && i < 2)
            status = number_parse_msec(part, 1000, INT_MAX, &n);
        else if (*part != '\0')
            status = number_parse(part, 1, INT_MAX, &n);
        if (status != NUMBER_OK)
            return set_bad_value(apply, directive, arg,
                "expected \"on\", \"off\" or keepidle:keepintvl:keepcnt such as 30m::10");
        *fields[i] = (int)(i < 2 ? n / 1000 : n);
        any = any || *part != '\0';
    }
    if (!any)
        return set_bad_value(apply, directive, arg, "expected at least one of the three values");
    listen->options.keepalive = LISTENER_KEEPALIVE_ON;
    return 0;
}

static const struct parameter parameters[] = {
    { "backlog=", set_backlog, true },
    { "bind", set_bind, true },
    { "deferred", set_deferred, true },
    { "fastopen=", set_fastopen, true },
    { "ipv6only=", set_ipv6only, true },
    { "proxy_protocol", set_proxy_protocol, false },
    { "rcvbuf=", set_rcvbuf, true },
    { "reuseport", set_reuseport, true },
    { "sndbuf=", set_sndbuf, true },
    { "so_keepalive=", set_keepalive, true },
};

static const struct parameter *find_parameter(const char *text)
{
    for (size_t i = 0; i < countof(parameters); i++) {
        const char *name = parameters[i].name;
        size_t length = strlen(name);

        if (name[length - 1] == '=' ? strncmp(text, name, length) == 0 : strcmp(text, name) == 0)
            return &parameters[i];
    }
    return NULL;
}

static int unknown_parameter(
    struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    static const struct {
        const char *start, *lacking;
    } elsewhere[] = {
        { "udp", ": there is no UDP here, only TCP" },
        { "ssl", ": this version has no TLS" },
        { "multipath", ": there is no Multipath TCP here" },
        { "setfib=", ": only FreeBSD has routing tables of a socket" },
        { "accept_filter=", ": only FreeBSD and NetBSD have accept filters" },
    };
    const char *text = directive->args[arg].text, *names[countof(parameters) + 2] = { NULL };

    for (size_t i = 0; i < countof(elsewhere); i++) {
        const char *start = elsewhere[i].start;
        size_t n = strlen(start);

        if (start[n - 1] == '=' ? strncmp(text, start, n) == 0 : strcmp(text, start) == 0)
            return set_bad_value(apply, directive, arg,
                "this parameter of nginx is not supported%s", elsewhere[i].lacking);
    }
    for (size_t i = 0; i < countof(parameters); i++)
        names[i] = parameters[i].name;
    names[countof(parameters)] = DEFAULT_SERVER;
    return set_bad_name(apply, directive, arg, names, "a parameter of \"listen\"");
}

static int set_parameters(
    struct apply *apply, const struct conf_directive *directive, struct listen_address *listen)
{
    int status = 0;

    for (unsigned arg = 1; arg < directive->arg_n; arg++) {
        const char *text = directive->args[arg].text;
        const struct parameter *parameter = find_parameter(text);

        if (strcmp(text, DEFAULT_SERVER) == 0) {
            listen->default_server = true;
            continue;
        }
        if (parameter == NULL) {
            status = unknown_parameter(apply, directive, arg);
            continue;
        }
        listen->own_socket = listen->own_socket || parameter->own_socket;
        if (parameter->set(apply, directive, arg, text + strlen(parameter->name), listen) == -1)
            status = -1;
    }
    return status;
}

static int add_listen(
    struct apply *apply, const struct listen_address *from, const struct address *address)
{
    struct listen_address *listen = apply_alloc(apply, sizeof(*listen));

    if (listen == NULL)
        return -1;
    *listen = *from;
    listen->address = *address;
    assert(listen->server == apply->scope->server && listen->server != NULL);
    STAILQ_INSERT_TAIL(&apply->scope->listens, listen, link);
    if (address->any.sa_family == AF_UNIX && !listen->passed)
        paths_add(apply, "listen", PATH_LISTEN, listen->address.un.sun_path, listen->word);
    return 0;
}

/* Reads "fd:NAME" or "fd:3" and returns the addresses of the service manager's sockets of the
 * name. */
static int find_passed(struct apply *apply, const struct conf_directive *directive,
    struct listen_address *listen, struct address addresses[LOOKUP_ADDRESSES_MAX], unsigned *n)
{
    const struct adopted *adopted = apply->options->adopted;
    const char *name = directive->args[0].text + strlen(FD_PREFIX);
    char all[256];

    listen->own_socket = listen->passed = true;
    *n = 0;
    if (*name == '\0')
        return set_bad_value(
            apply, directive, 0, "expected the name or the number of a socket after \"fd:\"");
    if (adopted == NULL) {
        apply->scope->listens_unknown = true;
        report_warn(apply->report, &directive->args[0],
            "\"%s\" is not checked: only the daemon that the service manager starts knows its "
            "sockets",
            directive->args[0].text);
        return 0;
    }
    *n = adopted_find(adopted, name, addresses, LOOKUP_ADDRESSES_MAX, &listen->options.ipv6only);
    if (*n > LOOKUP_ADDRESSES_MAX)
        return set_bad_value(
            apply, directive, 0, "more than %d sockets have this name", LOOKUP_ADDRESSES_MAX);
    if (*n > 0)
        return 0;
    adopted_describe(adopted, all, sizeof(all));
    return set_bad_value(apply, directive, 0,
        "the service manager has passed no such socket, it has passed: %s", all);
}

static int find_addresses(struct apply *apply, const struct conf_directive *directive,
    struct listen_address *listen, struct address addresses[LOOKUP_ADDRESSES_MAX], unsigned *n,
    in_port_t *last)
{
    const char *text = directive->args[0].text, *wrong;
    struct conf_word word = directive->args[0];

    if (strncasecmp(text, FD_PREFIX, strlen(FD_PREFIX)) == 0)
        return find_passed(apply, directive, listen, addresses, n);
    word.text = apply_address(apply, text);
    if (word.text == NULL)
        return -1;
    wrong = lookup_listen(apply, &word, addresses, n, last);
    if (wrong == NULL)
        return 0;
    if (word.text != text) /* the prefix may exceed the length */
        return set_bad_value(apply, directive, 0, "%s: \"%s\"", wrong, word.text);
    set_bad_value(apply, directive, 0, "%s", wrong);
    if (address_is_unresolved(wrong))
        report_note_temporary(apply->report);
    return -1;
}

/* Adds the address with the first port, and with the further ports of the range. */
static int add_ports(struct apply *apply, const struct listen_address *listen,
    struct address *address, in_port_t last)
{
    unsigned port = address_port(address);

    assert(last == 0 || last >= port);
    do {
        address_set_port(address, (in_port_t)port);
        if (add_listen(apply, listen, address) == -1)
            return -1;
    } while (++port <= last);
    return 0;
}

int listen_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct address addresses[LOOKUP_ADDRESSES_MAX];
    struct listen_address listen = {
        .word = &directive->args[0],
        .options = listener_defaults,
        .server = apply->scope->server,
        .scope = apply->scope,
    };
    unsigned n = 0;
    in_port_t last = 0;
    int status = find_addresses(apply, directive, &listen, addresses, &n, &last);
    const char *lacking;

    (void)field;
    if (set_parameters(apply, directive, &listen) == -1 || status == -1)
        return -1;
    lacking = listener_lacks(&listen.options);
    if (lacking != NULL)
        return set_bad_value(
            apply, directive, 0, "\"%s\" is not supported: this build cannot set it", lacking);
    for (unsigned i = 0; i < n; i++)
        if (listen.options.reuseport && addresses[i].any.sa_family == AF_UNIX)
            return set_bad_value(apply, directive, 0, "a unix socket cannot have \"reuseport\"");
    for (unsigned i = 0; i < n; i++)
        if (add_ports(apply, &listen, &addresses[i], last) == -1)
            return -1;
    return 0;
}
