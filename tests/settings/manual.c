/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads defaults in the source of forkbeard.conf(5), where two directives of a name have an entry
 * each. */
#include "settings/manual.h"

#include "settings/setting.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

/* Whether the line, of contexts in the manual, begins with the first of these. */
static bool names_context(const char *line, unsigned at)
{
    static const char *const names[] = { "main", "events", "stream", "server", "upstream" };
    const char *first = names[__builtin_ctz(at)];

    return strncmp(line, first, strlen(first)) == 0 ||
           (at == CONTEXT_ANY && strcmp(line, "any") == 0);
}

/* Reads the manual up to the next default of a directive, and to its contexts. */
static bool read_default(FILE *file, const char *name, char initial[256], char contexts[64])
{
    char item[80], line[512] = "";
    bool within = false, next = false, found = false, last = false;
    size_t length = (size_t)snprintf(item, sizeof(item), ".It Ic %s", name);

    while (!last && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (next && !found)
            strcpy(initial, line);
        last = next && found;
        found = found || next;
        if (strncmp(line, ".It Ic ", 7) == 0)
            within = strncmp(line, item, length) == 0 && strchr(" ", line[length]) != NULL;
        next = within && strcmp(line, found ? ".It Context:" : ".It Default:") == 0;
    }
    snprintf(contexts, 64, "%.63s", line);
    return last;
}

const char *manual_default(const char *name, unsigned at, char initial[256])
{
    const char *srcdir = getenv("srcdir");
    char path[512], contexts[64] = "";
    bool found;
    FILE *file;

    snprintf(path, sizeof(path), "%s/man/forkbeard.conf.5.in", srcdir != NULL ? srcdir : ".");
    file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    do
        found = read_default(file, name, initial, contexts);
    while (found && !names_context(contexts, at));
    fclose(file);
    return found ? initial : NULL;
}
