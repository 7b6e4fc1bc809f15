/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the table of verbs in forkbeard(8): each way to type a verb is tried on a daemon that
 * has sessions, one with TLS, and clients; then what the row says about new clients, sessions and
 * the way back is asserted. The longest times are those of tests/master/test_verbs.c, on a virtual
 * clock. */
#include "base/compiler.h"
#include "daemon/abreast.h"
#include "daemon/verbs_steps.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define AT_A_TIME 5

/* The table */

static const struct row {
    struct verb verb;
    const struct verbs_steps *steps;
} rows[] = {
#define VERB(id, name, clients, sessions, unit, most, back)                                        \
    { { name, clients, sessions, most, back }, &verbs_##id },
#define VERB_UNIT(...)
#include "daemon/verbs.def"
};

/* Begins the scene of a row: its daemon, an open session, clients. */
static void begin_scene(
    struct scene *scene, const struct row *row, const char *conf, const char *typed)
{
    *scene = (struct scene) { .verb = &row->verb, .typed = typed, .session = -1 };
    scene->daemon = daemon_create(2);
    tls_client_make_files(scene->daemon);
    daemon_configure(scene->daemon, "%s", conf);
    if (row->steps->stopped)
        return;
    daemon_start(scene->daemon);
    scene->session = verbs_open_session(scene->daemon);
    if (strstr(conf, "ssl_certificate") != NULL)
        ck_assert(tls_client_begin(&scene->secure, scene->daemon->ports[1]));
}

static void try_verb(const struct row *row, const char *typed)
{
    const struct verbs_steps *steps = row->steps;
    struct scene scene;

    if (test_lacks(__FILE__, row->verb.name, 0) != NULL)
        return;
    begin_scene(&scene, row, VERBS_ECHO, typed);
    if (!steps->stopped)
        verbs_load(&scene);
    if (steps->set_up != NULL)
        steps->set_up(&scene);
    verbs_begin(&scene);
    steps->act(&scene);
    verbs_check(&scene);
    ck_assert_int_eq(strcmp(row->verb.back, "nothing to take back") == 0, steps->back == NULL);
    if (steps->back != NULL)
        steps->back(&scene);
    if (scene.loaded && scene.daemon->pid != 0)
        verbs_check_served(&scene);
    verbs_unload(&scene);
    if (steps->tear_down != NULL)
        steps->tear_down(&scene);
    verbs_finish(&scene);
}

/* Ways by systemctl are those of tests/init/systemd.test. */
static void try_row(void *arg, unsigned i)
{
    char ways[256], *rest = ways, *typed;

    (void)arg;
    if (!test_has_turn(i, 3))
        return;
    snprintf(ways, sizeof(ways), "%s", rows[i].verb.name);
    while ((typed = strsep(&rest, ",")) != NULL) {
        typed += *typed == ' ';
        abreast_note("\"%s\"", typed);
        if (strncmp(typed, "systemctl", 9) != 0)
            try_verb(&rows[i], typed);
    }
}

START_TEST(a_verb_does_what_its_row_says)
{
    abreast_run(countof(rows), AT_A_TIME, try_row, NULL);
}
END_TEST

static void hold_up(void *arg, unsigned i)
{
    const struct row *row = &rows[i];
    char typed[64];
    struct scene scene;

    (void)arg;
    if (row->steps->worst == NULL || !test_has_turn(i, 3))
        return;
    snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(row->verb.name, ","), row->verb.name);
    abreast_note("\"%s\", held up", typed);
    begin_scene(&scene, row, row->steps->worst_conf, typed);
    verbs_begin(&scene);
    row->steps->worst(&scene);
    ck_assert_int_ge(now_ms() - scene.begun_ms, VERBS_TIMEOUT_MS);
    verbs_finish(&scene);
}

/* A blocked verb ends at the timeout, and not before. */
START_TEST(a_verb_is_held_up)
{
    abreast_run(countof(rows), AT_A_TIME, hold_up, NULL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_verb_does_what_its_row_says);
    tcase_add_test(tcase, a_verb_is_held_up);
}

TEST_MAIN("verbs", add_tests)
