/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of connections in references: numbers that a worker gives once and never again.
 *
 * Responsible for finding a connection by a name that came from elsewhere. Never trusts one: a name
 * whose connection has ended is not found. Names are a count, in a permutation that only who has
 * the stream's key can follow: nobody guesses the name of another connection from those that he
 * has. Invariant: a session_use is in the tree if its name is not 0. */
#include "session/names.h"

#include "shm/siphash.h"

#define HALF_BITS (SESSION_NAME_BITS / 2)
#define HALF_MASK ((UINT64_C(1) << HALF_BITS) - 1)
#define ROUNDS 6

static int compare_names(const struct session_use *a, const struct session_use *b)
{
    return (a->name > b->name) - (a->name < b->name);
}

RB_GENERATE_INTERNAL(
    session_names, session_use, named, compare_names, static __attribute__((unused)))

static uint64_t round_of(const struct stream *stream, unsigned round, uint64_t half)
{
    uint64_t block = (uint64_t)round << 32 | half;

    return siphash(stream->name_key, &block, sizeof(block)) & HALF_MASK;
}

/* A Feistel network: each round is undone by itself, with the halves exchanged. */
static uint64_t permute(const struct stream *stream, uint64_t number, bool back)
{
    uint64_t left = number >> HALF_BITS, right = number & HALF_MASK, next;

    assert(number >> SESSION_NAME_BITS == 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        next = left ^ round_of(stream, back ? ROUNDS - 1 - i : i, right);
        left = right;
        right = next;
    }
    return right << HALF_BITS | left;
}

static uint64_t next_name(struct stream *stream)
{
    uint64_t name;

    do
        name = permute(stream, ++stream->last_name, false);
    while (name < SESSION_NAME_LEAST);
    return name;
}

uint64_t session_name(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);
    struct session_use *use = session_use_create(conn);

    if (use == NULL)
        return 0;
    if (use->name == 0) {
        use->name = next_name(stream);
        RB_INSERT(session_names, &stream->named, use);
    }
    assert(use->name >= SESSION_NAME_LEAST);
    return use->name;
}

bool session_name_was_given(const struct stream *stream, uint64_t name)
{
    uint64_t number = permute(stream, name, true);

    return name >= SESSION_NAME_LEAST && number > 0 && number <= stream->last_name;
}

struct fb_conn *session_find(struct stream *stream, uint64_t name)
{
    struct session_use key = { .name = name };
    struct session_use *use = RB_FIND(session_names, &stream->named, &key);

    if (use == NULL)
        return NULL;
    CHECK_KIND(use, SESSION_USE_KIND);
    assert(use->session->use == use);
    return use->session->conn;
}

void session_name_drop(struct session_use *use)
{
    if (use->name != 0)
        RB_REMOVE(session_names, &stream_of(use->session->conn)->named, use);
    use->name = 0;
}
