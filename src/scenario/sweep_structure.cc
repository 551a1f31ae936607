#include "scenario/sweep_structure.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "scenario/apply.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kNotMoving = std::numeric_limits<std::uint32_t>::max();

/// Less than what apply() refuses, so that what it would refuse is answered by it.
constexpr double kSafeLength = 4e18;

bool retimes(Transform& transform) {
  const nlohmann::json settings = write_json(transform);
  return std::any_of(settings.items().begin(), settings.items().end(),
                     [&](const auto& setting) { return transform.only_retimes(setting.key()); });
}

Scenario part_of_scenario(Scenario& scenario, std::size_t first, std::size_t end) {
  Scenario part;
  for (std::size_t i = first; i < end; ++i) {
    part.transforms.push_back(std::move(scenario.transforms[i]));
    part.uses.push_back(scenario.uses[i]);
  }
  return part;
}

/// All that passes if everything happens in turn.
double total_length(const Graph& graph) {
  double total = 0;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    total += static_cast<double>(task.duration.count());
    total += static_cast<double>(std::max(task.gap, 0ns).count());
  }
  graph.each_dependency([&](const Dependency& wait) {
    total += static_cast<double>(std::max(wait.lag, 0ns).count());
  });
  return total;
}

}  // namespace

std::size_t retiming_tail(const Scenario& scenario) {
  std::size_t tail = scenario.transforms.size();
  while (tail > 0 && retimes(*scenario.transforms[tail - 1])) --tail;
  return tail;
}

SweepStructure::SweepStructure(const Inference& inference, Scenario& scenario, std::size_t tail,
                               bool with_memory) {
  static std::atomic<std::uint64_t> made = 0;
  id_ = ++made;
  const Graph edited = edit(inference, scenario, tail);
  if (with_memory && !edited.allocations().empty())
    throw Error("peaks of memory follow the order in which tasks happen to run");
  still_length_ = total_length(edited);
  compiled_.emplace(edited);
  probes_.emplace(edited);
  number_rows(edited);
}

Graph SweepStructure::edit(const Inference& inference, Scenario& scenario, std::size_t tail) {
  const std::size_t count = scenario.transforms.size();
  Graph graph = inference.graph.clone();
  Scenario head = part_of_scenario(scenario, 0, tail);
  head.machine = scenario.machine;
  steps_ = apply(head, graph).steps;
  moving_of_.assign(graph.task_count(), kNotMoving);
  for (std::size_t i = tail; i < count; ++i) {
    Stage& stage = stages_.emplace_back();
    stage.tasks = scenario.transforms[i]->retimed(graph);
    for (const RetimedTask& one : stage.tasks) {
      std::uint32_t& number = moving_of_[index(one.task)];
      if (number == kNotMoving) {
        number = static_cast<std::uint32_t>(moving_.size());
        moving_.push_back({.start = graph.task(one.task).duration, .in_first_stage = i == tail});
      }
      if (i == tail) first_before_.push_back(graph.task(one.task).duration);
    }
    const Applied applied = apply(part_of_scenario(scenario, i, i + 1), graph);
    steps_.insert(steps_.end(), applied.steps.begin(), applied.steps.end());
  }
  return graph;
}

void SweepStructure::number_rows(const Graph& edited) {
  const std::span<const std::uint32_t> row = compiled_->order();
  const std::span<const Nanoseconds> durations = compiled_->durations();
  durations_.assign(durations.begin(), durations.end());
  for (Stage& stage : stages_) {
    for (const RetimedTask& one : stage.tasks) stage.rows.push_back(row[index(one.task)]);
  }
  still_work_ = probes_->work(edited);
  for (std::uint32_t i = 0; i < moving_of_.size(); ++i) {
    if (moving_of_[i] == kNotMoving) continue;
    Moving& moving = moving_[moving_of_[i]];
    moving.row = row[i];
    moving.stream = probes_->stream_of()[i];
    if (moving.stream != StepProbes::kNoStream)
      still_work_[static_cast<std::size_t>(moving.stream)] -= edited.task(TaskId{i}).duration;
  }
  moving_of_ = {};
  std::sort(moving_.begin(), moving_.end(),
            [](const Moving& a, const Moving& b) { return a.row < b.row; });
}

void SweepStructure::load(SweepScratch& scratch) const {
  if (scratch.loaded_ == id_) return;
  scratch.sets_.assign(SweepScratch::kSets, durations_);
  scratch.loaded_ = id_;
}

/// False where the times may be more than the clock can count.
bool SweepStructure::retime(const Question& question, SweepScratch& scratch,
                            std::vector<Nanoseconds>& durations) const {
  CHECK(question.size() == stages_.size());
  for (const Moving& moving : moving_) {
    if (!moving.in_first_stage) durations[moving.row] = moving.start;
  }
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    scratch.after_.resize(stage.rows.size());
    if (i == 0) {
      question[i]->retime(stage.tasks, first_before_, scratch.after_);
    } else {
      scratch.before_.clear();
      for (const std::uint32_t row : stage.rows) scratch.before_.push_back(durations[row]);
      question[i]->retime(stage.tasks, scratch.before_, scratch.after_);
    }
    double total = still_length_;
    for (std::size_t at = 0; at < stage.rows.size(); ++at) {
      durations[stage.rows[at]] = scratch.after_[at];
      total += static_cast<double>(scratch.after_[at].count());
    }
    if (total > kSafeLength) return false;
  }
  return true;
}

std::vector<std::optional<Nanoseconds>> SweepStructure::step_times(
    std::span<const Question> questions, SweepScratch& scratch) const {
  CHECK(questions.size() <= SweepScratch::kSets);
  load(scratch);
  std::vector<std::span<const Nanoseconds>> sets;
  std::vector<std::size_t> asked;
  std::vector<std::optional<Nanoseconds>> found(questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (!retime(questions[i], scratch, scratch.sets_[i])) continue;
    sets.emplace_back(scratch.sets_[i]);
    asked.push_back(i);
  }
  const std::span<const TaskId> probes = probes_->tasks();
  const Compiled::Replays replays = compiled_->replay_all(sets, probes);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::vector<Nanoseconds> work = still_work_;
    for (const Moving& moving : moving_) {
      if (moving.stream != StepProbes::kNoStream)
        work[static_cast<std::size_t>(moving.stream)] += sets[i][moving.row];
    }
    const auto of_set = [&](const std::vector<Nanoseconds>& times) {
      return std::span(times).subspan(i * probes.size(), probes.size());
    };
    const Nanoseconds step_time = probes_
                                      ->step_times({.starts = of_set(replays.starts),
                                                    .finishes = of_set(replays.finishes),
                                                    .work = work,
                                                    .length = replays.lengths[i]})
                                      .step_time;
    if (step_time > 0ns) found[asked[i]] = step_time;
  }
  return found;
}

}  // namespace foretrace
