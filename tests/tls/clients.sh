# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # read by tests/tls.test
# Clients of tests/tls.test. client_NAME PORT sends standard input to a server that returns it, writes to
# standard output what comes back, and ends the session when its input ends. Each asks for NAME.test, and
# takes no other certificate than the authority's.

python=$(PATH=/usr/bin:$PATH command -v python3 || :)

# python COMMAND PORT ARGUMENT ...
python() {
    command=$1 port=$2
    shift 2
    timeout 120 "$python" "$source/clients/client.py" "$command" "$ours" "$port" python.test "$@"
}

named='-servername openssl.test'

# s_client PORT ARGUMENT ...
s_client() {
    port=$1
    shift
    case $port in *:*) ;; *) port=$ours:$port ;; esac
    # shellcheck disable=SC2086 # a list of words
    timeout 120 openssl s_client -connect "$port" $named \
        -verify_hostname openssl.test -CAfile ca.pem -verify_return_error "$@"
}

client_openssl() {
    s_client "$1" -quiet -no_ign_eof -nocommands
}

# gnutls PORT ARGUMENT ...
gnutls() {
    port=$1
    shift
    timeout 120 gnutls-cli --x509cafile=ca.pem --sni-hostname=gnutls.test --verify-hostname=gnutls.test \
        "$@" -p "$port" "$ours"
}

client_gnutls() {
    gnutls "$1" --logfile="gnutls.$1.log"
}

# tstclnt never ends a session, and is killed when all is back.
client_nss() {
    exec 5<&0 # in the background standard input is another one
    timeout 120 tstclnt -d sql:nss -a nss.test -h "$ours" -p "$1" <&5 &
    client=$!
    within 60 is_back "$out" "$(wc -c <all)"
    kill $client
    wait $client
    [ $? -ge 124 ]
}

client_mbedtls() {
    timeout 120 ./mbedtls "$ours" "$1" mbedtls.test
}

client_wolfssl() {
    timeout 120 ./wolfssl "$ours" "$1" wolfssl.test
}

client_go() {
    timeout 120 ./go.client "$ours" "$1" go.test
}

# Clients of HTTP, and one that compares by itself, send both files without being fed.
client_curl() {
    set -- "https://curl.test:$(($1 + 100))/" "curl.test:$(($1 + 100)):$ours"
    curl -sS --max-time 120 --cacert ca.pem --resolve "$2" -H Expect: --data-binary @small "$1" \
        --next -sS --max-time 120 --cacert ca.pem --resolve "$2" -H Expect: --data-binary @big "$1"
}

client_pycurl() {
    timeout 120 "$python" "$source/clients/post.py" "$ours" $(($1 + 100)) pycurl.test
}

client_python() {
    python echo "$1" && cat all
}

# compile LIBRARY HEADER FLAG ...: the client of ours that is made of it
compile() {
    library=$1 header=$2
    shift 2
    if ! echo "#include <$header>" | ${CC-cc} -E - >said 2>&1; then
        left_out="$left_out $header"
        return 1
    fi
    # shellcheck disable=SC2086 # a list of words
    quietly ${CC-cc} -O1 -o "$library" "$source/clients/pump.c" "$source/clients/$library.c" "$@"
}

# is_there CLIENT: it is installed, and prepared
is_there() {
    case $1 in
    openssl) ;;
    curl) has curl ;;
    gnutls) has gnutls-cli ;;
    nss)
        has tstclnt && has certutil && mkdir nss && quietly certutil -N -d sql:nss --empty-password &&
            quietly certutil -A -d sql:nss -n authority -t C,, -i ca.pem
        ;;
    python) has "${python:-python3}" ;;
    pycurl)
        has "${python:-python3}" || return 1
        "$python" -c 'import pycurl' 2>/dev/null || has python3-pycurl
        ;;
    mbedtls) compile mbedtls mbedtls/ssl.h -lmbedtls -lmbedx509 -lmbedcrypto ;;
    wolfssl) compile wolfssl wolfssl/ssl.h -lwolfssl ;;
    go) has go && GOCACHE=$top/go.cache quietly go build -o go.client "$source/clients/client.go" ;;
    esac
}
