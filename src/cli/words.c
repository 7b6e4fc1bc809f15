/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the commands that are words, with what does each. Parsing, usage and help derive from these
 * rows; the manual and the completions repeat them. */
#include "cli/words.h"

#include "cli/command.h"
#include "cli/explain.h"
#include "cli/upgrade_command.h"
#include "cli/upstream_command.h"

const struct cmdline_word words_table[] = {
    { .name = "status",
        .options = CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show workers, connections and queues of the running daemon",
        .run = cli_status },
    { .name = "explain",
        .argument = "[directive]",
        .help = "show the manual's entry of a directive, or the names of all",
        .run = cli_explain },
    { .name = "upstream",
        .argument = "[name [up|drain|down|auto server]]",
        .more = 2,
        .options = CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show the servers of all upstreams or of one, or change a server's state",
        .run = cli_upstream },
    { .name = "upgrade",
        .argument = "status|forward|back",
        .options = CMDLINE_JSON | CMDLINE_TIMEOUT | CMDLINE_CONTROL,
        .help = "show the upgrade that is under way, complete it, or take it back",
        .run = cli_upgrade },
    { .name = NULL },
};
