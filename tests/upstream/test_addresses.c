/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of known addresses: an entry is read as last written, after any act of a now dead
 * writer; an entry has a single writer; impossible numbers are no addresses. */
#include "shm/declared.h"
#include "upstream/addresses.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct known {
    struct declared declared;
    struct zone *zone;
    struct addresses_writer writer;
    struct addresses_key key;
    uint32_t entry, version;
    struct resolve_set *set;
};

static struct addresses_key key_of(const char *group, const char *name)
{
    const struct upstream upstream = { .name = group };
    const struct upstream_server server = { .name = name };

    return addresses_key_of(&upstream, &server);
}

static void start(struct known *known)
{
    memset(known, 0, sizeof(*known));
    declared_start(&known->declared);
    known->zone = addresses_declare(&known->declared.zones, known->declared.arena);
    ck_assert_ptr_nonnull(known->zone);
    ck_assert_int_eq(zones_open(&known->declared.zones, NULL, &known->declared.log.log), 0);
    known->writer.zone = known->zone;
    known->version = UINT32_MAX;
    known->key = key_of("u", "a.test:80");
    known->set = resolve_set_create(&memory_plain, NULL);
    ck_assert_ptr_nonnull(known->set);
}

static void stop(struct known *known)
{
    memory_release(&memory_plain, known->set);
    declared_stop(&known->declared);
}

/* Writes n addresses ending with the byte `last` and the successors. */
static void write_addresses(struct known *known, unsigned n, uint8_t last)
{
    known->set->n = 0;
    for (unsigned i = 0; i < n; i++) {
        struct resolve_found found = { .priority = (uint16_t)i, .weight = i + 1 };

        found.address.length = sizeof(found.address.in);
        found.address.in.sin_family = AF_INET;
        found.address.in.sin_port = htons(80);
        found.address.in.sin_addr.s_addr = htonl(0x0a000000u + last + i);
        resolve_set_add(known->set, &found);
    }
    addresses_write(&known->writer, known->entry, known->set);
}

/* Reads what is new; the last byte of the first address, or 0. */
static unsigned read_last(struct known *known, bool *answered)
{
    if (!addresses_read(
            known->zone, known->entry, &known->key, &known->version, answered, known->set))
        return 0;
    ck_assert_uint_gt(known->set->n, 0);
    return ntohl(known->set->list[0].address.in.sin_addr.s_addr) & 255;
}

START_TEST(what_is_written_is_read_once)
{
    struct addresses_state state;
    bool answered;
    struct known known;

    start(&known);
    ck_assert_uint_eq(addresses_find(known.zone, &known.key), ADDRESSES_NONE);
    known.entry = addresses_claim(&known.writer, &known.key);
    ck_assert_uint_ne(known.entry, ADDRESSES_NONE);
    ck_assert_uint_eq(addresses_find(known.zone, &known.key), known.entry);
    write_addresses(&known, 2, 7);
    ck_assert_uint_eq(read_last(&known, &answered), 7);
    ck_assert(!answered);
    ck_assert_uint_eq(known.set->n, 2);
    ck_assert_uint_eq(known.set->list[1].priority, 1);
    ck_assert_uint_eq(known.set->list[1].weight, 2);
    ck_assert_uint_eq(address_port(&known.set->list[1].address), 80);
    ck_assert_uint_eq(read_last(&known, &answered), 0);
    addresses_note(&known.writer, known.entry, 1000, NULL, NULL);
    addresses_note(&known.writer, known.entry, 2000, "a.test", "no\nanswer");
    addresses_note(&known.writer, known.entry, 3000, "a.test", "no\nanswer");
    ck_assert_uint_eq(read_last(&known, &answered), 0);
    ck_assert(answered);
    ck_assert(addresses_read_state(known.zone, known.entry, &known.key, &state));
    ck_assert_uint_eq(state.n, 2);
    ck_assert_uint_eq(state.answered_ms, 1000);
    ck_assert_uint_eq(state.failed_ms, 2000);
    ck_assert_str_eq(state.why, "a.test: no?answer");
    stop(&known);
}
END_TEST

/* The room for names takes no memory before there are some, whoever looks for one. */
START_TEST(room_takes_no_memory)
{
    struct known known;
    struct stat st;

    start(&known);
    ck_assert_uint_eq(addresses_find(known.zone, &known.key), ADDRESSES_NONE);
    known.entry = addresses_claim(&known.writer, &known.key);
    write_addresses(&known, 2, 7);
    ck_assert_int_eq(fstat(known.zone->segment.fd, &st), 0);
    ck_assert_int_lt(st.st_blocks * 512, 256 * 1024);
    stop(&known);
}
END_TEST

/* A writer that dies within a write leaves the copy of before. */
START_TEST(half_a_copy_is_not_read)
{
    struct addresses_entry *entry;
    struct known known;
    bool answered;

    start(&known);
    known.entry = addresses_claim(&known.writer, &known.key);
    write_addresses(&known, 1, 7);
    entry = addresses_entry_of(known.zone, known.entry);
    memset(&entry->copies[(entry->version + 1) & 1], 0xee, sizeof(entry->copies[0]));
    ck_assert_uint_eq(read_last(&known, &answered), 7);
    write_addresses(&known, 1, 9);
    ck_assert_uint_eq(read_last(&known, &answered), 9);
    stop(&known);
}
END_TEST

