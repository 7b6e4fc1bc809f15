# SPDX-License-Identifier: BSD-2-Clause
"""libcurl with GnuTLS, through python3-pycurl, as a client of tests/tls.test.

usage: post.py ADDRESS PORT NAME

Posts the files small and big of the current directory on one connection, and writes what comes back.
"""
import sys

import pycurl

address, port, name = sys.argv[1:]
assert "GnuTLS" in pycurl.version, pycurl.version
curl = pycurl.Curl()
curl.setopt(pycurl.URL, "https://%s:%s/" % (name, port))
curl.setopt(pycurl.RESOLVE, ["%s:%s:%s" % (name, port, address)])
curl.setopt(pycurl.CAINFO, "ca.pem")
curl.setopt(pycurl.TIMEOUT, 60)
curl.setopt(pycurl.HTTPHEADER, ["Expect:", "Content-Type: application/octet-stream"])
curl.setopt(pycurl.WRITEDATA, sys.stdout.buffer)
for sent in "small", "big":
    curl.setopt(pycurl.POSTFIELDS, open(sent, "rb").read())
    curl.perform()
curl.close()
