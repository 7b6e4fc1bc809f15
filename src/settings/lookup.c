/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks name services, or takes the answers noted by a configuration check. While a service is asked
 * the check's progress names the service, for the line about a slow check. Numeric addresses need
 * no service and are not noted. */
#include "settings/lookup.h"

#include "net/address_parse.h"
#include "settings/answers.h"
#include "settings/set_value.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define NOT_CHECKED "the configuration was changed after it had been checked, try again"
#define NO_ROOM "there is no memory for what the name service has answered"

struct identity {
    uid_t uid;
    gid_t gid;
    gid_t groups[NGROUPS_MAX];
};

struct listen_addresses {
    in_port_t last;
    struct address addresses[LOOKUP_ADDRESSES_MAX];
};

/* Whether only the notes of the check count, and no service is asked. */
static bool is_answered(const struct apply *apply)
{
    return apply->options->answers != NULL && apply->options->progress == NULL;
}

static void begin_question(
    const struct apply *apply, const struct conf_word *word, const char *what, const char *name)
{
    struct check_progress *progress = apply->options->progress;

    if (progress != NULL && !progress->foreign)
        check_progress_enter(
            progress, word, "while it was asked", "the name service for %s \"%s\"", what, name);
}

/* Ends a question of the daemon, not of a module's code. */
static void end_question(const struct apply *apply, bool was_foreign)
{
    if (!was_foreign)
        check_progress_leave(apply->options->progress);
}

static bool is_foreign(const struct apply *apply)
{
    return apply->options->progress != NULL && apply->options->progress->foreign;
}

static const char *note_answer(
    struct apply *apply, enum answers_kind kind, const char *question, const void *answer, size_t n)
{
    if (apply->options->answers == NULL ||
        answers_add(apply->options->answers, kind, question, answer, n))
        return NULL;
    return NO_ROOM;
}

/* Asks for the user's numbers; *n is the number of groups. */
static const char *ask_user(
    const char *name, const char *group_name, struct identity *identity, int *n, bool *of_group)
{
    const struct passwd *user = getpwnam(name);
    const struct group *group;

    if (user == NULL)
        return "there is no such user";
    identity->uid = user->pw_uid;
    identity->gid = user->pw_gid;
    group = getgrnam(group_name != NULL ? group_name : name);
    if (group != NULL)
        identity->gid = group->gr_gid;
    else if (group_name != NULL) {
        *of_group = true;
        return "there is no such group";
    }
    *n = NGROUPS_MAX; /* initgroups() leaves out groups beyond that, too */
    getgrouplist(name, identity->gid, identity->groups, n);
    if (*n > NGROUPS_MAX)
        *n = NGROUPS_MAX;
    return NULL;
}

static const char *keep_user(
    struct apply *apply, const char *name, const struct identity *identity, int n)
{
    struct core_settings *core = &apply->cycle->core;
    size_t size = (size_t)n * sizeof(gid_t);
    gid_t *groups = apply_alloc(apply, size > 0 ? size : 1);

    if (groups == NULL)
        return NO_ROOM;
    memcpy(groups, identity->groups, size);
    core->user = name;
    core->uid = identity->uid;
    core->gid = identity->gid;
    core->groups = groups;
    core->group_n = (unsigned)n;
    return NULL;
}

/* Finds the user's numbers among the answers, or asks the service. */
static const char *find_user(struct apply *apply, const struct conf_word *word, const char *user,
    const char *group, struct identity *identity, int *n, bool *of_group)
{
    const size_t head = offsetof(struct identity, groups);
    bool foreign = is_foreign(apply);
    char question[LINE_MAX];
    const char *wrong;
    long size;

    /* a name has no ":" */
    snprintf(question, sizeof(question), "%s:%s", user, group != NULL ? group : "");
    if (is_answered(apply)) {
        size = answers_find(
            apply->options->answers, ANSWERS_USER, question, identity, sizeof(*identity));
        if (size < (long)head)
            return NOT_CHECKED;
        *n = (int)(((size_t)size - head) / sizeof(gid_t));
        return NULL;
    }
    begin_question(apply, word, "user", user);
    wrong = ask_user(user, group, identity, n, of_group);
    end_question(apply, foreign);
    if (wrong != NULL)
        return wrong;
    return note_answer(apply, ANSWERS_USER, question, identity, head + (size_t)*n * sizeof(gid_t));
}

const char *lookup_user(struct apply *apply, const struct conf_word *word, const char *user,
    const char *group, bool *of_group)
{
    struct identity *identity = malloc(sizeof(*identity));
    const char *wrong;
    int n = 0;

    *of_group = false;
    if (identity == NULL)
        return NO_ROOM;
    wrong = find_user(apply, word, user, group, identity, &n, of_group);
    if (wrong == NULL)
        wrong = keep_user(apply, user, identity, n);
    free(identity);
    return wrong;
}

bool lookup_has_user(
    struct apply *apply, const struct conf_word *word, const char *user, const char *group)
{
    struct identity *identity = malloc(sizeof(*identity));
    bool has, of_group;
    int n = 0;

