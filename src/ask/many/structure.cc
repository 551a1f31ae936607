#include "ask/many/structure.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "ask/job/apply.h"
#include "ask/predict/trust.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Stricter than apply(), so the slow path reports the error.
constexpr double kSafeLength = 4e18;

bool has_retiming_setting(Transform& transform) {
  const Retimes* const retimes = transform.retimes();
  if (retimes == nullptr) return false;
  const nlohmann::json settings = write_json(transform);
  return std::any_of(settings.items().begin(), settings.items().end(),
                     [&](const auto& setting) { return retimes->only_retimes(setting.key()); });
}

}  // namespace

std::size_t retiming_tail(const Scenario& scenario) {
  std::size_t tail = scenario.transforms.size();
  while (tail > 0 && has_retiming_setting(*scenario.transforms[tail - 1])) --tail;
  return tail;
}

SweepStructure::SweepStructure(const Inference& inference, const Scenario& scenario,
                               std::size_t tail, Donors& donors, const Wanted& wanted)
    : inference_(inference) {
  static std::atomic<std::uint64_t> made = 0;
  id_ = ++made;
  Graph edited = edit(inference, scenario, tail, donors);
  if (wanted.memory && !edited.allocations().empty())
    throw Error("peaks of memory follow the order in which tasks happen to run");
  still_length_ = total_length(edited);
  compiled_.emplace(edited);
  probes_.emplace(edited);
  number_rows(edited);
  if (!wanted.trust || !has_open_time(inference)) return;
  retimed_.emplace(edited);
  edited_.emplace(std::move(edited));
}

Graph SweepStructure::edit(const Inference& inference, const Scenario& scenario, std::size_t tail,
                           Donors& donors) {
  Graph graph = inference.graph.clone();
  steps_ = apply_until(tail, scenario, graph, &donors).steps;
  for (std::size_t i = tail; i < scenario.transforms.size(); ++i) {
    Stage& stage = stages_.emplace_back();
    moving_.resize(graph.task_count(), 0);
    if (is_for(*scenario.transforms[i], graph))
      stage.tasks = scenario.transforms[i]->retimes()->retimed(graph);
    const bool alone =
        std::none_of(stage.tasks.begin(), stage.tasks.end(),
                     [&](const RetimedTask& one) { return moving_[index(one.task)] != 0; });
    for (const RetimedTask& one : stage.tasks) {
      const Nanoseconds now = graph.task(one.task).duration;
      if (alone) stage.before.push_back(now);
      std::uint32_t& moving = moving_[index(one.task)];
      if (!alone && moving == 0) restored_.push_back({.task = one.task, .duration = now});
      ++moving;
    }
    const auto durations = [&] {
      std::vector<Nanoseconds> all;
      for (const RetimedTask& one : stage.tasks) all.push_back(graph.task(one.task).duration);
      return all;
    };
    const std::vector<Nanoseconds> before = durations();
    const Applied applied = apply_only(i, scenario, graph);
    const std::vector<Nanoseconds> after = durations();
    std::size_t changed = 0;
    for (std::size_t k = 0; k < after.size(); ++k) changed += after[k] != before[k] ? 1 : 0;
    stage.only_durations = !stage.tasks.empty() && applied.changed == changed;
    steps_.insert(steps_.end(), applied.steps.begin(), applied.steps.end());
  }
  return graph;
}

void SweepStructure::number_rows(const Graph& edited) {
  const std::span<const std::uint32_t> row = compiled_->order();
  const std::span<const Nanoseconds> durations = compiled_->durations();
  durations_.assign(durations.begin(), durations.end());
  for (Stage& stage : stages_) {
    stage.is_exclusive = true;
    for (const RetimedTask& one : stage.tasks) {
      stage.rows.push_back(row[index(one.task)]);
      stage.is_exclusive = stage.is_exclusive && moving_[index(one.task)] == 1;
    }
  }
  for (Restored& one : restored_) one.row = row[index(one.task)];
  still_work_ = probes_->work(edited);
  moving_work_.resize(still_work_.size());
  for (std::uint32_t i = 0; i < moving_.size(); ++i) {
    const std::int32_t stream = probes_->stream_of()[i];
    if (moving_[i] == 0 || stream == StepProbes::kNoStream) continue;
    const auto number = static_cast<std::size_t>(stream);
    still_work_[number] -= edited.task(TaskId{i}).duration;
    moving_work_[number].push_back(row[i]);
  }
  moving_ = {};
}

