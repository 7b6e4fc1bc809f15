# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The manual of the SDK has an entry for each of its functions, and for the fields that a protocol
# consists of, and no other entry. The guide and its companion name no others.

# The fields of a struct of the SDK.
sdk_fields() {
    awk -v name="$1" '
    $0 == "typedef struct " name " {" {
        within = 1
        next
    }
    $0 == "} " name ";" {
        within = 0
    }
    within && /^    [a-z]/ {
        sub(/ *\/\*.*/, "")
        if (match($0, /\(\*[a-z_]+\)/)) {
            print substr($0, RSTART + 2, RLENGTH - 3)
        } else if (sub(/;$/, "")) {
            n = split($0, word, /[ *]+/)
            print word[n]
        }
    }' "$src/src/include/forkbeard/protocol.h"
}

check_reference() {
    page=$src/man/forkbeard_module.3.in
    sdk=$(sdk_functions)
    fields=$(sdk_fields fb_protocol && sdk_fields fb_ops && sdk_fields fb_worker_ops)

    [ "$(echo "$sdk" | wc -l)" -gt 20 ] || echo "$src/src/include/forkbeard: no FB_SDK function is found"
    [ "$(echo "$fields" | wc -l)" -gt 20 ] || echo "$src/src/include/forkbeard: no field is found"
    for name in $sdk; do
        grep -Eq "^\.It Ft .*Fn $name( |\$)" "$page" || echo "$page: \"$name\" has no entry"
    done
    for name in $fields; do
        grep -Eq "^\.It Va $name\$" "$page" || echo "$page: the field \"$name\" has no entry"
    done
    sed -n 's/^\.It Ft .*Fn \([a-z_]*\).*/\1/p' "$page" | while read -r name; do
        among "$name" "$sdk" || echo "$page: there is no function \"$name\""
    done
    for guide in "$src/man/forkbeard_guide.7.in" "$src/man/forkbeard_protocols.7.in"; do
        [ -f "$guide" ] || continue
        grep -Eow '(fb|FB)_[A-Za-z_]+' "$guide" | sort -u | while read -r name; do
            case $name in fb_protocol_*) continue ;; esac
            grep -Eqrw "$name" "$src/src/include/forkbeard" ||
                echo "$guide: the SDK has no \"$name\""
        done
    done
}
