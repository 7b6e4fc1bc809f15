/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks, directives with several values, and values that a context computes at the end. */
#pragma once

#include "settings/needs.h"
#include "settings/setting.h"

#include <netinet/in.h>

struct fb_target;
struct scope;

/* core.c: the rest of the main context; only for a configuration without mistakes. */
void core_finish(struct apply *apply);
/* core.c: the default paths of the pid file and the control socket. */
void core_finish_paths(struct apply *apply);
/* control.c: the control sockets, the default path, and the check of groups, behind the user. */
int control_set(struct apply *apply, const struct conf_directive *directive, void *field);
int control_set_read(struct apply *apply, const struct conf_directive *directive, void *field);
void control_set_default(struct apply *apply);
void control_finish(struct apply *apply);
/* log_targets.c; the log of a configuration without `error_log`. */
int log_targets_set(struct apply *apply, const struct conf_directive *directive, void *field);
int log_targets_set_rate_limit(
    struct apply *apply, const struct conf_directive *directive, void *field);
void log_targets_finish(struct apply *apply);
/* events.c; the mechanisms' directives as rows (NULL after a report), and the choice of one. */
int events_set(struct apply *apply, const struct conf_directive *directive, void *field);
int thread_pools_set(struct apply *apply, const struct conf_directive *directive, void *field);
const struct setting *events_mechanism_table(struct apply *apply);
void events_finish(struct apply *apply);
/* modules.c: load_module. */
int modules_set(struct apply *apply, const struct conf_directive *directive, void *field);
/* stream.c; the stream block is applied after everything else. */
int stream_set(struct apply *apply, const struct conf_directive *directive, void *field);
void stream_apply(struct apply *apply);
/* stream.c; has the features warn of valid but doubtful settings. */
void stream_warn(struct apply *apply);
/* substitution.c: replaces environment variables in the arguments, with env_substitution. */
int substitution_set(struct apply *apply, const struct conf_directive *directive, void *field);
const struct conf_directive *substitution_apply(
    struct apply *apply, const struct conf_directive *directive);
/* sizing.c: `worker_connections auto`, and the check against the memory that there is. */
void sizing_finish(struct apply *apply);
/* needs.c: collects the needs of the protocols of all servers, and the targets. */
void needs_collect(struct apply *apply);
void needs_add_target(struct apply *apply, const struct fb_target *target);
void needs_add_path(struct apply *apply, const char *path, enum needs_access access);
void needs_add_port(struct apply *apply, in_port_t port);
