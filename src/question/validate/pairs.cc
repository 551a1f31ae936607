#include "foretrace/question/pairs.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"

namespace foretrace {
namespace {

/// The greatest peak of all devices. Returns nullopt if the recording has no memory.
std::optional<std::int64_t> peak_in(const std::vector<MemoryPeak>& peaks, Compared compared,
                                    bool as_recorded) {
  std::optional<std::int64_t> most;
  for (const MemoryPeak& peak : peaks) {
    if (peak.device < 0) continue;
    std::optional<Bytes> bytes = peak.peak_allocated;
    if (compared == Compared::peak_reserved) {
      bytes = peak.peak_reserved;
      if (as_recorded && peak.recorded_reserved) bytes = peak.recorded_reserved;
    }
    if (bytes) most = std::max(most.value_or(0), bytes->count);
  }
  return most;
}

std::int64_t known_peak(const std::optional<std::int64_t>& peak) {
  if (!peak) throw Error("the recording does not record memory");
  return *peak;
}

class PairComparison {
 public:
  PairComparison(const PairOptions& options, PairsReport& report)
      : options_(options), report_(report) {}

  void compare(const KnownPair& pair) {
    PairRow row{.name = pair.name,
                .uses = pair.uses,
                .kind = pair.kind,
                .compared = pair.compared,
                .fitted = pair.fitted,
                .synthetic = pair.synthetic};
    try {
      fill(pair, row);
    } catch (const Error& error) {
      row.problem = error.what();
    }
    report_.rows.push_back(std::move(row));
  }

 private:
  void fill(const KnownPair& pair, PairRow& row) const {
    for (const std::string& path : {pair.before, pair.after}) {
      std::error_code ignored;
      if (path.empty() || std::filesystem::exists(path, ignored)) continue;
      row.missing = true;
      row.problem = "there is no " + path;
      return;
    }
    const Prediction answer = ask(pair.before, pair.uses);
    row.recorded = pair.recorded ? *pair.recorded : recorded_in(pair);
    if (row.compared == Compared::step_time) {
      if (!answer.has_times) throw Error("a memory snapshot has no step times");
      row.before = answer.baseline.step_time.count();
      row.predicted = answer.predicted.step_time.count();
      row.lower = answer.lower.count();
      row.upper = answer.upper.count();
      row.inside = row.lower <= row.recorded && row.recorded <= row.upper;
    } else {
      row.before = known_peak(peak_in(answer.baseline_memory, row.compared, false));
      row.predicted = known_peak(peak_in(answer.predicted_memory, row.compared, false));
      for (const MemoryPeak& peak : answer.predicted_memory) take_interval(peak, row);
    }
    if (row.recorded <= 0) throw Error("the recorded outcome must be above 0");
    row.error = static_cast<double>(row.predicted) / static_cast<double>(row.recorded) - 1;
  }

  /// Takes the interval of the fullest device.
  static void take_interval(const MemoryPeak& peak, PairRow& row) {
    const bool is_fullest = peak.device >= 0 && peak.peak_allocated.count == row.predicted;
    if (row.compared != Compared::peak_allocated || !is_fullest) return;
    if (!peak.lower_allocated || !peak.upper_allocated) return;
    row.lower = peak.lower_allocated->count;
    row.upper = peak.upper_allocated->count;
    row.inside = row.lower <= row.recorded && row.recorded <= row.upper;
  }

  std::int64_t recorded_in(const KnownPair& pair) const {
    const Prediction outcome = ask(pair.after, {});
    if (pair.compared == Compared::step_time) return outcome.measured.step_time.count();
    return known_peak(peak_in(outcome.baseline_memory, pair.compared, true));
  }

  Prediction ask(const std::string& path, const std::vector<std::string>& uses) const {
    Scenario scenario;
    scenario.trace = path;
    for (const std::string& use : uses) {
      scenario.transforms.push_back(read_transform_text(use));
      scenario.uses.push_back(use);
    }
    return predict(Job(path, {.reading = options_.reading}), scenario,
                   {.ledger_path = options_.ledger_path});
  }

  const PairOptions& options_;
  PairsReport& report_;
};

}  // namespace

PairsReport compare_pairs(const std::vector<PairList>& lists, const PairOptions& options) {
  if (!options.ledger_path.empty())
    read_ledger(options.ledger_path);  // An unreadable ledger would fail every pair.
  PairsReport report;
  PairComparison comparison(options, report);
  for (const PairList& list : lists) {
    report.lists.push_back(list.path);
    report.notes.merge(list.notes);
    for (const KnownPair& pair : list.pairs) {
      if (options.begins) options.begins(pair.name);
      comparison.compare(pair);
    }
  }
  sum_up(report);
  if (report.kinds.empty()) {
    std::string first;
    if (!report.rows.empty())
      first = fmt::format("; {}: {}", report.rows.front().name, report.rows.front().problem);
    throw Error(
        fmt::format("none of {} can be compared{}", counted(report.rows.size(), "pair"), first));
  }
  return report;
}

std::vector<KnownOutcome> outcomes_of(const PairsReport& report) {
  std::vector<KnownOutcome> all;
  for (const PairRow& row : report.rows) {
    if (!row.problem.empty() || row.fitted || row.synthetic) continue;
    if (row.compared != Compared::step_time) continue;
    try {
      KnownOutcome outcome =
          outcome_of(row.uses, Nanoseconds(row.predicted), Nanoseconds(row.recorded), row.name);
      check_outcome(outcome);
      all.push_back(std::move(outcome));
    } catch (const Error&) {
      // The error is so large that it would make the ledger unreadable; its row is in the answer.
      continue;
    }
  }
  return all;
}

namespace fs = std::filesystem;

std::vector<PairList> shipped_pairs(const std::string& recordings) {
  std::error_code ignored;
  std::vector<fs::path> folders = {"traces"};
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) {
    folders.push_back(program.parent_path() / "traces");
    folders.push_back(program.parent_path().parent_path() / "share" / "foretrace" / "traces");
  }
  std::string searched;
  for (const fs::path& folder : folders) {
    searched += (searched.empty() ? "" : ", ") + fs::absolute(folder, ignored).string();
    if (!fs::exists(folder / "pairs.json", ignored)) continue;
    std::vector<PairList> lists = {read_pairs((folder / "pairs.json").string())};
    const fs::path public_pairs = folder / "public_pairs.json";
    if (!recordings.empty() && fs::exists(public_pairs, ignored))
      lists.push_back(read_pairs(public_pairs.string(), recordings));
    return lists;
  }
  throw Error(fmt::format(
      "validate: which TRACE? There is no pairs.json in {}; give a TRACE, or --pairs FILE",
      searched));
}

}  // namespace foretrace
