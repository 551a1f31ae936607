#pragma once

// The answer of `foretrace serve`: what a deployment of a model does under a load. Definitions are
// those of vLLM's benchmark, and percentiles interpolate between values as numpy does.
//
//     sent ---------- first token -- token -- token -- last token
//      |<- TTFT ---->|<-- ITL ->|
//      |<------------ end to end --------------------->|        TPOT = (end to end - TTFT) / (n -
//      1)

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/answer/training.h"
#include "foretrace/units.h"

namespace foretrace {

/// An upper end that does not exist: with the price at its upper end, the load is above the
/// capacity.
constexpr Nanoseconds kUnbounded = Nanoseconds::max();

struct LatencyFigure {
  std::string name;  ///< "ttft", "tpot", "itl", "end_to_end", "queue"
  std::string what;  ///< In words.
  Nanoseconds mean{0}, p50{0}, p90{0}, p99{0};
  std::optional<std::pair<Nanoseconds, Nanoseconds>> interval{};  ///< 80 %, of the mean.
  bool has_values = false;  ///< Answers of one token have no TPOT; all times are 0 then.
};

/// Prices of a million tokens, if GPUs are paid for as long as the load lasts.
struct TokenPrice {
  double of_hour = 0;  ///< Of a GPU.
  std::string currency{};
  RangedNumber output{}, all{};  ///< Of output tokens; of all, prompts included.
};

/// A latency that is demanded, and the one that is expected.
struct SloFigure {
  std::string name{};  ///< "ttft_p99"
  Nanoseconds limit{0}, typical{0};
  std::pair<Nanoseconds, Nanoseconds> interval{};  ///< 80 %.
};

/// `typically`: only the typical latencies are within the limits, not the upper ends.
enum class SloVerdict : std::uint8_t { meets, typically, misses };
std::string_view to_text(SloVerdict verdict);
SloVerdict verdict_of(const std::vector<SloFigure>& figures);
/// "ttft_p99 1.2 s, 0.9 s to 1.6 s, of 2 s; meets it also at the upper ends"
std::string slo_sentence(const std::vector<SloFigure>& figures);
/// "1.2 s" or "unbounded"
std::string end_text(Nanoseconds end);
/// Nanoseconds, or null if unbounded.
nlohmann::json end_json(Nanoseconds end);
/// By name: limit_ns, typical_ns, and lower_ns and upper_ns if there is an interval.
nlohmann::json to_json(const std::vector<SloFigure>& figures);

/// How many requests an instant finds.
struct BatchSample {
  Nanoseconds time{0};  ///< From the first request on.
  std::int64_t running = 0, waiting = 0;
};

struct ServingPoint {
  std::string changed{};  ///< The settings that differ: "max_num_seqs=64"; empty for one point.
  std::int64_t requests = 0, gpus = 1;
  std::vector<LatencyFigure> latencies{};
  double requests_per_second = 0;
  double output_tokens_per_second = 0;                      ///< Of a GPU.
  double all_tokens_per_second = 0;                         ///< Of a GPU, prompts included.
  double lower_output_tokens = 0, upper_output_tokens = 0;  ///< 80 % interval.
  std::optional<double> goodput{};        ///< Requests a second within the demanded times, if any.
  std::optional<TokenPrice> price{};      ///< nullopt without prices.
  std::vector<SloFigure> slo{};           ///< Empty if nothing is demanded.
  double concurrency = 0;                 ///< Mean number of requests in flight.
  double cache_mean = 0, cache_peak = 0;  ///< Shares of the blocks.
  double waiting_mean = 0;
  std::int64_t waiting_peak = 0, preemptions = 0, steps = 0;
  std::int64_t running_peak = 0;                         ///< Of one engine.
  std::vector<std::pair<std::string, double>> shares{};  ///< Of the time of steps, largest first.
  std::string bound{};                                   ///< One sentence: what limits it.
  std::vector<BatchSample> batch{};                      ///< At equal distances, for a picture.
  bool is_covered = false;
  std::string basis{};    ///< Why it is covered or extrapolated.
  std::string refused{};  ///< Why there is no answer; the other facts are empty then.

  /// nullptr if there is none of that name.
  const LatencyFigure* latency(const std::string& name) const;
};

/// Errors against measured deployments, of one group.
struct ServingError {
  std::string what;  ///< "all", "dgx-h100"
  std::size_t rows = 0;
  double first = 0, per_token = 0;  ///< Median absolute relative errors of TTFT and TPOT.
  double inside_first = 0, inside_per_token = 0;  ///< Shares inside the 80 % interval.
};

/// A measured deployment and its prediction, in milliseconds.
struct ServingRow {
  std::string id, system;
  double first_ms = 0, measured_first_ms = 0, gap_ms = 0, measured_gap_ms = 0;
  std::string refused;
};

/// Deployments that differ by nothing but their release.
struct ServingReleases {
  std::size_t cells = 0;  ///< Equal deployments that were measured with several releases.
  std::size_t alike = 0;  ///< Whose releases have the same price: they are not told apart.
  double apart = 0;       ///< Median ratio, less 1, of the slowest TPOT to the fastest, of `alike`.
  std::string example{};  ///< The ids of one of them.
};

struct ServingReport {
  std::string model, machine, engine, placement, precision, load;
  Bytes weights{}, cache{};       ///< Of one device.
  std::int64_t cache_tokens = 0;  ///< Of one engine.
  std::vector<ServingPoint> points;
  std::vector<ServingRow> rows;      ///< With measured deployments; there are no points then.
  std::vector<ServingError> errors;  ///< The same.
  ServingReleases releases{};        ///< The same.
  std::vector<std::string> assumptions;
};

class Document;
/// For people, in every form.
Document document_of(const ServingReport& report);
/// The object with schema "foretrace.serving/1".
nlohmann::json to_json(const ServingReport& report);
/// One row for each point, or for each measured deployment.
void write_csv(const ServingReport& report, std::ostream& out);

}  // namespace foretrace
