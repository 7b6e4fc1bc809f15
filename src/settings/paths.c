/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects paths while directives are applied, and checks all at the end, to show all mistakes.
 * Users other than root get only a warning about a lack of rights. */
#include "settings/paths.h"

#include "base/check.h"
#include "settings/apply.h"

#include <string.h>
#include <unistd.h>

void paths_add(struct apply *apply, const char *name, enum path_use use, const char *path,
    const struct conf_word *word)
{
    struct path_entry *entry;

    CHECK_KIND(apply, APPLY_KIND);
    if (path[0] != '/' || (entry = apply_alloc(apply, sizeof(*entry))) == NULL)
        return;
    *entry = (struct path_entry) { .name = name, .use = use, .path = path, .word = word };
    STAILQ_INSERT_TAIL(&apply->paths, entry, link);
}

void paths_add_default(struct apply *apply, const char *name, enum path_use use, const char *path)
{
    if (!apply->cycle->source.partial) /* a further path may stand in an unread file */
        paths_add(apply, name, use, path, NULL);
}

/* Lines of several logs may go to one file, and ports.c compares listens of equal text. */
static bool is_clash(const struct path_entry *a, const struct path_entry *b)
{
    if (a->use == PATH_DIRECTORY || b->use == PATH_DIRECTORY)
        return false;
    if (a->use == PATH_LOG && b->use == PATH_LOG)
        return false;
    if (a->use == b->use && a->use != PATH_CONTROL && strcmp(a->path, b->path) == 0)
        return false;
    return path_is_same(a->path, b->path);
}

/* Reports a taken path at the later directive, with the place of the earlier. */
static void check_clash(
    struct apply *apply, const struct path_entry *first, const struct path_entry *later)
{
    const struct path_entry *at = later->word != NULL ? later : first;
    const struct path_entry *other = at == later ? first : later;

    if (!is_clash(first, later))
        return;
    if (other->word == NULL)
        report_error(apply->report, at->word, "\"%s\" has the path \"%s\", the default of \"%s\"",
            at->name, at->path, other->name);
    else
        report_error(apply->report, at->word,
            "\"%s\" has the path \"%s\", already the path of \"%s\" in %s:%u", at->name, at->path,
            other->name, other->word->file->name, other->word->line);
}

RB_HEAD(path_names, path_entry);

static int compare_path_names(const struct path_entry *a, const struct path_entry *b)
{
    return strcmp(strrchr(a->path, '/'), strrchr(b->path, '/'));
}

RB_GENERATE_INTERNAL(
    path_names, path_entry, node, compare_path_names, static __attribute__((unused)))

/* Chains the paths with the same last name: there may be tens of thousands of paths. */
static void chain_alike(struct apply *apply)
{
    struct path_names names = RB_INITIALIZER(&names);
    struct path_entry *entry, *first;

    STAILQ_FOREACH (entry, &apply->paths, link) {
        first = RB_INSERT(path_names, &names, entry);
        if (first == NULL)
            first = entry->since = entry;
        else
            first->last->alike = entry;
        first->last = entry;
        while (entry->use != PATH_LISTEN && first->since != entry) {
            first->since->other = entry;
            first->since = first->since->alike;
        }
    }
}

/* Returns the next path to compare with `entry`: listeners are not compared with listeners. */
static const struct path_entry *next_to(
    const struct path_entry *entry, const struct path_entry *later)
{
    return entry->use == PATH_LISTEN ? later->other : later->alike;
}

static void check_clashes(struct apply *apply)
{
    const struct path_entry *first, *later;

    chain_alike(apply);
    STAILQ_FOREACH (first, &apply->paths, link)
        for (later = next_to(first, first); later != NULL; later = next_to(first, later))
            check_clash(apply, first, later);
}

/* Reports the obstacles to a path. */
static void check_path(struct apply *apply, const struct path_entry *entry)
{
    const char *by_default = entry->word == NULL ? ", the default" : "";
    struct path_fault fault;

    if (path_check(entry->use, entry->path, &fault))
        return;
    if (fault.rights && geteuid() != 0)
        report_warn(apply->report, entry->word,
            "\"%s\" cannot be \"%s\"%s, unless root starts the daemon: %s", entry->name,
            entry->path, by_default, fault.text);
    else
        report_error(apply->report, entry->word, "\"%s\" cannot be \"%s\"%s: %s", entry->name,
            entry->path, by_default, fault.text);
}

/* A single process has no control sockets. */
static void drop_control(struct apply *apply)
{
    struct path_entry *entry, *next;

    STAILQ_FOREACH_SAFE (entry, &apply->paths, link, next)
        if (entry->use == PATH_CONTROL)
            STAILQ_REMOVE(&apply->paths, entry, path_entry, link);
}

void paths_check(struct apply *apply)
{
    const struct path_entry *entry;

    CHECK_KIND(apply, APPLY_KIND);
    if (apply->report->error_n == 0 && !apply->cycle->core.master_process)
        drop_control(apply);
    check_clashes(apply);
    if (!apply->options->testing)
        return;
    STAILQ_FOREACH (entry, &apply->paths, link)
        check_path(apply, entry);
}
