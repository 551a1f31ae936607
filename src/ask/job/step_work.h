#pragma once

// The work of a recording by steps: for each step the line of tasks on each lane, with what
// identifies a task across steps and recordings.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace {

/// Numbers for (kind, name), shared by the recordings that are compared.
class KeyTable {
 public:
  std::uint64_t key(TaskKind kind, std::string_view name);

 private:
  std::unordered_map<std::string, std::uint64_t> keys_;
};

/// Kind of lane, device, and which one of these it is: names of threads differ between runs.
using LaneKey = std::tuple<LaneKind, std::int32_t, std::size_t>;

struct StepLine {
  std::vector<TaskId> tasks;
  std::vector<std::uint64_t> keys;
  std::vector<Nanoseconds> durations;
  std::vector<char> launched;  ///< Runs on a device, or gives it work.
};

class StepWork {
 public:
  /// `waits`, by task: the part of its time that is no work; empty: none.
  StepWork(const Inference& inference, KeyTable& keys, std::span<const Nanoseconds> waits = {});

  /// Steps that have tasks, in order; they correspond to the marks behind StepTimes::each.
  std::size_t count() const { return lines_.size(); }
  const std::map<LaneKey, StepLine>& lines(std::size_t step) const { return lines_[step]; }
  /// Host work in front of the launch that starts the step.
  std::map<LaneKey, StepLine> head(std::size_t step) const;

 private:
  const Inference& inference_;
  std::vector<std::map<LaneKey, StepLine>> lines_;
  std::vector<Nanoseconds>
      first_launch_;  ///< By step; of its first host task if it launches nothing.
};

}  // namespace foretrace
