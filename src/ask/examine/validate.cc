#include <nlohmann/json.hpp>
#include <optional>

#include "ask/job/job.h"
#include "foretrace/ask/examine.h"
#include "foretrace/error.h"

namespace foretrace {

std::vector<std::string_view> ValidatedRank::broken() const {
  std::vector<std::string_view> names;
  if (!against.empty()) return names;  // Only the errors were asked for.
  const auto check = [&](bool holds, std::string_view name) {
    if (!holds) names.push_back(name);
  };
  check(validation.scale_holds, "scale");
  check(validation.neutral_holds, "neutral");
  check(validation.shrink_holds, "shrink");
  check(validation.export_holds, "export");
  check(validation.without_device.holds(), "without device");
  check(validation.without_host.holds(), "without host");
  return names;
}

std::vector<ValidatedRank> validate_trace(const std::string& path, const std::string& against,
                                          const ImportOptions& reading) {
  std::optional<Inference> other;
  if (!against.empty()) {
    const Trace trace = import_trace(against, reading);
    other = within(against, [&] { return infer(trace); });
  }
  std::vector<ValidatedRank> rows;
  const Job job = read_job(path, {.reading = reading});
  for (const Rank& rank : job.ranks) {
    const Inference& inference = rank.inference;
    const std::string name =
        job.ranks.size() == 1 ? path : path + ", rank " + std::to_string(rank.number);
    within(job.place(rank), [&] {
      rows.push_back(
          {name,
           other ? validate_against(inference, *other) : validate(inference, !rank.is_snapshot),
           other ? LeftOutSteps{} : left_out_steps(inference), against});
    });
  }
  return rows;
}

nlohmann::json to_json(const ValidatedRank& rank) {
  nlohmann::json object = to_json(rank.validation);
  object["trace"] = rank.trace;
  object["left_out"] = {{"steps", rank.left_out.steps}, {"inside", rank.left_out.inside}};
  if (rank.against.empty()) return object;
  object["against"] = rank.against;
  for (const char* asked : {"without_device", "without_host", "metamorphic"}) object.erase(asked);
  return object;
}

}  // namespace foretrace
