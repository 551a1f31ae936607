// Counts launches and device work against each other. Each launch of a kernel or of a graph has
// work on the device; where the recording has none, it is in one of two states:
//
//     ahead     the host ran ahead, and the device had not come that far when the recording ended:
//               nearly all launches from some time on have no work, and the device was still busy
//               when the first of them was made
//     lost      the work ran, but its record is missing
//
// A step with lost work would look faster than it was, or its waits would look like work of the
// host. So only whole steps count, and if there are none the answer is poor. A recording that lost
// the same kernels in each step by a filter is poor too, although its steps are alike.
//
// A recording that was thinned out, of which launches and kernels are missing together, shows it by
// the numbers of its ops: PyTorch counts them.

#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "infer/passes.h"
#include "timeline/step_marks.h"
#include "trace/launch_call.h"

namespace foretrace::infer_detail {
namespace {

/// A step is whole if at most one launch in this many lost its work: some launches have none, for
/// example of an empty grid. Chosen.
constexpr std::int64_t kFewLost = 100;
/// Since the host is ahead, at least this many launches have no work for each that has
/// some, because other streams can be less far behind. Chosen.
constexpr std::int64_t kAheadForEach = 9;
/// In a complete recording, each thread's block of numbers and, in a part of a recording, each op
/// that began before it leave a gap at most. Chosen.
constexpr std::int64_t kFewGaps = 20;
/// Share of the numbers that such gaps may leave out. Chosen.
constexpr double kMaxUnused = 0.5;
/// A lead shorter than this number of launches cannot fill the launch queue, see launch_queue.cc.
constexpr std::size_t kShortLead = 100;

/// Calls that launch, in order of time.
std::vector<std::uint32_t> sorted_calls(const Trace& trace,
                                        const std::function<bool(NameId)>& counts) {
  std::vector<std::uint32_t> calls = calls_to_run(trace, counts);
  std::stable_sort(calls.begin(), calls.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.hosts[a].start_ns < trace.hosts[b].start_ns;
  });
  return calls;
}

/// Whether the call, or one that shares its correlation id, has device work.
bool has_work(const Records& records, std::uint32_t record) {
  const auto has = [&](std::uint32_t host) {
    const std::uint32_t call = records.call_of_record[host];
    return call != kNone && !records.calls[call].launched.empty();
  };
  const auto found = records.call_of_correlation.find(records.trace.hosts[record].correlation);
  return has(record) || (found != records.call_of_correlation.end() && has(found->second));
}

/// Names of asynchronous copies and fills that have device work in this recording.
std::vector<char> names_of_copies(const Records& records) {
  std::vector<char> copies(records.trace.names.size(), 0);
  for (const Call& call : records.calls) {
    if (call.launched.empty()) continue;
    const NameId name = records.trace.hosts[call.record].name;
    if (records.trace.names[name].find("Async") != std::string_view::npos)
      copies[static_cast<std::size_t>(name)] = 1;
  }
  return copies;
}

/// Returns the time since which the host was ahead, by the calls in order of time, if it was when
/// the recording ended. Would be wrong for a profiler that stops recording a device at a time when
/// it is busy; a later launch by more than any work took tells that the device had finished.
std::optional<std::int64_t> ahead_since(const Records& records,
                                        const std::vector<std::uint32_t>& calls) {
  std::int64_t score = 0, best = 0;
  std::optional<std::int64_t> since;
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    score += has_work(records, *call) ? -kAheadForEach : 1;
    if (score > best) best = score, since = records.trace.hosts[*call].start_ns;
  }
  if (!since) return {};
  std::int64_t finish = 0, longest = 0;
  for (const DeviceEvent& event : records.events) {
    finish = std::max(finish, event.finish);
    longest = std::max(longest, event.finish - event.start);
  }
  if (*since >= finish || records.trace.hosts[calls.back()].start_ns > finish + longest) return {};
  return since;
}

/// Range of marks from `begin` to before `end`.
struct MarkRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

MarkRange longest_run(const std::vector<char>& whole) {
  MarkRange best, run;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == 0) {
      run.begin = run.end = i + 1;
      continue;
    }
    run.end = i + 1;
    if (run.size() > best.size()) best = run;
  }
  return best;
}

class LaunchCounter {
 public:
  explicit LaunchCounter(Records& records) : records_(records) {
    const Names& names = records.trace.names;
    launches_ = sorted_calls(records.trace, [&](NameId name) {
      return launches_kernel(names[name]) || launches_graph(names[name]);
    });
  }

  /// Lists the launches that are ahead in Records::ahead, and returns the facts about the others.
  Completeness count() {
    Completeness found;
    find_ahead();
    for (const std::uint32_t launch : launches_) {
      const std::int64_t start = records_.trace.hosts[launch].start_ns;
      WorkState work = WorkState::recorded;
      if (!has_work(records_, launch)) {
        work = is_ahead(start) ? WorkState::ahead : WorkState::lost;
        ++(work == WorkState::ahead ? found.ahead : found.lost);
      }
      found.launches.push_back({start, work});
    }
    return found;
  }

