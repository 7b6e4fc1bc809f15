/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks name services, named by the check's progress meanwhile, or takes the noted answers. Numeric
 * addresses are neither asked for nor noted. */
#include "settings/lookup.h"

#include "net/address_parse.h"
#include "settings/check.h"
#include "settings/set_value.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define NOT_CHECKED "the configuration was changed after the check, try again"
#define NO_ROOM "there is no memory for the answer of the name service"

struct identity {
    uid_t uid;
    gid_t gid;
    gid_t groups[NGROUPS_MAX];
};

/* A question, and the memory of the answer: `least` to `most` bytes, of which `n` were found. */
struct question {
    enum answers_kind kind;
    const struct conf_word *word; /* the place in the configuration, or NULL */
    const char *name, *key;       /* to ask for; to note the answer by */
    const char *group;            /* a user's, or NULL */
    in_port_t port;               /* a host's without one */
    bool of_group;                /* the group is wrong */
    void *answer;
    size_t least, most, n;
};

static const char *ask_user(struct question *question)
{
    const char *group_name = question->group != NULL ? question->group : question->name;
    const struct passwd *user = getpwnam(question->name);
    struct identity *identity = question->answer;
    const struct group *group;
    int n = NGROUPS_MAX; /* initgroups() leaves out groups beyond that, too */

    if (user == NULL)
        return "there is no such user";
    identity->uid = user->pw_uid;
    identity->gid = user->pw_gid;
    group = getgrnam(group_name);
    question->of_group = group == NULL && question->group != NULL;
    if (question->of_group)
        return "there is no such group";
    if (group != NULL)
        identity->gid = group->gr_gid;
    getgrouplist(question->name, identity->gid, identity->groups, &n);
    if (n > NGROUPS_MAX)
        n = NGROUPS_MAX;
    question->n = question->least + (size_t)n * sizeof(gid_t);
    return NULL;
}

static const char *ask_group(struct question *question)
{
    const struct group *group = getgrnam(question->name);

    if (group == NULL)
        return "there is no such group";
    *(gid_t *)question->answer = group->gr_gid;
    return NULL;
}

/* Parses the name, and asks the service for a host in it; NULL, or the text of a mistake. */
static const char *look_up_service(struct question *question)
{
    struct lookup_addresses *all = question->answer;
    const char *wrong = NULL;

    question->n = question->most;
    switch (question->kind) {
    case ANSWERS_USER:
        return ask_user(question);
    case ANSWERS_GROUP:
        return ask_group(question);
    case ANSWERS_HOST:
        return address_parse_host(question->name, question->port, question->answer);
    case ANSWERS_TARGET:
        return target_parse(question->name, true, question->answer);
    case ANSWERS_LISTEN:
        wrong = address_parse_listen(
            question->name, all->at, LOOKUP_ADDRESSES_MAX, &all->n, &all->last);
        break;
    case ANSWERS_CLIENTS:
        wrong = address_resolve(question->name, all->at, LOOKUP_ADDRESSES_MAX, &all->n);
        break;
    }
    if (wrong == NULL)
        question->n = question->least + all->n * sizeof(all->at[0]);
    return wrong;
}

/* Takes the noted answer where only notes count; else asks the service, and notes the answer. */
static const char *answer_question(struct apply *apply, struct question *question)
{
    struct check_progress *progress = apply->options->progress;
    struct answers *answers = apply->options->answers;
    const char *asked = question->kind == ANSWERS_USER    ? "user"
                        : question->kind == ANSWERS_GROUP ? "group"
                                                          : "host";
    bool is_foreign = progress != NULL && progress->foreign; /* asked by a module's code */
    const char *wrong;
    long n;

    if (answers != NULL && progress == NULL) {
        n = check_answers_find(
            answers, question->kind, question->key, question->answer, question->most);
        question->n = n > 0 ? (size_t)n : 0;
        return question->n < question->least ? NOT_CHECKED : NULL;
    }
    if (!is_foreign)
        check_progress_enter(progress, question->word, "while it was asked",
            "the name service for %s \"%s\"", asked, question->name);
    wrong = look_up_service(question);
    if (!is_foreign)
        check_progress_leave(progress);
    if (wrong == NULL && answers != NULL &&
        !check_answers_add(answers, question->kind, question->key, question->answer, question->n))
        return NO_ROOM;
    return wrong;
}

