/* SPDX-License-Identifier: BSD-2-Clause */
/* The watch of the files of profiles, with a real directory and an own clock: the layouts of
 * certbot and Kubernetes, files replaced, rewritten, removed and made anew, and quiet. */
#include "tls/file_watch.h"

#include "support/directory.h"
#include "support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4
#define EVENT_MS 10000 /* for a kernel under load */

static struct {
    struct clock clock;
    struct timers timers;
    struct tls_file_watch watch;
    struct tls_profiles profiles;
    struct tls_file files[FILES];
    char paths[FILES][256];
    unsigned told;
} state;

static void note_change(struct tls_file_watch *watch)
{
    ck_assert_ptr_eq(watch, &state.watch);
    state.told++;
}

static const char *path_to(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *to = fopen(path_to(name), "w");

    ck_assert_ptr_nonnull(to);
    fputs(text, to);
    ck_assert_int_eq(fclose(to), 0);
}

static void make_directory(const char *name)
{
    ck_assert_int_eq(mkdir(path_to(name), 0700), 0);
}

static void move_file(const char *from, const char *name)
{
    ck_assert_int_eq(rename(path_to(from), path_to(name)), 0);
}

static void make_link(const char *target, const char *name)
{
    ck_assert_int_eq(symlink(target, path_to(name)), 0);
}

static void remove_file(const char *name)
{
    ck_assert_int_eq(unlink(path_to(name)), 0);
}

static void add_file(const char *name)
{
    unsigned i = state.profiles.file_n++;

    snprintf(state.paths[i], sizeof(state.paths[i]), "%s/%s", directory, name);
    state.files[i] = (struct tls_file) { .path = state.paths[i] };
}

static void set_up(void)
{
    memset(&state, 0, sizeof(state));
    state.clock.mono_ms = 1000;
    timers_init(&state.timers, &state.clock, NULL);
    state.profiles.files = state.files;
}

static void tear_down(void)
{
    tls_file_watch_close(&state.watch);
    ck_assert_uint_eq(timers_check(&state.timers), 0);
}

static void begin(void)
{
    tls_file_watch_open(&state.watch, &state.profiles, &state.timers, note_change);
}

static void pass(uint64_t ms)
{
    state.clock.mono_ms += ms;
    timers_expire(&state.timers);
}

/* Takes the events of a change; fails where there is none. Without events it is time to look. */
static void take(void)
{
    struct pollfd event = { .fd = state.watch.fd, .events = POLLIN };

    if (event.fd == -1) {
        timers_arm(&state.timers, &state.watch.look, WATCH_LOOK_MS);
        return;
    }
    ck_assert_int_eq(poll(&event, 1, EVENT_MS), 1);
    tls_file_watch_take(&state.watch);
}

/* Fails unless the change is told once, by the event, after the quiet time. */
static void is_told(void)
{
    unsigned before = state.told;

    take();
    pass(WATCH_LOOK_MS);
    ck_assert_uint_eq(state.told, before);
    pass(WATCH_QUIET_MS - 1);
    ck_assert_uint_eq(state.told, before);
    pass(1);
    ck_assert_uint_eq(state.told, before + 1);
    ck_assert_uint_eq(timers_check(&state.timers), state.watch.fd == -1); /* quiet */
}

START_TEST(files_are_replaced_and_rewritten)
{
    write_file("a.pem", "1");
    add_file("a.pem");
    begin();
    write_file("new", "2");
    move_file("new", "a.pem");
    is_told();
    write_file("a.pem", "3");
    is_told();
    remove_file("a.pem");
    is_told();
    write_file("a.pem", "4");
    is_told();
    ck_assert_int_eq(chmod(path_to("a.pem"), 0600), 0);
    is_told();
}
END_TEST

START_TEST(certbots_links)
{
    make_directory("archive");
    make_directory("live");
    write_file("archive/cert1.pem", "1");
    make_link("../archive/cert1.pem", "live/cert.pem");
    add_file("live/cert.pem");
    begin();
    write_file("archive/cert2.pem", "2");
    take(); /* the target's directory tells */
    pass(WATCH_LOOK_MS);
    pass(WATCH_QUIET_MS);
    ck_assert_uint_eq(state.told, 0); /* no file has changed yet */
    remove_file("live/cert.pem");
    make_link("../archive/cert2.pem", "live/cert.pem");
    is_told();
    write_file("archive/cert2.pem", "3");
    is_told();
}
END_TEST

START_TEST(the_links_of_kubernetes)
{
    make_directory("secret");
    for (char i = '1'; i <= '3'; i++) {
        char name[] = "secret/..0", target[] = "..0", file[] = "secret/..0/tls.crt";

        name[9] = target[2] = file[9] = i;
        make_directory(name);
        write_file(file, (char[]) { i, '\0' });
        if (i == '1') {
            make_link(target, "secret/..data");
            make_link("..data/tls.crt", "secret/tls.crt");
            add_file("secret/tls.crt");
            begin();
            continue;
        }
        make_link(target, "secret/..data_tmp");
        move_file("secret/..data_tmp", "secret/..data");
        is_told();
    }
}
END_TEST

