/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks a text up in a map. */
#include "stream/map.h"

#include "stream/session_conn.h"

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
    if (text == MAP_NONE)
        text = map->otherwise;
    return map_text_value(conn, &map->texts[text], value);
}
