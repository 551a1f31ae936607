#pragma once

// Requests and when they are sent.
//
//     closed     as many at a time as the concurrency: the end of one sends the next
//     poisson    at a rate, with exponential gaps (or, with a burstiness above 1, more even ones)
//     burst      all at once
//     file       a CSV with arrival_s, input, output, as public traces of requests are written
//
// Lengths are fixed, or uniform from a share of the length up to it, as benchmarks draw them.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace::serve {

struct Request {
  Nanoseconds arrival{0};              ///< When it is sent; not used in a closed load.
  std::int64_t input = 1, output = 1;  ///< Tokens.
};

struct Load final : Described {
  void describe(Fields& fields) override;
  void check() const override;

  bool is_closed() const { return rate == 0 && file.empty() && !burst; }

  std::int64_t concurrency = 1;
  double rate = 0;  ///< Requests a second; 0: closed, burst or from a file.
  bool burst = false;
  std::string file;
  std::int64_t requests = 0;  ///< 0: ten for each at a time, at least 100; 1000 of an open load.
  std::int64_t input = 1024, output = 128;
  /// Lengths are uniform from this share of the length up to it. Equal lengths make requests end
  /// together and wait for each other, which measured deployments do not.
  double range = .8;
  std::int64_t burstiness = 1;
  std::int64_t seed = 1;
};

/// Sorted by arrival. Throws Error on a file with an unsorted, empty or negative request.
std::vector<Request> requests_of(const Load& load);

/// Throws Error unless requests are sorted by arrival and have positive lengths.
void check_requests(const std::vector<Request>& requests);

}  // namespace foretrace::serve
