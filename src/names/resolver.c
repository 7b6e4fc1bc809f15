/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions of a resolver: found by name and type, asked once, answered for all parts, and kept. A
 * failure is logged once. A question at the client stays until its reply, also without parts.
 *
 * The latest new question is asked first, because a client with ten thousand names must not keep
 * the next client's waiting. */
#include "names/resolver.h"

#include "base/check.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define RESOLVER_KIND KIND('R', 's', 'l', 'v')
#define QUESTION_KIND KIND('Q', 's', 't', 'n')

static int compare_questions(const struct resolver_question *a, const struct resolver_question *b)
{
    return a->type != b->type ? (a->type > b->type) - (a->type < b->type)
                              : strcmp(a->name, b->name);
}

RB_GENERATE_INTERNAL(
    resolver_questions, resolver_question, node, compare_questions, static __attribute__((unused)))

static uint64_t resolver_now(const struct resolver *resolver)
{
    return resolver->host->loop->clock.mono_ms;
}

static void ask_soon(struct resolver *resolver)
{
    loop_post(resolver->host->loop, &resolver->host->source->events[EVENT_READ], QUEUE_NEXT);
}

/* ---- The cache ---- */

static size_t question_size(const struct resolver_question *question)
{
    return sizeof(*question) + strlen(question->name) + 1 +
           (question->answer != NULL ? question->answer->size : 0);
}

static void uncache(struct resolver *resolver, struct resolver_question *question)
{
    assert(question->phase == QUESTION_CACHED && resolver->cached_n > 0);
    TAILQ_REMOVE(&resolver->cached, question, link);
    resolver->cached_n--;
    resolver->cached_bytes -= question_size(question);
    names_answer_drop(resolver->host->memory, &question->answer);
}

static void free_question(struct resolver *resolver, struct resolver_question *question)
{
    CHECK_KIND(question, QUESTION_KIND);
    assert(TAILQ_EMPTY(&question->parts) && question->answer == NULL);
    RB_REMOVE(resolver_questions, &resolver->questions, question);
    memory_release(resolver->host->memory, question->alias);
    question->kind = 0;
    memory_release(resolver->host->memory, question);
}

/* Frees the questions unused for the longest time. */
static void shrink_cache(struct resolver *resolver)
{
    while (resolver->cached_n > RESOLVER_CACHE || resolver->cached_bytes > RESOLVER_CACHE_BYTES) {
        struct resolver_question *oldest = TAILQ_FIRST(&resolver->cached);

        uncache(resolver, oldest);
        free_question(resolver, oldest);
    }
}

/* Caches an answered question. */
static void cache_question(
    struct resolver *resolver, struct resolver_question *question, uint64_t ms)
{
    question->phase = QUESTION_CACHED;
    question->until_ms = resolver_now(resolver) + ms;
    TAILQ_INSERT_TAIL(&resolver->cached, question, link);
    resolver->cached_n++;
    resolver->cached_bytes += question_size(question);
    shrink_cache(resolver);
}

/* ---- The end of a question ---- */

/* Logs a failure once, unless all askers do so. */
static void log_question_failure(const struct resolver_question *question)
{
    enum log_level level = question->outcome == FB_NAME_ABSENT ? LEVEL_INFO : LEVEL_ERROR;
    const struct resolver_part *part = TAILQ_FIRST(&question->parts);

    if (question->outcome == FB_NAME_FOUND || question->outcome == FB_NAME_NO_DATA ||
        question->is_logged)
        return;
    while (part != NULL && part->quiet)
        part = TAILQ_NEXT(part, link);
    if (part != NULL)
        log_write(question->resolver->host->loop->log, level, 0,
            "\"%s\" (%s) could not be resolved: %s", question->name,
            message_type_name(question->type), question->why);
}

static void end_question_part(struct resolver_question *question, struct resolver_part *part)
{
    assert(part->question == question || part->question == NULL);
    part->question = NULL;
    part->outcome = question->outcome;
    part->why = question->why;
    if (question->answer != NULL)
        part->answer = names_answer_share(question->answer);
    question->resolver->host->ended(part);
}

