#pragma once

// A deployment: a model on a machine by an engine, under a load; what memory leaves for its cache,
// and what it does.

#include <memory>
#include <string>
#include <vector>

#include "foretrace/answer/serving.h"
#include "serve/calibration.h"
#include "serve/figures.h"
#include "serve/price.h"

namespace foretrace::serve {

using Statistic = Nanoseconds LatencyFigure::*;

/// A latency that is demanded.
struct SloPart {
  std::string name, latency;  ///< "ttft_p99", "ttft"
  Statistic statistic;
  Nanoseconds limit{0};
};

struct Deployment {
  Model model;
  Precision precision;
  Placement placement;
  Platform platform;
  EngineSettings engine;  ///< With defaults; blocks may be 0.
  Load load;
  std::string version;     ///< The engine's; may be empty.
  double utilization = 0;  ///< Share of memory; 0: the engine's rule.
  std::int64_t replicas = 1, prefill_replicas = 0;
  bool least_busy = true;
  Demands demands{};
  std::vector<SloPart> slo{};
};

/// Figures are for one device.
struct CacheMemory {
  double weights = 0, other = 0, cache = 0;  ///< Bytes.
  std::int64_t blocks = 0;
};

/// Memory that the engine leaves for its cache, by its own rule. Throws Error if the model does not
/// fit.
CacheMemory cache_memory(const Deployment& deployment);

/// Blocks in what is left: floor((ceil(total x utilization) - weights - other) / bytes of a block).
std::int64_t blocks_in(double total, double utilization, double weights, double other,
                       double block_bytes);

struct Capacity {
  double rate = 0;    ///< The load that the deployment can serve in the long run, a second.
  double gap_ns = 0;  ///< Between tokens of an answer with as many requests as can run at a time.
};
Capacity capacity_of(const Deployment& deployment, const StepPrice& price);

/// Throws Error if all answers lack a latency that is demanded: those of one token have no TPOT.
void check_demands(const std::vector<SloPart>& slo, const std::vector<Request>& requests);

/// The price of the deployment's steps: `table` if there is one. With `factor` it is so many times
/// as long.
std::unique_ptr<StepPrice> price_of(const Deployment& deployment, const std::string& table = "",
                                    double factor = 1);

/// The deployment as a measured one would be described, of one copy. An open load has 1 at a time.
MeasuredDeployment described(const Deployment& deployment);

/// A deployment and its requests. `way` is where in the 80 % interval of the price steps are: -1 at
/// the lower end, 0 typical, 1 at the upper end. Ends of latencies come from such replays as well,
/// because a queue makes more of an error than a step does.
class ServedDeployment {
 public:
  /// Throws Error if the model does not fit or cannot be placed.
  ServedDeployment(const Deployment& deployment, const ServeCalibration& calibration,
                   std::string table = "");

  std::int64_t gpus() const;
  /// The load that it can serve in the long run, in requests a second.
  double capacity() const;
  /// Throws Error unless each request can run, as do the replays below.
  void check() const;
  /// Only typical() says what bounds it.
  ServingPoint typical() const;
  ServingPoint moved(double way) const;
  /// Returns what a measurement of the deployment adds to a calibration. TTFT is compared with
  /// steps that fit TPOT, so that slow steps count once. Throws Error if answers have one token.
  /// REQUIRES: no calibration.
  ServeCalibration::Row residual(const MeasuredDeployment& row) const;
  /// The same requests, one at a time: no load and no number of replicas makes a latency shorter.
  ServingPoint alone() const;
  /// `typical` with the ends of its intervals, and what is demanded of it; `slower` is moved(1).
  ServingPoint bounded(ServingPoint typical, const ServingPoint& slower) const;
  /// An end of the interval of a statistic, or kUnbounded; `moved` is moved(way).
  Nanoseconds end_of(const ServingPoint& typical, const ServingPoint& moved,
                     const std::string& latency, Statistic statistic, double way) const;

 private:
  std::unique_ptr<StepPrice> price(double way) const;
  /// `concurrency`: 0 for an open load.
  ServedLoad run(double way, std::int64_t concurrency) const;
  ServedLoad run(double way) const;

  Deployment deployment_;  ///< With blocks.
  std::string table_;
  Fleet fleet_;
  std::vector<Request> requests_;
  Correction errors_;
  std::string basis_;
  bool is_covered_ = false;
};

/// Throws Error if the model does not fit, a request cannot run, or the load is above capacity.
ServingPoint serve_point(const Deployment& deployment, const ServeCalibration& calibration,
                         const std::string& table = "");

/// The deployment of a measured row. Throws Error if it cannot be described.
Deployment deployment_of(const MeasuredDeployment& row);

}  // namespace foretrace::serve
