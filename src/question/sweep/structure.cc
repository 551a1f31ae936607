#include "question/sweep/structure.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "analysis/doubt/trust.h"
#include "foretrace/error.h"
#include "job/apply.h"
#include "job/chosen_rank.h"
#include "simulate/transfer_time.h"

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

/// Steps retime as they would on the recorded device with nothing beside them; throws Error if an
/// earlier one changed that.
void check_retimes_alone(const Scenario& scenario, const Graph& graph, std::size_t tail) {
  bool has_device = !scenario.machine.empty();
  for (std::size_t i = 0; i < tail; ++i)
    has_device = has_device || !scenario.transforms[i]->job_change().device.empty();
  if (has_device || graph.contended().kernels > 0 || graph.contended().collectives > 0)
    throw Error("durations depend on the device or on what overlaps");
}

}  // namespace

std::size_t retiming_tail(const Scenario& scenario) {
  std::size_t tail = scenario.transforms.size();
  while (tail > 0 && has_retiming_setting(*scenario.transforms[tail - 1])) --tail;
  return tail;
}

RankStructure::RankStructure(const JobRanks& job, std::size_t rank, const Scenario& scenario,
                             std::size_t tail, Donors& donors)
    : inference_(job.ranks[rank].inference) {
  edit(job, scenario, tail, donors, rank);
  serial_length_ = total_length(edited_);
  probes_.emplace(edited_);
}

void RankStructure::edit(const JobRanks& job, const Scenario& scenario, std::size_t tail,
                         Donors& donors, std::size_t rank) {
  Graph& graph = edited_ = inference_.graph.clone();
  std::vector<const Graph*> others;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (i != rank) others.push_back(&job.ranks[i].inference.graph);
  }
  steps_ = apply(scenario, graph, &donors, others, tail).steps;
  check_retimes_alone(scenario, graph, tail);
  stage_counts_.resize(graph.task_count(), 0);
  for (std::size_t i = tail; i < scenario.transforms.size(); ++i) {
    Stage& stage = stages_.emplace_back();
    stage_counts_.resize(graph.task_count(), 0);
    if (applies_to(*scenario.transforms[i], graph))
      stage.tasks = scenario.transforms[i]->retimes()->retimed(graph);
    const bool alone =
        std::none_of(stage.tasks.begin(), stage.tasks.end(),
                     [&](const RetimedTask& retimed) { return is_retimed(retimed.task); });
    for (const RetimedTask& retimed : stage.tasks) {
      const Nanoseconds now = graph.task(retimed.task).duration;
      if (alone) stage.before.push_back(now);
      std::uint32_t& stages = stage_counts_[index(retimed.task)];
      if (!alone && stages == 0) restored_.push_back({.task = retimed.task, .duration = now});
      ++stages;
    }
    const auto durations = [&] {
      std::vector<Nanoseconds> all;
      for (const RetimedTask& retimed : stage.tasks)
        all.push_back(graph.task(retimed.task).duration);
      return all;
    };
    const std::vector<Nanoseconds> before = durations();
    const ApplyResult applied = apply_only(i, scenario, graph);
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
    for (const RetimedTask& retimed : stage.tasks) {
      stage.rows.push_back(row(retimed.task));
      stage.is_exclusive = stage.is_exclusive && stage_counts_[index(retimed.task)] == 1;
    }
  }
  for (Restored& restored : restored_) restored.row = row(restored.task);
  fixed_work_ = probes_->work(edited_);
  retimed_rows_.resize(fixed_work_.size());
  for (std::uint32_t i = 0; i < stage_counts_.size(); ++i) {
    const std::size_t stream = stream_of(TaskId{i});
    if (stage_counts_[i] == 0 || stream == fixed_work_.size()) continue;
    fixed_work_[stream] -= edited_.task(TaskId{i}).duration;
    retimed_rows_[stream].push_back(order[i]);
  }
}

/// Index of the stream that a task runs on; the number of streams if it runs on none.
std::size_t RankStructure::stream_of(TaskId task) const {
  const std::span<const std::int32_t> of = probes_->stream_of();
  const std::int32_t stream = of.empty() ? StepProbes::kNoStream : of[index(task)];
  return stream == StepProbes::kNoStream ? fixed_work_.size() : static_cast<std::size_t>(stream);
}

void RankStructure::finish_compiling(const EditedOptions& options) {
  if (options.trust && has_open_time(inference_))
    retimed_.emplace(edited_);
  else
    edited_ = {};
}

SweepScratch::Rank RankStructure::initial_scratch() const {
  SweepScratch::Rank rank;
  rank.sets.assign(SweepScratch::kSets, durations_);
  rank.last_settings.assign(SweepScratch::kSets, std::vector<std::string>(stages_.size()));
  rank.unchanged.assign(SweepScratch::kSets, std::vector<char>(stages_.size()));
  return rank;
}