START_TEST(links_anywhere_in_the_path)
{
    char target[512];

    make_directory("one");
    make_directory("one/in");
    make_directory("two");
    make_directory("two/in");
    write_file("one/in/a.pem", "1");
    write_file("two/in/a.pem", "2");
    snprintf(target, sizeof(target), "%s/./one/../one", directory);
    make_link(target, "current");
    add_file("current/in/a.pem");
    begin();
    make_link("two", "next");
    move_file("next", "current");
    is_told();
    write_file("two/in/a.pem", "3");
    is_told();
}
END_TEST

START_TEST(directories_that_vanish_and_come_back)
{
    make_directory("d");
    make_directory("d/e");
    write_file("d/e/a.pem", "1");
    add_file("d/e/a.pem");
    begin();
    remove_file("d/e/a.pem");
    ck_assert_int_eq(rmdir(path_to("d/e")), 0);
    ck_assert_int_eq(rmdir(path_to("d")), 0);
    is_told();
    make_directory("d");
    make_directory("d/e");
    take();
    pass(WATCH_LOOK_MS);
    write_file("d/e/a.pem", "2");
    is_told();
}
END_TEST

START_TEST(directories_that_are_moved)
{
    make_directory("old");
    make_directory("old/x");
    make_directory("old/x/y");
    write_file("old/x/y/a.pem", "1");
    add_file("old/x/y/a.pem");
    make_directory("new");
    make_directory("new/x");
    make_directory("new/x/y");
    write_file("new/x/y/a.pem", "2");
    begin();
    move_file("old", "older");
    move_file("new", "old");
    is_told();
    write_file("old/x/y/a.pem", "3");
    is_told();
}
END_TEST

START_TEST(a_file_that_never_was)
{
    add_file("none/a.pem");
    begin();
    make_directory("none");
    write_file("none/a.pem", "1");
    is_told();
}
END_TEST

START_TEST(a_file_that_goes_on_changing_is_left_alone)
{
    char text[] = "0";

    write_file("a.pem", "1");
    add_file("a.pem");
    begin();
    write_file("a.pem", "22");
    take();
    pass(WATCH_LOOK_MS);
    for (; text[0] < '9'; text[0]++) {
        write_file("new", text);
        move_file("new", "a.pem");
        pass(WATCH_QUIET_MS);
    }
    ck_assert_uint_eq(state.told, 0);
    pass(WATCH_QUIET_MS);
    ck_assert_uint_eq(state.told, 1);
}
END_TEST

START_TEST(other_files_of_the_directory_are_no_change)
{
    write_file("a.pem", "1");
    add_file("a.pem");
    begin();
    for (int i = 0; i < 5; i++) {
        write_file("other", "text");
        take();
        pass(WATCH_LOOK_MS);
        pass(WATCH_QUIET_MS);
    }
    ck_assert_uint_eq(state.told, 0);
}
END_TEST

START_TEST(without_events_the_files_are_looked_at)
{
    write_file("a.pem", "1");
    add_file("a.pem");
    begin();
    if (state.watch.fd != -1)
        close(state.watch.fd);
    state.watch.fd = -1;
    timers_arm(&state.timers, &state.watch.look, 1);
    pass(1); /* a look that finds the descriptor gone, as a system without events has it */
    tls_file_watch_take(&state.watch);
    write_file("a.pem", "22");
    pass(WATCH_OFTEN_MS);
    ck_assert_uint_eq(state.told, 0);
    pass(WATCH_QUIET_MS);
    ck_assert_uint_eq(state.told, 1);
}
END_TEST

START_TEST(links_in_a_circle_and_long_paths_end)
{
    char name[300];

    make_link("b", "a");
    make_link("a", "b");
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    add_file("a");
    add_file("..//.././///a/b");
    add_file("");
    add_file(name);
    begin();
    timers_arm(&state.timers, &state.watch.look, 1);
    pass(1);
    ck_assert_uint_eq(state.told, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, files_are_replaced_and_rewritten);
    tcase_add_test(tcase, certbots_links);
    tcase_add_test(tcase, the_links_of_kubernetes);
    tcase_add_test(tcase, links_anywhere_in_the_path);
    tcase_add_test(tcase, directories_that_vanish_and_come_back);
    tcase_add_test(tcase, directories_that_are_moved);
    tcase_add_test(tcase, a_file_that_never_was);
    tcase_add_test(tcase, a_file_that_goes_on_changing_is_left_alone);
    tcase_add_test(tcase, other_files_of_the_directory_are_no_change);
    tcase_add_test(tcase, without_events_the_files_are_looked_at);
    tcase_add_test(tcase, links_in_a_circle_and_long_paths_end);
}

TEST_MAIN("file_watch", add_tests)
