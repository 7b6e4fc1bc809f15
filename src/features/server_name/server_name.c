/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads names of servers, and makes the tables of each address with several servers, or with an
 * expression, for its captures. The first server with a name has it. */
#include "features/server_name/server_name.h"

#include "features/features.h"
#include "features/preread/preread.h"
#include "features/set/set.h"
#include "settings/listen.h"
#include "settings/set_value.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define EXPECTED "expected a name, \"*.name\", \".name\", \"name.*\" or \"~regular expression\""

/* Whether "*" stands for whole labels alone, at one end, and no label is empty. */
static bool is_good_name(const char *name)
{
    size_t n = strlen(name);
    bool starts = strncmp(name, "*.", 2) == 0, ends = n >= 2 && strcmp(name + n - 2, ".*") == 0;

    if (n == 0)
        return true;
    if (starts && ends)
        return false;
    name += starts ? 2 : *name == '.';
    n = strlen(name) - (ends ? 2 : 0);
    return n > 0 && *name != '.' && memchr(name, '*', n) == NULL && strstr(name, "..") == NULL;
}

/* Returns the name in the form for comparison; NULL after a report. */
static const char *normal_name(struct apply *apply, const char *text)
{
    char host[HOST_NAME_MAX + 1] = "", *name;

    if (strcmp(text, "$hostname") == 0 && gethostname(host, sizeof(host) - 1) == 0)
        text = host;
    name = apply_strdup(apply, text);
    for (char *c = name; c != NULL && *c != '\0' && *name != '~'; c++)
        *c = (char)tolower((unsigned char)*c);
    return name;
}

/* Compiles an expression, and defines the variables of named captures. */
static int set_name_regex(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    struct server_name *name)
{
    const struct conf_word *word = &directive->args[arg];
    char error[REGEX_ERROR_TEXT];

    if (word->text[1] == '\0')
        return set_bad_value(apply, directive, arg, "expected a regular expression after \"~\"");
    name->regex = regex_compile(apply->cycle->arena, word->text + 1, error);
    if (name->regex == NULL)
        return set_bad_value(apply, directive, arg, "%s", error);
    name->named = apply_alloc(apply, regex_names(name->regex) * sizeof(*name->named));
    return name->named != NULL ? set_define_captures(apply, word, name->regex, name->named) : -1;
}

static int add_server_name(
    struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    const struct conf_word *word = &directive->args[arg];
    struct server_name *name = apply_alloc(apply, sizeof(*name));

    if (name == NULL)
        return -1;
    if (word->text[0] == '~' && set_name_regex(apply, directive, arg, name) == -1)
        return -1;
    if (word->text[0] != '~' && !is_good_name(word->text))
        return set_bad_value(apply, directive, arg, EXPECTED);
    if (word->text[0] != '~' && strchr(word->text, '/') != NULL)
        report_warn(apply->report, word, "server name \"%s\" has suspicious symbols", word->text);
    name->name = normal_name(apply, word->text);
    if (name->name == NULL)
        return -1;
    name->word = word;
    STAILQ_INSERT_TAIL(&apply->scope->names, name, link);
    return 0;
}

static int server_name_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    int status = 0;

    (void)field;
    for (unsigned arg = 0; arg < directive->arg_n; arg++)
        if (add_server_name(apply, directive, arg) == -1)
            status = -1;
    return status;
}

/* ---- The servers of an address ---- */

/* Returns the first listen of the address, which stands for all. */
static struct listen_address *first_of(struct listen_address *listen)
{
    return listen->first != NULL ? listen->first : listen;
}

/* Whether clients of the address may ask for a server. */
static bool asks_for_name(const struct listen_address *first)
{
    const struct preread_values *preread = feature_values(first->chosen->scope, FEATURE_PREREAD);

    return first->ssl || preread->ssl_preread;
}

/* Warns of addresses whose clients a server never gets. */
static void warn_of_unreached(struct apply *apply, const struct scope *server)
{
    const struct conf_word *warned = NULL;
    struct listen_address *listen;
    char text[ADDRESS_TEXT];

    STAILQ_FOREACH (listen, &server->listens, link) {
        const struct listen_address *first = first_of(listen);
        bool asks = asks_for_name(first);

        if (first->chosen == listen || listen->word == warned ||
            (asks && !STAILQ_EMPTY(&server->names)))
            continue;
        warned = listen->word;
        report_warn(apply->report, listen->word,
            "this server gets no clients of %s: %s, and the default server in %s:%u takes all of "
            "them",
            address_format_zone(&listen->address, text),
            asks
                ? "it has no \"server_name\""
                : "a client asks for a name only where the address has \"ssl\", or \"ssl_preread\"",
            first->chosen->word->file->name, first->chosen->word->line);
    }
}

static bool has_expression(const struct scope *server)
{
    const struct server_name *name;

    STAILQ_FOREACH (name, &server->names, link)
        if (name->regex != NULL)
            return true;
    return false;
}

/* Adds a server of the address; false after a report. */
static bool add_named_server(struct apply *apply, struct server_names *names,
    struct binding *binding, const struct listen_address *listen)
{
    struct named_server *servers =
        apply_grow(apply, names->servers, names->n, sizeof(*names->servers));

    if (servers == NULL || binding == NULL)
        return false;
    names->servers = servers;
    servers[names->n++] = (struct named_server) { binding, listen };
    return true;
}