void SweepStructure::load(SweepScratch& scratch) const {
  if (scratch.loaded_ == id_) return;
  scratch.sets_.assign(SweepScratch::kSets, durations_);
  scratch.held_.assign(SweepScratch::kSets, std::vector<std::string>(stages_.size()));
  scratch.idle_.assign(SweepScratch::kSets, std::vector<char>(stages_.size()));
  scratch.loaded_ = id_;
}

/// False where the times may be more than the clock can count.
bool SweepStructure::retime(const Question& question, SweepScratch& scratch,
                            std::size_t set) const {
  CHECK(question.transforms.size() == stages_.size());
  std::vector<Nanoseconds>& durations = scratch.sets_[set];
  for (const Restored& one : restored_) durations[one.row] = one.duration;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    std::string& held = scratch.held_[set][i];
    if (stage.is_exclusive && held == question.settings[i]) continue;
    held.clear();
    scratch.after_.resize(stage.rows.size());
    std::span<const Nanoseconds> before = stage.before;
    if (before.size() != stage.rows.size()) {
      scratch.before_.clear();
      for (const std::uint32_t row : stage.rows) scratch.before_.push_back(durations[row]);
      before = scratch.before_;
    }
    question.transforms[i]->retimes()->retime(stage.tasks, before, scratch.after_);
    scratch.idle_[set][i] = std::ranges::equal(before, scratch.after_) ? 1 : 0;
    Nanoseconds longest{0};
    for (std::size_t at = 0; at < stage.rows.size(); ++at) {
      durations[stage.rows[at]] = scratch.after_[at];
      longest = std::max(longest, scratch.after_[at]);
    }
    const double most =
        static_cast<double>(longest.count()) * static_cast<double>(compiled_->task_count());
    if (still_length_ + most > kSafeLength) return false;
    held = question.settings[i];
  }
  return true;
}

std::vector<AppliedStep> SweepStructure::steps_of(const std::vector<char>& idle) const {
  std::vector<AppliedStep> steps = steps_;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].only_durations)
      steps[steps.size() - stages_.size() + i].changed_nothing = idle[i] != 0;
  }
  return steps;
}

OpenStepTime SweepStructure::open_of(std::span<const Nanoseconds> set, Nanoseconds step_time,
                                     Graph& graph, Retimed& compiled) const {
  Retiming now;
  for (const Stage& stage : stages_) {
    for (std::size_t i = 0; i < stage.rows.size(); ++i)
      now.durations.emplace_back(stage.tasks[i].task, set[stage.rows[i]]);
  }
  foretrace::retime(graph, now);
  return open_step_time(inference_, graph, step_time, now, compiled);
}

std::vector<std::optional<SweepStructure::Answer>> SweepStructure::answers(
    std::span<const Question> questions, SweepScratch& scratch) const {
  CHECK(questions.size() <= SweepScratch::kSets);
  load(scratch);
  std::vector<std::span<const Nanoseconds>> sets;
  std::vector<std::size_t> asked;
  std::vector<std::optional<Answer>> found(questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (!retime(questions[i], scratch, i)) continue;
    sets.emplace_back(scratch.sets_[i]);
    asked.push_back(i);
  }
  const std::span<const TaskId> probes = probes_->tasks();
  const Compiled::Replays replays = compiled_->replay_all(sets, probes);
  std::optional<Graph> graph;
  std::optional<Retimed> compiled;
  if (edited_) graph = edited_->clone(), compiled = retimed_->clone();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::vector<Nanoseconds> work = still_work_;
    for (std::size_t stream = 0; stream < work.size(); ++stream) {
      for (const std::uint32_t row : moving_work_[stream]) work[stream] += sets[i][row];
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
    if (step_time <= 0ns) continue;
    Answer& answer =
        found[asked[i]].emplace(step_time, OpenStepTime{}, steps_of(scratch.idle_[asked[i]]));
    if (graph) answer.open = open_of(sets[i], step_time, *graph, *compiled);
  }
  return found;
}

}  // namespace foretrace