/* Parses an address, or asks for the host in it. */
static const char *answer_address(struct apply *apply, struct question *question)
{
    question->key = question->name;
    return address_has_name(question->name) ? answer_question(apply, question)
                                            : look_up_service(question);
}

static const char *keep_user(
    struct apply *apply, const char *name, const struct identity *identity, size_t size)
{
    struct core_settings *core = &apply->cycle->core;
    gid_t *groups = apply_alloc(apply, size + 1);

    if (groups == NULL)
        return NO_ROOM;
    memcpy(groups, identity->groups, size);
    core->user = name;
    core->uid = identity->uid;
    core->gid = identity->gid;
    core->groups = groups;
    core->group_n = (unsigned)(size / sizeof(*groups));
    return NULL;
}

const char *lookup_user(struct apply *apply, const struct conf_word *word, const char *user,
    const char *group, bool is_kept, bool *of_group)
{
    struct identity *identity = malloc(sizeof(*identity));
    char key[LINE_MAX];
    struct question question = {
        .kind = ANSWERS_USER,
        .word = word,
        .name = user,
        .key = key,
        .group = group,
        .answer = identity,
        .least = offsetof(struct identity, groups),
        .most = sizeof(*identity),
    };
    const char *wrong;

    *of_group = false;
    if (identity == NULL)
        return NO_ROOM;
    /* a name has no ":" */
    snprintf(key, sizeof(key), "%s:%s", user, group != NULL ? group : "");
    wrong = answer_question(apply, &question);
    if (wrong == NULL && is_kept)
        wrong = keep_user(apply, user, identity, question.n - question.least);
    *of_group = question.of_group;
    free(identity);
    return wrong;
}

const char *lookup_group(
    struct apply *apply, const struct conf_word *word, const char *name, gid_t *out)
{
    struct question question = {
        .kind = ANSWERS_GROUP,
        .word = word,
        .name = name,
        .key = name,
        .answer = out,
        .least = sizeof(*out),
        .most = sizeof(*out),
    };

    return answer_question(apply, &question);
}

/* Finds several addresses; another process has noted how many. */
static const char *look_up_addresses(struct apply *apply, enum answers_kind kind,
    const struct conf_word *word, struct lookup_addresses *out)
{
    struct question question = {
        .kind = kind,
        .word = word,
        .name = word->text,
        .answer = out,
        .least = offsetof(struct lookup_addresses, at),
        .most = sizeof(*out),
    };
    const char *wrong = answer_address(apply, &question);

    if (wrong == NULL)
        out->n = (unsigned)((question.n - question.least) / sizeof(out->at[0]));
    return wrong;
}

const char *lookup_listen(
    struct apply *apply, const struct conf_word *word, struct lookup_addresses *out)
{
    return look_up_addresses(apply, ANSWERS_LISTEN, word, out);
}

static const char *look_up_address(struct apply *apply, enum answers_kind kind, const char *text,
    in_port_t port, void *out, size_t size)
{
    struct question question = {
        .kind = kind, .name = text, .port = port, .answer = out, .least = size, .most = size
    };

    return answer_address(apply, &question);
}

const char *lookup_host(struct apply *apply, const char *text, in_port_t port, struct address *out)
{
    return look_up_address(apply, ANSWERS_HOST, text, port, out, sizeof(*out));
}

const char *lookup_target(struct apply *apply, const char *text, struct fb_target *out)
{
    return look_up_address(apply, ANSWERS_TARGET, text, 0, out, sizeof(*out));
}

/* Returns NULL, or the text of a mistake in the word. */
static const char *find_clients(struct apply *apply, const struct conf_word *word,
    struct address_block blocks[LOOKUP_ADDRESSES_MAX], unsigned *n)
{
    const char *wrong = address_block_parse(word->text, &blocks[0]);
    struct lookup_addresses found;

    *n = 1;
    if (wrong == NULL || strpbrk(word->text, "/:") != NULL || !address_has_name(word->text))
        return wrong;
    wrong = look_up_addresses(apply, ANSWERS_CLIENTS, word, &found);
    *n = wrong == NULL ? found.n : 0;
    for (unsigned i = 0; i < *n; i++)
        blocks[i] = address_block_of(&found.at[i]);
    return wrong;
}

int lookup_clients(struct apply *apply, const struct conf_directive *directive,
    struct address_block blocks[LOOKUP_ADDRESSES_MAX], unsigned *n)
{
    const char *wrong = find_clients(apply, &directive->args[0], blocks, n);

    return wrong == NULL ? 0 : set_bad_address(apply, directive, wrong);
}
