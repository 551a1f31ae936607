// Copies from and to pinned memory, without waiting for the copies. The host stages a copy of
// pageable memory through a pinned buffer of the driver, piece by piece, and is blocked for that
// time; so two such copies never overlap, whatever the program does. The link itself has an engine
// for each direction, and copies of pinned memory need nothing but these engines:
//
//     cpu        |LwwwwMwwww|          cpu        |LM....|
//     copies in  |.iiii.....|    ->    copies in  |.iii..|
//     copies out |......oooo|          copies out |..ooo.|
//
// Staged copies do not show the bandwidth of the link, only a lower bound. On the way in, the host
// fills a piece while the engine sends the one before, so the recorded time is that of the slower
// of the two. On the way out the host has to wait for a piece before it can empty it, so that its
// own copy adds to the time, and pinning removes it:
//
//     in   recorded, or bytes / bandwidth where that is given and less
//     out  recorded - bytes / host_copy, or bytes / bandwidth
//
// Ignored: the cost of pinning itself (once, if buffers are reused), copies of one direction on
// several streams that share their engine, and traffic of the other direction on the link.

#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/copy_waits.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class PinMemory final : public Transform, public Retimes {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The copies, in both directions");
    fields.bytes(
        "least", least_,
        "Smaller copies stay as they are: such small values are read at once, as by loss.item()");
    fields.bandwidth("bandwidth", bandwidth_,
                     "Bandwidth of pinned copies each way, as measured on the machine; 0: unknown, "
                     "as fast as recorded, less the host's part");
    fields.bandwidth("host_copy", host_copy_,
                     "Bandwidth at which one host thread copies out of the driver's buffer "
                     "(recalled); 0: its part stays");
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> copies = find_copies(graph);
    const Launches launches(graph);
    Effect effect;
    Nanoseconds before{0}, after{0};
    for (const TaskId id : copies) {
      Task& task = graph.task(id);
      before += task.duration;
      const Nanoseconds pinned = pinned_time(task.kind, task.bytes, task.duration);
      if (pinned != task.duration) ++effect.changed;
      task.duration = pinned;
      after += pinned;
    }
    const std::size_t waits = drop_waits_for_copies(graph, launches, copies);
    effect.changed += waits;
    effect.summary = fmt::format(
        "{} from and to pinned memory, {} -> {} in all; {} of the host dropped",
        counted(copies.size(), "copy"), to_text(before), to_text(after), counted(waits, "wait"));
    effect.assumptions.push_back(
        "the program issues its copies without waiting (non_blocking), and waits elsewhere for the "
        "data it reads");
    if (bandwidth_.bytes_per_second <= 0) {
      effect.assumptions.push_back(
          "the link is no faster than pageable copies were, except for the host's own copy on the "
          "way out; give bandwidth if it was measured");
    }
    return effect;
  }

  const Retimes* retimes() const override { return this; }

  bool only_retimes(std::string_view setting) const override {
    return setting == "bandwidth" || setting == "host_copy";
  }

  std::vector<RetimedTask> retimed(const Graph& graph) const override {
    std::vector<RetimedTask> retimed;
    for (const TaskId id : find_copies(graph)) {
      const Task& task = graph.task(id);
      // A double represents the bytes of any real copy, up to 2^53, exactly.
      retimed.push_back(
          {id, static_cast<std::uint32_t>(task.kind), static_cast<double>(task.bytes.count)});
    }
    return retimed;
  }

  void retime(std::span<const RetimedTask> tasks, std::span<const Nanoseconds> before,
              std::span<Nanoseconds> after) const override {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Bytes bytes{static_cast<std::int64_t>(tasks[i].amount)};
      after[i] = pinned_time(static_cast<TaskKind>(tasks[i].kind), bytes, before[i]);
    }
  }

 private:
  std::vector<TaskId> find_copies(const Graph& graph) const {
    std::vector<TaskId> copies;
    for (const TaskId id : where_.select_some(graph)) {
      const Task& task = graph.task(id);
      // The name of a copy says if it used pinned memory.
      const bool pinned = graph.name(id).find("Pinned") != std::string_view::npos;
      if (crosses_host_link(task.kind) && !pinned && task.bytes >= least_) copies.push_back(id);
    }
    if (copies.empty()) {
      throw Error(
          fmt::format("where: must select copies between the device and pageable memory of at "
                      "least {}, there is none",
                      to_text(least_)));
    }
    return copies;
  }

  Nanoseconds pinned_time(TaskKind kind, Bytes bytes, Nanoseconds recorded) const {
    if (bandwidth_.bytes_per_second > 0) return std::min(recorded, time_for(bytes, bandwidth_));
    if (kind == TaskKind::copy_in || host_copy_.bytes_per_second <= 0) return recorded;
    // At most half is saved: the device's part is no faster than the host's, which also reads the
    // data once.
    return std::max(recorded - time_for(bytes, host_copy_), recorded / 2);
  }

  Selector where_;
  Bytes least_{64 * 1024};
  Bandwidth bandwidth_{};
  Bandwidth host_copy_{10e9};
};

}  // namespace

TransformEntry pin_memory_entry() {
  return {.make = create<PinMemory>,
          .assumes =
              "Copies between host and device use pinned memory and non_blocking=True: calls "
              "return at once, each direction runs on its own engine, and streams decide the "
              "order. Without a measured bandwidth, input copies keep their length, which is the "
              "slower of the host's staging and the link; output copies lose the host's part. The "
              "cost of pinning is not modelled. See \"prefetch\" for copies that also run ahead of "
              "kernels.",
          .advice = {.goal = Goal::time, .tries = {"pin_memory"}, .applies_to = {"pinning"}}};
}

}  // namespace foretrace
