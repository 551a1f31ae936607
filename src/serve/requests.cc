#include "serve/requests.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/random_generator.h"
#include "foretrace/error.h"
#include "serve/csv_table.h"

namespace foretrace::serve {
namespace {

constexpr std::int64_t kLongest = 1 << 24, kMaxRequests = 10'000'000;

/// Exponential with mean 1, by comparisons alone, so that it is the same on every machine (J. von
/// Neumann, 1951): the integer part counts rejected descents, the rest is the accepted start.
double exponential(RandomGenerator& random) {
  for (double whole = 0;; ++whole) {
    const double first = random.uniform();
    double last = first;
    for (int length = 1;; ++length) {
      const double next = random.uniform();
      if (next > last) {
        if (length % 2 == 1) return whole + first;
        break;
      }
      last = next;
    }
  }
}

std::int64_t drawn(std::int64_t length, double range, RandomGenerator& random) {
  const auto least =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(length) * range));
  return least + static_cast<std::int64_t>(random.below(
                     static_cast<std::uint64_t>(length - std::min(least, length) + 1)));
}

std::vector<Request> requests_in(const std::string& path) {
  std::vector<Request> requests;
  each_csv_row(path, [&](const CsvRow& row) {
    const Nanoseconds arrival = from_nanoseconds(row.number("arrival_s", 0, 1e6) * 1e9);
    if (!requests.empty() && arrival < requests.back().arrival)
      throw Error("arrival_s: requests must be sorted by arrival");
    requests.push_back({arrival, row.whole("input", kLongest), row.whole("output", kLongest)});
  });
  if (requests.empty()) throw Error(path + ": must have at least one request");
  return requests;
}

}  // namespace

void Load::describe(Fields& fields) {
  fields.integer("concurrency", concurrency, "Requests at a time, in a closed load", 1, 1 << 20);
  fields.number("rate", rate, "Requests a second, at random times; 0: a closed load", 0, 1e6);
  fields.flag("burst", burst, "All requests are sent at once");
  fields.path("file", file, "CSV of requests: arrival_s, input, output");
  fields.integer("requests", requests, "Number of requests; 0: ten for each at a time", 0,
                 kMaxRequests);
  fields.integer("input", input, "Tokens of a prompt", 1, kLongest);
  fields.integer("output", output, "Tokens of an answer", 1, kLongest);
  fields.number("range", range, "Lengths are uniform from this share of the length up to it", 0, 1);
  fields.integer("burstiness", burstiness, "Gaps are a sum of this many exponential ones", 1, 1000);
  fields.integer("seed", seed, "Seed of lengths and gaps", 0);
}

void Load::check() const {
  if ((rate > 0 ? 1 : 0) + (burst ? 1 : 0) + (file.empty() ? 0 : 1) > 1)
    throw Error("must be one of rate, burst and file");
}

void check_requests(const std::vector<Request>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].input < 1 || requests[i].output < 1)
      throw Error(
          fmt::format("request {}: must have at least 1 token of input and of output, got "
                      "{} and {}",
                      i, requests[i].input, requests[i].output));
    if (i > 0 && requests[i].arrival < requests[i - 1].arrival)
      throw Error(fmt::format("request {}: requests must be sorted by arrival", i));
  }
}

std::vector<Request> requests_of(const Load& load) {
  load.check();
  if (!load.file.empty()) return requests_in(load.file);
  const std::int64_t count = load.requests > 0  ? load.requests
                             : load.is_closed() ? std::max<std::int64_t>(100, 10 * load.concurrency)
                                                : 1000;
  RandomGenerator random(static_cast<std::uint64_t>(load.seed));
  std::vector<Request> requests;
  std::vector<double> times;
  double time = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    requests.push_back({.input = drawn(load.input, load.range, random),
                        .output = drawn(load.output, load.range, random)});
    if (load.rate == 0) continue;
    for (std::int64_t part = 0; part < load.burstiness; ++part) time += exponential(random);
    times.push_back(time);
  }
  // The series is stretched so that the last request leaves at count / rate, as vLLM's bench does.
  for (std::size_t i = 0; i < times.size(); ++i)
    requests[i].arrival =
        from_nanoseconds(times[i] / time * static_cast<double>(count) / load.rate * 1e9);
  return requests;
}

}  // namespace foretrace::serve
