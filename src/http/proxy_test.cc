#include "src/http/proxy.h"

#include "src/base/testing/catch.h"

namespace sluice::http {
namespace {

TEST_CASE("the proxy is that of the URL's scheme, unless the host is to be asked directly") {
  const ProxyEnvironment both{"http://plain:1", "secure:2", "cluster.local,10.0.0.0/8"};
  struct Case {
    const char* url;
    const char* want;
  };
  for (const Case& test :
       {Case{"http://prom.example/prefix", "http://plain:1"}, Case{"https://prom.example", "http://secure:2"},
        Case{"https://user@prom.example:9090/x", "http://secure:2"}, Case{"https://10.1.2.3:6443", ""},
        Case{"https://kubernetes.default.svc.cluster.local", ""}, Case{"https://[fd00::1]:6443", "http://secure:2"},
        Case{"https://localhost:6443", ""}, Case{"http://127.0.0.1:9090", ""}, Case{"https://[::1]:6443", ""},
        Case{"no URL", ""}}) {
    CAPTURE(test.url);
    CHECK(proxy_for(test.url, both) == test.want);
  }
  CHECK(proxy_for("https://prom.example", {"http://plain:1", "", ""}).empty());
}

TEST_CASE("NO_PROXY is read as curl and kubectl read it") {
  struct Case {
    const char* no_proxy;
    const char* host;
    bool want;
  };
  for (const Case& test : {Case{"", "a.example", false},
                           Case{"*", "a.example", true},
                           Case{"a.example", "a.example", true},
                           Case{"a.example", "b.a.example", true},
                           Case{"a.example", "ba.example", false},
                           Case{".a.example", "a.example", false},
                           Case{".a.example", "b.a.example", true},
                           Case{"*.a.example", "b.a.example", true},
                           Case{"x, A.example ,y", "a.EXAMPLE", true},
                           Case{",,", "a.example", false},
                           Case{"a.example:443", "a.example", true},
                           Case{"a.example:80", "a.example", false},
                           Case{"10.0.0.7", "10.0.0.7", true},
                           Case{"10.0.0.7", "10.0.0.77", false},
                           Case{"10.0.0.0/8", "10.255.0.1", true},
                           Case{"10.0.0.0/8", "11.0.0.1", false},
                           Case{"172.16.0.0/12", "172.31.0.1", true},
                           Case{"172.16.0.0/12", "172.32.0.1", false},
                           Case{"10.0.0.0/33", "10.0.0.0", false},
                           Case{"10.0.0.0/x", "10.0.0.0", false},
                           Case{"0.0.0.0/0", "8.8.8.8", true},
                           Case{"0.0.0.0/0", "fd00::1", false},
                           Case{"fd00::/8", "fd12::1", true},
                           Case{"fd00::/8", "fe80::1", false},
                           Case{"[fd00::1]:443", "fd00::1", true},
                           Case{"fd00::1", "fd00::1", true}}) {
    CAPTURE(test.no_proxy, test.host);
    CHECK(asked_directly(test.host, 443, test.no_proxy) == test.want);
  }
}

}  // namespace
}  // namespace sluice::http
