/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of a peer, by the engine without cryptography (tls/engine_plain.c): the peer's side of the
 * handshake, and of the records behind it.
 *
 * Responsible for the peer's plaintext: what came before the begin, and what was opened since. A
 * record that cannot be opened is a fault. */
#pragma once

#include "kit/kit.h"
#include "tls/engine.h"

/* Begins TLS in the role of `how`: a client sends a hello, a server awaits the hello. */
void kit_tls_begin(fb_test_peer *peer, bool is_server, const char *how);
void kit_tls_free(struct kit_tls *tls);
/* Lets the worker work, and takes what was sent to the peer, until there is nothing more. */
void kit_tls_pump(fb_test_peer *peer);
/* The state of the handshake, and the text of a failure. */
enum tls_step kit_tls_step(const struct kit_tls *tls);
const char *kit_tls_text(const struct kit_tls *tls);
/* The peer's plaintext since the start, or since it was forgotten. */
fb_bytes kit_tls_heard(const struct kit_tls *tls);
void kit_tls_forget(fb_test_peer *peer);
/* Whether close_notify has come, and the last fatal alert; -1: none. */
bool kit_tls_is_closed(const struct kit_tls *tls);
int kit_tls_alert(const struct kit_tls *tls);
/* Seal and say data, close_notify or another alert, a KeyUpdate. The handshake is done. */
void kit_tls_say(fb_test_peer *peer, const void *p, size_t n);
void kit_tls_say_alert(fb_test_peer *peer, unsigned alert);
void kit_tls_update_keys(fb_test_peer *peer, bool asks);
