/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the files of a test's own /proc and /sys below a directory. Directories on the way are
 * made; what is there already is kept. */
#include "base/file_tree.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void file_tree_write(const char *root, const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file = fopen(path, "we");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

void file_tree_make_root(
    char root[64], const char *parent, int number, const struct file_tree_groups *groups)
{
    snprintf(root, 64, "%s/%d", parent, number);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    if (groups->cgroup != NULL)
        file_tree_write(root, "/proc/self/cgroup", groups->cgroup);
    if (groups->mounts != NULL)
        file_tree_write(root, "/proc/self/mountinfo", groups->mounts);
    for (int i = 0; i < FILE_TREE_FILES && groups->files[i].name != NULL; i++)
        file_tree_write(root, groups->files[i].name, groups->files[i].text);
}
