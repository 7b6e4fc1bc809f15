/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text as the block of a `map`: it is refused, or the tables find the results of a walk through
 * all keys. Regular expressions are compiled and not run. */
#include "features/map/map.h"
#include "fuzz/block.h"
#include "fuzz/fuzz.h"
#include "settings/blocks.h"

#include <string.h>
#include <strings.h>

/* The rank of a key's match: its bytes, and more for the better kinds; 0: no match. */
#define EXACT 3000000
#define END 2000000
#define BEGIN 1000000

static bool is_text(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char x = a[i], y = b[i];

        if (x >= 'A' && x <= 'Z')
            x = (char)(x - 'A' + 'a');
        if (y >= 'A' && y <= 'Z')
            y = (char)(y - 'A' + 'a');
        if (x != y)
            return false;
    }
    return true;
}

static size_t fit_end(const char *key, const char *p, size_t n)
{
    size_t key_n = strlen(key);

    return key_n <= n && is_text(key, p + n - key_n, key_n) ? END + key_n : 0;
}

static size_t fit(const char *key, bool names, const char *p, size_t n)
{
    size_t key_n;

    key += key[0] == '\\';
    key_n = strlen(key);
    if (names && key_n > 2 && key[key_n - 1] == '*')
        return key_n - 1 <= n && is_text(key, p, key_n - 1) ? BEGIN + key_n : 0;
    if (names && key[0] == '*')
        return fit_end(key + 1, p, n);
    if (names && key[0] == '.' && key_n > 1 && fit_end(key, p, n) > 0)
        return fit_end(key, p, n);
    if (names && key[0] == '.' && key_n > 1) {
        key++;
        key_n--;
    }
    return key_n == n && is_text(key, p, n) ? EXACT : 0;
}

/* Returns the value by a walk through all keys; NULL: no key fits. */
static const char *walk(const struct conf_block *entries, const char *p, size_t n)
{
    const struct conf_directive *entry;
    const char *found = NULL;
    size_t best = 0;
    bool names = false;

    STAILQ_FOREACH (entry, &entries->directives, link) {
        const char *key = entry->name.text;

        if (strcmp(key, "hostnames") == 0) {
            names = true;
        } else if (strcmp(key, "volatile") != 0 && strcmp(key, "default") != 0 && *key != '~' &&
                   fit(key, names, p, n) > best) {
            best = fit(key, names, p, n);
            found = entry->args[0].text;
        }
    }
    return found;
}

static void look_up(const struct block *block, const char *p, size_t n)
{
    const struct map *map = block->variable->arg;
    const char *expected = walk(block->directive->block, p, n);
    uint32_t text = map_find(map, p, n);

    require((text == MAP_NONE) == (expected == NULL), "both find a key, or none");
    if (expected != NULL && map->texts[text].template == NULL)
        require(map->texts[text].n == strlen(expected) &&
                    memcmp(map->texts[text].p, expected, strlen(expected)) == 0,
            "both find the same key");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct conf_directive *entry;
    struct block block;
    const char *p;
    size_t n;

    block_read(&block, "map $a $v", map_feature.rows[0].set, data, size);
    if (block.variable != NULL) {
        while ((p = block_next(&block, &n)) != NULL)
            look_up(&block, p, n);
        STAILQ_FOREACH (entry, &block.directive->block->directives, link)
            look_up(&block, entry->name.text, strlen(entry->name.text));
    }
    block_free(&block);
    return 0;
}