bool RankStructure::retime(const RetimingQuestion& question, SweepScratch& scratch,
                           std::size_t rank, std::size_t set) const {
  CHECK(question.transforms.size() == stages_.size());
  SweepScratch::Rank& rank_scratch = scratch.ranks_[rank];
  std::vector<Nanoseconds>& durations = rank_scratch.sets[set];
  for (const Restored& restored : restored_) durations[restored.row] = restored.duration;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    std::string& last_settings = rank_scratch.last_settings[set][i];
    if (stage.is_exclusive && last_settings == question.settings[i]) continue;
    last_settings.clear();
    scratch.after_.resize(stage.rows.size());
    std::span<const Nanoseconds> before = stage.before;
    if (before.size() != stage.rows.size()) {
      scratch.before_.clear();
      for (const std::uint32_t row : stage.rows) scratch.before_.push_back(durations[row]);
      before = scratch.before_;
    }
    question.transforms[i]->retimes()->retime(stage.tasks, before, scratch.after_);
    rank_scratch.unchanged[set][i] = std::ranges::equal(before, scratch.after_) ? 1 : 0;
    Nanoseconds longest{0};
    for (std::size_t at = 0; at < stage.rows.size(); ++at) {
      durations[stage.rows[at]] = scratch.after_[at];
      longest = std::max(longest, scratch.after_[at]);
    }
    const double most =
        static_cast<double>(longest.count()) * static_cast<double>(durations.size());
    if (serial_length_ + most > kSafeLength) return false;
    last_settings = question.settings[i];
  }
  return true;
}

std::vector<AppliedStep> RankStructure::steps_of(const std::vector<char>& unchanged) const {
  std::vector<AppliedStep> steps = steps_;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].only_durations)
      steps[steps.size() - stages_.size() + i].changed_nothing = unchanged[i] != 0;
  }
  return steps;
}

OpenStepTime RankStructure::open_of(std::span<const Nanoseconds> set,
                                    std::span<const MemberTime> member_times,
                                    Nanoseconds step_time) const {
  Retiming now;
  for (const Stage& stage : stages_) {
    for (std::size_t i = 0; i < stage.rows.size(); ++i)
      now.durations.emplace_back(stage.tasks[i].task, set[stage.rows[i]]);
  }
  for (const MemberTime& member : member_times)
    now.durations.emplace_back(member.task, member.time);
  Graph graph = edited_.clone();
  RetimedReplay compiled = retimed_->clone();
  foretrace::retime(graph, now);
  return open_step_time(inference_, graph, step_time, now, compiled);
}

std::optional<RankStructure::ReplayedRank> RankStructure::answer(
    ProbedTimes times, std::span<const Nanoseconds> set, const std::vector<char>& unchanged,
    std::span<const MemberTime> member_times) const {
  std::vector<Nanoseconds> work = fixed_work_;
  for (std::size_t stream = 0; stream < work.size(); ++stream) {
    for (const std::uint32_t row : retimed_rows_[stream]) work[stream] += set[row];
  }
  for (const MemberTime& member : member_times) {
    const std::size_t stream = stream_of(member.task);
    if (stream < work.size()) work[stream] += member.time - set[row(member.task)];
  }
  times.work = work;
  ReplayedRank answer{probes_->step_times(times), {}, steps_of(unchanged)};
  const Nanoseconds step_time = answer.times.step_time;
  if (step_time <= 0ns) return {};
  if (retimed_) answer.open = open_of(set, member_times, step_time);
  return answer;
}

SweepStructure::SweepStructure(const JobRanks& job, const Scenario& scenario, std::size_t tail,
                               Donors& donors, const EditedOptions& options) {
  static std::atomic<std::uint64_t> made = 0;
  id_ = ++made;
  if (job.world.size() != job.ranks.size())
    throw Error("ranks that stand for others have to be replayed each for itself");
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Graph& edited = ranks_.emplace_back(job, i, scenario, tail, donors).edited();
    if (options.memory && !edited.allocations().empty())
      throw Error("peaks of memory follow the order in which tasks happen to run");
  }
  compile(job);
  for (RankStructure& rank : ranks_) rank.finish_compiling(options);
}