 private:
  bool is_ahead(std::int64_t start) const { return since_ && start >= *since_; }

  void find_ahead() {
    since_ = ahead_since(records_, launches_);
    if (!since_) return;
    const std::vector<char> copies = names_of_copies(records_);
    const Names& names = records_.trace.names;
    std::vector<std::uint32_t> all = sorted_calls(records_.trace, [&](NameId name) {
      return copies[static_cast<std::size_t>(name)] != 0 || launches_kernel(names[name]) ||
             launches_graph(names[name]);
    });
    std::erase_if(all, [&](std::uint32_t call) {
      return !is_ahead(records_.trace.hosts[call].start_ns) || has_work(records_, call);
    });
    if (all.size() < kShortLead) return;
    for (const std::uint32_t call : all) records_.ahead.push_back(call_at(records_, call));
  }

  Records& records_;
  std::vector<std::uint32_t> launches_;  ///< Host records, in order of time.
  std::optional<std::int64_t> since_;
};

bool are_few(std::int64_t lost, std::int64_t launches) { return lost * kFewLost <= launches; }

/// Keeps the longest run of whole steps, and says in the graph and the notes what is missing.
class StepKeeper {
 public:
  StepKeeper(const Records& records, const Completeness& found, Steps& steps, Inference& result)
      : records_(records), found_(found), steps_(steps), result_(result) {}

  void keep() {
    count_missing();
    const MarkRange run = longest_run(whole_);
    const std::int64_t number = std::count(whole_.begin(), whole_.end(), 1);
    // A step alone among others is no witness, unless the recording of the device began in the last
    // one, or ended in the first.
    const bool at_edge = number == 1 && (run.begin == 0 || run.end == whole_.size());
    const bool is_lossy = !are_few(found_.lost, std::ssize(found_.launches));
    if (!is_lossy && run.size() < 2 && holds_back_the_host()) return;
    if (run.size() >= 2 || at_edge) return cut_to(run);
    is_lossy ? judge_lost() : judge_ahead();
  }

 private:
  void count_missing() {
    std::vector<std::int64_t> launches(steps_.marks.size(), 0), missing(steps_.marks.size(), 0);
    begun_.assign(steps_.marks.size(), 0);
    for (const CountedLaunch& launch : found_.launches) {
      const std::int32_t step = steps_.at(launch.start);
      if (step < 0) continue;
      const auto i = static_cast<std::size_t>(step);
      const bool is_missing = launch.work != WorkState::recorded;
      if (launches[i]++ == 0 && !is_missing) begun_[i] = 1;
      missing[i] += is_missing ? 1 : 0;
    }
    whole_.assign(steps_.marks.size(), 0);
    for (std::size_t i = 0; i < whole_.size(); ++i)
      whole_[i] = launches[i] > 0 && are_few(missing[i], launches[i]) ? 1 : 0;
  }

  /// Whether the pace of the host is that of the device, so that the steps of the host show it.
  bool holds_back_the_host() const {
    return !records_.by_launch.empty() &&
           std::any_of(records_.ahead.begin(), records_.ahead.end(), [&](std::uint32_t call) {
             return records_.calls[call].queue_event != kNone;
           });
  }

  void cut_to(MarkRange run) {
    // The next step ends the last whole one, if its own first work was recorded.
    const bool shows_end = run.end < whole_.size() && begun_[run.end] != 0;
    if (shows_end && !last_counts(run.size() + 1)) ++run.end;
    const std::size_t all = whole_.size();
    if (run.size() == all) return;
    const auto first = steps_.marks.begin();
    steps_.marks.erase(first + static_cast<std::ptrdiff_t>(run.end), steps_.marks.end());
    steps_.marks.erase(first, first + static_cast<std::ptrdiff_t>(run.begin));
    result_.notes.add(Severity::info, "steps without all of their device work do not count", {},
                      static_cast<std::int64_t>(all - run.size()));
    if (are_few(found_.lost, std::ssize(found_.launches))) return;
    add("launches_without_work", found_.lost, false,
        fmt::format("{}, so only {} of {} steps {}", lost_text(), run.size(), all,
                    run.size() == 1 ? "counts" : "count"));
  }

  /// Judges a recording without whole steps, because the host was ahead.
  void judge_ahead() {
    if (steps_.marks.empty() && !records_.by_launch.empty()) return;
    add("host_ahead", found_.ahead, share(found_.ahead) > kMuchMissing,
        fmt::format("{} of {} had not begun on the device when the recording ended, so that no two "
                    "steps in a row are whole; record for longer",
                    grouped(found_.ahead), launches_text()));
  }

