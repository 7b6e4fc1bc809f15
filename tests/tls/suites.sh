# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2094,SC2154,SC2034 # read by tests/tls.test, and files that others wait for
# Each client of tests/tls.test with each version, cipher and kind of certificate, which take turns.

# is_back FILE N: so many bytes, or the client is over
is_back() {
    has_size "$1" "$2" || [ -e "$1.over" ]
}

# What a client sends: gnutls-cli makes a system call of each byte.
bytes_of() {
    case $1 in
    gnutls) echo few ;;
    *) echo all ;;
    esac
}

# feed FILE BYTES: a line, and when it is back in the file all others; ends when those are back
feed() {
    cat small
    within 60 is_back "$1" "$(wc -c <small)" || return
    tail -n +2 "$2"
    within 60 is_back "$1" "$(wc -c <"$2")"
}

fed() {
    "$@"
    code=$?
    : >"$out.over"
    return $code
}

exchange() {
    out=$1.$2.out
    : >"$out"
    rm -f "$out.over"
    case $1 in
    curl | pycurl | python) "client_$1" "$2" ;;
    *) feed "$out" "$(bytes_of "$1")" | fed "client_$1" "$2" ;;
    esac >"$out" 2>"$1.$2.said" || echo "$1: port $2: ended with $?: $(cat "$1.$2.said")"
    cmp "$out" "$(bytes_of "$1")"
}

# is_for CLIENT PROTOCOL PORT: whether the client tries this server now; Mbed TLS 2 has no TLS 1.3
is_for() {
    { [ "$1" != mbedtls ] || [ "$2" = TLSv1.2 ]; } && has_turn $(($3 + ${#1})) 5
}

exchange_all() {
    while read -r port protocol cipher key; do
        ! is_for "$1" "$protocol" "$port" || exchange "$1" "$port"
    done <suites >"$1.failed" 2>&1
}

# The lines of the access log that must be there; what HTTP has around the bytes is not counted.
expect_all() {
    n=$(wc -c <"$(bytes_of "$1")")
    while read -r port protocol cipher key; do
        is_for "$1" "$protocol" "$port" || continue
        case $1 in
        curl | pycurl) echo "$1.test $((port + 100)) $protocol $cipher" ;;
        *) echo "$1.test $port $protocol $cipher 200 $n/$n reused=." ;;
        esac
    done <suites
}

is_missing_none() {
    while read -r line; do
        grep -q -F -e "$line" tls.log || return 1
    done <wanted
}

part_suites() {
    running="" ready=""
    for client in $clients; do
        is_there "$client" || continue
        ready="$ready $client"
        exchange_all "$client" &
        running="$running $!"
    done
    # shellcheck disable=SC2086 # a list of words
    wait $running
    for client in $ready; do
        [ ! -s "$client.failed" ] || fail "$(head -n 20 "$client.failed")"
    done
    for client in $ready; do expect_all "$client"; done >wanted
    within 20 is_missing_none || fail "not in the access log: $(grep -v -F -f tls.log wanted || cat wanted)"
}
