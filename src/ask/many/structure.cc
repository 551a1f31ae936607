#include "ask/many/structure.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "ask/job/apply.h"
#include "ask/job/chosen_rank.h"
#include "ask/predict/trust.h"
#include "foretrace/error.h"
#include "simulate/meeting_time.h"

namespace foretrace {
namespace {

/// Stricter than the limit of apply(), so that the slow path reports the error.
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

RankStructure::RankStructure(const Job& job, std::size_t rank, const Scenario& scenario,
                             std::size_t tail, Donors& donors)
    : inference_(job.ranks[rank].inference) {
  edit(job, scenario, tail, donors, rank);
  still_length_ = total_length(edited_);
  probes_.emplace(edited_);
}

void RankStructure::edit(const Job& job, const Scenario& scenario, std::size_t tail, Donors& donors,
                         std::size_t rank) {
  Graph& graph = edited_ = inference_.graph.clone();
  std::vector<const Graph*> others;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (i != rank) others.push_back(&job.ranks[i].inference.graph);
  }
  steps_ = apply_until(tail, scenario, graph, &donors, others).steps;
  moving_.resize(graph.task_count(), 0);
  for (std::size_t i = tail; i < scenario.transforms.size(); ++i) {
    Stage& stage = stages_.emplace_back();
    moving_.resize(graph.task_count(), 0);
    if (applies_to(*scenario.transforms[i], graph))
      stage.tasks = scenario.transforms[i]->retimes()->retimed(graph);
    const bool alone = std::none_of(stage.tasks.begin(), stage.tasks.end(),
                                    [&](const RetimedTask& one) { return is_retimed(one.task); });
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
}

void RankStructure::number_rows(std::span<const std::uint32_t> order) {
  order_.assign(order.begin(), order.end());
  durations_.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i)
    durations_[order[i]] = edited_.task(TaskId{i}).duration;
  for (Stage& stage : stages_) {
    stage.is_exclusive = true;
    for (const RetimedTask& one : stage.tasks) {
      stage.rows.push_back(row(one.task));
      stage.is_exclusive = stage.is_exclusive && moving_[index(one.task)] == 1;
    }
  }
  for (Restored& one : restored_) one.row = row(one.task);
  still_work_ = probes_->work(edited_);
  moving_work_.resize(still_work_.size());
  for (std::uint32_t i = 0; i < moving_.size(); ++i) {
    const std::size_t stream = stream_of(TaskId{i});
    if (moving_[i] == 0 || stream == still_work_.size()) continue;
    still_work_[stream] -= edited_.task(TaskId{i}).duration;
    moving_work_[stream].push_back(order[i]);
  }
}

/// Index of the stream that a task runs on; the number of streams if it runs on none.
std::size_t RankStructure::stream_of(TaskId task) const {
  const std::span<const std::int32_t> of = probes_->stream_of();
  const std::int32_t stream = of.empty() ? StepProbes::kNoStream : of[index(task)];
  return stream == StepProbes::kNoStream ? still_work_.size() : static_cast<std::size_t>(stream);
}

void RankStructure::keep_for(const EditedOptions& wanted) {
  if (wanted.trust && has_open_time(inference_))
    retimed_.emplace(edited_);
  else
    edited_ = {};
}

SweepScratch::Rank RankStructure::loaded() const {
  SweepScratch::Rank rank;
  rank.sets.assign(SweepScratch::kSets, durations_);
  rank.held.assign(SweepScratch::kSets, std::vector<std::string>(stages_.size()));
  rank.idle.assign(SweepScratch::kSets, std::vector<char>(stages_.size()));
  return rank;
}

bool RankStructure::retime(const SweepQuestion& question, SweepScratch& scratch, std::size_t rank,
                           std::size_t set) const {
  CHECK(question.transforms.size() == stages_.size());
  SweepScratch::Rank& own = scratch.ranks_[rank];
  std::vector<Nanoseconds>& durations = own.sets[set];
  for (const Restored& one : restored_) durations[one.row] = one.duration;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    std::string& held = own.held[set][i];
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
    own.idle[set][i] = std::ranges::equal(before, scratch.after_) ? 1 : 0;
    Nanoseconds longest{0};
    for (std::size_t at = 0; at < stage.rows.size(); ++at) {
      durations[stage.rows[at]] = scratch.after_[at];
      longest = std::max(longest, scratch.after_[at]);
    }
    const double most =
        static_cast<double>(longest.count()) * static_cast<double>(durations.size());
    if (still_length_ + most > kSafeLength) return false;
    held = question.settings[i];
  }
  return true;
}

