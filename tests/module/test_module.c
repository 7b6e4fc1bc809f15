/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading shared objects: every load has separate code and variables, and any fault of a file is
 * one line. */
#include "module/module.h"
#include "support/test.h"

#include "base/compiler.h"
#include "protocols/table.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct module_test {
    char directory[32];
    struct arena *arena;
    struct modules modules;
    char text[MODULE_TEXT];
};

static void set_up(struct module_test *test)
{
    strcpy(test->directory, "/tmp/fb_module.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test->directory));
    test->arena = arena_create();
    ck_assert_ptr_nonnull(test->arena);
    ck_assert_ptr_nonnull(protocols_builtin[0]); /* links the SDK's calls, which modules need */
    SLIST_INIT(&test->modules);
}

static char *path_in(struct module_test *test, const char *name)
{
    char *path = arena_printf(test->arena, "%s/%s", test->directory, name);

    ck_assert_ptr_nonnull(path);
    return path;
}

static void tear_down(struct module_test *test)
{
    DIR *dir = opendir(test->directory);
    const struct dirent *entry;

    while (!SLIST_EMPTY(&test->modules))
        module_unload(&test->modules);
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            ck_assert_int_eq(remove(path_in(test, entry->d_name)), 0);
    closedir(dir);
    ck_assert_int_eq(rmdir(test->directory), 0);
    arena_destroy(&test->arena);
}

/* The path of a module built beside this program. */
static const char *built(struct module_test *test, const char *name)
{
    return arena_printf(test->arena, MODULES_PATH "/%s", name);
}

/* Writes a copy of a built module over an existing file: the same inode, as with an editor or
 * cp. */
static void copy_module(struct module_test *test, const char *name, const char *to)
{
    FILE *in = fopen(built(test, name), "re"), *out = fopen(to, "we");
    char bytes[4096];
    size_t n;

    ck_assert(in != NULL && out != NULL);
    while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        ck_assert_uint_eq(fwrite(bytes, 1, n, out), n);
    ck_assert_int_eq(fclose(out), 0);
    fclose(in);
}

static struct module *load_module(
    struct module_test *test, struct modules *modules, const char *path)
{
    struct module *module = module_load(modules, test->arena, path, test->text);

    ck_assert_msg(module != NULL, "%s %s", path, test->text);
    ck_assert_ptr_eq(SLIST_FIRST(modules), module);
    ck_assert_int_eq(errno, 0);
    return module;
}

static unsigned count_of(const struct module *module)
{
    unsigned (*count)(void) = (unsigned (*)(void))dlsym(module->handle, "plain_count");

    ck_assert_ptr_nonnull(count);
    return count();
}

static unsigned count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

START_TEST(a_module_is_loaded)
{
    struct module *module;
    unsigned descriptors;
    struct module_test test;

    set_up(&test);
    descriptors = count_descriptors();
    module = load_module(&test, &test.modules, built(&test, "greet_one.so"));
    ck_assert_str_eq(module->protocol->name, "greet");
    ck_assert_uint_eq(module->protocol->directive_n, 2);
    ck_assert_ptr_nonnull(module->protocol->ops->data);
    ck_assert_ptr_null(module->protocol->ops->opened);
    ck_assert_uint_eq(count_descriptors(), descriptors + 1); /* the copy, for debuggers */
    tear_down(&test);
}
END_TEST

START_TEST(the_copy_of_a_module_cannot_be_changed)
{
    struct module_test test;
    struct module *module;
    char path[64];

    set_up(&test);
    module = load_module(&test, &test.modules, built(&test, "plain_a.so"));
    ck_assert_int_eq(pwrite(module->memory, "x", 1, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(ftruncate(module->memory, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_ptr_eq(
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, module->memory, 0), MAP_FAILED);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", module->memory);
    ck_assert_int_eq(truncate(path, 0), -1);
    tear_down(&test);
}
END_TEST

START_TEST(each_load_has_its_own_variables)
{
    struct modules others = SLIST_HEAD_INITIALIZER(others);
    struct module *first, *second;
    struct module_test test;

    set_up(&test);
    first = load_module(&test, &test.modules, built(&test, "plain_a.so"));
    ck_assert_uint_eq(count_of(first), 1);
    ck_assert_uint_eq(count_of(first), 2);
    second = load_module(&test, &others, built(&test, "plain_a.so"));
    ck_assert_uint_eq(count_of(second), 1);
    ck_assert_uint_eq(count_of(first), 3);
    module_unload(&others);
    ck_assert_uint_eq(count_of(first), 4);
    ck_assert(SLIST_EMPTY(&others));
    tear_down(&test);
}
END_TEST

/* Old and new code live side by side for many reloads, and descriptors' numbers come again. */
START_TEST(a_changed_file_is_new_code)
{
    static const char *const names[] = { "plain_a", "plain_b" };
    struct modules cycles[24];
    struct module *loaded[24];
    struct module_test test;
    char *path, name[32];

    set_up(&test);
    path = path_in(&test, "module.so");
    for (unsigned i = 0; i < countof(cycles); i++) {
        snprintf(name, sizeof(name), "%s.so", names[i % 2]);
        if (i % 3 == 0)
            unlink(path);
        copy_module(&test, name, path);
        SLIST_INIT(&cycles[i]);
        loaded[i] = load_module(&test, &cycles[i], path);
        ck_assert_str_eq(loaded[i]->protocol->name, names[i % 2]);
        ck_assert_uint_eq(count_of(loaded[i]), 1);
    }
    for (unsigned i = 0; i < countof(cycles); i++) {
        ck_assert_str_eq(loaded[i]->protocol->name, names[i % 2]);
        ck_assert_uint_eq(count_of(loaded[i]), 2);
        module_unload(&cycles[i]);
    }
    tear_down(&test);
}
END_TEST

/* The file is not needed any more, and is nobody's to overwrite code with. */
START_TEST(a_loaded_module_does_not_need_its_file)
{
    struct module *module;
    struct module_test test;
    char *path;
    FILE *file;

    set_up(&test);
    path = path_in(&test, "module.so");
    copy_module(&test, "plain_a.so", path);
    module = load_module(&test, &test.modules, path);
    ck_assert_uint_eq(count_of(module), 1);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs("nothing", file);
    fclose(file);
    ck_assert_uint_eq(count_of(module), 2);
    ck_assert_str_eq(module->protocol->name, "plain_a");
    tear_down(&test);
}
END_TEST

static void refuse_module(struct module_test *test, const char *path, const char *wrong)
{
    unsigned descriptors = count_descriptors(), n = 0;
    const struct module *module;

    SLIST_FOREACH (module, &test->modules, link)
        n++;
    ck_assert_ptr_null(module_load(&test->modules, test->arena, path, test->text));
    ck_assert_msg(
        strncmp(test->text, wrong, strlen(wrong)) == 0, "%s: it says \"%s\"", path, test->text);
    ck_assert_ptr_null(strstr(test->text, "/proc/"));
    ck_assert_ptr_null(strchr(test->text, '\n'));
    ck_assert_uint_eq(count_descriptors(), descriptors);
    SLIST_FOREACH (module, &test->modules, link)
        n--;
    ck_assert_uint_eq(n, 0);
}

static const struct {
    const char *name, *wrong;
} refused[] = {
    { "other_abi.so", "was built for ABI 2, this forkbeard has ABI 1: build it again with this "
                      "version's headers" },
    { "no_callbacks.so", "has no callbacks: set at least one callback in fb_ops" },
    { "stranger.so",
        "is not a Forkbeard module: it defines no \"fb_module\" (FB_PROTOCOL() does)" },
    { "no_function.so", "needs \"fb_frobnicate\", unknown to this forkbeard: is the module "
                        "built for a newer version?" },
    { "newer.so", "needs \"fb_frobnicate\", unknown to this forkbeard: the module was built "
                  "for a newer version" },
    { "no_library.so", "needs \"frobnicate\": link the module with the library of the symbol" },
    { "none.so", "cannot be opened (2: No such file or directory)" },
    { "", "is not a file: name the shared object itself" },
    { "../../Makefile", "is not a shared object: build with \"cc -shared -fPIC\"" },
};

START_TEST(what_is_wrong_is_told)
{
    struct module_test test;

    set_up(&test);
    refuse_module(&test, built(&test, refused[_i].name), refused[_i].wrong);
    load_module(&test, &test.modules, built(&test, "plain_a.so"));
    refuse_module(&test, built(&test, refused[_i].name), refused[_i].wrong);
    tear_down(&test);
}
END_TEST

START_TEST(what_is_no_shared_object_is_told)
{
    struct module_test test;
    char *path;

    set_up(&test);
    path = path_in(&test, "file");
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    refuse_module(&test, path, "is not a shared object: build with");
    copy_module(&test, "plain_a.so", path);
    ck_assert_int_eq(truncate(path, 64), 0); /* the first header alone */
    refuse_module(&test, path, "cannot be loaded: ");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0644), 0);
    refuse_module(&test, path, "is not a file: name the shared object itself");
    refuse_module(&test, "/proc/self/exe", "cannot be loaded: cannot dynamically load ");
    tear_down(&test);
}
END_TEST

START_TEST(a_module_is_loaded_once)
{
    struct module_test test;
    char *link;

    set_up(&test);
    load_module(&test, &test.modules, built(&test, "plain_a.so"));
    load_module(&test, &test.modules, built(&test, "plain_b.so"));
    refuse_module(&test, built(&test, "plain_a.so"), "is loaded already");
    link = path_in(&test, "link.so");
    ck_assert_int_eq(symlink(built(&test, "plain_b.so"), link), 0);
    refuse_module(&test, link, "is loaded already");
    tear_down(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_module_is_loaded);
    tcase_add_test(tcase, the_copy_of_a_module_cannot_be_changed);
    tcase_add_test(tcase, each_load_has_its_own_variables);
    tcase_add_test(tcase, a_changed_file_is_new_code);
    tcase_add_test(tcase, a_loaded_module_does_not_need_its_file);
    tcase_add_loop_test(tcase, what_is_wrong_is_told, 0, countof(refused));
    tcase_add_test(tcase, what_is_no_shared_object_is_told);
    tcase_add_test(tcase, a_module_is_loaded_once);
}

TEST_MAIN("module", add_tests)
