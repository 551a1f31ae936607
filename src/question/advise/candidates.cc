#include "question/advise/candidates.h"

#include <algorithm>
#include <fmt/core.h>
#include <fstream>
#include <utility>

#include "base/files/csv_rows.h"
#include "base/parse_number.h"
#include "base/threads.h"
#include "foretrace/error.h"
#include "question/advise/bounds.h"

namespace foretrace {
namespace {

/// More are nothing that anybody tunes, and each takes a replay.
constexpr std::size_t kMaxCandidates = 10'000;

KernelCandidate candidate_of(const std::string& line) {
  const std::vector<std::string> cells = csv_cells(line);
  if (cells.size() != 2 || cells[0].empty())
    throw Error(fmt::format("must be NAME,FACTOR, got '{}'", line));
  KernelCandidate candidate{.name = cells[0]};
  candidate.factor = parse_number<double>(cells[1]).value_or(0);
  if (!(candidate.factor > 0 && candidate.factor <= 1000))
    throw Error(fmt::format("factor: must be above 0 and at most 1000, got '{}'", cells[1]));
  return candidate;
}

}  // namespace

std::vector<KernelCandidate> read_candidates(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(path + ": cannot be read");
  std::vector<KernelCandidate> candidates;
  std::string line;
  for (std::int64_t number = 1; std::getline(file, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    within(fmt::format("{}:{}", path, number), [&] {
      if (number == 1) {
        if (csv_cells(line) != std::vector<std::string>{"name", "factor"})
          throw Error(fmt::format("the columns must be name,factor, got '{}'", line));
        return;
      }
      if (line.empty()) return;
      if (candidates.size() == kMaxCandidates)
        throw Error(fmt::format("there may be at most {} candidates", kMaxCandidates));
      candidates.push_back(candidate_of(line));
      candidates.back().line = number;
    });
  }
  if (candidates.empty())
    throw Error(path + ": has no candidates; lines such as \"softmax,0.5\" follow \"name,factor\"");
  return candidates;
}

std::vector<KernelCandidate> judge_candidates(const JobGraph& job,
                                              std::vector<KernelCandidate> candidates) {
  std::vector<WorkGroup> groups;
  for (const KernelCandidate& candidate : candidates) {
    within(fmt::format("line {}", candidate.line),
           [&] { groups.push_back(group_named(job.graph(), "kernels." + candidate.name)); });
  }
  on_all_cores(candidates.size(), [&](std::size_t i) {
    candidates[i].work = work_of(job, groups[i]);
    candidates[i].step_time = step_with(job, groups[i], candidates[i].factor);
  });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.step_time < b.step_time; });
  return candidates;
}

}  // namespace foretrace