/* Begins the names of an address with its default server; NULL after a report. */
static struct server_names *begin_names(struct apply *apply, struct listen_address *first)
{
    struct server_names *names = apply_alloc(apply, sizeof(*names));

    assert(first->first == NULL && first->names == NULL && first->binding != NULL);
    if (names == NULL)
        return NULL;
    names->map.exact.kind = MAP_EXACT;
    names->map.end.kind = MAP_END;
    names->map.begin.kind = MAP_BEGIN;
    names->last = &names->map.regexes;
    if (!add_named_server(apply, names, first->binding, first->chosen))
        return NULL;
    first->names = names;
    return names;
}

/* Makes the binding of a further server, like the default server's; NULL after a report. */
static struct binding *make_binding(
    struct apply *apply, const struct listen_address *listen, const struct binding *default_binding)
{
    const struct server_name *name = STAILQ_FIRST(&listen->scope->names);
    struct binding *binding = apply_alloc(apply, sizeof(*binding));

    if (binding == NULL)
        return NULL;
    *binding = *default_binding;
    binding->server = listen->server;
    binding->chain = ports_next_chain(&apply->cycle->stream);
    binding->stats = listen_stats_make(apply, listen, name != NULL ? name->name : "");
    return binding;
}

/* Adds a key of a table; returns whether it was free. */
static bool add_name_key(
    struct apply *apply, struct map_table *table, const char *key, size_t n, uint32_t number)
{
    int added = map_table_add(table, key, n, number);

    if (added == -1)
        report_error(apply->report, NULL, "out of memory");
    return added != 0;
}

/* Gives a free name to a server; returns whether the name was free. */
static bool claim_name(
    struct apply *apply, struct server_names *names, const char *name, uint32_t number)
{
    struct map *map = &names->map;
    size_t n = strlen(name);

    if (*name == '*')
        return add_name_key(apply, &map->end, name + 1, n - 1, number);
    if (n > 0 && name[n - 1] == '*')
        return add_name_key(apply, &map->begin, name, n - 1, number);
    if (*name == '.') { /* the name itself, and all names below */
        bool free = add_name_key(apply, &map->end, name, n, number);

        return add_name_key(apply, &map->exact, name + 1, n - 1, number) && free;
    }
    return add_name_key(apply, &map->exact, name, n, number);
}

static void add_name_regex(struct apply *apply, struct server_names *names,
    const struct server_name *name, uint32_t number)
{
    struct map_regex *regex = apply_alloc(apply, sizeof(*regex));

    if (regex == NULL)
        return;
    *regex = (struct map_regex) { .regex = name->regex, .named = name->named, .text = number };
    *names->last = regex;
    names->last = &regex->next;
}

/* Adds a server of an address, with its names. */
static void add_server_of(
    struct apply *apply, struct server_names *names, const struct listen_address *listen)
{
    struct binding *default_binding = names->servers[0].binding;
    bool is_default = listen->server == default_binding->server;
    uint32_t number = is_default ? 0 : names->n;
    const struct server_name *name;
    char text[ADDRESS_TEXT];

    if (!is_default &&
        !add_named_server(apply, names, make_binding(apply, listen, default_binding), listen))
        return;
    STAILQ_FOREACH (name, &listen->scope->names, link)
        if (name->regex != NULL) /* the first that matches has a client */
            add_name_regex(apply, names, name, number);
        else if (!claim_name(apply, names, name->name, number))
            report_warn(apply->report, name->word, "conflicting server name \"%s\" on %s, ignored",
                name->name, address_format_zone(&listen->address, text));
}

/* Ends the names of an address, and lets them choose where clients ask for one. */
static void finish_names(struct apply *apply, struct listen_address *first)
{
    struct server_names *names = first->names;
    struct map *map = &names->map;
    struct arena *arena = apply->cycle->arena;
    bool failed;

    assert(names->n > 0 && names->servers[0].binding == first->binding);
    assert(first->binding->server == first->chosen->server);
    failed = map_table_finish(&map->exact, arena) == -1;

    failed |= map_table_finish(&map->end, arena) == -1;
    failed |= map_table_finish(&map->begin, arena) == -1;
    if (failed)
        report_error(apply->report, NULL, "out of memory");
    if (!asks_for_name(first))
        return;
    first->binding->names = names;
    for (unsigned i = 1; i < names->n; i++)
        if (names->servers[i]
                .binding->server->connects) /* a slot is reserved before the name is known */
            first->binding->server->connects = true;
}

static void server_name_bind(struct apply *apply, struct scope *stream)
{
    struct scope *server;
    struct listen_address *listen;

    if (apply->report->error_n > 0)
        return;
    STAILQ_FOREACH (server, &stream->servers, link)
        warn_of_unreached(apply, server);
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link) {
            struct listen_address *first = first_of(listen);
            struct server_names *names = first->names;

            if (first->last == first && !has_expression(server))
                continue;
            if (names == NULL && (names = begin_names(apply, first)) == NULL)
                continue;
            add_server_of(apply, names, listen);
        }
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (listen->names != NULL)
                finish_names(apply, listen);
}

static const struct setting rows[] = {
    { "server_name", CONTEXT_SERVER, 1, UCHAR_MAX, .set = server_name_set, .repeats = true,
        .unset = "none" },
    { .name = NULL },
};

const struct feature server_name_feature = {
    .name = "server_name",
    .rows = rows,
    .bind = server_name_bind,
};
