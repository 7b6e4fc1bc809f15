#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A hook of uacme(1), which proves by TLS that a name or an address is ours (tls-alpn-01, RFC 8737 and 8738):
#
#     uacme -h /usr/local/share/forkbeard/uacme-alpn.sh issue example.com
#
# The certificate that answers the challenge lies in UACME_CHALLENGE_PATH until the challenge is over, which
# is the ssl_alpn_challenge_directory of forkbeard's configuration. Needs openssl(1).

set -eu
LC_ALL=C
export LC_ALL
directory=${UACME_CHALLENGE_PATH:-/var/lib/forkbeard/challenges}

if [ $# != 5 ]; then
    echo "usage: $0 begin|done|failed TYPE NAME TOKEN DIGEST" >&2
    exit 85
fi
method=$1 type=$2 identifier=$3 digest=$5
[ "$type" = tls-alpn-01 ] || exit 1 # uacme goes on with another challenge

# The name that the client of the challenge asks for, which is an address's name for reverse mapping.
case $identifier in
'' | *[!0-9A-Za-z.:_-]* | .* | *..*)
    echo "$0: unexpected name: $identifier" >&2
    exit 1
    ;;
*:*)
    kind=IP
    name=$(echo "$identifier" | awk -F :: '{
        split($1, groups, ":")
        right = split($2, last, ":")
        for (i = 1; i <= right; i++)
            groups[8 - right + i] = last[i]
        for (i = 1; i <= 8; i++)
            digits = digits sprintf("%4s", groups[i])
        gsub(" ", "0", digits)
        for (i = 32; i > 0; i--)
            printf "%s.", substr(digits, i, 1)
        print "ip6.arpa"
    }')
    ;;
*[!0-9.]*)
    kind=DNS name=$identifier
    ;;
*)
    kind=IP
    name=$(echo "$identifier" | awk -F . '{ print $4 "." $3 "." $2 "." $1 ".in-addr.arpa" }')
    ;;
esac
name=$(echo "$name" | tr '[:upper:]' '[:lower:]')

if [ "$method" != begin ]; then
    rm -f "$directory/$name.pem"
    exit
fi

new=$directory/.$name.$$ # no client can ask for it
trap 'rm -f "$new"' EXIT
trap 'exit 1' HUP INT TERM
hex=$(printf '%s=' "$digest" | tr -- '-_' '+/' | openssl base64 -d -A | od -A n -v -t x1 | tr -d ' \n')
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 7 -config /dev/stdin \
    -keyout "$new" -out "$new" 2>/dev/null <<END
[req]
prompt = no
distinguished_name = subject
x509_extensions = extensions
[subject]
CN = tls-alpn-01
[extensions]
subjectAltName = critical, $kind:$identifier
1.3.6.1.5.5.7.1.31 = critical, DER:0420$hex
END
chmod 644 "$new" # for the user of the daemon: the key is worth nothing
mv "$new" "$directory/$name.pem"