/* For how long the outcome holds; 0: not cached. */
static uint64_t time_to_cache(const struct resolver_question *question)
{
    int64_t valid = question->resolver->setting->valid;

    switch (question->outcome) {
    case FB_NAME_FOUND:
        return valid > 0 ? (uint64_t)valid : (uint64_t)question->answer->ttl * 1000;
    case FB_NAME_ABSENT:
    case FB_NAME_NO_DATA:
        return valid > 0 && valid < RESOLVER_ABSENT_MS ? (uint64_t)valid : RESOLVER_ABSENT_MS;
    default:
        return 0;
    }
}

/* Ends a question, after its answer was set. The question may be freed. */
static void end_answered(
    struct resolver_question *question, fb_name_outcome outcome, const char *why)
{
    struct resolver *resolver = question->resolver;
    struct resolver_part *part;
    uint64_t ms;

    assert(question->phase == QUESTION_ASKED);
    assert((outcome == FB_NAME_FOUND) == (question->answer != NULL));
    question->outcome = outcome;
    question->why = why;
    memory_release(resolver->host->memory, question->alias);
    question->alias = NULL;
    question->aliases = 0;
    log_question_failure(question);
    while ((part = TAILQ_FIRST(&question->parts)) != NULL) {
        TAILQ_REMOVE(&question->parts, part, link);
        end_question_part(question, part);
    }
    ms = time_to_cache(question);
    if (ms > 0) {
        cache_question(resolver, question, ms);
    } else {
        names_answer_drop(resolver->host->memory, &question->answer);
        free_question(resolver, question);
    }
}

static void end_found(
    struct resolver_question *question, const struct message *message, int64_t valid)
{
    const struct resolver *resolver = question->resolver;

    if (message->n == 0) {
        end_answered(question, FB_NAME_NO_DATA, message_why(MESSAGE_NO_DATA));
        return;
    }
    question->answer =
        names_answer_create(resolver->host->memory, message, resolver_now(resolver), valid);
    if (question->answer != NULL)
        end_answered(question, FB_NAME_FOUND, NULL);
    else
        end_answered(question, FB_NAME_NO_MEMORY, "there is no memory");
}

/* Keeps a question that the client has given back, if anybody wants to know. */
static void queue_again(struct resolver *resolver, struct resolver_question *question)
{
    if (TAILQ_EMPTY(&question->parts)) {
        free_question(resolver, question);
        return;
    }
    question->phase = QUESTION_WAITS;
    question->is_again = true;
    TAILQ_INSERT_TAIL(&resolver->again, question, link);
}

/* Asks for the alias of an answer next; false: there is no memory, or no end of aliases. */
static bool follow_alias(struct resolver_question *question, const struct message *message)
{
    struct resolver *resolver = question->resolver;
    const struct memory *memory = resolver->host->memory;
    char *alias = question->aliases++ < RESOLVER_ALIASES
                      ? memory_alloc(memory, strlen(message->canonical) + 1)
                      : NULL;

    if (alias == NULL)
        return false;
    strcpy(alias, message->canonical);
    if (question->alias == NULL || message->ttl < question->alias_ttl)
        question->alias_ttl = message->ttl;
    memory_release(memory, question->alias);
    question->alias = alias;
    queue_again(resolver, question);
    ask_soon(resolver);
    return true;
}

static void read_answer(struct resolver_question *question, const struct names_reply *reply)
{
    struct message message;
    enum message_status status = message_read(reply->p, reply->n, question->type, &message);

    if (status == MESSAGE_FOUND) {
        if (question->alias != NULL)
            message_bound(&message, question->alias_ttl);
        end_found(question, &message, question->resolver->setting->valid);
        return;
    }
    if (status == MESSAGE_NO_DATA && message.is_alias) {
        if (follow_alias(question, &message))
            return;
        status = MESSAGE_LOOP;
    }
    end_answered(question, status == MESSAGE_NO_DATA ? FB_NAME_NO_DATA : FB_NAME_BROKEN,
        message_why(status));
}

static void client_replied(void *arg, const struct names_reply *reply)
{
    struct resolver_question *question = arg;
    struct resolver *resolver = question->resolver;

    CHECK_KIND(question, QUESTION_KIND);
    assert(question->phase == QUESTION_ASKED && question->answer == NULL);
    if (reply->outcome == FB_NAME_FOUND)
        read_answer(question, reply);
    else if (reply->outcome == 0)
        queue_again(resolver, question);
    else
        end_answered(question, reply->outcome, reply->why);
    if (timer_is_set(&resolver->timer))
        ask_soon(resolver);
}

/* ---- Asking ---- */

