/* SPDX-License-Identifier: BSD-2-Clause */
/* `server` of `upstream {}`: an address or a name, resolved by workers, and parameters. */
#include "base/check.h"
#include "features/upstream/upstream.h"
#include "names/client.h"
#include "net/address_parse.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/parameter.h"
#include "settings/rows.h"
#include "settings/set_value.h"

#include <string.h>

#define FAIL_TIMEOUT_MS 10000
#define WEIGHT_MOST 1000000
#define COUNT_MOST INT32_MAX
#define TIME_MOST INT64_C(31536000000) /* a year */

static const struct parameter parameters[] = {
#define FIELD(member) offsetof(struct upstream_server, member)
    { "backup", PARAMETER_FLAG, FIELD(backup), 0, 0, NULL },
    { "down", PARAMETER_FLAG, FIELD(down), 0, 0, NULL },
    { "drain", PARAMETER_FLAG, FIELD(drain), 0, 0, NULL },
    { "fail_timeout=", PARAMETER_MSEC, FIELD(fail_timeout), 0, TIME_MOST, NULL },
    { "max_conns=", PARAMETER_COUNT, FIELD(max_conns), 0, COUNT_MOST, NULL },
    { "max_fails=", PARAMETER_COUNT, FIELD(max_fails), 0, COUNT_MOST, NULL },
    { "resolve", PARAMETER_FLAG, FIELD(resolve), 0, 0, NULL },
    { "service=", PARAMETER_TEXT, FIELD(service), 0, 0, NULL },
    { "slow_start=", PARAMETER_MSEC, FIELD(slow_start), 0, TIME_MOST, NULL },
    { "weight=", PARAMETER_COUNT, FIELD(weight), 1, WEIGHT_MOST, NULL },
    { .name = NULL },
#undef FIELD
};

static int report_unknown_parameter(
    struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    const char *names[countof(parameters)];
    const char *hint = rows_haproxy_hint(HAPROXY_SERVER, directive->args[arg].text);

    if (hint != NULL)
        return set_bad_value(apply, directive, arg, HAPROXY_WORD "%s", hint);
    for (size_t i = 0; i < countof(parameters); i++)
        names[i] = parameters[i].name;
    return set_bad_name(apply, directive, arg, names, "a parameter of \"server\"");
}

static int set_server_parameters(
    struct apply *apply, const struct conf_directive *directive, struct upstream_server *server)
{
    int status = 0;

    for (unsigned arg = 1; arg < directive->arg_n; arg++)
        if (parameter_find(parameters, directive->args[arg].text) == NULL)
            status = report_unknown_parameter(apply, directive, arg);
        else if (parameter_set(apply, directive, arg, parameters, NULL, server) == -1)
            status = -1;
    return status;
}

struct upstream_server *upstream_server_make(struct apply *apply)
{
    struct upstream_server *server = apply_alloc(apply, sizeof(*server));

    if (server != NULL)
        *server = (struct upstream_server) {
            .weight = 1,
            .max_fails = 1,
            .fail_timeout = FAIL_TIMEOUT_MS,
        };
    return server;
}

static const char *parse_name(struct apply *apply, const char *text, struct upstream_server *server)
{
    char host[ADDRESS_HOST_MAX];
    const char *wrong = address_parse_name(text, host, &server->port);

    if (wrong != NULL)
        return wrong;
    if (!names_client_built())
        return "a name needs c-ares, which this build of forkbeard lacks";
    server->host = apply_strdup(apply, host);
    return server->host != NULL ? NULL : "out of memory";
}

const char *upstream_server_parse(
    struct apply *apply, const char *text, struct upstream_server *server)
{
    const char *address = apply_address(apply, text), *wrong;
    struct fb_target *target;

    server->name = text;
    if (address_has_name(text))
        return parse_name(apply, text, server);
    target = apply_alloc(apply, sizeof(*target));
    if (target == NULL || address == NULL)
        return "out of memory";
    wrong = target_parse(address, false, target);
    server->target = wrong == NULL ? target : NULL;
    return wrong;
}

void upstream_server_add(
    struct apply *apply, struct upstream *upstream, struct upstream_server *server)
{
    struct needs *needs = &apply->cycle->needs;

    assert((server->target != NULL) != (server->host != NULL));
    STAILQ_INSERT_TAIL(&upstream->servers, server, link);
    upstream->server_n++;
    if (server->target != NULL)
        needs_add_target(apply, server->target);
    else if (server->port != 0)
        needs_add_port(apply, server->port);
    else
        needs->rights |= FB_NEEDS_CONNECT; /* SRV records say which ports */
}

/* Checks name and port of the place against "service=" and "resolve". */
static int check_place(
    struct apply *apply, const struct conf_directive *directive, struct upstream_server *server)
{
    bool is_name = server->host != NULL;

    if (server->service == NULL)
        return is_name && server->port == 0
                   ? set_bad_value(apply, directive, 0, "expected a port, or \"service=\"")
                   : 0;
    if (!is_name || server->port != 0)
        return set_bad_value(
            apply, directive, 0, "expected a name without a port because of \"service=\"");
    if (!server->resolve)
        return set_bad_value(apply, directive, 0, "\"service=\" needs \"resolve\"");
    return 0;
}

/* Notes the first words of parameters for the balancer to support. */
static void note_parameters(
    struct upstream_block *block, const struct conf_directive *directive, bool is_backup)
{
    for (unsigned arg = 1; arg < directive->arg_n; arg++) {
        const struct conf_word *word = &directive->args[arg];

        if (block->backup == NULL && strcmp(word->text, "backup") == 0)
            block->backup = word;
        if (block->slow_start == NULL && strncmp(word->text, "slow_start=", 11) == 0)
            block->slow_start = word;
    }
    block->has_primary = block->has_primary || !is_backup;
}

int upstream_server_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct upstream_server *server = upstream_server_make(apply);
    struct upstream_block *block = field;
    const char *wrong;
    int status;

    if (server == NULL)
        return -1;
    server->word = &directive->args[0];
    status = set_server_parameters(apply, directive, server);
    wrong = upstream_server_parse(apply, directive->args[0].text, server);
    if (wrong != NULL)
        status = set_bad_value(apply, directive, 0, "%s", wrong);
    else if (status == 0)
        status = check_place(apply, directive, server);
    note_parameters(block, directive, server->backup);
    if (status == 0)
        upstream_server_add(apply, block->upstream, server);
    return status;
}
