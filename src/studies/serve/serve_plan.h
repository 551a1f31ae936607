#pragma once

// `foretrace plan serve`: the cheapest configuration of a served model on a machine with which
// latencies stay within demanded limits, and the command that starts it.
//
//     placements of a copy    tensor x data x expert, precision of the cache
//       - those that do not fit in memory, or miss the SLO with one request at a time
//     x numbers of GPUs       copies of it, some of them for prompts alone; fewest GPUs first, up
//                             to the first number that meets the SLO
//       - those whose capacity is below the load
//     x limits of the engine  max_num_batched_tokens, max_num_seqs
//
// A configuration meets the SLO if the upper ends of the 80 % intervals are within the limits.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/answer/serving.h"
#include "foretrace/question/serve.h"

namespace foretrace {

struct ServePlanQuestion {
  /// Its layout is searched; its cache may be "any": bf16, or fp8 where bf16 needs more GPUs.
  ServeQuestion served{};
  std::string slo{};                   ///< "ttft_p99=2s,tpot_p99=50ms"
  std::vector<std::int64_t> gpus{};    ///< Counts to choose from; none: all of the machine.
  std::vector<std::int64_t> tensor{};  ///< The same for tensor parallel GPUs; none: all that fit.
  std::size_t top = 5;
};

struct ServePlanRow {
  ServeQuestion asked{};        ///< `serve` answers for it alone.
  std::string configuration{};  ///< In words: its placement, and limits that are not the engine's.
  std::int64_t gpus = 1, max_sequences = 0, max_tokens = 0;
  SloVerdict verdict = SloVerdict::misses;
  std::vector<SloFigure> figures{};  ///< Only those of ranked configurations have intervals.
  ServingPoint point{};
  std::optional<double> price{};  ///< Of a million output tokens.
  bool is_same = false;           ///< As good as the first within intervals.
};

struct ServePlanReport {
  std::string model{}, machine{}, engine{}, weights{}, load{}, slo{}, currency{};
  std::int64_t most_gpus = 1;
  std::size_t placements = 0, replayed = 0;
  struct LeftOut {
    std::string why, what;  ///< "capacity below the load", "layout"
    std::size_t count;
  };
  std::vector<LeftOut> left_out{};
  std::vector<ServePlanRow> ranked{};      ///< Cheapest first.
  std::vector<ServePlanRow> fewer{};       ///< The best with numbers of GPUs below all of those.
  std::string command{};                   ///< Asks `serve` about the first.
  std::string launch{};                    ///< Starts the engine with it.
  std::vector<std::string> not_written{};  ///< Settings that `launch` does not have, and why.
  std::vector<std::string> assumptions{};
};

/// Throws Error if the question cannot be answered: also if nothing fits, if the load is above the
/// capacity of all GPUs, or if nothing meets the SLO even typically.
ServePlanReport plan_serve(const ServePlanQuestion& question);

/// Sets `launch` and `not_written` for the first configuration. `per_node`: GPUs of a host.
void add_launch(std::int64_t per_node, bool has_experts, ServePlanReport& report);

class Document;
/// For people, in every form.
Document document_of(const ServePlanReport& report);
/// The object with schema "foretrace.serving_plan/1".
nlohmann::json to_json(const ServePlanReport& report);
/// One row for each ranked configuration.
void write_csv(const ServePlanReport& report, std::ostream& out);

}  // namespace foretrace
