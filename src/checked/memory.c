/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory for protocols in the checked mode: a block lies at the end of separate pages, before a
 * forbidden page, between red zones; an ended block becomes forbidden pages, until many further
 * blocks have ended. A crash within a block is reported from the signal's handler, and is still a
 * crash. Never frees memory that a protocol may still use. Invariant: a block is in a single list,
 * of living or of ended blocks. */
#include "checked/memory.h"

#include "checked/checked.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Limit of living blocks of a worker, because the kernel limits mappings. */
#define LIVE_MOST 8192

void checked_zone_fill(void *zone)
{
    memset(zone, CHECKED_BYTE, CHECKED_ZONE);
}

bool checked_is_filled(const void *p, size_t n)
{
    const uint8_t *bytes = p;

    while (n > 0 && bytes[n - 1] == CHECKED_BYTE)
        n--;
    return n == 0;
}

const char *checked_block_name(const struct checked_block *block)
{
    static const char *const names[CHECKED_KINDS] = {
        [CHECKED_INPUT] = "input",
        [CHECKED_MESSAGE] = "a message",
        [CHECKED_ANSWER] = "an answer",
        [CHECKED_READ] = "the bytes of fb_read_file()",
        [CHECKED_KEY] = "a key of map_changed",
        [CHECKED_ALLOC] = "memory of fb_alloc()",
        [CHECKED_TEMP] = "memory of fb_temp_alloc()",
    };

    assert((unsigned)block->kind < CHECKED_KINDS);
    return names[block->kind];
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void free_block(struct checked_block *block)
{
    munmap(block->base, block->size + page_size());
    free(block);
}

void checked_blocks_free(struct checked_blocks *blocks)
{
    struct checked_block *block;

    while ((block = TAILQ_FIRST(blocks)) != NULL) {
        TAILQ_REMOVE(blocks, block, link);
        free_block(block);
    }
}

/* Takes the oldest ended block if the size fits; otherwise frees the block. */
static struct checked_block *take_ended_block(struct checked *checked, size_t size)
{
    struct checked_block *block = TAILQ_FIRST(&checked->ended);

    if (checked->ended_n < CHECKED_ENDED)
        return NULL;
    TAILQ_REMOVE(&checked->ended, block, link);
    checked->ended_n--;
    if (block->size == size && mprotect(block->base, size, PROT_READ | PROT_WRITE) == 0)
        return block;
    free_block(block);
    return NULL;
}

static struct checked_block *map_block(size_t size)
{
    struct checked_block *block = malloc(sizeof(*block));
    void *base;

    if (block == NULL)
        return NULL;
    base =
        mmap(NULL, size + page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect((char *)base + size, page_size(), PROT_NONE) == -1) {
        if (base != MAP_FAILED)
            munmap(base, size + page_size());
        free(block);
        return NULL;
    }
    block->base = base;
    block->size = size;
    return block;
}

/* Bytes between the block and the page behind, for the block's alignment. */
static size_t block_slack(const struct checked_block *block)
{
    return (size_t)(block->base + block->size - (block->p + block->n));
}

/* Makes a block at a multiple of `align`. */
static struct checked_block *make_guarded_block(
    struct checked *checked, enum checked_kind kind, const char *protocol, size_t n, size_t align)
{
    size_t page = page_size(), room = (n + align - 1) / align * align;
    size_t size = (room + CHECKED_ZONE + page - 1) / page * page;
    struct checked_block *block;

    if (checked->live_n >= LIVE_MOST || n > SIZE_MAX / 4)
        return NULL;
    block = take_ended_block(checked, size);
    if (block == NULL)
        block = map_block(size);
    if (block == NULL)
        return NULL;
    block->p = block->base + size - room;
    block->n = n;
    block->kind = kind;
    block->protocol = protocol;
    block->ended = NULL;
    checked_zone_fill(block->p - CHECKED_ZONE);
    memset(block->p + n, CHECKED_BYTE, block_slack(block));
    TAILQ_INSERT_TAIL(&checked->live, block, link);
    checked->live_n++;
    return block;
}

struct checked_block *checked_block_make(struct checked *checked, struct checked_slot *slot,
    enum checked_kind kind, const char *protocol, size_t n)
{
    struct checked_block *block =
        make_guarded_block(checked, kind, protocol, n, _Alignof(max_align_t));

    if (block == NULL)
        return NULL;
    memset(block->p, CHECKED_BYTE, n); /* neither zeros nor what was there before */
    LIST_INSERT_HEAD(&slot->blocks, block, own);
    return block;
}

fb_bytes checked_block_lend(struct checked_scope *scope, enum checked_kind kind, fb_bytes bytes)
{
    size_t align = kind == CHECKED_ANSWER ? _Alignof(max_align_t) : 1;
    struct checked_block *block =
        make_guarded_block(scope->checked, kind, scope->protocol->name, bytes.n, align);

    assert(scope->lent == NULL);
    if (block == NULL)
        return bytes;
    if (bytes.n > 0)
        memcpy(block->p, bytes.p, bytes.n);
    mprotect(block->base, block->size, PROT_READ);
    scope->lent = block;
    scope->real = bytes.p;
    return (fb_bytes) { (const uint8_t *)block->p, bytes.n };
}

void checked_blocks_check(const struct checked_slot *slot, const char *callback)
{
    const struct checked_block *block;

    LIST_FOREACH (block, &slot->blocks, own)
        if (!checked_is_filled(block->p - CHECKED_ZONE, CHECKED_ZONE))
            checked_report(block->protocol, "wrote before the %zu bytes of %s, in \"%s\"", block->n,
                checked_block_name(block), callback);
        else if (!checked_is_filled(block->p + block->n, block_slack(block)))
            checked_report(block->protocol, "went beyond the %zu bytes of %s, in \"%s\"", block->n,
                checked_block_name(block), callback);
}

void checked_block_end(struct checked *checked, struct checked_block *block, const char *when)
{
    assert(block->ended == NULL && checked->live_n > 0);
    if (block->kind == CHECKED_ALLOC || block->kind == CHECKED_TEMP)
        LIST_REMOVE(block, own);
    TAILQ_REMOVE(&checked->live, block, link);
    block->ended = when;
    mprotect(block->base, block->size, PROT_NONE);
    TAILQ_INSERT_TAIL(&checked->ended, block, link);
    checked->live_n--;
    checked->ended_n++;
}

void checked_block_end_all(
    struct checked *checked, struct checked_slot *slot, enum checked_kind kind, const char *when)
{
    struct checked_block *block, *next;

    LIST_FOREACH_SAFE (block, &slot->blocks, own, next)
        if (block->kind == kind)
            checked_block_end(checked, block, when);
}

static const struct checked_block *find_checked_block(
    const struct checked_blocks *blocks, const char *p)
{
    const struct checked_block *block;

    TAILQ_FOREACH (block, blocks, link)
        if (p >= block->base && p < block->base + block->size + page_size())
            break;
    return block;
}

const struct checked_block *checked_block_at(const void *p)
{
    const struct checked *checked;

    SLIST_FOREACH (checked, checked_scope_workers(), link) {
        const struct checked_block *block = find_checked_block(&checked->live, p);

        if (block == NULL)
            block = find_checked_block(&checked->ended, p);
        if (block != NULL)
            return block;
    }
    return NULL;
}

bool checked_bytes(const char *call, const void *p, size_t n, const char *name)
{
    const struct checked_block *block;

    if (n == 0)
        return true;
    if (p == NULL)
        return checked_report_call(NULL, call, "with NULL as %s", name);
    block = checked_block_at(p);
    if (block == NULL)
        return true;
    if (block->ended != NULL)
        return checked_report_call(
            NULL, call, "with %s after %s", checked_block_name(block), block->ended);
    return ((const char *)p >= block->p && n <= (size_t)(block->p + block->n - (const char *)p)) ||
           checked_report_call(
               NULL, call, "with bytes beyond the %zu of %s", block->n, checked_block_name(block));
}

/* ---- Crashes ---- */

/* Reports the crash at an address within or around a block. */
static void report_crash(const char *at)
{
    const struct checked_block *block = checked_block_at(at);
    const struct checked_scope *scope = checked_scope_now();
    const char *callback = scope != NULL ? scope->callback : "no callback", *name;

    if (block == NULL)
        return;
    name = checked_block_name(block);
    if (block->ended != NULL)
        checked_report(
            block->protocol, "used %s after %s, in \"%s\"", name, block->ended, callback);
    else if (at >= block->base + block->size)
        checked_report(block->protocol, "went beyond the %zu bytes of %s, in \"%s\"", block->n,
            name, callback);
    else
        checked_report(block->protocol, "wrote into %s, in \"%s\"", name, callback);
}

static void block_crashed(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    signal(signal_number, SIG_DFL); /* the access is made again, and crashes */
    if (info->si_code <= 0) {       /* a process has sent the signal */
        raise(signal_number);
        return;
    }
    report_crash(info->si_addr);
}

void checked_report_crashes(void)
{
    struct sigaction action = { .sa_sigaction = block_crashed,
        .sa_flags = SA_SIGINFO | SA_NODEFER };

    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}
