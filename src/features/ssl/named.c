/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of certificates and keys, and what becomes of those with variables: names in a session, and
 * directories for keepers.
 *
 * Responsible for the fixed part of a value: beneath the directory with which a value begins, or
 * else the directory of the configuration, keepers may open files. */
#include "features/ssl/ssl.h"
#include "settings/parameter.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <limits.h>
#include <string.h>

#define PATH_EXPECTED "expected the path of a file"

/* Refuses what nginx takes instead of a path. */
static int check_pair_path(struct apply *apply, const struct conf_directive *directive)
{
    const char *text = directive->args[0].text;

    if (text[0] == '\0')
        return set_bad_value(apply, directive, 0, PATH_EXPECTED);
    if (strncmp(text, "engine:", 7) == 0 || strncmp(text, "store:", 6) == 0)
        return set_bad_value(apply, directive, 0,
            "keys of engines and stores of OpenSSL are not supported, " PATH_EXPECTED);
    if (strncmp(text, "data:", 5) == 0)
        return set_bad_value(apply, directive, 0,
            "certificates and keys in the configuration itself are not supported, " PATH_EXPECTED);
    return 0;
}

int ssl_read_path(
    struct apply *apply, const struct conf_directive *directive, struct ssl_path *path)
{
    const struct conf_word *word = &directive->args[0];
    const struct template *whole;
    struct value text;
    size_t n;

    *path = (struct ssl_path) { .word = word };
    if (check_pair_path(apply, directive) == -1)
        return -1;
    if (strchr(word->text, '$') == NULL)
        return 0;
    whole = template_of(apply, word, word->text);
    if (whole == NULL)
        return -1;
    if (template_is_constant(whole, &text))
        return 0;
    text = whole->parts[0].text;
    for (n = text.state == VALUE_FOUND ? text.n : 0; n > 0 && word->text[n - 1] != '/';)
        n--;
    path->directory_n = n;
    path->names = template_of(apply, word, word->text + n);
    return path->names != NULL ? 0 : -1;
}

const char *ssl_directory(struct apply *apply, const struct conf_word *word, size_t n)
{
    struct tls_profiles *profiles = &apply->cycle->tls;
    const char *text = apply_taken(apply, arena_strndup(apply->cycle->arena, word->text, n));
    const char **list;
    char *path;

    text = text != NULL ? apply_conf_path(apply, text) : NULL;
    path = text != NULL ? apply_strdup(apply, text) : NULL;
    if (path == NULL)
        return NULL;
    for (n = strlen(path); n > 1 && path[n - 1] == '/';)
        path[--n] = '\0';
    for (unsigned i = 0; i < profiles->directory_n; i++)
        if (strcmp(profiles->directories[i], path) == 0)
            return profiles->directories[i];
    list = apply_grow(apply, profiles->directories, profiles->directory_n, sizeof(*list));
    if (list == NULL)
        return NULL;
    if (n == 1)
        report_warn(apply->report, word,
            "\"%s\" begins with no directory but \"/\", so keeper processes may read all files of "
            "their user",
            word->text);
    profiles->directories = list;
    return profiles->directories[profiles->directory_n++] = path;
}

/* Fills a path of a pair in, which may have no variables itself. */
static void fill_path(
    struct apply *apply, struct tls_named *named, unsigned i, const struct ssl_path *path)
{
    const char *slash = strrchr(path->word->text, '/');
    size_t n = path->names != NULL ? path->directory_n
               : slash != NULL     ? (size_t)(slash + 1 - path->word->text)
                                   : 0;

    named->names[i] =
        path->names != NULL ? path->names : template_of(apply, path->word, path->word->text + n);
    named->directories[i] = ssl_directory(apply, path->word, n);
}

bool ssl_is_named(const struct ssl_path *certificate, const struct ssl_path *key)
{
    return certificate->names != NULL || key->names != NULL;
}

void ssl_make_named(struct apply *apply, struct tls_named *named, unsigned pair_n)
{
    static const char asked[] = "ssl_server_name";

    if (pair_n == 0)
        return;
    named->names = apply_alloc(apply, 2 * pair_n * sizeof(*named->names));
    named->directories = apply_alloc(apply, 2 * pair_n * sizeof(*named->directories));
    named->asked = apply_taken(apply,
        variables_add(apply->cycle->stream.variables, apply->cycle->arena, asked, strlen(asked)));
}

void ssl_add_named(struct apply *apply, struct tls_named *named, const struct ssl_path *certificate,
    const struct ssl_path *key)
{
    if (named->names == NULL || named->directories == NULL)
        return;
    fill_path(apply, named, named->n, certificate);
    fill_path(apply, named, named->n + 1, key);
    named->n += 2;
}

/* ---- The cache ---- */

#define TIME_MOST (INT64_C(86400000) * 365)
#define TIME_EXPECTED "a time of at most 1y"
#define CACHE_EXPECTED "\"off\", or max=NUMBER inactive=TIME valid=TIME"

static const struct parameter pair_parameters[] = {
#define FIELD(member) offsetof(struct tls_cache, member)
    { "inactive=", PARAMETER_MSEC, FIELD(inactive), 0, TIME_MOST, TIME_EXPECTED },
    { "max=", PARAMETER_COUNT, FIELD(max), 1, INT_MAX, "a number of at least 1" },
    { "valid=", PARAMETER_MSEC, FIELD(valid), 0, TIME_MOST, TIME_EXPECTED },
    { .name = NULL },
#undef FIELD
};

int ssl_set_certificate_cache(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct tls_cache *cache;

    *(const struct tls_cache **)field = NULL;
    if (strcmp(directive->args[0].text, "off") == 0)
        return directive->arg_n == 1
                   ? 0
                   : set_bad_value(apply, directive, 1, "nothing stands behind \"off\"");
    cache = apply_alloc(apply, sizeof(*cache));
    if (cache == NULL)
        return -1;
    *cache = (struct tls_cache) { .inactive = 10000, .valid = 60000 };
    for (unsigned i = 0; i < directive->arg_n; i++)
        if (parameter_set(apply, directive, i, pair_parameters, CACHE_EXPECTED, cache) == -1)
            return -1;
    if (cache->max == 0)
        return report_error(apply->report, &directive->name,
            "\"%s\" must have the \"max\" parameter", directive->name.text);
    cache->index = apply->cycle->tls.cache_n++;
    *(const struct tls_cache **)field = cache;
    return 0;
}
