#include "src/http/request_metrics.h"

#include <string>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace sluice::http {

struct RequestMetrics::Counters {
  // One series per method and code that occurred: a few dozen at most.
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("sluice_api_requests_total")
                                                          .Help("Requests to the Kubernetes API by result.")
                                                          .Register(*registry);
  prometheus::Family<prometheus::Histogram>& seconds = prometheus::BuildHistogram()
                                                           .Name("sluice_api_request_seconds")
                                                           .Help("Time to an answer of the Kubernetes API.")
                                                           .Register(*registry);
  prometheus::Counter& stream_bytes = prometheus::BuildCounter()
                                          .Name("sluice_api_stream_bytes_total")
                                          .Help("Bytes received by watches.")
                                          .Register(*registry)
                                          .Add({});

  void count(const std::string& method, const Result<Response>& response) {
    const std::string code =
        response.ok() ? std::to_string(response->status) : std::string(to_string(response.error().code()));
    requests.Add({{"method", method}, {"code", code}}).Increment();
  }
};

class RequestMetrics::ObservedTransport final : public Transport {
 public:
  ObservedTransport(std::shared_ptr<Transport> inner, const Clock& clock, std::shared_ptr<Counters> counters)
      : inner_(std::move(inner)), clock_(clock), counters_(std::move(counters)) {}

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    const Clock::TimePoint began = clock_.now();
    auto response = inner_->send(request, timeout, std::move(stop));
    counters_->count(request.method, response);
    counters_->seconds
        .Add({{"method", request.method}},
             prometheus::Histogram::BucketBoundaries{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30})
        .Observe(std::chrono::duration<double>(clock_.now() - began).count());
    return response;
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    struct CountingSink final : ByteSink {
      CountingSink(ByteSink& sink, prometheus::Counter& bytes) : sink(sink), count(bytes) {}
      Result<void> on_bytes(std::string_view bytes) override {
        count.Increment(static_cast<double>(bytes.size()));
        return sink.on_bytes(bytes);
      }
      ByteSink& sink;
      prometheus::Counter& count;
    } counting(sink, counters_->stream_bytes);
    auto response = inner_->stream(request, counting, idle_limit, std::move(stop));
    counters_->count("WATCH", response);
    return response;
  }

 private:
  const std::shared_ptr<Transport> inner_;
  const Clock& clock_;
  const std::shared_ptr<Counters> counters_;
};

RequestMetrics::RequestMetrics() : counters_(std::make_shared<Counters>()) {}
RequestMetrics::~RequestMetrics() = default;

std::shared_ptr<Transport> RequestMetrics::observe(std::shared_ptr<Transport> inner, const Clock& clock) {
  return std::make_shared<ObservedTransport>(std::move(inner), clock, counters_);
}

std::weak_ptr<prometheus::Collectable> RequestMetrics::collectable() const { return counters_->registry; }

}  // namespace sluice::http
