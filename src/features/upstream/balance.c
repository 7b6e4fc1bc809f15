/* SPDX-License-Identifier: BSD-2-Clause */
/* The balancers of `upstream {}`: the last directive wins. */
#include "features/upstream/upstream.h"
#include "settings/apply.h"
#include "settings/set_value.h"
#include "settings/template.h"
#include "upstream/balancer.h"

#include <string.h>

#define LEAST_TIME "least_time="

static const char *const times[] = {
    [UPSTREAM_TIME_CONNECT] = "connect",
    [UPSTREAM_TIME_FIRST_BYTE] = "first_byte",
    [UPSTREAM_TIME_LAST_BYTE] = "last_byte",
    NULL,
};

/* Gives the group the balancer of the directive's name, and returns its values to fill in. */
static struct upstream_balance *begin_balance(
    struct apply *apply, const struct conf_directive *directive, struct upstream_block *block)
{
    const struct balancer *balancer = balancer_find(directive->name.text);

    assert(balancer != NULL);
    if (block->balance != NULL)
        report_warn(apply->report, &directive->name, "load balancing method redefined");
    block->balance = &directive->name;
    block->upstream->balance = (struct upstream_balance) { .balancer = balancer };
    return &block->upstream->balance;
}

int upstream_balance_set_hash(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct upstream_balance *balance = begin_balance(apply, directive, field);

    balance->key = template_of(apply, &directive->args[0], directive->args[0].text);
    balance->consistent = directive->arg_n == 2;
    if (balance->consistent && strcmp(directive->args[1].text, "consistent") != 0)
        return set_bad_value(apply, directive, 1, "expected \"consistent\"");
    return balance->key != NULL ? 0 : -1;
}

int upstream_balance_set_least_conn(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    begin_balance(apply, directive, field);
    return 0;
}

static bool find_time(const char *text, enum upstream_time *time)
{
    for (int i = 0; times[i] != NULL; i++)
        if (strcmp(text, times[i]) == 0) {
            *time = (enum upstream_time)i;
            return true;
        }
    return false;
}

int upstream_balance_set_least_time(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct upstream_balance *balance = begin_balance(apply, directive, field);

    if (!find_time(directive->args[0].text, &balance->time))
        return set_bad_name(
            apply, directive, 0, times, "\"connect\", \"first_byte\" or \"last_byte\"");
    balance->inflight = directive->arg_n == 2;
    if (balance->inflight && strcmp(directive->args[1].text, "inflight") != 0)
        return set_bad_value(apply, directive, 1, "expected \"inflight\"");
    return 0;
}

int upstream_balance_set_random(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct upstream_balance *balance = begin_balance(apply, directive, field);
    const char *method;

    balance->two = directive->arg_n > 0;
    if (balance->two && strcmp(directive->args[0].text, "two") != 0)
        return set_bad_value(apply, directive, 0, "expected \"two\"");
    if (directive->arg_n < 2 || strcmp(directive->args[1].text, "least_conn") == 0)
        return 0;
    method = directive->args[1].text;
    balance->two_by_time = strncmp(method, LEAST_TIME, strlen(LEAST_TIME)) == 0 &&
                           find_time(method + strlen(LEAST_TIME), &balance->time);
    if (balance->two_by_time)
        return 0;
    return set_bad_value(apply, directive, 1,
        "expected \"least_conn\", or \"" LEAST_TIME "\" and \"connect\", \"first_byte\" or "
        "\"last_byte\"");
}

static void refuse_parameter(
    struct apply *apply, const struct balancer *balancer, const struct conf_word *word)
{
    report_error(apply->report, word,
        "load balancing method \"%s\" does not support parameter \"%s\"", balancer->name,
        word->text);
}

void upstream_balance_check(struct apply *apply, const struct upstream_block *block)
{
    const struct balancer *balancer = block->upstream->balance.balancer;

    assert((balancer != NULL) == (block->balance != NULL));
    if (balancer != NULL && !balancer->takes_backup && block->backup != NULL)
        refuse_parameter(apply, balancer, block->backup);
    if (balancer != NULL && !balancer->takes_slow_start && block->slow_start != NULL)
        refuse_parameter(apply, balancer, block->slow_start);
}
