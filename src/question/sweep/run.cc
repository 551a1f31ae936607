#include "question/sweep/run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>

#include "base/threads.h"

namespace foretrace {
namespace {

/// Answers questions in blocks that take about the time between two flushes, so that questions with
/// the same structure are answered together and yet little is lost when the program is killed.
class SweepRun {
 public:
  SweepRun(const SweepQuestions& questions, const SweepAnswers& answers, const AnswerSink& sink,
           const std::atomic<bool>& stop)
      : questions_(questions),
        answers_(answers),
        sink_(sink),
        stop_(stop),
        scratch_(questions.threads) {
    std::size_t tasks = 1;
    for (const auto& [path, job] : questions.jobs_by_path) {
      for (const Rank& rank : job.job.ranks) tasks += rank.inference.graph.task_count();
    }
    most_kept_ = std::clamp<std::size_t>(kMaxTasksKept / tasks, 4, 256);
  }

  void run(const Chooser& choose) {
    std::size_t size = SweepScratch::kSets * questions_.threads;
    while (!stop_) {
      const auto begin = Clock::now();
      std::vector<PendingQuestion> block = choose(size);
      if (block.empty()) return;
      answer_block(block);
      const auto took = Clock::now() - begin;
      if (took < kFlushTime / 2) size = std::min(2 * size, kMaxInBlock);
      if (took > kFlushTime) size = std::max(size / 2, questions_.threads);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kFlushTime = std::chrono::milliseconds(500);
  static constexpr std::size_t kMaxInBlock = 1 << 15;
  static constexpr std::size_t kMaxTasksKept = 8'000'000;  ///< About half a gigabyte.
  static constexpr std::size_t kMaxInTask = 4 * SweepScratch::kSets;

  void answer_block(std::vector<PendingQuestion>& block) {
    on_threads(questions_.threads, block.size(),
               [&](std::size_t, std::size_t i) { answers_.prepare(block[i]); });
    std::vector<SweepTask> tasks = tasks_of(block);
    taken_ = 0;
    last_flush_ = Clock::now();
    on_threads(questions_.threads, tasks.size(), [&](std::size_t thread, std::size_t i) {
      if (stop_) return;
      answers_.answer(tasks[i], block, scratch_[thread]);
      tasks[i].structure.reset();
      const std::lock_guard lock(mutex_);
      for (const std::size_t k : tasks[i].indices) done_[k] = 1;
      pass_on_answers(block, false);
    });
    pass_on_answers(block, true);
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      const bool drop = kept_.size() > most_kept_ / 2 && !used_.contains(kept->first);
      kept = drop ? kept_.erase(kept) : std::next(kept);
    }
  }

  /// Groups the questions of a block by structure, in the order of the first of each group.
  std::vector<SweepTask> tasks_of(const std::vector<PendingQuestion>& block) {
    std::vector<SweepTask> tasks;
    // By structure: the task that can take more questions.
    std::map<std::string, std::size_t> open;
    std::map<std::string, std::shared_ptr<SharedStructure>> structures;
    used_.clear();
    done_.assign(block.size(), 0);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const std::string& structure = block[i].structure;
      if (block[i].answer) {
        done_[i] = 1;
        continue;
      }
      if (structure.empty()) {
        tasks.push_back({.indices = {i}, .structure = nullptr});
        continue;
      }
      const auto found = open.find(structure);
      if (found != open.end() && tasks[found->second].indices.size() < kMaxInTask) {
        tasks[found->second].indices.push_back(i);
        continue;
      }
      std::shared_ptr<SharedStructure>& shared = structures[structure];
      if (!shared) shared = kept_or_new(structure);
      open[structure] = tasks.size();
      tasks.push_back({.indices = {i}, .structure = shared});
    }
    return tasks;
  }

  std::shared_ptr<SharedStructure> kept_or_new(const std::string& structure) {
    used_.insert(structure);
    const auto found = kept_.find(structure);
    if (found != kept_.end()) return found->second;
    auto made = std::make_shared<SharedStructure>();
    if (kept_.size() < most_kept_) kept_.emplace(structure, made);
    return made;
  }

  /// Passes on the answers up to the first one that is missing.
  void pass_on_answers(std::vector<PendingQuestion>& block, bool at_end) {
    for (; taken_ < block.size() && done_[taken_] != 0; ++taken_)
      sink_.take(std::move(block[taken_]));
    const auto now = Clock::now();
    if (!at_end && now - last_flush_ < kFlushTime) return;
    last_flush_ = now;
    sink_.flush();
  }

  const SweepQuestions& questions_;
  const SweepAnswers& answers_;
  const AnswerSink& sink_;
  const std::atomic<bool>& stop_;
  std::vector<SweepScratch> scratch_;  ///< By thread.
  std::map<std::string, std::shared_ptr<SharedStructure>> kept_;
  std::set<std::string> used_;  ///< Structures used in this block.
  std::size_t most_kept_ = 4;
  std::mutex mutex_;
  std::vector<char> done_;
  std::size_t taken_ = 0;
  Clock::time_point last_flush_;
};

}  // namespace

Chooser in_order(std::uint64_t first, std::uint64_t end) {
  return [first, end](std::size_t most) mutable {
    std::vector<PendingQuestion> block(
        static_cast<std::size_t>(std::min<std::uint64_t>(most, end - first)));
    for (PendingQuestion& pending : block) pending.number = first++;
    return block;
  };
}

void run_questions(const SweepQuestions& questions, const SweepAnswers& answers,
                   const Chooser& choose, const AnswerSink& sink, const std::atomic<bool>& stop) {
  SweepRun(questions, answers, sink, stop).run(choose);
}

}  // namespace foretrace
