/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of the process: standard descriptors, environment variables, the background. Each
 * is set up once, at the start, before there is a worker. */
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
