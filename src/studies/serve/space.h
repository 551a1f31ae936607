#pragma once

// The space of `foretrace plan serve`: a load, an SLO, and configurations for them.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/question/training.h"
#include "serve/deployment.h"
#include "studies/serve/serve_plan.h"

namespace foretrace {

using serve::SloPart;

/// How one copy of the model is placed.
struct ServedCopy {
  serve::Placement placement{};
  std::string cache{};
  serve::Precision precision{};
  std::vector<std::int64_t> tokens{};  ///< Limits of a step that fit, the engine's own first.
  double capacity = 0;                 ///< Requests a second, at most.
  bool is_too_slow = false;            ///< It misses the SLO with one request at a time.

  std::int64_t devices() const { return placement.tensor * placement.data; }
};

struct ServeCandidate {
  const ServedCopy* copy = nullptr;
  std::int64_t replicas = 1, prefill = 0, tokens = 0;
  std::int64_t sequences = 0;  ///< 0: as many as the engine has by default, or is given.

  std::int64_t gpus() const { return (replicas + prefill) * copy->devices(); }
};

class ServeSpace {
 public:
  /// Throws Error on a question that cannot be read.
  explicit ServeSpace(const ServePlanQuestion& question);

  const ServePlanQuestion& question;
  serve::Deployment base;       ///< With the engine's own limits.
  serve::EngineSettings given;  ///< As written: what is 0 may be searched.
  std::vector<std::int64_t> gpus;
  std::vector<std::string> caches;  ///< In the order of preference.
  std::size_t requests = 0;
  std::vector<std::string> assumptions;
  std::optional<GpuPrice> price;  ///< nullopt without prices.

  /// All copies of which the last count of GPUs has room: within a host, or of whole hosts.
  std::vector<ServedCopy> copies() const;
  /// Sets `copy.tokens` and `copy.capacity`. Returns why nothing fits, or nothing.
  std::string fit(ServedCopy& copy) const;
  serve::ServedDeployment served_by(const ServeCandidate& candidate) const;
  /// The share of its limit that the latency takes, and the largest of all parts.
  double share_of(const ServingPoint& point, const SloPart& part) const;
  double share_of(const ServingPoint& point) const;

  /// In GPU seconds for an output token. An open load yields what comes in: the end of a replay
  /// only blurs it.
  double cost_of(const ServingPoint& point) const;

  std::string words_of(const ServeCandidate& candidate) const;
  /// Without intervals.
  ServePlanRow row_of(const ServeCandidate& candidate, const ServingPoint& typical) const;

 private:
  void read_load();
  ServeQuestion asked_of(const ServeCandidate& candidate) const;
  std::int64_t sequences_of(const ServeCandidate& candidate) const;

  serve::ServeCalibration calibration_;
  double offered_ = 0;  ///< Output tokens a second of an open load; 0: it is not open.
};

/// The question that `serve` answers, as a command.
std::string command_of(const ServeQuestion& asked);

}  // namespace foretrace
