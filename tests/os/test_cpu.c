/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of processors: affinity, and quotas of cgroup v1 and v2 read from a tree of files that
 * stands for the system's. */
#include "base/cpu_mask.h"
#include "os/limits.h"
#include "os/process.h"

#include "base/compiler.h"
#include "base/file_tree.h"
#include "support/directory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER_MOUNTS                                                                               \
    "22 27 0:21 / /proc rw - proc proc rw\n"                                                       \
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
#define V1_MOUNT(top)                                                                              \
    "32 31 0:28 " top " /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"                      \
    "33 31 0:29 " top " /sys/fs/cgroup/cpu,cpuacct ro master:9 - cgroup cgroup rw,cpu,cpuacct\n"
#define V1_GROUPS(path) "5:cpuset:/elsewhere\n4:cpuacct,cpu:" path "\n1:name=cpu:/elsewhere\n"

static const struct {
    const char *name;
    struct file_tree_groups groups;
    unsigned quota;
} cases[] = {
    { "v2",
        { "0::/a.slice/b\n", OTHER_MOUNTS V2_MOUNT,
            { { "/sys/fs/cgroup/a.slice/b/cpu.max", "300000 100000\n" } } },
        3 },
    { "v2 rounded up",
        { "0::/a\n", V2_MOUNT, { { "/sys/fs/cgroup/a/cpu.max", "210000 100000\n" } } }, 3 },
    { "v2 less than one",
        { "0::/a\n", V2_MOUNT, { { "/sys/fs/cgroup/a/cpu.max", "1000 100000\n" } } }, 1 },
    { "v2 without a limit",
        { "0::/a\n", V2_MOUNT, { { "/sys/fs/cgroup/a/cpu.max", "max 100000\n" } } }, 0 },
    { "v2 in the root", { "0::/\n", V2_MOUNT, { { "/sys/fs/cgroup/cpu.max", "500000 100000\n" } } },
        5 },
    { "v2 limited from above",
        { "0::/a/b/c\n", V2_MOUNT,
            { { "/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n" },
                { "/sys/fs/cgroup/a/b/cpu.max", "700000 100000\n" },
                { "/sys/fs/cgroup/a/cpu.max", "20000 10000\n" },
                { "/sys/fs/cgroup/cpu.max", "900000 100000\n" } } },
        2 },
    { "v2 limited below",
        { "0::/a/b\n", V2_MOUNT,
            { { "/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n" },
                { "/sys/fs/cgroup/a/cpu.max", "900000 100000\n" },
                { "/sys/fs/cgroup/a/b/c/cpu.max", "100000 100000\n" },
                { "/sys/fs/cgroup/x/cpu.max", "100000 100000\n" },
                { "/sys/fs/cpu.max", "100000 100000\n" } } },
        2 },
    { "v2 with a subtree mounted",
        { "0::/docker/abc/x\n", "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/x/cpu.max", "400000 100000\n" },
                { "/sys/fs/cgroup/cpu.max", "300000 100000\n" },
                { "/sys/fs/cgroup/docker/abc/x/cpu.max", "100000 100000\n" } } },
        3 },
    { "v2 with our group mounted",
        { "0::/docker/abc\n", "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/cpu.max", "300000 100000\n" } } },
        3 },
    { "v2 with another subtree mounted",
        { "0::/docker/abc\n", "30 23 0:26 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/cpu.max", "300000 100000\n" } } },
        0 },
    { "v2 mounted from above the namespace",
        { "0::/x\n", "30 23 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/cpu.max", "300000 100000\n" },
                { "/sys/fs/cgroup/x/cpu.max", "100000 100000\n" } } },
        3 },
    { "v2 mounted beside the namespace",
        { "0::/\n", "30 23 0:26 /../other /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/cpu.max", "300000 100000\n" } } },
        0 },
    { "v2 outside of the namespace",
        { "0::/../x\n", V2_MOUNT,
            { { "/sys/fs/cgroup/cpu.max", "300000 100000\n" },
                { "/sys/fs/x/cpu.max", "100000 100000\n" } } },
        0 },
    { "v2 outside of the namespace and mounted from there",
        { "0::/../x\n", "30 23 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            { { "/sys/fs/cgroup/x/cpu.max", "300000 100000\n" } } },
        3 },
    { "v2 at a place with a blank",
        { "0::/a\n", "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n",
            { { "/my groups/a/cpu.max", "300000 100000\n" } } },
        3 },
    { "v1",
        { V1_GROUPS("/a/b"), OTHER_MOUNTS V1_MOUNT("/"),
            { { "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "250000\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n" } } },
        3 },
    { "v1 without a limit",
        { V1_GROUPS("/a"), V1_MOUNT("/"),
            { { "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } } },
        0 },
    { "v1 limited from above",
        { V1_GROUPS("/a/b"), V1_MOUNT("/"),
            { { "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "80000\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "20000\n" } } },
        4 },
    { "v1 with a subtree mounted",
        { V1_GROUPS("/docker/abc"), V1_MOUNT("/docker/abc"),
            { { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n" } } },
        3 },
    { "v1 and v2",
        { "4:cpu:/a\n0::/b\n",
            "33 31 0:29 / /v1 rw - cgroup cgroup rw,cpu\n34 31 0:30 / /v2 rw - cgroup2 cgroup2 "
            "rw\n",
            { { "/v1/a/cpu.cfs_quota_us", "500000\n" }, { "/v1/a/cpu.cfs_period_us", "100000\n" },
                { "/v2/b/cpu.max", "400000 100000\n" } } },
        4 },
    { "hybrid, limited in v1 alone",
        { "4:cpu,cpuacct:/a\n2:memory:/m\n0::/init.scope\n",
            V1_MOUNT(
                "/") "35 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n",
            { { "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" },
                { "/sys/fs/cgroup/unified/init.scope/cgroup.procs", "1\n" } } },
        2 },
    { "v1 in a namespace",
        { V1_GROUPS("/"), V1_MOUNT("/"),
            { { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n" },
                { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n" } } },
        2 },
    { "v1 without the period",
        { V1_GROUPS("/a"), V1_MOUNT("/"),
            { { "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n" } } },
        0 },
    { "malformed quotas",
        { "4:cpu:/a/b\n0::/a/b\n",
            "33 31 0:29 / /v1 rw - cgroup cgroup rw,cpu\n34 31 0:30 / /v2 rw - cgroup2 cgroup2 "
            "rw\n",
            { { "/v1/a/b/cpu.cfs_quota_us", "100000x\n" },
                { "/v1/a/b/cpu.cfs_period_us", "100000\n" },
                { "/v1/a/cpu.cfs_quota_us", "100000\n" }, { "/v2/a/b/cpu.max", "100000\n" },
                { "/v2/a/cpu.max", "100000 0\n" }, { "/v2/cpu.max", "" } } },
        0 },
    { "malformed quotas and a good one",
        { "0::/a/b/c/d/e\n", V2_MOUNT,
            { { "/sys/fs/cgroup/a/b/c/d/e/cpu.max", "\n" },
                { "/sys/fs/cgroup/a/b/c/d/cpu.max", "-100000 100000\n" },
                { "/sys/fs/cgroup/a/b/c/cpu.max", "100000 100000 1\n" },
                { "/sys/fs/cgroup/a/b/cpu.max", " \n" },
                { "/sys/fs/cgroup/a/cpu.max", "99999999999999999999999 1\n" },
                { "/sys/fs/cgroup/cpu.max", "700000 100000\n" } } },
        7 },
    { "malformed mounts",
        { "0::/\n",
            "\n - \n- \na b c - cgroup2 cgroup2 rw\n30 23 0:26 / /v2 rw -\n"
            "30 23 0:26 / /v2 rw - cgroup2\n30 23 0:26 / /v2 rw - cgroup2 cgroup2\n"
            "30 23 0:26 / /v2\\0 rw - cgroup2 cgroup2 rw\n30 23 0:26 / /v2 rw cgroup2 cgroup2 rw\n",
            { { "/v2/cpu.max", "100000 100000\n" } } },
        0 },
    { "malformed groups",
        { "\n:\n::\n0:\n0:/a\n1::/a\n0::a\n0::\n4:cpu:\n4:cpux,xcpu:/a\n", V2_MOUNT,
            { { "/sys/fs/cgroup/cpu.max", "100000 100000\n" },
                { "/sys/fs/cgroup/a/cpu.max", "100000 100000\n" } } },
        0 },
    { "no cgroup file", { NULL, V2_MOUNT, { { "/sys/fs/cgroup/cpu.max", "100000 100000\n" } } },
        0 },
    { "no mount table", { "0::/\n", NULL, { { "/sys/fs/cgroup/cpu.max", "100000 100000\n" } } },
        0 },
};

/* The processors of our affinity mask. */
static unsigned affinity(void)
{
    struct cpu_mask own;

    ck_assert(os_cpu_bound(own.words, CPU_MASK_WORDS) == 0);
    return cpu_mask_count(&own);
}

START_TEST(quota)
{
    unsigned count = affinity(), limit = cases[_i].quota;
    char root[64];

    file_tree_make_root(root, directory, _i, &cases[_i].groups);
    ck_assert_msg(os_cgroup_cpu_quota(root) == limit, "%s: %u instead of %u", cases[_i].name,
        os_cgroup_cpu_quota(root), limit);
    ck_assert_uint_eq(os_cpu_allowed(root), limit != 0 && limit < count ? limit : count);
}
END_TEST

START_TEST(long_lines_are_read_whole)
{
    static const char head[] = "1 1 0:1 / / rw - overlay overlay lowerdir=";
    size_t n = 100000;
    char *mounts = malloc(n + 512), root[64];

    ck_assert_ptr_nonnull(mounts);
    memcpy(mounts, head, sizeof(head) - 1);
    memset(mounts + sizeof(head) - 1, 'x', n);
    strcpy(mounts + sizeof(head) - 1 + n, "\n" V2_MOUNT);
    snprintf(root, sizeof(root), "%s/long", directory);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    file_tree_write(root, "/proc/self/cgroup", "0::/a\n");
    file_tree_write(root, "/proc/self/mountinfo", mounts);
    file_tree_write(root, "/sys/fs/cgroup/a/cpu.max", "600000 100000\n");
    ck_assert_uint_eq(os_cgroup_cpu_quota(root), 6);

    /* a group's path, too long for any directory */
    memset(mounts, '/', n);
    memcpy(mounts, "0::/", 4);
    mounts[n] = '\0';
    file_tree_write(root, "/proc/self/cgroup", mounts);
    ck_assert_uint_eq(os_cgroup_cpu_quota(root), 0);
    free(mounts);
}
END_TEST

START_TEST(allowed_follows_the_affinity_mask)
{
    struct cpu_mask before, one;
    unsigned count = os_cpu_allowed("");
    char root[64];

    ck_assert_uint_ge(count, 1);
    ck_assert_uint_le(count, affinity());
    snprintf(root, sizeof(root), "%s/nothing", directory);
    ck_assert_uint_eq(os_cpu_allowed(root), affinity());

    ck_assert(os_cpu_bound(before.words, CPU_MASK_WORDS) == 0);
    one = cpu_mask_choose(&before, 0);
    ck_assert_int_eq(os_cpu_bind(one.words, CPU_MASK_WORDS), 0);
    ck_assert_uint_eq(os_cpu_allowed(""), 1);
    ck_assert_uint_eq(os_cpu_allowed(root), 1);
    ck_assert_int_eq(os_cpu_bind(before.words, CPU_MASK_WORDS), 0);
}
END_TEST

START_TEST(auto_takes_the_allowed_in_turn)
{
    static const unsigned processors[] = { 1, 4, 1023 };
    struct cpu_mask allowed = { { 0 } }, out = cpu_mask_choose(&allowed, 3);

    ck_assert_uint_eq(cpu_mask_count(&out), 0);

    for (size_t i = 0; i < countof(processors); i++)
        cpu_mask_add(&allowed, processors[i]);
    for (unsigned index = 0; index < 7; index++) {
        out = cpu_mask_choose(&allowed, index);
        ck_assert_uint_eq(cpu_mask_count(&out), 1);
        ck_assert(cpu_mask_has(&out, processors[index % countof(processors)]));
    }
}
END_TEST

START_TEST(parse_mask)
{
    char text[CPU_MASK_MAX + 2];
    struct cpu_mask out;

    ck_assert_ptr_null(cpu_mask_parse("0101", &out));
    ck_assert_uint_eq(cpu_mask_count(&out), 2);
    ck_assert(cpu_mask_has(&out, 0));
    ck_assert(cpu_mask_has(&out, 2));

    memset(text, '0', sizeof(text));
    text[0] = '1';
    text[CPU_MASK_MAX] = '\0';
    ck_assert_ptr_null(cpu_mask_parse(text, &out));
    ck_assert_uint_eq(cpu_mask_count(&out), 1);
    ck_assert(cpu_mask_has(&out, CPU_MASK_MAX - 1));
    text[CPU_MASK_MAX] = '0';
    text[CPU_MASK_MAX + 1] = '\0';
    ck_assert_pstr_eq(cpu_mask_parse(text, &out), "a mask has at most 1024 digits");

    ck_assert_pstr_eq(cpu_mask_parse("", &out), "a mask consists of the digits 0 and 1");
    ck_assert_pstr_eq(cpu_mask_parse("0121", &out), "a mask consists of the digits 0 and 1");
    ck_assert_pstr_eq(cpu_mask_parse("auto", &out), "a mask consists of the digits 0 and 1");
    ck_assert_pstr_eq(cpu_mask_parse("000", &out), "a mask needs at least one processor");
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_loop_test(tcase, quota, 0, countof(cases));
    tcase_add_test(tcase, long_lines_are_read_whole);
    tcase_add_test(tcase, allowed_follows_the_affinity_mask);
    tcase_add_test(tcase, auto_takes_the_allowed_in_turn);
    tcase_add_test(tcase, parse_mask);
}

TEST_MAIN("cpu", add_tests)