/* Looks into /etc/hosts where the system's servers are asked; whether it has the name. */
static bool look_into_hosts(struct resolver *resolver, struct resolver_question *question)
{
    struct message message;
    bool found, readable;

    if (resolver->setting->servers != NULL)
        return false;
    found = names_client_hosts(resolver->client, question->name, question->type,
        question->address.length > 0 ? &question->address : NULL, &message, &readable);
    if (!readable && !resolver->has_warned) {
        resolver->has_warned = true;
        log_write(resolver->host->loop->log, LEVEL_WARN, 0,
            "\"/etc/hosts\" cannot be read, names are asked for without the file: a replaced file "
            "is read after a reload");
    }
    if (found)
        end_found(question, &message, 0);
    return found;
}

/* Returns the next question to ask, in *ms, the newer of two; NULL: no question waits. */
static struct resolver_question *next_question(struct resolver *resolver, uint64_t *ms)
{
    struct resolver_question *first = TAILQ_FIRST(&resolver->waiting);
    struct resolver_question *again = TAILQ_FIRST(&resolver->again);
    uint64_t again_ms = again != NULL ? names_client_room_ms(resolver->client, true) : UINT64_MAX;

    *ms = first != NULL ? names_client_room_ms(resolver->client, false) : UINT64_MAX;
    if (again_ms >= *ms)
        return first;
    *ms = again_ms;
    return again;
}

static struct resolver_queue *queue_of(struct resolver_question *question)
{
    return question->is_again ? &question->resolver->again : &question->resolver->waiting;
}

static void ask_question(struct resolver *resolver, struct resolver_question *question)
{
    assert(question->phase == QUESTION_WAITS);
    TAILQ_REMOVE(queue_of(question), question, link);
    question->phase = QUESTION_ASKED;
    if (question->alias != NULL)
        names_client_ask(resolver->client, question->alias, question->type, question);
    else if (!look_into_hosts(resolver, question))
        names_client_ask(resolver->client, question->name, question->type, question);
}

void resolver_ask(struct resolver *resolver)
{
    struct resolver_question *question;
    bool any = false;
    uint64_t ms;

    CHECK_KIND(resolver, RESOLVER_KIND);
    timer_del(resolver->host->loop, &resolver->timer);
    while ((question = next_question(resolver, &ms)) != NULL) {
        if (ms > 0) {
            timer_set(resolver->host->loop, &resolver->timer, ms);
            break;
        }
        names_client_take_back(resolver->client);
        ask_question(resolver, question);
        any = true;
    }
    if (any)
        names_client_asked(resolver->client);
}

static void room_timer_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    resolver_ask(container_of(timer, struct resolver, timer));
}

static void set_waiting(struct resolver *resolver, struct resolver_question *question)
{
    question->phase = QUESTION_WAITS;
    question->is_again = question->is_logged = false;
    TAILQ_INSERT_HEAD(&resolver->waiting, question, link);
    ask_soon(resolver);
}

/* Makes a question with the key of a model; NULL without memory. */
static struct resolver_question *create_question(
    struct resolver *resolver, const struct resolver_question *key, size_t size)
{
    struct resolver_question *question = memory_alloc(resolver->host->memory, size);

    if (question == NULL)
        return NULL;
    memcpy(question, key, size);
    question->kind = QUESTION_KIND;
    question->resolver = resolver;
    TAILQ_INIT(&question->parts);
    RB_INSERT(resolver_questions, &resolver->questions, question);
    set_waiting(resolver, question);
    return question;
}

/* Finds or makes the question; NULL without memory. */
static struct resolver_question *find_question(
    struct resolver *resolver, const char *name, uint16_t type, const struct address *address)
{
    union {
        struct resolver_question question;
        char room[sizeof(struct resolver_question) + MESSAGE_NAME];
    } key;
    struct resolver_question *found;
    size_t n = strlen(name) + 1;

    assert(n <= MESSAGE_NAME);
    memset(&key.question, 0, sizeof(key.question));
    key.question.type = type;
    if (address != NULL)
        key.question.address = *address;
    for (size_t i = 0; i < n; i++)
        key.question.name[i] = (char)tolower((unsigned char)name[i]);
    found = RB_FIND(resolver_questions, &resolver->questions, &key.question);
    return found != NULL ? found : create_question(resolver, &key.question, sizeof(*found) + n);
}

