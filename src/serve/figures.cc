#include "serve/figures.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace foretrace::serve {
namespace {

LatencyFigure figure_of(const char* name, const char* what, std::vector<double> ns) {
  LatencyFigure figure{.name = name, .what = what};
  if (ns.empty()) return figure;
  std::ranges::sort(ns);
  figure.has_values = true;
  double sum = 0;
  for (const double value : ns) sum += value;
  figure.mean = from_nanoseconds(sum / static_cast<double>(ns.size()));
  figure.p50 = from_nanoseconds(interpolated_quantile(ns, .5));
  figure.p90 = from_nanoseconds(interpolated_quantile(ns, .9));
  figure.p99 = from_nanoseconds(interpolated_quantile(ns, .99));
  return figure;
}

LatencyFigure gaps_of(std::vector<Gap> gaps) {
  LatencyFigure figure{.name = "itl", .what = "between tokens"};
  if (gaps.empty()) return figure;
  figure.has_values = true;
  double sum = 0, count = 0;
  for (const Gap& gap : gaps)
    sum += gap.ns * static_cast<double>(gap.count), count += static_cast<double>(gap.count);
  figure.mean = from_nanoseconds(sum / count);
  figure.p50 = from_nanoseconds(weighted_quantile(gaps, .5));
  figure.p90 = from_nanoseconds(weighted_quantile(gaps, .9));
  figure.p99 = from_nanoseconds(weighted_quantile(gaps, .99));
  return figure;
}

constexpr const char* kBoundNames[kBounds] = {"reading weights", "reading the cache", "arithmetic",
                                              "exchanges between GPUs", "host and launches"};

std::vector<BatchSample> batch_of(const ServedLoad& load) {
  constexpr std::int64_t kSamples = 200;
  std::vector<Nanoseconds> sent, started, ended;
  for (const RequestRecord& record : load.records) {
    sent.push_back(record.sent), started.push_back(record.started), ended.push_back(record.end);
  }
  for (auto* times : {&sent, &started, &ended}) std::ranges::sort(*times);
  const Nanoseconds begin = sent.front();
  std::vector<BatchSample> samples;
  for (std::int64_t i = 0; i <= kSamples; ++i) {
    const Nanoseconds time = (load.end - begin) * i / kSamples;
    const auto until = [&](const std::vector<Nanoseconds>& times) {
      return std::ranges::upper_bound(times, begin + time) - times.begin();
    };
    samples.push_back({time, until(started) - until(ended), until(sent) - until(started)});
  }
  return samples;
}

}  // namespace

void Demands::describe(Fields& fields) {
  fields.time("ttft", ttft, "Longest time to the first token", 0ns);
  fields.time("tpot", tpot, "Longest time per further token", 0ns);
  fields.time("end_to_end", whole, "Longest time of a request", 0ns);
}

double goodput_of(const ServedLoad& load, const Demands& demands) {
  double met = 0;
  for (const RequestRecord& record : load.records) {
    const Nanoseconds decoding =
        record.output > 1 ? (record.end - record.first) / (record.output - 1) : 0ns;
    const auto meets = [](Nanoseconds time, Nanoseconds most) {
      return most == 0ns || time <= most;
    };
    if (meets(record.first - record.sent, demands.ttft) && meets(decoding, demands.tpot) &&
        meets(record.end - record.sent, demands.whole))
      ++met;
  }
  return met / (static_cast<double>((load.end - load.records.front().sent).count()) * 1e-9);
}

double weighted_quantile(std::vector<Gap>& gaps, double share) {
  std::ranges::sort(gaps, {}, &Gap::ns);
  std::int64_t count = 0;
  for (const Gap& gap : gaps) count += gap.count;
  const double place = share * static_cast<double>(count - 1);
  const auto low = static_cast<std::int64_t>(place);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    before += gaps[i].count;
    if (low + 1 < before || i + 1 == gaps.size()) return gaps[i].ns;
    if (low < before)
      return gaps[i].ns + (place - static_cast<double>(low)) * (gaps[i + 1].ns - gaps[i].ns);
  }
  return 0;
}

ServingPoint figures_of(const ServedLoad& load, std::int64_t gpus) {
  std::vector<double> first, per_token, whole, queue;
  double inputs = 0, outputs = 0, in_flight = 0;
  for (const RequestRecord& record : load.records) {
    const auto ns = [&](Nanoseconds time) {
      return static_cast<double>((time - record.sent).count());
    };
    first.push_back(ns(record.first)), whole.push_back(ns(record.end));
    queue.push_back(ns(record.started));
    if (record.output > 1)
      per_token.push_back((ns(record.end) - ns(record.first)) /
                          static_cast<double>(record.output - 1));
    inputs += static_cast<double>(record.input), outputs += static_cast<double>(record.output);
    in_flight += ns(record.end);
  }
  const double seconds = static_cast<double>((load.end - load.records.front().sent).count()) * 1e-9;
  ServingPoint point{.requests = static_cast<std::int64_t>(load.records.size()), .gpus = gpus};
  point.latencies = {figure_of("ttft", "to the first token", std::move(first)),
                     figure_of("tpot", "per further token", std::move(per_token)),
                     gaps_of(load.gaps), figure_of("end_to_end", "of a request", std::move(whole)),
                     figure_of("queue", "until it starts", std::move(queue))};
  point.requests_per_second = static_cast<double>(load.records.size()) / seconds;
  point.output_tokens_per_second = outputs / seconds / static_cast<double>(gpus);
  point.all_tokens_per_second = (inputs + outputs) / seconds / static_cast<double>(gpus);
  point.concurrency = in_flight * 1e-9 / seconds;
  const double busy = std::max(1., load.busy_ns);
  point.cache_mean = load.used_ns / busy, point.cache_peak = load.peak_used;
  point.waiting_mean = load.waiting_ns / busy, point.waiting_peak = load.peak_waiting;
  point.preemptions = load.preemptions, point.steps = load.steps;
  point.running_peak = load.peak_running;
  point.batch = batch_of(load);
  for (std::size_t i = 0; i < kBounds; ++i)
    point.shares.emplace_back(kBoundNames[i], load.parts[i] / busy);
  std::ranges::stable_sort(point.shares, std::greater<>(), &std::pair<std::string, double>::second);
  return point;
}

}  // namespace foretrace::serve
