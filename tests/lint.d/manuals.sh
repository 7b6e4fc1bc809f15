# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint

check_manuals() {
    if ! command -v mandoc >/dev/null; then
        lacks mandoc
        return
    fi
    mandoc -Tlint -Wwarning "$src"/man/*.in
}