int resolver_want(struct resolver *resolver, struct resolver_part *part, const char *name,
    uint16_t type, const struct address *address)
{
    struct resolver_question *question;

    CHECK_KIND(resolver, RESOLVER_KIND);
    assert(part->question == NULL && part->outcome == 0 && part->answer == NULL);
    question = find_question(resolver, name, type, address);
    if (question == NULL)
        return -1;
    if (question->phase == QUESTION_CACHED && resolver_now(resolver) >= question->until_ms) {
        uncache(resolver, question);
        set_waiting(resolver, question);
    }
    if (question->phase == QUESTION_CACHED) {
        TAILQ_REMOVE(&resolver->cached, question, link);
        TAILQ_INSERT_TAIL(&resolver->cached, question, link);
        end_question_part(question, part);
        return 0;
    }
    part->question = question;
    TAILQ_INSERT_TAIL(&question->parts, part, link);
    return 0;
}

void resolver_forget(struct resolver *resolver, struct resolver_part *part)
{
    struct resolver_question *question = part->question;

    CHECK_KIND(resolver, RESOLVER_KIND);
    names_answer_drop(resolver->host->memory, &part->answer);
    if (question == NULL)
        return;
    assert(question->resolver == resolver && question->phase != QUESTION_CACHED);
    TAILQ_REMOVE(&question->parts, part, link);
    part->question = NULL;
    if (!TAILQ_EMPTY(&question->parts) || question->phase == QUESTION_ASKED)
        return;
    TAILQ_REMOVE(queue_of(question), question, link);
    free_question(resolver, question);
}

void resolver_log_late(struct resolver *resolver, struct resolver_part *part, uint64_t ms)
{
    struct resolver_question *question = part->question;

    if (question == NULL || question->is_logged || part->quiet)
        return;
    question->is_logged = true;
    log_write(resolver->host->loop->log, LEVEL_ERROR, 0,
        "\"%s\" (%s) could not be resolved: no server has answered within %" PRIu64 " ms",
        question->name, message_type_name(question->type), ms);
}

/* ---- The resolver ---- */

struct resolver *resolver_create(
    const struct resolver_host *host, const struct names_setting *setting, unsigned sockets)
{
    struct resolver *resolver = memory_alloc(host->memory, sizeof(*resolver));

    if (resolver == NULL) {
        log_write(host->loop->log, LEVEL_EMERG, errno, "no memory for a resolver");
        return NULL;
    }
    *resolver = (struct resolver) {
        .kind = RESOLVER_KIND,
        .host = host,
        .setting = setting,
        .timer.expired = room_timer_expired,
    };
    RB_INIT(&resolver->questions);
    TAILQ_INIT(&resolver->waiting);
    TAILQ_INIT(&resolver->again);
    TAILQ_INIT(&resolver->cached);
    resolver->client = names_client_create(host->loop, setting->servers, sockets, client_replied);
    if (resolver->client != NULL)
        return resolver;
    memory_release(host->memory, resolver);
    return NULL;
}

void resolver_destroy(struct resolver **resolverp)
{
    struct resolver *resolver = *resolverp;
    struct resolver_question *question;

    *resolverp = NULL;
    CHECK_KIND(resolver, RESOLVER_KIND);
    names_client_destroy(&resolver->client);
    timer_del(resolver->host->loop, &resolver->timer);
    while ((question = RB_ROOT(&resolver->questions)) != NULL) {
        assert(TAILQ_EMPTY(&question->parts));
        names_answer_drop(resolver->host->memory, &question->answer);
        free_question(resolver, question);
    }
    resolver->kind = 0;
    memory_release(resolver->host->memory, resolver);
}

void resolver_check(struct resolver *resolver)
{
    struct resolver_question *question;
    unsigned cached = 0;

    CHECK_KIND(resolver, RESOLVER_KIND);
    RB_FOREACH (question, resolver_questions, &resolver->questions) {
        assert(question->kind == QUESTION_KIND && question->resolver == resolver);
        assert((question->answer != NULL) ==
               (question->phase == QUESTION_CACHED && question->outcome == FB_NAME_FOUND));
        assert(question->phase == QUESTION_ASKED ||
               TAILQ_EMPTY(&question->parts) == (question->phase == QUESTION_CACHED));
        cached += question->phase == QUESTION_CACHED;
    }
    assert(cached == resolver->cached_n && cached <= RESOLVER_CACHE);
    assert(resolver->cached_bytes <= RESOLVER_CACHE_BYTES);
}
