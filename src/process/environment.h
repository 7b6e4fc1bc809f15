/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of the process: standard descriptors, environment variables, the title that ps
 * shows, the background. Each is set up once, at the start, before there is a worker. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Opens /dev/null on those of the descriptors 0 to 2 that are closed, before anything else could be
 * given their numbers; -1 with errno. */
int process_fill_standard(void);

/* Copies the environment or arguments, which titles and the call below change: each reading of the
 * configuration may ask for a variable, and a newer binary is started with both. The caller frees
 * the list with free(); NULL without memory. */
char **process_copy_list(char *const *list);

/* Removes all variables but TZ and those that `env` names, and sets those that it gives a value.
 * Called once; -1 after an emerg line. */
int process_set_environment(const struct core_settings *core, struct log *log);

/* Called once, with main's arguments, before anything else uses them: the title takes the memory of
 * the strings of argv. */
void process_init_title(int argc, char **argv);
/* Sets the title to "forkbeard: ROLE ARGUMENTS"; NULL: with the arguments that it has, which the
 * caller must have kept. Does nothing before process_init_title(). */
void process_set_title(const char *role, const char *arguments);

/* A pipe by which a child of fork() tells its parent, once, that it is ready, or why it is not: by
 * a code of one byte. A child that ends without that closes the pipe. ends[0] is the parent's,
 * ends[1] the child's, and each closes the other. -1 with errno. */
int process_ready_open(int ends[2]);
/* In the child: tells the code, and closes its end. The parent may have gone. */
void process_ready_tell(int end, unsigned char code);
/* In the parent: waits for the code, which it returns, and closes its end; -1: the child has ended
 * without one. */
int process_ready_wait(int end);

/* Goes into the background. Returns as fork() does: 0 in the child, which goes on, its pid in the
 * parent, -1 after an emerg line. *ready is for the child to give to process_background_done(), and
 * for the parent to process_background_wait(). */
pid_t process_enter_background(int *ready, struct log *log);
/* In the parent: waits until the child serves or ends, and returns the exit code. */
int process_background_wait(int ready);
/* The daemon could not start, and the parent exits with this code. `ready` may be -1. */
void process_background_failed(int ready, int code);
/* The daemon serves: standard descriptors go to /dev/null as below, and the parent exits. `ready`
 * may be -1, and then nothing is done. */
void process_background_done(int ready, unsigned kept);
/* Points the standard descriptors to /dev/null, so that a reader of the pipe or terminal that we
 * were started on does not wait for us; but not those of these bits, to which logs go. */
void process_detach(unsigned kept);
