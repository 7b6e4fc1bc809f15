/* SPDX-License-Identifier: BSD-2-Clause */
/* The kit's calls about TLS: of peers (kit/tls.c), and of the engine that serves all workers, whose
 * death and delays a test commands. */
#include "kit/tls.h"

#include "features/features.h"

int fb_test_has_tls(void)
{
    return ssl_feature.rows != NULL;
}

int fb_test_tls(fb_test_peer *peer, const char *how)
{
    CHECK_KIND(peer, KIT_PEER);
    if (peer->tls != NULL)
        kit_misused("fb_test_tls(): the peer has TLS already");
    fb_test_run(peer->test);
    kit_tls_begin(peer, peer->is_server, how);
    kit_tls_pump(peer);
    return kit_tls_step(peer->tls) == TLS_DONE ? 0 : -1;
}

/* Returns the TLS of a peer whose handshake is done, by now. */
static struct kit_tls *tls_of_peer(fb_test_peer *peer, const char *call)
{
    CHECK_KIND(peer, KIT_PEER);
    if (peer->tls != NULL)
        kit_tls_pump(peer);
    if (peer->tls == NULL || kit_tls_step(peer->tls) != TLS_DONE)
        kit_misused("%s() of a peer without TLS", call);
    return peer->tls;
}

void fb_test_key_update(fb_test_peer *peer, int asks)
{
    tls_of_peer(peer, "fb_test_key_update");
    kit_tls_update_keys(peer, asks != 0);
}

void fb_test_alert(fb_test_peer *peer, unsigned alert)
{
    tls_of_peer(peer, "fb_test_alert");
    kit_tls_say_alert(peer, alert);
}

int fb_test_alerted(fb_test_peer *peer)
{
    CHECK_KIND(peer, KIT_PEER);
    if (peer->tls == NULL)
        return -1;
    kit_tls_pump(peer);
    return kit_tls_alert(peer->tls);
}

void fb_test_keeper(fb_test *test, fb_test_keeping how)
{
    struct kit_worker *own;

    CHECK_KIND(test, KIT_TEST);
    test->keeper = how;
    KIT_FOREACH_ALIVE(own, test)
    kit_keeper_set(own);
    if (how == FB_TEST_KEEPER_LOST) /* a lost keeper is replaced at once */
        test->keeper = FB_TEST_KEEPER_SERVES;
}
