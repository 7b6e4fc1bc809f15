/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of a configuration's variables in a session. */
#pragma once

/* Loads the configuration, which must be valid; its first server is the session's. A row is a text
 * with variables, then the text in the session; rows end with NULL. The session's client is
 * 192.0.2.1, and the log must be `logged`. */
void defined_expect(const char *stream, const char *const *rows, const char *logged);