/* An impossible number of addresses is cut, and addresses belong to their family. */
START_TEST(damage_is_bounded)
{
    struct addresses_entry *entry;
    struct known known;
    bool answered;

    start(&known);
    known.entry = addresses_claim(&known.writer, &known.key);
    entry = addresses_entry_of(known.zone, known.entry);
    memset(&entry->copies, 0xee, sizeof(entry->copies));
    memset(entry->why, 0xee, sizeof(entry->why));
    read_last(&known, &answered);
    ck_assert_uint_eq(known.set->n, RESOLVE_ADDRESSES);
    ck_assert_int_eq(known.set->list[0].address.any.sa_family, AF_INET6);
    ck_assert(
        addresses_read_state(known.zone, known.entry, &known.key, &(struct addresses_state) { 0 }));
    stop(&known);
}
END_TEST

/* Whether a helper process gets the entry, and then writes there; the helper may stay until told[0]
 * is closed. */
static bool claims_in_child(struct known *known, bool stays, int told[2])
{
    char result = 0, go = 0;
    pid_t pid = fork();
    int status;

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        close(told[0]);
        if (zones_enter_helper(&known->declared.zones, &known->declared.log.log) == -1)
            _exit(2);
        known->entry = addresses_claim(&known->writer, &known->key);
        result = known->entry != ADDRESSES_NONE;
        if (result)
            write_addresses(known, 1, 33);
        if (stays && write(told[1], &result, 1) == 1)
            while (read(told[1], &go, 1) > 0)
                continue;
        _exit(result ? 0 : 1);
    }
    if (stays) {
        ck_assert_int_eq(read(told[0], &result, 1), 1);
        return result;
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

/* A single process has an entry until it ends; the written addresses stay. */
START_TEST(an_entry_has_one_writer)
{
    struct known known;
    int told[2];
    bool answered;

    start(&known);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, told), 0);
    ck_assert(claims_in_child(&known, true, told));
    ck_assert(!claims_in_child(&known, false, told));
    ck_assert_uint_eq(addresses_claim(&known.writer, &known.key), ADDRESSES_NONE);
    known.entry = addresses_find(known.zone, &known.key);
    ck_assert_uint_eq(read_last(&known, &answered), 33);
    known.key = key_of("u", "b.test:80"); /* another one is free */
    ck_assert(claims_in_child(&known, false, told));
    known.key = key_of("u", "a.test:80");
    close(told[0]);
    close(told[1]);
    ck_assert_int_gt(wait(NULL), 0);
    ck_assert_uint_eq(addresses_claim(&known.writer, &known.key), known.entry);
    stop(&known);
}
END_TEST

/* Names no longer asked for make room, the oldest first. */
START_TEST(old_names_make_room)
{
    struct addresses_writer later = { .claimed = { 0 } };
    struct known known;
    char name[32];

    start(&known);
    for (uint32_t i = 0; i < ADDRESSES_NAMES; i++) {
        struct addresses_key key;

        snprintf(name, sizeof(name), "%u.test:80", (unsigned)i);
        key = key_of("u", name);
        known.entry = addresses_claim(&known.writer, &key);
        ck_assert_uint_eq(known.entry, i);
        addresses_note(&known.writer, i, i == 1234 ? 1 : 1000, NULL, NULL);
    }
    ck_assert_uint_eq(addresses_claim(&known.writer, &known.key), ADDRESSES_NONE);
    later.zone = known.zone; /* for a later configuration, with none of the addresses */
    ck_assert_uint_eq(addresses_claim(&later, &known.key), 1234);
    known.key = key_of("u", "1234.test:80");
    ck_assert_uint_eq(addresses_find(known.zone, &known.key), ADDRESSES_NONE);
    ck_assert(!addresses_read(
        known.zone, 1234, &known.key, &known.version, &(bool) { false }, known.set));
    stop(&known);
}
END_TEST

/* The text of a server tells entries apart, and so do groups; the resolver does for an address of a
 * directive alone. */
START_TEST(keys_differ)
{
    const struct names_setting resolver = { .servers = "10.0.0.1:53" };
    const struct upstream_server server = { .name = "a" },
                                 service = { .name = "a", .service = "http" };
    struct upstream upstream = { .name = "u" };
    struct addresses_key key = addresses_key_of(&upstream, &server), other;

    other = key_of("v", "a");
    ck_assert_uint_ne(key.part[0], other.part[0]);
    other = addresses_key_of(&upstream, &service);
    ck_assert_uint_ne(key.part[0], other.part[0]);
    upstream.resolver = &resolver;
    other = addresses_key_of(&upstream, &server);
    ck_assert_uint_eq(key.part[0], other.part[0]);
    upstream.is_single = true;
    other = addresses_key_of(&upstream, &server);
    ck_assert_uint_ne(key.part[0], other.part[0]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, what_is_written_is_read_once);
    tcase_add_test(tcase, room_takes_no_memory);
    tcase_add_test(tcase, half_a_copy_is_not_read);
    tcase_add_test(tcase, damage_is_bounded);
    tcase_add_test(tcase, an_entry_has_one_writer);
    tcase_add_test(tcase, old_names_make_room);
    tcase_add_test(tcase, keys_differ);
}

TEST_MAIN("known", add_tests)