    has = identity == NULL || find_user(apply, word, user, group, identity, &n, &of_group) == NULL;
    free(identity);
    return has;
}

const char *lookup_listen(struct apply *apply, const struct conf_word *word,
    struct address addresses[LOOKUP_ADDRESSES_MAX], unsigned *n, in_port_t *last)
{
    const size_t head = offsetof(struct listen_addresses, addresses);
    struct listen_addresses noted = { .last = 0 };
    bool named = address_has_name(word->text), foreign = is_foreign(apply);
    const char *wrong;
    long size;

    if (named && is_answered(apply)) {
        size = answers_find(
            apply->options->answers, ANSWERS_LISTEN, word->text, &noted, sizeof(noted));
        if (size < (long)head)
            return NOT_CHECKED;
        *last = noted.last;
        *n = (unsigned)(((size_t)size - head) / sizeof(noted.addresses[0]));
        memcpy(addresses, noted.addresses, *n * sizeof(noted.addresses[0]));
        return NULL;
    }
    if (named)
        begin_question(apply, word, "host", word->text);
    wrong = address_parse_listen(word->text, addresses, LOOKUP_ADDRESSES_MAX, n, last);
    if (named)
        end_question(apply, foreign);
    if (!named || wrong != NULL)
        return wrong;
    noted.last = *last;
    memcpy(noted.addresses, addresses, *n * sizeof(noted.addresses[0]));
    return note_answer(
        apply, ANSWERS_LISTEN, word->text, &noted, head + *n * sizeof(noted.addresses[0]));
}

const char *lookup_host(struct apply *apply, const char *text, in_port_t port, struct address *out)
{
    bool named = address_has_name(text), foreign = is_foreign(apply);
    const char *wrong;

    if (named && is_answered(apply))
        return answers_find(apply->options->answers, ANSWERS_HOST, text, out, sizeof(*out)) ==
                       (long)sizeof(*out)
                   ? NULL
                   : NOT_CHECKED;
    if (named)
        begin_question(apply, NULL, "host", text);
    wrong = address_parse_host(text, port, out);
    if (named)
        end_question(apply, foreign);
    if (!named || wrong != NULL)
        return wrong;
    return note_answer(apply, ANSWERS_HOST, text, out, sizeof(*out));
}

const char *lookup_target(struct apply *apply, const char *text, struct fb_target *out)
{
    bool named = address_has_name(text), foreign = is_foreign(apply);
    const char *wrong;

    if (named && is_answered(apply))
        return answers_find(apply->options->answers, ANSWERS_TARGET, text, out, sizeof(*out)) ==
                       (long)sizeof(*out)
                   ? NULL
                   : NOT_CHECKED;
    if (named)
        begin_question(apply, NULL, "host", text);
    wrong = target_parse(text, true, out);
    if (named)
        end_question(apply, foreign);
    if (!named || wrong != NULL)
        return wrong;
    return note_answer(apply, ANSWERS_TARGET, text, out, sizeof(*out));
}

/* Finds a name's addresses among the answers, or asks the service. */
static const char *find_addresses(struct apply *apply, const struct conf_word *word,
    struct address addresses[LOOKUP_ADDRESSES_MAX], unsigned *n)
{
    const size_t size = LOOKUP_ADDRESSES_MAX * sizeof(*addresses);
    bool foreign = is_foreign(apply);
    const char *wrong;
    long found;

    if (is_answered(apply)) {
        found = answers_find(apply->options->answers, ANSWERS_CLIENTS, word->text, addresses, size);
        *n = found > 0 ? (unsigned)((size_t)found / sizeof(*addresses)) : 0;
        return *n > 0 ? NULL : NOT_CHECKED;
    }
    begin_question(apply, word, "host", word->text);
    wrong = address_resolve(word->text, addresses, LOOKUP_ADDRESSES_MAX, n);
    end_question(apply, foreign);
    if (wrong != NULL)
        return wrong;
    return note_answer(apply, ANSWERS_CLIENTS, word->text, addresses, *n * sizeof(*addresses));
}

/* Returns NULL, or the text of a mistake in the word. */
static const char *find_clients(struct apply *apply, const struct conf_word *word,
    struct address_block blocks[LOOKUP_ADDRESSES_MAX], unsigned *n)
{
    struct address addresses[LOOKUP_ADDRESSES_MAX];
    const char *wrong = address_block_parse(word->text, &blocks[0]);

    *n = 1;
    if (wrong == NULL || strpbrk(word->text, "/:") != NULL || !address_has_name(word->text))
        return wrong;
    wrong = find_addresses(apply, word, addresses, n);
    for (unsigned i = 0; wrong == NULL && i < *n; i++)
        blocks[i] = address_block_of(&addresses[i]);
    return wrong;
}

int lookup_clients(struct apply *apply, const struct conf_directive *directive,
    struct address_block blocks[LOOKUP_ADDRESSES_MAX], unsigned *n)
{
    const char *wrong = find_clients(apply, &directive->args[0], blocks, n);

    if (wrong == NULL)
        return 0;
    set_bad_value(apply, directive, 0, "%s", wrong);
    if (address_is_unresolved(wrong))
        report_note_temporary(apply->report);
    return -1;
}