std::vector<AppliedStep> RankStructure::steps_of(const std::vector<char>& idle) const {
  std::vector<AppliedStep> steps = steps_;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].only_durations)
      steps[steps.size() - stages_.size() + i].changed_nothing = idle[i] != 0;
  }
  return steps;
}

OpenStepTime RankStructure::open_of(std::span<const Nanoseconds> set, std::span<const Stay> stays,
                                    Nanoseconds step_time) const {
  Retiming now;
  for (const Stage& stage : stages_) {
    for (std::size_t i = 0; i < stage.rows.size(); ++i)
      now.durations.emplace_back(stage.tasks[i].task, set[stage.rows[i]]);
  }
  for (const Stay& stay : stays) now.durations.emplace_back(stay.task, stay.time);
  Graph graph = edited_.clone();
  Retimed compiled = retimed_->clone();
  foretrace::retime(graph, now);
  return open_step_time(inference_, graph, step_time, now, compiled);
}

std::optional<RankStructure::Answer> RankStructure::answer(ProbedTimes times,
                                                           std::span<const Nanoseconds> set,
                                                           const std::vector<char>& idle,
                                                           std::span<const Stay> stays) const {
  std::vector<Nanoseconds> work = still_work_;
  for (std::size_t stream = 0; stream < work.size(); ++stream) {
    for (const std::uint32_t row : moving_work_[stream]) work[stream] += set[row];
  }
  for (const Stay& stay : stays) {
    const std::size_t stream = stream_of(stay.task);
    if (stream < work.size()) work[stream] += stay.time - set[row(stay.task)];
  }
  times.work = work;
  const Nanoseconds step_time = probes_->step_times(times).step_time;
  if (step_time <= 0ns) return {};
  Answer answer{step_time, {}, steps_of(idle)};
  if (retimed_) answer.open = open_of(set, stays, step_time);
  return answer;
}

SweepStructure::SweepStructure(const Job& job, const Scenario& scenario, std::size_t tail,
                               Donors& donors, const EditedOptions& wanted) {
  static std::atomic<std::uint64_t> made = 0;
  id_ = ++made;
  if (job.world.size() != job.ranks.size())
    throw Error("ranks that stand for others have to be replayed each for itself");
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Graph& edited = ranks_.emplace_back(job, i, scenario, tail, donors).edited();
    if (wanted.memory && !edited.allocations().empty())
      throw Error("peaks of memory follow the order in which tasks happen to run");
  }
  compile(job);
  for (RankStructure& rank : ranks_) rank.keep_for(wanted);
}

void SweepStructure::compile(const Job& job) {
  std::vector<const Graph*> graphs;
  for (const RankStructure& rank : ranks_) graphs.push_back(&rank.edited());
  rows_ = JointRows::of(joined_graphs(job, graphs), job.join.meetings,
                        job.is_joined() ? RowOrder::kept : RowOrder::near);
  if (!rows_) throw Error("the ranks cannot be replayed part by part");
  members_.resize(ranks_.size());
  for (const Meeting& meeting : job.join.meetings) {
    each_member(
        meeting, [&](std::uint32_t rank) -> const Graph& { return *graphs[rank]; },
        [&](const MeetingMember& one) { members_[one.rank].push_back({one}); });
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].number_rows(rows_->order(i));
    std::vector<TaskId> probes(ranks_[i].probes().begin(), ranks_[i].probes().end());
    std::vector<char> retimed(graphs[i]->task_count(), 0);
    for (Member& one : members_[i]) {
      one.row = ranks_[i].row(one.what.task);
      retimed[one.row] = ranks_[i].is_retimed(one.what.task) ? 1 : 0;
      probes.push_back(one.what.task);
    }
    if (rows_->is_overlapped(i, retimed))
      throw Error("a task begins before the end of a collective that changes");
    sorted_.push_back(probes_by_row(probes, rows_->order(i)));
  }
}

