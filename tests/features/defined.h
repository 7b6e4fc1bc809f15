/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of variables that a configuration defines, as one session has them. */
#pragma once

/* Loads the configuration, which must be right; its first server is that of the session. Each of
 * the rows is a text with variables, and what the session makes of it, in this order; ends with
 * NULL. The session's client is 192.0.2.1, and what it logs must be `logged`. */
void defined_expect(const char *stream, const char *const *rows, const char *logged);
