/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory that the process may use: the machine's, and limits of cgroup v1 and v2 read from a
 * tree of files. */
#include "os/limits.h"

#include "base/compiler.h"
#include "base/file_tree.h"
#include "support/directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1024 * 1024)
#define V1_MOUNTS(top)                                                                             \
    "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct ro master:9 - cgroup cgroup rw,cpu,cpuacct\n"         \
    "34 31 0:30 " top " /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n"
#define UNLIMITED "9223372036854771712\n"

static const struct {
    const char *name;
    struct file_tree_groups groups;
    int64_t limit;
} cases[] = {
    { "v2",
        { "0::/a.slice/b\n", V2_MOUNT,
            { { "/sys/fs/cgroup/a.slice/b/memory.max", "536870912\n" } } },
        512 * MIB },
    { "v2 without a limit",
        { "0::/a\n", V2_MOUNT,
            { { "/sys/fs/cgroup/a/memory.max", "max\n" },
                { "/sys/fs/cgroup/a/memory.high", "max\n" } } },
        0 },
    { "v2 limited from above",
        { "0::/a/b/c\n", V2_MOUNT,
            { { "/sys/fs/cgroup/a/b/c/memory.max", "max\n" },
                { "/sys/fs/cgroup/a/b/memory.max", "104857600\n" },
                { "/sys/fs/cgroup/a/memory.max", "209715200\n" } } },
        100 * MIB },
    { "v2 slowed down before it is killed",
        { "0::/a/b\n", V2_MOUNT,
            { { "/sys/fs/cgroup/a/b/memory.max", "209715200\n" },
                { "/sys/fs/cgroup/a/memory.high", "104857600\n" },
                { "/sys/fs/cgroup/a/memory.max", "max\n" } } },
        100 * MIB },
    { "v2 in a namespace",
        { "0::/\n", "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/memory.max", "134217728\n" } } },
        128 * MIB },
    { "v1",
        { "3:cpu,cpuacct:/x\n4:memory:/a/b\n0::/y\n", V1_MOUNTS("/"),
            { { "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "268435456\n" },
                { "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", UNLIMITED },
                { "/sys/fs/cgroup/cpu,cpuacct/x/memory.limit_in_bytes", "1048576\n" } } },
        256 * MIB },
    { "v1 without a limit",
        { "4:memory:/a\n", V1_MOUNTS("/"),
            { { "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", UNLIMITED },
                { "/sys/fs/cgroup/memory/memory.limit_in_bytes", UNLIMITED } } },
        0 },
    { "v1 limited from above",
        { "4:memory:/a/b\n", V1_MOUNTS("/"),
            { { "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", UNLIMITED },
                { "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "33554432\n" } } },
        32 * MIB },
    { "v1 with our group mounted",
        { "4:memory:/docker/abc\n", V1_MOUNTS("/docker/abc"),
            { { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n" } } },
        64 * MIB },
    { "hybrid",
        { "4:memory:/a\n0::/b\n",
            V1_MOUNTS("/") "35 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n" },
                { "/sys/fs/cgroup/unified/b/cgroup.procs", "1\n" } } },
        64 * MIB },
    { "malformed",
        { "4:memory:/a\n0::/a/b\n", V2_MOUNT V1_MOUNTS("/"),
            { { "/sys/fs/cgroup/a/b/memory.max", "\n" }, { "/sys/fs/cgroup/a/memory.max", "-5\n" },
                { "/sys/fs/cgroup/a/memory.high", "5k\n" }, { "/sys/fs/cgroup/memory.max", "" },
                { "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                    "99999999999999999999999\n" } } },
        0 },
    { "no files", { "4:memory:/a\n0::/a\n", V2_MOUNT V1_MOUNTS("/"), { { NULL, NULL } } }, 0 },
    { "no cgroup file", { NULL, V2_MOUNT, { { "/sys/fs/cgroup/memory.max", "1000000\n" } } }, 0 },
    { "no mount table", { "0::/\n", NULL, { { "/sys/fs/cgroup/memory.max", "1000000\n" } } }, 0 },
};

START_TEST(limit)
{
    int64_t expected = cases[_i].limit, found;
    char root[64];

    file_tree_make_root(root, directory, _i, &cases[_i].groups);
    found = os_cgroup_memory_limit(root);
    ck_assert_msg(
        found == expected, "%s: %" PRId64 " instead of %" PRId64, cases[_i].name, found, expected);

    /* the machine may have less than the group may use */
    ck_assert_int_eq(os_ram_allowed(root), expected);
    file_tree_write(
        root, "/proc/meminfo", "MemFree: 1 kB\nMemTotal:       49152 kB\nMemTotal: 5 kB\n");
    ck_assert_int_eq(
        os_ram_allowed(root), expected != 0 && expected < 48 * MIB ? expected : 48 * MIB);
}
END_TEST

START_TEST(what_the_machine_says_is_not_trusted)
{
    static const char *const texts[] = { "", "MemTotal:\n", "MemTotal: -1 kB\n", "MemTotal: x\n",
        "MemTotal: 9999999999999999999999 kB\n", "SMemTotal: 5 kB\n" };
    char root[64];

    for (size_t i = 0; i < countof(texts); i++) {
        snprintf(root, sizeof(root), "%s/text%zu", directory, i);
        ck_assert_int_eq(mkdir(root, 0755), 0);
        file_tree_write(root, "/proc/meminfo", texts[i]);
        ck_assert_int_eq(os_ram_allowed(root), 0);
    }
    ck_assert_int_gt(os_ram_allowed(""), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_loop_test(tcase, limit, 0, countof(cases));
    tcase_add_test(tcase, what_the_machine_says_is_not_trusted);
}

TEST_MAIN("ram", add_tests)
