/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of pairs: records and their versions, a writer that was killed, a full store, wrong
 * memory, and the records of another generation. */
#include "keeper/pair_store.h"

#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS 5

static struct tls_memory memory, other;
static struct pair_store store;

static void begin(void)
{
    ck_assert_int_eq(pair_memory_reserve(&memory, PAIRS), 0);
    ck_assert_int_eq(pair_store_open(&store, memory, PAIRS), 0);
}

static void end(void)
{
    pair_memory_release(&memory);
    ck_assert_ptr_null(memory.p);
}

static bool put(struct pair_store *to, uint32_t number, const char *text, size_t n)
{
    static char bytes[4 * 1024 * 1024];
    const struct iovec pieces[] = { { bytes, strlen(text) }, { bytes + strlen(text), n } };

    memset(bytes, '.', sizeof(bytes));
    memcpy(bytes, text, strlen(text));
    return pair_store_put(to, number, pieces, 2);
}

/* Whether the record is the text with n dots behind it; NULL: there is none. */
static bool has(const struct pair_store *from, uint32_t number, const char *text, size_t n)
{
    uint32_t version;
    size_t length = 0;
    uint8_t *record = pair_store_get(from, number, &length, &version);
    bool same;

    if (text == NULL || record == NULL) {
        free(record);
        return text == NULL && record == NULL;
    }
    ck_assert_uint_eq(version, pair_store_version(from, number));
    same = length == strlen(text) + n && memcmp(record, text, strlen(text)) == 0;
    for (size_t i = strlen(text); same && i < length; i++)
        same = record[i] == '.';
    free(record);
    return same;
}

START_TEST(records_are_replaced)
{
    static const size_t sizes[] = { 100, 50, 101, 3000, 100000, 0, 106 };
    uint32_t version;
    char text[8];

    begin();
    for (uint32_t i = 0; i < PAIRS; i++) {
        ck_assert(has(&store, i, NULL, 0));
        ck_assert_uint_eq(pair_store_version(&store, i), 0);
    }
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (uint32_t i = 0; i < PAIRS; i++) {
            version = pair_store_version(&store, i);
            snprintf(text, sizeof(text), "%u.%u", i, s);
            ck_assert(put(&store, i, text, sizes[s]));
            ck_assert_uint_ne(pair_store_version(&store, i), version);
            ck_assert(has(&store, i, text, sizes[s]));
            if (i > 0) { /* the neighbour is left alone */
                snprintf(text, sizeof(text), "%u.%u", i - 1, s);
                ck_assert(has(&store, i - 1, text, sizes[s]));
            }
        }
    end();
}
END_TEST

/* Records have private keys: what was replaced is nowhere in the memory. */
START_TEST(old_records_are_overwritten)
{
    static const size_t sizes[] = { 3, 5000 }; /* within the record's room, and beyond */

    begin();
    ck_assert(put(&store, 1, "secret", 1000));
    ck_assert(put(&store, 1, "", sizes[_i]));
    ck_assert_ptr_null(memmem(memory.p, memory.size, "secret", 6));
    ck_assert((memmem(memory.p, memory.size, "....", 4) == NULL) == (_i == 0));
    ck_assert(!put(&store, 1, "more", memory.size));
    ck_assert_ptr_null(memmem(memory.p, memory.size, "....", 4));
    end();
}
END_TEST

START_TEST(the_begin_of_a_record_is_peeked_at)
{
    char bytes[8] = "none";

    begin();
    ck_assert(!pair_store_peek(&store, 1, bytes, 4));
    ck_assert(put(&store, 1, "begin", 1));
    ck_assert(pair_store_peek(&store, 1, bytes, 6));
    ck_assert_mem_eq(bytes, "begin.", 6);
    ck_assert(!pair_store_peek(&store, 1, bytes, 7));
    end();
}
END_TEST

