/* SPDX-License-Identifier: BSD-2-Clause */
/* `user`: the program has fake accounts, and itself decides whether it is root. */
#include "settings/check.h"
#include "settings/loading.h"
#include "support/test.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

static struct {
    bool root, deserted; /* deserted: no user exists */
    char asked[32];      /* the name of the user asked for last */
} machine;

uid_t geteuid(void)
{
    return machine.root ? 0 : 1000;
}

/* Every user except names with the prefix "no_such"; the group is www's. */
struct passwd *getpwnam(const char *name)
{
    static struct passwd user = { .pw_uid = 33, .pw_gid = 34 };

    snprintf(machine.asked, sizeof(machine.asked), "%s", name);
    return machine.deserted || strncmp(name, "no_such", 7) == 0 ? NULL : &user;
}

struct group *getgrnam(const char *name)
{
    static struct group same = { .gr_gid = 35 }, adm = { .gr_gid = 4 };

    if (machine.deserted)
        return NULL;
    if (strcmp(name, "adm") == 0)
        return &adm;
    return strcmp(name, "www") == 0 ? &same : NULL;
}

/* The group of the question, and two more. */
int getgrouplist(const char *name, gid_t gid, gid_t *groups, int *n)
{
    (void)name;
    ck_assert_int_ge(*n, 3);
    *n = 3;
    groups[0] = gid;
    groups[1] = 100;
    groups[2] = 101;
    return 3;
}

static void check_user(const struct loading *loading, const char *name, unsigned uid, unsigned gid)
{
    const struct core_settings *core = &loading->cycle->core;

    ck_assert_str_eq(core->user, name);
    ck_assert_uint_eq(core->uid, uid);
    ck_assert_uint_eq(core->gid, gid);
    ck_assert_uint_eq(core->group_n, 3);
    ck_assert_uint_eq(core->groups[0], gid);
    ck_assert_uint_eq(core->groups[2], 101);
}

START_TEST(a_user_has_a_group)
{
    struct loading loading;

    machine.root = true;
    loading_begin(&loading);
    accept_text(&loading, "user www; events { }", ""); /* the group of that name, as nginx */
    check_user(&loading, "www", 33, 35);
    accept_text(&loading, "user www adm; events { }", "");
    check_user(&loading, "www", 33, 4);
    accept_text(&loading, "user alone; events { }", ""); /* without one: its primary group */
    check_user(&loading, "alone", 33, 34);
    loading_end(&loading);
}
END_TEST

START_TEST(user_and_group_must_exist)
{
    struct loading loading;

    machine.root = true;
    loading_begin(&loading);
    refuse_text(&loading, "user no_such_user; events { }",
        "invalid value \"no_such_user\" in \"user\" directive: there is no such user "
        "in /main:1:6\n");
    refuse_text(&loading, "user www no_such_group; events { }",
        "invalid value \"no_such_group\" in \"user\" directive: there is no such group "
        "in /main:1:10\n");
    loading_end(&loading);
}
END_TEST

START_TEST(root_s_workers_are_not_root_by_default)
{
    struct loading loading;
    char expected[128];

    machine.root = true;
    loading_begin(&loading);
    accept_text(&loading, "events { }", "");
    ck_assert_str_ne(machine.asked, "");
    check_user(&loading, machine.asked, 33, 34);

    machine.deserted = true;
    load(&loading, "events { }");
    snprintf(expected, sizeof(expected),
        "there is no user \"%s\" for the worker processes, name another with \"user\"\n",
        machine.asked);
    refuse_text(&loading, "events { }", expected);
    loading_end(&loading);
}
END_TEST

START_TEST(others_cannot_choose_a_user)
{
    struct loading loading;

    machine.deserted = true;
    loading_begin(&loading);
    accept_text(&loading, "user no_such_user no_such_group; events { }",
        "warning: the \"user\" directive makes sense only if the master process runs with "
        "super-user privileges, ignored in /main:1:1\n");
    ck_assert_ptr_null(loading.cycle->core.user);
    accept_text(&loading, "events { }", "");
    ck_assert_ptr_null(loading.cycle->core.user);
    loading_end(&loading);
}
END_TEST

static void check_rights(
    struct loading *loading, const char *text, unsigned mode, bool has_group, unsigned group)
{
    const struct control_rights *rights;

    accept_text(loading, text, "");
    rights = &loading->cycle->core.control.rights;
    ck_assert_uint_eq(rights->mode, mode);
    ck_assert(rights->has_group == has_group);
    if (has_group)
        ck_assert_uint_eq(rights->group, group);
}

