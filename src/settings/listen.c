/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `listen ADDRESS [PARAMETER ...];`: each address and port of a range becomes an entry of the
 * server. Conflicts between addresses: ports.c. */
#include "settings/listen.h"

#include "base/check.h"
#include "base/number.h"
#include "net/address_parse.h"
#include "net/listener_options.h"
#include "settings/apply.h"
#include "settings/lookup.h"
#include "settings/parameter.h"
#include "settings/set_value.h"

#include <bsd/string.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#define FD_PREFIX "fd:"

#define KEEPALIVE "so_keepalive"
#define FIELD(member) offsetof(struct listen_address, member)

static const struct parameter parameters[] = {
    { "backlog=", PARAMETER_COUNT, FIELD(options.backlog), -1, INT_MAX, "a number, at least -1" },
    { "bind", PARAMETER_FLAG, FIELD(options.bind), 0, 0, NULL },
    { "default_server", PARAMETER_FLAG, FIELD(default_server), 0, 0, NULL },
    { "deferred", PARAMETER_FLAG, FIELD(options.deferred), 0, 0, NULL },
    { "fastopen=", PARAMETER_COUNT, FIELD(options.fastopen), 1, INT_MAX, "a number, at least 1" },
    { "ipv6only=", PARAMETER_SWITCH, FIELD(options.ipv6only), 0, 0, "\"on\" or \"off\"" },
    { "proxy_protocol", PARAMETER_FLAG, FIELD(proxy_protocol), 0, 0, NULL },
    { "rcvbuf=", PARAMETER_BYTES, FIELD(options.rcvbuf), 1, INT_MAX, "a size such as 64k" },
    { "reuseport", PARAMETER_FLAG, FIELD(options.reuseport), 0, 0, NULL },
    { "sndbuf=", PARAMETER_BYTES, FIELD(options.sndbuf), 1, INT_MAX, "a size such as 64k" },
    { "ssl", PARAMETER_FLAG, FIELD(ssl), 0, 0, NULL },
    { .name = NULL },
};

/* Reads "on", "off", or "30m::10": idle time, interval and count, each optional. */
static int set_keepalive(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *value, struct listen_address *listen)
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

static int fail_parameter(struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    static const struct parameter elsewhere[] = {
        { "udp", .expected = ": there is no UDP here, only TCP" },
        { "multipath", .expected = ": there is no Multipath TCP here" },
        { "setfib=", PARAMETER_TEXT, .expected = ": only FreeBSD has routing tables of a socket" },
        { "accept_filter=", PARAMETER_TEXT,
            .expected = ": only FreeBSD and NetBSD have accept filters" },
        { .name = NULL },
    };
    const struct parameter *row = parameter_find(elsewhere, directive->args[arg].text);
    const char *names[countof(parameters) + 1] = { KEEPALIVE "=" };

    if (row != NULL)
        return set_bad_value(
            apply, directive, arg, "this parameter of nginx is not supported%s", row->expected);
    for (size_t i = 0; i < countof(parameters); i++)
        names[i + 1] = parameters[i].name;
    return set_bad_name(apply, directive, arg, names, "a parameter of \"listen\"");
}

/* Parameters in `options`, of the socket, make the address one with a socket of its own. */
static int set_parameter(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    struct listen_address *listen)
{
    const char *text = directive->args[arg].text, *times = parameter_value(text, KEEPALIVE);
    const struct parameter *row = parameter_find(parameters, text);

    if (row == NULL && times == NULL)
        return fail_parameter(apply, directive, arg);
    if (times != NULL || row->offset - FIELD(options) < sizeof(listen->options))
        listen->own_socket = true;
    return times != NULL ? set_keepalive(apply, directive, arg, times, listen)
                         : parameter_set(apply, directive, arg, parameters, NULL, listen);
}

static int set_listen_parameters(
    struct apply *apply, const struct conf_directive *directive, struct listen_address *listen)
{
    int status = 0;

    for (unsigned arg = 1; arg < directive->arg_n; arg++)
        if (set_parameter(apply, directive, arg, listen) == -1)
            status = -1;
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

/* Finds the addresses of the service manager's sockets for "fd:NAME" or "fd:3". */
static int find_passed(struct apply *apply, const struct conf_directive *directive,
    struct listen_address *listen, struct lookup_addresses *found)
{
    const struct adopted *adopted = apply->options->adopted;
    const char *name = directive->args[0].text + strlen(FD_PREFIX);
    char all[256];

    listen->own_socket = listen->passed = true;
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
    found->n =
        adopted_find(adopted, name, found->at, LOOKUP_ADDRESSES_MAX, &listen->options.ipv6only);
    if (found->n > LOOKUP_ADDRESSES_MAX)
        return set_bad_value(
            apply, directive, 0, "more than %d sockets have this name", LOOKUP_ADDRESSES_MAX);
    if (found->n > 0)
        return 0;
    adopted_describe(adopted, all, sizeof(all));
    return set_bad_value(apply, directive, 0,
        "the service manager has passed no such socket, it has passed: %s", all);
}

static int find_addresses(struct apply *apply, const struct conf_directive *directive,
    struct listen_address *listen, struct lookup_addresses *found)
{
    const char *text = directive->args[0].text, *wrong;
    struct conf_word word = directive->args[0];

    if (strncasecmp(text, FD_PREFIX, strlen(FD_PREFIX)) == 0)
        return find_passed(apply, directive, listen, found);
    word.text = apply_address(apply, text);
    if (word.text == NULL)
        return -1;
    wrong = lookup_listen(apply, &word, found);
    if (wrong == NULL)
        return 0;
    if (word.text != text) /* the prefix may exceed the length */
        return set_bad_value(apply, directive, 0, "%s: \"%s\"", wrong, word.text);
    return set_bad_address(apply, directive, wrong);
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
    struct lookup_addresses found = { .n = 0 };
    struct listen_address listen = {
        .word = &directive->args[0],
        .options = listener_defaults,
        .server = apply->scope->server,
        .scope = apply->scope,
    };
    int status = find_addresses(apply, directive, &listen, &found);
    const char *lacking;

    (void)field;
    listen.in_range = found.last != 0;
    if (set_listen_parameters(apply, directive, &listen) == -1 || status == -1)
        return -1;
    lacking = listener_lacks(&listen.options);
    if (lacking != NULL)
        return set_bad_value(apply, directive, 0, "\"%s\" is not supported by this build", lacking);
    for (unsigned i = 0; i < found.n; i++)
        if (listen.options.reuseport && found.at[i].any.sa_family == AF_UNIX)
            return set_bad_value(apply, directive, 0, "a unix socket cannot have \"reuseport\"");
    for (unsigned i = 0; i < found.n; i++)
        if (add_ports(apply, &listen, &found.at[i], found.last) == -1)
            return -1;
    return 0;
}