START_TEST(a_full_store_keeps_no_record)
{
    uint32_t version;
    unsigned n = 0;

    begin();
    ck_assert(put(&store, 0, "small", 0));
    while (put(&store, 1, "large", 200000 + 50000 * n))
        n++;
    ck_assert_uint_gt(n, 0);
    ck_assert(has(&store, 1, NULL, 0));
    ck_assert(has(&store, 0, "small", 0));
    version = pair_store_version(&store, 1);
    ck_assert(!put(&store, 1, "large", 3 * 1024 * 1024));
    ck_assert_uint_ne(pair_store_version(&store, 1), version);
    ck_assert(put(&store, 1, "large", 1000)); /* the old room is still there */
    ck_assert(has(&store, 1, "large", 1000));
    end();
}
END_TEST

START_TEST(the_record_of_a_killed_writer_is_none)
{
    _Atomic uint32_t *version;

    begin();
    ck_assert(put(&store, 2, "whole", 10));
    /* the first of a slot, behind the head and two slots of 32 bytes */
    version = (_Atomic uint32_t *)((uint8_t *)memory.p + 16 + 2 * 32);
    ck_assert_uint_eq(*version, pair_store_version(&store, 2));
    *version |= 1;
    ck_assert(has(&store, 2, NULL, 0));
    ck_assert(put(&store, 2, "again", 10));
    ck_assert_uint_eq(pair_store_version(&store, 2) & 1, 0);
    ck_assert(has(&store, 2, "again", 10));
    end();
}
END_TEST

/* The child that writes a longer record goes on until its next stop; false: the record is written.
 */
