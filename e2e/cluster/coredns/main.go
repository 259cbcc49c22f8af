// CoreDNS with the plug-ins of configuration/coredns.yaml alone: the others bring the clients of four clouds.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// A request passes through them in this order, that of CoreDNS's own plugin.cfg.
	dnsserver.Directives = []string{"reload", "ready", "health", "errors", "cache", "kubernetes"}
	coremain.Run()
}
