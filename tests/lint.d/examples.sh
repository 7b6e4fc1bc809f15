# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The daemon takes the examples as they are, and with all that is commented out in them but the
# module, which is only a name.

check_examples() {
    all=$(mktemp "${TMPDIR:-/tmp}/fb_lint.XXXXXX") || return
    sed -E '/^ *#load_module /!s/^( *)#( *(\}|[a-z_]+.*[;{])( *#.*)?)$/\1\2/' conf/forkbeard.conf.default >"$all"
    for example in "$src/conf/try.conf" conf/forkbeard.conf.default "$all"; do
        said=$(src/forkbeard -t -q -c "$example" 2>&1) || echo "$said"
    done
    cmp -s "$all" conf/forkbeard.conf.default && echo "$all: nothing was commented out"
    rm -f "$all"
}