static bool step_writer(pid_t pid)
{
    int status;

    test_require(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0);
    test_require(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    test_require(WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGUSR1);
    return WSTOPSIG(status) == SIGTRAP;
}

static pid_t fork_writer(void)
{
    static char bytes[300];
    const struct iovec piece = { bytes, sizeof(bytes) };
    int status;
    pid_t pid;

    signal(SIGCHLD, SIG_DFL);
    pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        pair_store_put(&store, 1, &piece, 1);
        raise(SIGUSR1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    return pid;
}

/* The next writer after a kill gives no record the room of another. */
static void write_after_kill(void)
{
    struct pair_store next;

    memcpy(other.p, memory.p, memory.size);
    ck_assert_int_eq(pair_store_open(&next, other, PAIRS), 0);
    ck_assert(put(&next, 1, "one", 250));
    ck_assert(put(&next, 3, "three", 250));
    ck_assert(has(&next, 0, "zero", 20));
    ck_assert(has(&next, 1, "one", 250));
    ck_assert(has(&next, 2, "two", 20));
    ck_assert(has(&next, 3, "three", 250));
}

START_TEST(a_writer_may_be_killed_at_any_instruction)
{
    uint8_t slots[16 + PAIRS * 32];
    unsigned changes = 0;
    int fd = pair_memory_create(PAIRS);
    pid_t pid;

    ck_assert_int_eq(pair_memory_map(&memory, fd), 0);
    close(fd);
    ck_assert_int_eq(pair_memory_reserve(&other, PAIRS), 0);
    ck_assert_int_eq(pair_store_open(&store, memory, PAIRS), 0);
    ck_assert(put(&store, 0, "zero", 20) && put(&store, 1, "one", 20) && put(&store, 2, "two", 20));
    pid = fork_writer();
    memcpy(slots, memory.p, sizeof(slots));
    while (step_writer(pid)) {
        if (memcmp(slots, memory.p, sizeof(slots)) == 0)
            continue;
        memcpy(slots, memory.p, sizeof(slots));
        write_after_kill();
        changes++;
    }
    ck_assert_uint_ge(changes, 6); /* version, end of all rooms, room, place, bytes, version */
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    pair_memory_release(&other);
    end();
}
END_TEST

START_TEST(wrong_memory_is_never_read_beyond)
{
    uint32_t *slot;

    begin();
    ck_assert_int_eq(pair_store_open(&store, (struct tls_memory) { memory.p, 100 }, PAIRS), -1);
    ck_assert_int_eq(pair_store_open(&store, (struct tls_memory) { NULL, 0 }, PAIRS), -1);
    ck_assert_int_eq(pair_store_open(&store, memory, PAIRS), 0);
    ck_assert(put(&store, 0, "text", 100));
    slot = (uint32_t *)((uint8_t *)memory.p + 16); /* version, bytes, place */
    slot[1] = UINT32_MAX;
    ck_assert(has(&store, 0, NULL, 0));
    slot[1] = 104;
    slot[2] = UINT32_MAX;
    ck_assert(has(&store, 0, NULL, 0));
    slot[2] = 0; /* among the slots */
    ck_assert(has(&store, 0, NULL, 0));
    end();
}
END_TEST

START_TEST(a_descriptor_is_shared)
{
    int fd = pair_memory_create(PAIRS);
    struct pair_store theirs;

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(pair_memory_map(&memory, fd), 0);
    ck_assert_int_eq(pair_memory_map(&other, fd), 0);
    close(fd);
    ck_assert_ptr_ne(memory.p, other.p);
    ck_assert_int_eq(pair_store_open(&store, memory, PAIRS), 0);
    ck_assert_int_eq(pair_store_open(&theirs, other, PAIRS), 0);
    ck_assert(put(&store, 4, "shared", 77));
    ck_assert(has(&theirs, 4, "shared", 77));
    pair_memory_release(&memory);
    pair_memory_release(&other);
}
END_TEST

/* Two names whose first bytes, the key of the search, collide. */
static const uint8_t *name_of(unsigned i)
{
    static uint8_t name[PAIR_NAME];

    name[PAIR_NAME - 1] = (uint8_t)i;
    return name;
}

START_TEST(records_are_found_by_name_after_a_reload)
{
    struct pair_store next;

    begin();
    for (uint32_t i = 0; i < PAIRS; i++)
        pair_store_name(&store, i, name_of(i));
    ck_assert(put(&store, 0, "gone", 1));
    ck_assert(put(&store, 2, "two", 2));
    ck_assert(put(&store, 4, "four", 5000));
    ck_assert_int_eq(pair_memory_reserve(&other, 4), 0);
    ck_assert_int_eq(pair_store_open(&next, other, 4), 0);
    pair_store_name(&next, 0, name_of(4));
    pair_store_name(&next, 1, name_of(2));
    pair_store_name(&next, 2, name_of(9)); /* new */
    pair_store_name(&next, 3, name_of(1)); /* without a record */
    pair_store_adopt(&next, &(struct tls_memory) { NULL, 0 });
    ck_assert(has(&next, 0, NULL, 0));
    ck_assert(put(&next, 1, "newer", 0));
    pair_store_adopt(&next, &memory);
    ck_assert(has(&next, 0, "four", 5000));
    ck_assert(has(&next, 1, "newer", 0));
    ck_assert(has(&next, 2, NULL, 0));
    ck_assert(has(&next, 3, NULL, 0));
    pair_memory_release(&other);
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, records_are_replaced);
    tcase_add_loop_test(tcase, old_records_are_overwritten, 0, 2);
    tcase_add_test(tcase, the_begin_of_a_record_is_peeked_at);
    tcase_add_test(tcase, a_full_store_keeps_no_record);
    tcase_add_test(tcase, the_record_of_a_killed_writer_is_none);
    tcase_add_test(tcase, a_writer_may_be_killed_at_any_instruction);
    tcase_add_test(tcase, wrong_memory_is_never_read_beyond);
    tcase_add_test(tcase, a_descriptor_is_shared);
    tcase_add_test(tcase, records_are_found_by_name_after_a_reload);
}

TEST_MAIN("pair_store", add_tests)
