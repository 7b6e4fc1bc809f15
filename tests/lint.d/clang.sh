# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154 # read by tests/lint
# clang compiles without a warning, with the options of this build, what the last twenty commits have changed:
# at most sixty sources, or all of them with TURN=all.

check_clang() {
    [ -f Makefile ] || return 0
    command -v clang >/dev/null || {
        lacks clang
        return
    }
    changed=$(git -c safe.directory='*' -C "$src" log -20 --name-only --format= 2>/dev/null)
    make -s compile_commands.json >/dev/null || echo 'make compile_commands.json fails'
    sed -n 's/^  "command": "\(.*\)"$/\1/p' compile_commands.json | sed 's/\\\(.\)/\1/g' |
        awk -v changed="$changed" -v turn="${TURN-}" -v src="$src/" '
        BEGIN {
            n = split(changed, name, "\n")
            while (n > 0)
                wanted[src name[n--]] = 1
            left = turn == "all" ? 10000 : 60
        }
        (turn == "all" || $NF in wanted) && !seen[$NF]++ && left-- > 0 {
            sub(/^[^-]* -/, "clang -Qunused-arguments -Wno-unknown-warning-option -")
            gsub(/ -f[^ ]*lto[^ ]*/, "")
            sub(/ -c -o [^ ]* /, " -Werror -fsyntax-only ")
            print
        }' | sh 2>&1 | grep -E '(error|warning): '
}
