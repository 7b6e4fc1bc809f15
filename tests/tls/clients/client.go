// SPDX-License-Identifier: BSD-2-Clause
// A client of tests/tls.test, whose TLS is Go's:
//
//	client ADDRESS PORT NAME
//
// sends standard input, and writes the server's bytes to standard output. Behind the end of standard
// input it sends close_notify, and has to get one of the server's.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"os"
)

func check(err error) {
	if err != nil {
		log.Fatal("go: ", err)
	}
}

func main() {
	authority, err := os.ReadFile("ca.pem")
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	config := &tls.Config{RootCAs: roots, ServerName: os.Args[3]}
	conn, err := tls.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]), config)
	check(err)
	go func() {
		_, err := io.Copy(conn, os.Stdin)
		check(err)
		check(conn.CloseWrite())
	}()
	_, err = io.Copy(os.Stdout, conn)
	check(err)
}
