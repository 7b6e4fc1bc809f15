/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine of OpenSSL: contexts of libssl, certificates, and handshakes with them.
 *
 * Responsible for the order of a start: the library, a test of it, the files. Never keeps the
 * session of a client, who resumes by a ticket: sessions with servers alone lie in the memory of
 * all keepers. */
#include "base/check.h"
#include "keeper/contexts.h"
#include "keeper/engine.h"
#include "keeper/handshake.h"
#include "keeper/pair_report.h"
#include "keeper/reason.h"
#include "keeper/self_test.h"
#include "os/memory.h"

#include <stdlib.h>

#define ENGINE_KIND KIND('e', 'n', 'g', 'i')

struct tls_engine {
    unsigned kind;
    struct libssl lib;
    struct handshakes shared;
    struct ticket_ring ring;
    struct session_table sessions;
    void *own_tickets; /* the memory of both, unless given; or NULL */
    struct contexts contexts;
    struct named_pairs named;
    struct key_logs key_logs;
};

static void destroy_openssl(struct tls_engine *engine)
{
    CHECK_KIND(engine, ENGINE_KIND);
    named_pairs_close(&engine->named);
    contexts_destroy(&engine->contexts);
    key_logs_close(&engine->key_logs);
    handshakes_done(&engine->shared);
    os_wiped_free(engine->own_tickets, TLS_TICKETS_SIZE); /* the kernel zeroes pages */
    engine->kind = 0;
    free(engine);
}

static int load_library(struct tls_engine *engine, struct log *log)
{
    char text[LIBSSL_TEXT], reasons[REASON_TEXT];

    if (libssl_load(&engine->lib, text) < 0) {
        log_write(log, LEVEL_EMERG, 0, "cannot load OpenSSL: %s", text);
        return -1;
    }
    if (handshakes_init(&engine->shared, &engine->lib, &engine->sessions) == 0)
        return self_test_run(&engine->shared, &engine->ring, log);
    log_write(log, LEVEL_EMERG, 0, "%s", reason_take(reasons, sizeof(reasons), "EVP_KDF_fetch()"));
    return -1;
}

/* Finds the keys of tickets and the sessions. A key of the ring encrypts for the longest time in
 * which a session can be resumed. */
static int open_memory(struct tls_engine *engine, struct tls_files *files, struct log *log)
{
    const struct tls_profiles *profiles = files->profiles;
    void *memory = files->tickets;
    uint32_t longest = 1;

    for (unsigned i = 0; i < profiles->n; i++)
        if (profiles->list[i].role == TLS_SERVER && profiles->list[i].session_timeout > longest)
            longest = profiles->list[i].session_timeout;
    if (memory == NULL)
        memory = engine->own_tickets = os_wiped_alloc(TLS_TICKETS_SIZE);
    if (memory == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the keys of tickets");
        return -1;
    }
    ticket_ring_init(&engine->ring, memory, UINT64_C(1000) * longest);
    session_table_init(&engine->sessions, memory);
    return 0;
}

static struct tls_engine *create_openssl(struct tls_files *files, struct log *log)
{
    struct tls_engine *engine = calloc(1, sizeof(*engine));

    if (engine == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the engine of OpenSSL");
        return NULL;
    }
    engine->kind = ENGINE_KIND;
    if (open_memory(engine, files, log) == 0 && load_library(engine, log) == 0 &&
        contexts_create(&engine->contexts, &engine->lib, files, &engine->ring, log) == 0 &&
        named_pairs_open(&engine->named, &engine->contexts.files, log) == 0 &&
        key_logs_open(&engine->key_logs, files, log) == 0) {
        engine->shared.pairs = &engine->contexts.pairs;
        engine->shared.named = &engine->named;
        for (unsigned i = 0; i < engine->contexts.n; i++)
            engine->contexts.list[i].key_log =
                key_logs_find(&engine->key_logs, engine->contexts.list[i].profile);
        return engine;
    }
    destroy_openssl(engine);
    return NULL;
}

static void refresh_openssl(struct tls_engine *engine, struct log *log)
{
    CHECK_KIND(engine, ENGINE_KIND);
    contexts_refresh(&engine->contexts, log);
    named_pairs_refresh(&engine->named, log);
}

static void take_file(struct tls_engine *engine, int fd, int error)
{
    CHECK_KIND(engine, ENGINE_KIND);
    pairs_opened(&engine->contexts.pairs, fd, error);
}

static char *report_openssl(struct tls_engine *engine, size_t *n)
{
    CHECK_KIND(engine, ENGINE_KIND);
    return pair_report_write(&engine->contexts.pairs, n);
}

static int64_t find_first_end(struct tls_engine *engine, uint32_t *file)
{
    CHECK_KIND(engine, ENGINE_KIND);
    return pairs_first_end(&engine->contexts.pairs, file);
}

static void remind_openssl(struct tls_engine *engine, struct log *log)
{
    CHECK_KIND(engine, ENGINE_KIND);
    pairs_remind(&engine->contexts.pairs, log);
}

/* Whether there is a name for each path of the profile. */
static bool are_names_of(const struct tls_profile *profile, fb_bytes paths)
{
    unsigned n = 0;

    for (size_t i = 0; i < paths.n; i++)
        n += paths.p[i] == '\0';
    return n == profile->named.n;
}

/* Role, profile and names come from another process, and are checked. */
static struct tls_handshake *begin_openssl(struct tls_engine *engine, const struct tls_start *start)
{
    const struct tls_profiles *profiles = engine->contexts.files.profiles;

    CHECK_KIND(engine, ENGINE_KIND);
    if (start->profile >= profiles->n || profiles->list[start->profile].role != start->role)
        return handshake_refuse("the handshake is for a server that is not configured");
    if (!are_names_of(&profiles->list[start->profile], start->paths))
        return handshake_refuse("the handshake names more or fewer certificates than its server");
    return handshake_begin(&engine->shared, contexts_find(&engine->contexts, start->profile),
        &profiles->list[start->profile], start);
}

const struct tls_engine_ops engine_openssl = {
    .name = "openssl",
    .create = create_openssl,
    .destroy = destroy_openssl,
    .refresh = refresh_openssl,
    .opened = take_file,
    .remind = remind_openssl,
    .report = report_openssl,
    .first_end = find_first_end,
    .begin = begin_openssl,
    .feed = handshake_feed,
    .ticket = handshake_ticket,
    .end = handshake_end,
};
