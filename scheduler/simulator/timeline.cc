#include "scheduler/simulator/timeline.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "scheduler/simulator/report.h"

namespace sluice::simulator {
namespace {

constexpr double kWidth = 900;
constexpr double kLeft = 60;  // room for labels
constexpr double kHeight = 130;

// Calls visit(bucket, step, seconds) for every part of every step that lies in a bucket.
void spread(const JobRecord& job, double bucket_seconds, int count,
            const std::function<void(int, const TimelineStep&, double)>& visit) {
  for (std::size_t i = 0; i < job.timeline.size(); ++i) {
    const TimelineStep& step = job.timeline[i];
    if (!step.running) continue;
    const double end = i + 1 < job.timeline.size() ? job.timeline[i + 1].at_seconds : job.finish_seconds;
    double at = step.at_seconds;
    while (at < end) {
      const int bucket = std::min(count - 1, static_cast<int>(at / bucket_seconds));
      const double until = bucket == count - 1 ? end : std::min(end, (bucket + 1) * bucket_seconds);
      visit(bucket, step, until - at);
      at = std::max(until, std::nextafter(at, end));
    }
  }
}

std::string number(double value) { return fixed(value, 1); }

// A filled line over time from `values` down to the axis.
std::string area(const std::vector<double>& values, double top, const char* colour) {
  const double step = (kWidth - kLeft) / static_cast<double>(values.size());
  std::string path = "M" + number(kLeft) + " " + number(kHeight);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double y = kHeight * (1 - std::min(1.0, values[i] / top));
    path += "V" + number(y) + "H" + number(kLeft + step * static_cast<double>(i + 1));
  }
  return "<path d=\"" + path + "V" + number(kHeight) + "Z\" fill=\"" + colour + "\"/>\n";
}

std::string text_at(double x, double y, const std::string& text, const char* anchor) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" + escaped(text) +
         "</text>\n";
}

// What a time line counts in, so that its ticks are small whole numbers.
struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit unit_for(double seconds) {
  if (seconds < 180) return {" s", 1};
  if (seconds < 3 * 3600) return {" min", 60};
  return {" h", 3600};
}

// Time under the axis, and the scale's top and bottom beside it.
std::string axes(double seconds, double height, const std::string& top, const std::string& bottom) {
  std::string svg = text_at(kLeft - 6, 10, top, "end") + text_at(kLeft - 6, height, bottom, "end");
  const TimeUnit unit = unit_for(seconds);
  const double length = seconds / unit.seconds;
  double step = 1;
  for (int i = 0; length / step > 10; ++i) step *= i % 3 == 1 ? 2.5 : 2;  // 1, 2, 5, 10, 20, 50, ...
  for (double at = 0; at <= length; at += step) {
    const double x = kLeft + (kWidth - kLeft) * at / length;
    svg += "<line x1=\"" + number(x) + "\" x2=\"" + number(x) + "\" y1=\"0\" y2=\"" + number(height + 4) +
           "\" stroke=\"#8884\"/>\n";
    const std::string text = fixed(at, 0) + unit.name;
    // The last one would stick out of the picture.
    svg += x > kWidth - 10 ? text_at(kWidth + 10, height + 16, text, "end") : text_at(x, height + 16, text, "middle");
  }
  return svg;
}

std::string svg(double height, const std::string& label, const std::string& body) {
  return "<svg viewBox=\"0 0 " + number(kWidth + 10) + " " + number(height + 22) + "\" role=\"img\" aria-label=\"" +
         label + "\">\n" + body + "</svg>\n";
}

// From red (starved) through yellow to green (full speed).
std::string colour_of(double speed) {
  const double hue = 120 * std::clamp(speed, 0.0, 1.0);
  return "hsl(" + fixed(hue, 0) + " 70% 45%)";
}

}  // namespace

std::vector<Bucket> buckets_of(const RunRecord& run, const Workload& workload, double bucket_seconds, int count) {
  std::vector<Bucket> buckets(count);
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    const double gpus = workload[i].gpus;
    spread(run.jobs[i], bucket_seconds, count, [&](int at, const TimelineStep& step, double seconds) {
      const double part = seconds / bucket_seconds;
      buckets[at].gpus_allocated += part * gpus;
      buckets[at].gpus_busy += part * gpus * step.speed;
      buckets[at].local_cores += part * step.local_cores;
      buckets[at].remote_cores += part * step.remote_cores;
    });
  }
  return buckets;
}

