/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of the process: standard descriptors, environment variables, the title that ps
 * shows, the background. Each is set up once, at the start, before there is a worker. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Opens /dev/null on closed descriptors among 0 to 2; -1 with errno. */
int process_fill_standard(void);
/* Copies the environment or arguments, which titles and the call below change: each reading of the
 * configuration may ask for a variable, and a newer binary is started with both. The caller frees
 * the list with free(); NULL without memory. */
char **process_copy_list(char *const *list);
/* Keeps only TZ and the variables of `env`. Called once; -1 after an emerg line. */
int process_set_environment(const struct core_settings *core, struct log *log);
/* Called once, with main's arguments, before any other use: the title takes the memory. */
void process_init_title(int argc, char **argv);
/* Sets the title to "forkbeard: ROLE ARGUMENTS"; NULL: with the arguments as before, which the
 * caller must have kept. Does nothing before process_init_title(). */
void process_set_title(const char *role, const char *arguments);
/* Tells fork()'s parent, perhaps gone, that the child is ready (0), or an exit code, and closes
 * `end`, or -1. */
void process_ready_tell(int end, unsigned char code);
/* In the parent: waits for the code, and closes the end; EXIT_FAILURE: the child sent none. */
int process_ready_wait(int end);
/* Goes into the background. Returns as fork() does, or -1 after an emerg line. *ready is the
 * child's end of process_ready_tell(), and the parent's of process_ready_wait(). */
pid_t process_enter_background(int *ready, struct log *log);
/* The daemon serves: calls process_detach(), and lets the parent exit; unless `ready` is -1. */
void process_background_done(int ready, unsigned kept);
/* Points the standard descriptors to /dev/null, except these bits, used by logs: the reader of our
 * terminal or pipe does not wait for us. */
void process_detach(unsigned kept);