std::vector<std::optional<SweepStructure::Answer>> SweepStructure::answers(
    std::span<const SweepQuestion> questions, SweepScratch& scratch) const {
  CHECK(questions.size() <= SweepScratch::kSets);
  if (scratch.loaded_ != id_) {
    scratch.ranks_.clear();
    for (const RankStructure& rank : ranks_) scratch.ranks_.push_back(rank.loaded());
    scratch.loaded_ = id_;
  }
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    bool fits = true;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      fits = ranks_[rank].retime(questions[i], scratch, rank, i) && fits;
    if (fits) asked.push_back(i);
  }
  std::vector<std::optional<Answer>> found(questions.size());
  if (asked.empty()) return found;
  std::vector<Answers> ranks = replayed(asked, scratch);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Slowest slowest;
    bool has_all = true;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      has_all = has_all && ranks[rank][i];
      if (ranks[rank][i]) slowest.consider(rank, ranks[rank][i]->step_time);
    }
    if (has_all) found[asked[i]] = {slowest.rank(), std::move(*ranks[slowest.rank()][i])};
  }
  return found;
}

std::vector<SweepStructure::Answers> SweepStructure::replayed(std::span<const std::size_t> asked,
                                                              SweepScratch& scratch) const {
  constexpr std::size_t kSets = SweepScratch::kSets;
  static_assert(kSets == kSetsAtOnce);
  std::vector<std::vector<Nanoseconds>> starts(ranks_.size()), finishes(ranks_.size());
  std::vector<JointRows::RankSets> ranks;
  std::vector<Nanoseconds> whole;  // Durations of members including their waits, in order.
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    std::vector<std::vector<Nanoseconds>>& sets = scratch.ranks_[i].sets;
    for (const std::size_t set : asked) {
      for (const Member& one : members_[i]) {
        Nanoseconds& duration = sets[set][one.row];
        whole.push_back(duration);
        if (!one.what.left_early) duration = transfer_of(one.what, duration);
      }
    }
    JointRows::RankSets& rank = ranks.emplace_back();
    for (std::size_t k = 0; k < kSets; ++k)
      rank.durations[k] =
          as_counts(std::span<const Nanoseconds>(sets[asked[std::min(k, asked.size() - 1)]]));
    starts[i].resize(kSets * sorted_[i].size()), finishes[i].resize(kSets * sorted_[i].size());
    rank.wanted = {.probes = sorted_[i],
                   .starts = {as_counts(std::span(starts[i])), starts[i].size()},
                   .finishes = {as_counts(std::span(finishes[i])), finishes[i].size()}};
  }
  const std::vector<EightTimes> lengths = rows_->replay_eight(ranks);
  auto next = whole.begin();
  std::vector<Answers> answers(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (const std::size_t set : asked) {
      for (const Member& one : members_[i]) scratch.ranks_[i].sets[set][one.row] = *next++;
    }
    const std::size_t probes = sorted_[i].size(), own = ranks_[i].probes().size();
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const auto of_set = [&](const std::vector<Nanoseconds>& times) {
        return std::span(times).subspan(k * probes, probes);
      };
      std::vector<RankStructure::Stay> stays;
      for (std::size_t m = 0; m < members_[i].size(); ++m)
        stays.push_back(
            {members_[i][m].what.task, of_set(finishes[i])[own + m] - of_set(starts[i])[own + m]});
      answers[i].push_back(ranks_[i].answer({.starts = of_set(starts[i]).first(own),
                                             .finishes = of_set(finishes[i]).first(own),
                                             .work = {},
                                             .length = Nanoseconds(lengths[i][k])},
                                            scratch.ranks_[i].sets[asked[k]],
                                            scratch.ranks_[i].idle[asked[k]], stays));
    }
  }
  return answers;
}

}  // namespace foretrace