START_TEST(a_group_may_use_the_control_socket)
{
    struct loading loading;

    machine.root = true;
    loading_begin(&loading);
    check_rights(&loading, "user www; events { }", 0600, false, 0);
    check_rights(&loading, "user www; control unix:/c; events { }", 0600, false, 0);
    check_rights(&loading, "user www; control unix:/c mode=0600; events { }", 0600, false, 0);
    check_rights(&loading, "user www; control unix:/c group=adm; events { }", 0660, true, 4);
    check_rights(&loading, "control unix:/c mode=600 group=7; user www; events { }", 0600, true, 7);
    refuse_text(&loading, "control unix:/c group=no_such_group; events { }",
        "invalid value \"group=no_such_group\" in \"control\" directive: there is no such group in "
        "/main:1:17\n");
    refuse_text(&loading, "control unix:/c mode=0660; events { }",
        "\"mode=0660\" lets a group use the control socket: name it with \"group=\" in "
        "/main:1:17\n");
    loading_end(&loading);
}
END_TEST

/* The primary group, and further ones, of the user that is named, before or behind, or not. */
START_TEST(a_group_of_the_workers_may_not)
{
    static const char *const texts[][2] = {
        { "control unix:/c group=www; user www; events { }", "group=www" },
        { "control unix:/c group=101; user www adm; events { }", "group=101" },
        { "control unix:/c group=34; events { }", "group=34" },
        { "control_read unix:/c group=34; events { }", "group=34" },
    };
    struct loading loading;
    char expected[256];

    machine.root = true;
    loading_begin(&loading);
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        load(&loading, "events { }"); /* asks for the default user */
        snprintf(expected, sizeof(expected),
            "\"%s\" in \"%s\" directive: the workers, of user \"%s\", are in this group and could "
            "use "
            "the socket: make a group for operators alone in /main:1:%d\n",
            texts[i][1], i < 3 ? "control" : "control_read", i < 2 ? "www" : machine.asked,
            i < 3 ? 17 : 22);
        refuse_text(&loading, texts[i][0], expected);
    }
    machine.root = false; /* the workers have the master's user */
    check_rights(&loading, "control unix:/c group=34; events { }", 0660, true, 34);
    loading_end(&loading);
}
END_TEST

/* A configuration check notes answers for the later reading. */
START_TEST(what_a_check_has_noted_is_not_asked_again)
{
    struct check_progress progress = { .done = false };
    struct answers *answers = check_answers_create();
    struct loading loading;

    machine.root = true;
    loading_begin(&loading);
    loading.options.answers = answers;
    loading.options.progress = &progress;
    accept_text(&loading, "user www; control unix:/c group=adm; events { }", "");
    machine.deserted = true;
    loading.options.progress = NULL;
    check_rights(&loading, "user www; control unix:/c group=adm; events { }", 0660, true, 4);
    check_user(&loading, "www", 33, 35);
    refuse_text(&loading, "user www adm; events { }",
        "invalid value \"www\" in \"user\" directive: the configuration was changed after the "
        "check, try again in /main:1:6\n");
    loading_end(&loading);
    check_answers_destroy(&answers);
}
END_TEST

START_TEST(answers_of_another_process_are_not_trusted)
{
    struct answers *answers = check_answers_create();
    uint32_t *words = (uint32_t *)(void *)answers;
    char answer[4];

    ck_assert(check_answers_add(answers, ANSWERS_HOST, "a", "1", 1));
    ck_assert(check_answers_add(answers, ANSWERS_HOST, "b", "22", 2));
    ck_assert_int_eq(check_answers_find(answers, ANSWERS_HOST, "b", answer, sizeof(answer)), 2);
    ck_assert_int_eq(check_answers_find(answers, ANSWERS_HOST, "b", answer, 1), -1);
    ck_assert_int_eq(check_answers_find(answers, ANSWERS_USER, "b", answer, sizeof(answer)), -1);
    ck_assert_int_eq(check_answers_find(answers, ANSWERS_HOST, "c", answer, sizeof(answer)), -1);
    for (int i = 0; i < 4; i++) { /* the length of all, and the first entry */
        uint32_t was = words[i];

        words[i] = UINT32_MAX - 3;
        ck_assert_int_eq(
            check_answers_find(answers, ANSWERS_HOST, i == 1 ? "a" : "b", answer, 4), -1);
        words[i] = was;
    }
    check_answers_destroy(&answers);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_user_has_a_group);
    tcase_add_test(tcase, user_and_group_must_exist);
    tcase_add_test(tcase, a_group_may_use_the_control_socket);
    tcase_add_test(tcase, a_group_of_the_workers_may_not);
    tcase_add_test(tcase, what_a_check_has_noted_is_not_asked_again);
    tcase_add_test(tcase, answers_of_another_process_are_not_trusted);
    tcase_add_test(tcase, root_s_workers_are_not_root_by_default);
    tcase_add_test(tcase, others_cannot_choose_a_user);
}

TEST_MAIN("user", add_tests)
