#include <fmt/core.h>
#include <optional>

#include "ask/job/job.h"
#include "foretrace/ask/examine.h"
#include "foretrace/error.h"

namespace foretrace {

std::vector<ValidatedRank> validate_trace(const std::string& path, const std::string& against,
                                          const ImportOptions& reading) {
  std::optional<Inference> other;
  if (!against.empty()) {
    const Trace trace = import_trace(against, reading);
    other = within(against, [&] { return infer(trace); });
  }
  std::vector<ValidatedRank> rows;
  const JobRanks job = read_job(path, {.reading = reading});
  for (const Rank& rank : job.ranks) {
    const Inference& inference = rank.inference;
    const std::string name =
        job.ranks.size() == 1 ? path : fmt::format("{}, rank {}", path, rank.number);
    within(job.place(rank), [&] {
      rows.push_back(
          {name,
           other ? validate_against(inference, *other) : validate(inference, !rank.is_snapshot),
           other ? LeftOutSteps{} : left_out_steps(inference), against});
    });
  }
  return rows;
}

}  // namespace foretrace
