// Command forward forwards its ports to servers of the compose network: forward 3306=mysql:3306 …
package main

import (
	"io"
	"log"
	"net"
	"os"
	"strings"
)

func main() {
	for _, arg := range os.Args[1:] {
		port, server, _ := strings.Cut(arg, "=")
		listener, err := net.Listen("tcp", ":"+port)
		if err != nil {
			log.Fatal(err)
		}
		go serve(listener, server)
	}
	select {}
}

func serve(listener net.Listener, server string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go forward(client, server)
	}
}

// forward copies in both directions until one side closes.
func forward(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		log.Print(err)
		return
	}
	go func() {
		defer upstream.Close()
		_, _ = io.Copy(upstream, client)
	}()
	_, _ = io.Copy(client, upstream)
}
