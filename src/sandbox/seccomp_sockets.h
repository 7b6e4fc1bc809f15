/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules about sockets of a filter of system calls. Private to sandbox/. */
#pragma once

#include "sandbox/seccomp_rules.h"

/* Whether protocols may have own sockets. */
bool seccomp_has_own_sockets(const struct filter *filter);
/* Adds the rules of `on` or of `strict`: socket(), options, connects and sends. */
void seccomp_deny_sockets(struct filter *filter);
void seccomp_allow_sockets(struct filter *filter);
