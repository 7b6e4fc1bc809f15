/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks a text up in a map, and sets the captures of a regular expression. A failing expression
 * ends the search, and the value is the default for texts without a match, as in nginx. */
#include "features/map/map.h"

#include "session/record.h"

#include <assert.h>

uint32_t map_find(const struct map *map, const char *p, size_t n)
{
    uint32_t text = map_table_find(&map->exact, p, n);

    assert(map->exact.kind == MAP_EXACT && map->end.kind == MAP_END);
    assert(map->begin.kind == MAP_BEGIN);
    if (text == MAP_NONE)
        text = map_table_find(&map->end, p, n);
    return text != MAP_NONE ? text : map_table_find(&map->begin, p, n);
}

/* Copies the captures for the session and sets the variables of named ones; -1 without memory. */
static int keep_captures(struct fb_conn *conn, const struct map_regex *regex,
    const struct captures *captures, const struct value *named)
{
    struct captures *kept = session_keep(conn, sizeof(*kept));

    assert(regex_names(regex->regex) == 0 || regex->named != NULL);
    if (kept == NULL)
        return -1;
    *kept = *captures;
    captures_set(conn, kept);
    for (unsigned i = 0; i < regex_names(regex->regex); i++)
        variable_set(conn, regex->named[i], named[i]);
    return 0;
}

/* Finds the first matching expression; *text is its text, or unchanged. -1 without memory. */
static int match_regexes(
    const struct map *map, struct fb_conn *conn, const char *p, size_t n, uint32_t *text)
{
    struct value named[REGEX_NAMES_MAX];
    struct captures captures;

    for (const struct map_regex *regex = map->regexes; regex != NULL; regex = regex->next) {
        int matched = regex_match(regex->regex, conn, p, n, &captures, named);

        assert(matched >= -1 && matched <= 1);
        if (matched == 0)
            continue;
        if (matched == -1)
            return 0;
        *text = regex->text;
        return keep_captures(conn, regex, &captures, named);
    }
    return 0;
}

int map_get(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct map *map = variable->arg;
    struct value source;
    uint32_t text;
    size_t n;

    assert(map != NULL && map->source != NULL && map->texts != NULL);
    if (template_value(conn, map->source, &source) == -1)
        return -1;
    n = source.n;
    if (map->hostnames && n > 0 && source.p[n - 1] == '.')
        n--;
    text = map_find(map, source.p, n);
    if (text == MAP_NONE) {
        text = map->otherwise;
        if (n > 0 && match_regexes(map, conn, source.p, n, &text) == -1)
            return -1;
    }
    return map_text_value(conn, &map->texts[text], value);
}
