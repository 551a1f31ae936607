#pragma once

// A question: a trace, the transforms that change its job, and assertions about the answer. It is
// written by hand as a JSON file, or made from the options of a command.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/allocator.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/transform.h"

namespace foretrace {

struct Scenario {
  std::string trace;    ///< Path, in a file relative to that file; empty if only options name it.
  std::string machine;  ///< Name or path of the device to predict for; empty: the trace's own.
  AllocatorSettings allocator;  ///< Allocator of the predicted job, including its memory limit.
  std::vector<std::unique_ptr<Transform>> transforms;
  std::vector<std::string> uses;                     ///< Each transform with its settings, as text.
  std::vector<std::string> reports;                  ///< Names of reports.
  std::vector<std::string> asserts;                  ///< "step_time <= 120ms" ...
  double samples_per_step = 0, tokens_per_step = 0;  ///< As recorded, for rates; 0: not known.
};

/// The forms of a prediction that a scenario can ask for, sorted.
struct ReportEntry {
  std::string_view name, summary;
};
const std::vector<ReportEntry>& reports();

/// Appends the transforms that `text` names, in the form of --with (see transform/synonyms.h).
void add_steps(std::string_view text, Scenario& scenario);

/// Reads a scenario; paths in a file become relative to the working directory. Throws Error with
/// the place: `amp.json: transforms[1]: workers: must be at least 1, got 0`.
Scenario read_scenario(const std::string& path);
Scenario parse_scenario(const nlohmann::json& json);
/// Draft-07 schema of a scenario, all transforms included.
nlohmann::json scenario_schema();
/// The effective settings as JSON, including defaults.
nlohmann::json write_scenario(const Scenario& scenario);
/// The same in one line. Names may hold any bytes: those that are not UTF-8 are replaced.
std::string to_text(const Scenario& scenario);

/// undecided: the interval of the prediction straddles the threshold.
enum class Verdict { holds, fails, undecided };

struct CheckedAssert {
  std::string text;  ///< As written: "step_time <= 120ms".
  Verdict verdict = Verdict::holds;
  std::string found;  ///< "131.2 ms (125.0 ms to 138.1 ms)".
};

/// Returns the assertions of the scenario that fail or are undecided.
std::vector<CheckedAssert> check_asserts(const Scenario& scenario, const Prediction& prediction);

}  // namespace foretrace