std::vector<JobBucket> job_buckets(const JobRecord& job, double bucket_seconds, int count) {
  std::vector<JobBucket> buckets(count);
  std::vector<double> running(count, 0);
  spread(job, bucket_seconds, count, [&](int at, const TimelineStep& step, double seconds) {
    JobBucket& bucket = buckets[at];
    if (running[at] == 0) bucket.speed = 0;
    running[at] += seconds;
    bucket.speed += seconds * step.speed;
    bucket.local_cores += seconds * step.local_cores;
    bucket.remote_cores += seconds * step.remote_cores;
    bucket.wanted_cores += seconds * step.wanted_cores;
  });
  for (int i = 0; i < count; ++i) {
    if (running[i] == 0) continue;
    for (double* value :
         {&buckets[i].speed, &buckets[i].local_cores, &buckets[i].remote_cores, &buckets[i].wanted_cores})
      *value /= running[i];
  }
  return buckets;
}

std::string gpu_chart(const std::vector<Bucket>& buckets, double bucket_seconds, int gpus) {
  std::vector<double> allocated, busy;
  for (const Bucket& bucket : buckets) {
    allocated.push_back(bucket.gpus_allocated);
    busy.push_back(bucket.gpus_busy);
  }
  const double seconds = bucket_seconds * static_cast<double>(buckets.size());
  return svg(kHeight, "GPUs over time",
             area(allocated, gpus, "#9ab8d8") + area(busy, gpus, "#1f5f9f") +
                 axes(seconds, kHeight, std::to_string(gpus) + " GPUs", "0"));
}

std::string cpu_chart(const std::vector<Bucket>& buckets, double bucket_seconds, double cores) {
  std::vector<double> local, both;
  for (const Bucket& bucket : buckets) {
    local.push_back(bucket.local_cores);
    both.push_back(bucket.local_cores + bucket.remote_cores);
  }
  const double seconds = bucket_seconds * static_cast<double>(buckets.size());
  return svg(kHeight, "CPU over time",
             area(both, cores, "#e0a050") + area(local, cores, "#7a4fa0") +
                 axes(seconds, kHeight, fixed(cores, 0) + " cores", "0"));
}

std::string job_chart(const RunRecord& run, const Workload& workload, double bucket_seconds, int count, int most_jobs) {
  std::vector<std::size_t> order(workload.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return workload[a].gpu_seconds() > workload[b].gpu_seconds(); });
  if (order.size() > static_cast<std::size_t>(most_jobs)) order.resize(most_jobs);
  std::sort(order.begin(), order.end());
  constexpr double kRow = 14;
  const double step = (kWidth - kLeft) / count;
  std::string body;
  for (std::size_t row = 0; row < order.size(); ++row) {
    const JobSpec& job = workload[order[row]];
    const double bottom = kRow * static_cast<double>(row + 1) - 2;
    body += text_at(kLeft - 6, bottom, job.name, "end");
    const std::vector<JobBucket> buckets = job_buckets(run.jobs[order[row]], bucket_seconds, count);
    for (int i = 0; i < count; ++i) {
      const JobBucket& bucket = buckets[i];
      if (bucket.speed < 0) continue;
      const double part = std::clamp((bucket.local_cores + bucket.remote_cores) / bucket.wanted_cores, 0.15, 1.0);
      const double height = (kRow - 3) * part;
      body += "<rect x=\"" + number(kLeft + step * i) + "\" y=\"" + number(bottom - height) + "\" width=\"" +
              number(step + 0.2) + "\" height=\"" + number(height) + "\" fill=\"" + colour_of(bucket.speed) +
              "\"><title>" + escaped(job.name) + ", " + std::to_string(job.gpus) +
              " GPUs: " + fixed(100 * bucket.speed, 0) + " % of full speed with " + fixed(bucket.local_cores, 1) +
              " local and " + fixed(bucket.remote_cores, 1) + " remote cores of " + fixed(bucket.wanted_cores, 1) +
              " wanted</title></rect>\n";
    }
  }
  const double height = kRow * static_cast<double>(order.size());
  return svg(height, "speed and CPU of the largest jobs", body + axes(bucket_seconds * count, height, "", ""));
}

}  // namespace sluice::simulator
