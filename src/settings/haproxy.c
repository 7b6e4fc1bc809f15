/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks words up that have been found to be none of ours. */
#include "settings/haproxy.h"

#include "base/compiler.h"

#include <string.h>

#define HAPROXY_CHECKS "checks of servers are \"health_check\" beside \"proxy_pass\""
#define HAPROXY_RUNS "\"health_check\" has interval=, fails= and passes="
#define HAPROXY_STICKS "\"hash $remote_addr consistent\" keeps a client with its server"
#define HAPROXY_TURNS                                                                              \
    "without a directive such as \"least_conn\", \"random\" or \"hash\" servers take turns"

static const struct {
    enum haproxy_place place;
    const char *word, *hint;
} words[] = {
#define WORD(place, word, hint) { HAPROXY_##place, word, hint },
#include "settings/haproxy_words.def"
#undef WORD
};

const char *haproxy_hint(enum haproxy_place place, const char *word)
{
    size_t n = strcspn(word, "=");

    for (size_t i = 0; i < countof(words); i++)
        if (words[i].place == place && strlen(words[i].word) == n &&
            strncmp(words[i].word, word, n) == 0)
            return words[i].hint;
    return NULL;
}
