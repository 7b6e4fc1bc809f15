/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints entries of forkbeard.conf(5), which the build has made text of. No configuration is read,
 * and directives of modules are unknown. */
#include "cli/explain.h"

#include "base/compiler.h"
#include "conf/report.h"
#include "settings/nginx_only.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name, *text;
};

static const struct entry entries[] = {
#include "cli/entries.def"
};

/* Whether an earlier entry has the same name, as directives of two blocks may have. */
static bool is_second(size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(entries[k].name, entries[i].name) == 0)
            return true;
    return false;
}

/* Appends `"NAME"` to a list of names. */
static void append_entry_name(char *list, size_t size, const char *name)
{
    size_t n = strlen(list);

    snprintf(list + n, size - n, "%s\"%s\"", n > 0 ? ", " : "", name);
}

/* Reports an unknown name, with the nearest name, or else all names containing the unknown name. */
static void report_unknown_entry(const char *name, struct log *log)
{
    bool no_effect = nginx_no_effect(name) != 0;
    struct nearest near = { .word = name };
    char list[1024] = "";

    if (no_effect || nginx_only(name)) {
        log_write(log, LEVEL_EMERG, 0, "\"%s\" directive of nginx %s%s", name,
            no_effect ? "has no effect here" : "is not supported",
            no_effect ? "" : nginx_lacking(name));
        return;
    }
    for (size_t i = 0; i < countof(entries); i++)
        nearest_try(&near, entries[i].name);
    if (near.found != NULL)
        append_entry_name(list, sizeof(list), near.found);
    for (size_t i = 0; near.found == NULL && *name != '\0' && i < countof(entries); i++)
        if (strstr(entries[i].name, name) != NULL && !is_second(i))
            append_entry_name(list, sizeof(list), entries[i].name);
    log_write(log, LEVEL_EMERG, 0, "unknown directive \"%s\"%s%s%s", name,
        *list != '\0' ? ", did you mean " : "", list,
        *list != '\0' ? "?" : ": \"forkbeard explain\" lists all but the modules' directives");
}

int cli_explain(const struct cmdline *cmdline, struct log *log)
{
    const char *name = cmdline->argument;
    bool found = name == NULL;

    for (size_t i = 0; i < countof(entries); i++) {
        if (name == NULL && !is_second(i))
            puts(entries[i].name);
        else if (name != NULL && strcmp(entries[i].name, name) == 0) {
            printf("%s%s", found ? "\n" : "", entries[i].text);
            found = true;
        }
    }
    if (!found)
        report_unknown_entry(name, log);
    return found && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
