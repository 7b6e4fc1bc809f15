# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# The numbers that pkg-config tells are the header's. Others come from an older header that configure
# has read.

check_pkgconfig() {
    for name in abi api; do
        told=$(sed -n "s/^$name=//p" forkbeard.pc)
        macro=FB_$(echo $name | tr '[:lower:]' '[:upper:]')
        grep -qx "#define $macro ${told:-nothing}u" "$src/src/include/forkbeard/forkbeard.h" ||
            echo "forkbeard.pc: $name=$told is not the header's $macro: run configure"
    done
}