  /// Judges one without whole steps, because work was lost.
  void judge_lost() {
    if (records_.events.empty()) {
      note("launches, but no device activity: times are those of the host alone");
      return add("launches_without_work", found_.lost, true,
                 lost_text() + "; record the activities of the device as well");
    }
    note(
        "launches without a kernel: device records were dropped, so steps may look shorter than "
        "they were");
    const bool is_fatal = share(found_.lost) > kMuchMissing;
    std::string text = lost_text();
    if (is_fatal && !steps_.marks.empty()) text += ", and no two steps in a row are whole";
    if (is_fatal)
      text +=
          "; record fewer steps at once, with larger buffers of the profiler, and CUDA graphs "
          "by node";
    add("launches_without_work", found_.lost, is_fatal, std::move(text));
  }

  std::string launches_text() const { return counted(std::ssize(found_.launches), "launch"); }
  std::string lost_text() const {
    return fmt::format("{} of {} have no device work", grouped(found_.lost), launches_text());
  }
  double share(std::int64_t launches) const {
    return static_cast<double>(launches) / static_cast<double>(found_.launches.size());
  }
  void note(std::string_view text) { result_.notes.add(Severity::warning, text, {}, found_.lost); }
  void add(std::string name, std::int64_t launches, bool is_fatal, std::string text) {
    result_.graph.unexplained().shortcomings.push_back({.name = std::move(name),
                                                        .text = std::move(text),
                                                        .share = share(launches),
                                                        .is_fatal = is_fatal});
  }

  const Records& records_;
  const Completeness& found_;
  Steps& steps_;
  Inference& result_;
  /// By mark: whether all work of the step was recorded, and that of its first launch.
  std::vector<char> whole_, begun_;
};

/// Says if much device work has no launch although work before it on its stream has one. At the
/// head of a stream it was launched before the recording, which is normal.
void judge_unlaunched(const Records& records, Inference& result) {
  std::int64_t unlaunched = 0;
  for (const auto& [begin, end] : records.streams) {
    bool is_head = true;
    for (std::size_t i = begin; i < end; ++i) {
      is_head = is_head && records.events[i].call == kNone;
      if (!is_head && records.events[i].call == kNone) ++unlaunched;
    }
  }
  const double share = static_cast<double>(unlaunched) / static_cast<double>(records.events.size());
  if (unlaunched == 0 || share <= kMuchMissing) return;
  result.graph.unexplained().shortcomings.push_back(
      {.name = "work_without_launch",
       .text =
           fmt::format("{} of {} have no launch, so that they belong to no step",
                       grouped(unlaunched), counted(std::ssize(records.events), "device activity")),
       .share = share});
}

/// Share of the ops that are missing, by gaps between their numbers; 0 if they have none.
double missing_ops(const Trace& trace) {
  std::vector<std::uint32_t> numbers;
  for (const HostRecord& record : trace.hosts) {
    const bool is_counted = record.kind == HostKind::op || record.kind == HostKind::annotation;
    if (is_counted && record.external != 0) numbers.push_back(record.external);
  }
  std::sort(numbers.begin(), numbers.end());
  std::int64_t missing = 0, gaps = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const std::uint32_t gap = numbers[i] - numbers[i - 1];
    if (gap > 1) missing += gap - 1, ++gaps;
  }
  if (gaps <= std::max<std::int64_t>(kFewGaps, std::ssize(numbers) / 3)) return 0;
  return static_cast<double>(missing) /
         static_cast<double>(std::max<std::int64_t>(missing + std::ssize(numbers), 1));
}

}  // namespace

void note_missing_ops(const Records& records, Inference& result) {
  const double share = missing_ops(records.trace);
  if (share <= kMaxUnused) return;
  Unexplained& open = result.graph.unexplained();
  const double delays = ratio(open.lag, open.window);
  open.shortcomings.push_back(
      {.name = "missing_ops",
       .text = fmt::format(
           "{} of the ops are missing, by the gaps between their numbers, and what they did has no "
           "record: {} of the recording is delays without a cause; record without sampling",
           to_share(share), to_share(delays)),
       .share = share,
       .is_fatal = delays > kMuchMissing});
}

Completeness count_launches(Records& records, Notes& notes) {
  Completeness found = LaunchCounter(records).count();
  if (!records.ahead.empty()) {
    notes.add(Severity::info, "launches whose work the device had not begun at the end", {},
              std::ssize(records.ahead));
  }
  return found;
}

void keep_whole_steps(const Records& records, const Completeness& found, Steps& steps,
                      Inference& result) {
  const bool is_complete = are_few(found.lost, std::ssize(found.launches));
  if (!is_complete || found.ahead > 0) StepKeeper(records, found, steps, result).keep();
  judge_unlaunched(records, result);
}

}  // namespace foretrace::infer_detail