void SweepStructure::compile(const JobRanks& job) {
  std::vector<const Graph*> graphs;
  for (const RankStructure& rank : ranks_) graphs.push_back(&rank.edited());
  rows_ = JointRows::make(rank_graphs(job, graphs), job.join.collectives,
                          job.is_joined() ? RowOrder::kept : RowOrder::near);
  if (!rows_) throw Error("the ranks cannot be replayed part by part");
  members_.resize(ranks_.size());
  for (const MatchedCollective& collective : job.join.collectives) {
    each_member(
        collective, [&](std::uint32_t rank) -> const Graph& { return *graphs[rank]; },
        [&](const CollectiveMember& member) { members_[member.rank].push_back({member}); });
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].number_rows(rows_->order(i));
    std::vector<TaskId> probes(ranks_[i].probes().begin(), ranks_[i].probes().end());
    std::vector<char> retimed(graphs[i]->task_count(), 0);
    for (auto& [member, row] : members_[i]) {
      row = ranks_[i].row(member.task);
      retimed[row] = ranks_[i].is_retimed(member.task) ? 1 : 0;
      probes.push_back(member.task);
    }
    if (rows_->is_overlapped(i, retimed))
      throw Error("a task begins before the end of a collective that changes");
    sorted_.push_back(probes_by_row(probes, rows_->order(i)));
  }
}

std::vector<std::optional<SweepStructure::ReplayedRank>> SweepStructure::answers(
    std::span<const RetimingQuestion> questions, SweepScratch& scratch) const {
  CHECK(questions.size() <= SweepScratch::kSets);
  if (scratch.loaded_ != id_) {
    scratch.ranks_.clear();
    for (const RankStructure& rank : ranks_) scratch.ranks_.push_back(rank.initial_scratch());
    scratch.loaded_ = id_;
  }
  std::vector<std::size_t> answerable;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    bool fits = true;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      fits = ranks_[rank].retime(questions[i], scratch, rank, i) && fits;
    if (fits) answerable.push_back(i);
  }
  std::vector<std::optional<ReplayedRank>> found(questions.size());
  if (answerable.empty()) return found;
  std::vector<Answers> ranks = replayed(answerable, scratch);
  for (std::size_t i = 0; i < answerable.size(); ++i) {
    SlowestRank slowest;
    bool has_all = true;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      has_all = has_all && ranks[rank][i];
      if (ranks[rank][i]) slowest.consider(rank, ranks[rank][i]->times.step_time);
    }
    if (has_all) found[answerable[i]] = {slowest.rank(), std::move(*ranks[slowest.rank()][i])};
  }
  return found;
}

std::vector<SweepStructure::Answers> SweepStructure::replayed(
    std::span<const std::size_t> answerable, SweepScratch& scratch) const {
  constexpr std::size_t kSets = SweepScratch::kSets;
  static_assert(kSets == kSetsAtOnce);
  std::vector<std::vector<Nanoseconds>> starts(ranks_.size()), finishes(ranks_.size());
  std::vector<JointRows::RankSets> ranks;
  std::vector<Nanoseconds> with_waits;  // Durations of members including their waits, in order.
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    std::vector<std::vector<Nanoseconds>>& sets = scratch.ranks_[i].sets;
    for (const std::size_t set : answerable) {
      for (const auto& [member, row] : members_[i]) {
        Nanoseconds& duration = sets[set][row];
        with_waits.push_back(duration);
        if (!member.left_early) duration = transfer_of(member, duration);
      }
    }
    JointRows::RankSets& rank = ranks.emplace_back();
    for (std::size_t k = 0; k < kSets; ++k)
      rank.durations[k] = as_counts(
          std::span<const Nanoseconds>(sets[answerable[std::min(k, answerable.size() - 1)]]));
    starts[i].resize(kSets * sorted_[i].size()), finishes[i].resize(kSets * sorted_[i].size());
    rank.probe_times = {.probes = sorted_[i],
                        .starts = {as_counts(std::span(starts[i])), starts[i].size()},
                        .finishes = {as_counts(std::span(finishes[i])), finishes[i].size()}};
  }
  const std::vector<EightTimes> lengths = rows_->replay_eight(ranks);
  auto next = with_waits.begin();
  std::vector<Answers> answers(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (const std::size_t set : answerable) {
      for (const MemberRow& member : members_[i]) scratch.ranks_[i].sets[set][member.row] = *next++;
    }
    const std::size_t probes = sorted_[i].size(), step_probes = ranks_[i].probes().size();
    for (std::size_t k = 0; k < answerable.size(); ++k) {
      const auto of_set = [&](const std::vector<Nanoseconds>& times) {
        return std::span(times).subspan(k * probes, probes);
      };
      std::vector<RankStructure::MemberTime> member_times;
      for (std::size_t m = 0; m < members_[i].size(); ++m)
        member_times.push_back(
            {members_[i][m].member.task,
             of_set(finishes[i])[step_probes + m] - of_set(starts[i])[step_probes + m]});
      answers[i].push_back(ranks_[i].answer({.starts = of_set(starts[i]).first(step_probes),
                                             .finishes = of_set(finishes[i]).first(step_probes),
                                             .work = {},
                                             .length = Nanoseconds(lengths[i][k])},
                                            scratch.ranks_[i].sets[answerable[k]],
                                            scratch.ranks_[i].unchanged[answerable[k]],
                                            member_times));
    }
  }
  return answers;
}

}  // namespace foretrace
