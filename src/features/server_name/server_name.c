/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of servers: their forms, and the server with a name at an address. */
#include "features/server_name/server_name.h"

#include "features/features.h"
#include "features/set/set.h"
#include "settings/listen.h"
#include "settings/set_value.h"
#include "text/regex.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define EXPECTED "expected a name, \"*.name\", \".name\", \"name.*\" or \"~regular expression\""

/* An address and a name, claimed by the server of a listen. */
struct claim {
    RB_ENTRY(claim) node;
    const struct listen_address *at;
    const char *name;
};

static int compare_claims(const struct claim *a, const struct claim *b)
{
    int result = address_compare(&a->at->address, &b->at->address);

    return result != 0 ? result : strcmp(a->name, b->name);
}

RB_HEAD(claims, claim);
RB_GENERATE_INTERNAL(claims, claim, node, compare_claims, static __attribute__((unused)))

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

/* Checks an expression, and defines the variables of named captures, without values here. */
static int check_regex(struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    const char *text = directive->args[arg].text + 1;
    const struct variable *named[REGEX_NAMES_MAX];
    char error[REGEX_ERROR_TEXT];
    const struct regex *regex;

    if (*text == '\0')
        return set_bad_value(apply, directive, arg, "expected a regular expression after \"~\"");
    regex = regex_compile(apply->cycle->arena, text, error);
    if (regex == NULL)
        return set_bad_value(apply, directive, arg, "%s", error);
    return set_define_captures(apply, &directive->args[arg], regex, named);
}

static int add_server_name(
    struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    const struct conf_word *word = &directive->args[arg];
    struct server_name *name;

    if (word->text[0] == '~' && check_regex(apply, directive, arg) == -1)
        return -1;
    if (word->text[0] != '~' && !is_good_name(word->text))
        return set_bad_value(apply, directive, arg, EXPECTED);
    if (word->text[0] != '~' && strchr(word->text, '/') != NULL)
        report_warn(apply->report, word, "server name \"%s\" has suspicious symbols", word->text);
    name = apply_alloc(apply, sizeof(*name));
    if (name == NULL || (name->name = normal_name(apply, word->text)) == NULL)
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

/* Returns false where the name is taken at the address. */
static bool add_claim(struct apply *apply, struct claims *claims,
    const struct listen_address *first, const char *name)
{
    struct claim *claim = apply_alloc(apply, sizeof(*claim));

    if (claim == NULL)
        return true;
    claim->at = first;
    claim->name = name;
    return RB_INSERT(claims, claims, claim) == NULL;
}

static void claim_name(struct apply *apply, struct claims *claims,
    const struct listen_address *first, const char *name, const struct conf_word *word)
{
    char text[ADDRESS_TEXT];
    bool free = add_claim(apply, claims, first, name);

    if (*name == '.') { /* stands for the name itself, and for all names below */
        const char *below = apply_taken(apply, arena_printf(apply->cycle->arena, "*%s", name));

        free = (below == NULL || add_claim(apply, claims, first, below)) && free;
        free = add_claim(apply, claims, first, name + 1) && free;
    }
    if (!free && word != NULL)
        report_warn(apply->report, word, "conflicting server name \"%s\" on %s, ignored", name,
            address_format_zone(&first->address, text));
}

/* Claims the names of the server of `listen` at the address; warns of a name claimed already. */
static void claim_names(struct apply *apply, struct claims *claims,
    const struct listen_address *first, const struct listen_address *listen, bool quiet)
{
    const struct server_name *name;

    assert(address_equal(&first->address, &listen->address));
    STAILQ_FOREACH (name, &listen->scope->names, link)
        if (*name->name != '~') /* the first that matches would have a client */
            claim_name(apply, claims, first, name->name, quiet ? NULL : name->word);
}

/* Looks for a name shared by two servers at one address. */
static void server_name_bind(struct apply *apply, struct scope *stream)
{
    struct claims claims = RB_INITIALIZER(&claims);
    const struct listen_address *listen, *claimed = NULL;
    const struct scope *server;

    if (apply->report->error_n > 0)
        return;
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link) {
            if (listen->first == NULL)
                continue;
            if (listen->first != claimed)
                claim_names(apply, &claims, listen->first, listen->first, true);
            claimed = listen->first;
            claim_names(apply, &claims, listen->first, listen, false);
        }
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
