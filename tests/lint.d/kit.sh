# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The test kit's manual has an entry for each of its functions, and its library exports these and the
# SDK's. Names of the library that do not begin with fb_ are not looked at.

check_kit() {
    page=$src/man/forkbeard_test.3.in
    library=.libs/libforkbeard-test.so
    [ -e "$library" ] || echo "$library is not built"
    kit=$(kit_functions)
    both=$(sdk_functions && echo "$kit")
    exported=$(nm -D --defined-only "$library" | awk '$3 ~ /^fb_/ { print $3 }')

    [ "$(echo "$kit" | wc -l)" -gt 20 ] || echo "$src/src/include/forkbeard: no function of the kit is found"
    for name in $kit; do
        grep -Eq "^\.It Ft .*Fn $name( |\$)" "$page" || echo "$page: \"$name\" has no entry"
    done
    sed -n 's/^\.It Ft .*Fn \([a-z_]*\).*/\1/p' "$page" | while read -r name; do
        among "$name" "$kit" || echo "$page: there is no function \"$name\""
    done
    for name in $exported; do
        among "$name" "$both" || echo "$library exports $name, which is not the kit's"
    done
    for name in $both; do
        among "$name" "$exported" || echo "$library does not export $name"
    done
}
