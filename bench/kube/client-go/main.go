// The same as `sluice-kube-bench observe`, as one would write it with client-go.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func cpuSeconds() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)*1e-6
}

func residentMiB() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "")
	namespace := flag.String("namespace", "kube-bench", "")
	seconds := flag.Int("seconds", 30, "")
	strip := flag.Bool("strip", false, "drop managedFields, as a transform")
	asJSON := flag.Bool("json", false, "JSON, as for custom resources, instead of protobuf")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	if *asJSON {
		config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	check(err)
	print := json.NewEncoder(os.Stdout).Encode

	var mutex sync.Mutex
	var lags []float64
	began, cpu := time.Now(), cpuSeconds()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(*namespace))
	informer := factory.Core().V1().Pods().Informer()
	if *strip {
		check(informer.SetTransform(func(object any) (any, error) {
			object.(*corev1.Pod).ManagedFields = nil
			return object, nil
		}))
	}
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, after any) {
		if sent, err := strconv.ParseInt(after.(*corev1.Pod).Annotations["sluice.dev/bench-sent"], 10, 64); err == nil {
			mutex.Lock()
			lags = append(lags, float64(time.Now().UnixNano()-sent)*1e-9)
			mutex.Unlock()
		}
	}})
	factory.Start(make(chan struct{}))
	cache.WaitForCacheSync(make(chan struct{}), informer.HasSynced)
	print(map[string]any{"objects": len(informer.GetStore().ListKeys()), "sync_seconds": time.Since(began).Seconds(),
		"sync_cpu_seconds": cpuSeconds() - cpu, "resident_mib_at_sync": residentMiB()})

	cpu = cpuSeconds()
	time.Sleep(time.Duration(*seconds) * time.Second)
	print(map[string]any{"idle_cpu_percent": 100 * (cpuSeconds() - cpu) / float64(*seconds), "resident_mib": residentMiB()})

	cpu = cpuSeconds()
	io.Copy(io.Discard, os.Stdin)
	mutex.Lock()
	sort.Float64s(lags)
	at := func(share float64) float64 {
		if len(lags) == 0 {
			return 0
		}
		return lags[int(share*float64(len(lags)-1))]
	}
	print(map[string]any{"updates": len(lags), "lag_p50_seconds": at(0.5), "lag_p99_seconds": at(0.99),
		"update_cpu_seconds": cpuSeconds() - cpu, "resident_mib": residentMiB()})
}
