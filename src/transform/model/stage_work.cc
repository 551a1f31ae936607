#include "transform/model/stage_work.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <map>
#include <set>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Pieces that a step is cut into if the trace names no layers: fine enough to balance stages.
constexpr std::size_t kPieces = 1000;

class LayerFinder {
 public:
  LayerFinder(const Graph& graph, const Timeline& timeline) : graph_(graph), timeline_(timeline) {
    for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
      for (TaskId id = graph.first(LaneId{i}); id != kNoTask; id = graph.next(id)) {
        const Task& task = graph.task(id);
        if (!runs_on_device(task.kind) || is_between_peers(task.kind)) continue;
        work_[task.step].push_back(id);
        if (task.layer >= 0 && task.phase != Phase::update) numbers_.insert(task.layer);
      }
    }
  }

  RecordedLayers find(std::span<const BackwardPass> passes) {
    RecordedLayers found;
    found.are_recorded = numbers_.size() > 1;
    for (auto& [step, work] : work_) {
      std::sort(work.begin(), work.end(), [&](TaskId a, TaskId b) {
        return std::pair(start(a), a) < std::pair(start(b), b);
      });
      StepLayers layers = layers_of(step, work);
      const auto has = [&](Nanoseconds LayerWork::*pass) {
        return std::ranges::any_of(layers.layers,
                                   [&](const LayerWork& layer) { return layer.*pass > 0ns; });
      };
      if (has(&LayerWork::forward) && has(&LayerWork::backward))
        found.steps.push_back(std::move(layers));
    }
    if (found.steps.empty())
      throw Error(
          "no step of the trace has a forward and a backward pass, whose layers stages "
          "could share");
    add_memory(passes, found);
    std::ranges::sort(found.steps, {}, [&](const StepLayers& layers) {
      return start(work_.at(layers.step).front());
    });
    return found;
  }

 private:
  Nanoseconds start(TaskId task) const { return timeline_.start[index(task)]; }
  Nanoseconds finish(TaskId task) const { return timeline_.finish[index(task)]; }

  std::size_t number_of(std::int32_t layer) const {
    return static_cast<std::size_t>(std::distance(numbers_.begin(), numbers_.find(layer)));
  }

  /// Counts each task from its start to the start of the next one, and the last until all have
  /// ended.
  StepLayers layers_of(std::int32_t step, const std::vector<TaskId>& work) const {
    StepLayers found{.step = step, .layers = std::vector<LayerWork>(count())};
    Nanoseconds total{0}, backward{0}, end{0};
    for (const TaskId id : work) {
      const Task& task = graph_.task(id);
      if (task.phase == Phase::forward) total += task.duration;
      if (task.phase == Phase::backward) backward += task.duration;
      end = std::max(end, finish(id));
    }
    const double share = ratio(total, backward);  // Forward time for each ns of backward time.
    Phase phase = Phase::none;
    std::size_t layer = 0;
    Nanoseconds done{0};
    for (std::size_t i = 0; i < work.size(); ++i) {
      const Task& task = graph_.task(work[i]);
      if (task.phase == Phase::forward || task.phase == Phase::backward ||
          task.phase == Phase::update) {
        if (task.phase == Phase::backward && phase != Phase::backward) done = total;
        phase = task.phase;
      }
      const Nanoseconds time = (i + 1 < work.size() ? start(work[i + 1]) : end) - start(work[i]);
      if (numbers_.size() > 1) {
        if (task.layer >= 0) layer = number_of(task.layer);
      } else if (phase == Phase::forward) {
        layer = piece(done, total);
        done += task.duration;
      } else if (phase == Phase::backward) {
        done = std::max(0ns, done - scaled(task.duration, share));
        layer = piece(done, total);
      }
      if (phase == Phase::forward) found.layers[layer].forward += time;
      if (phase == Phase::backward) found.layers[layer].backward += time;
      if (phase == Phase::update) found.update += time;
    }
    return found;
  }

  std::size_t count() const { return numbers_.size() > 1 ? numbers_.size() : kPieces; }

  static std::size_t piece(Nanoseconds done, Nanoseconds total) {
    return std::min(static_cast<std::size_t>(ratio(done, total) * static_cast<double>(kPieces)),
                    kPieces - 1);
  }

  using Blocks = std::vector<std::pair<TaskId, Bytes>>;

  void add_memory(std::span<const BackwardPass> passes, RecordedLayers& found) const {
    std::map<std::int32_t, Blocks> activations, gradients;  // By step.
    for (const Allocation& block : graph_.allocations()) {
      if (block.use == MemoryUse::activation && block.made_by != kNoTask)
        activations[graph_.task(block.made_by).step].emplace_back(block.made_by, block.bytes);
    }
    for (const BackwardPass& pass : passes) {
      for (const Gradient& gradient : pass.gradients)
        gradients[pass.step].emplace_back(gradient.ready, gradient.bytes);
    }
    for (StepLayers& step : found.steps) {
      distribute(activations[step.step], &LayerWork::activations, step);
      distribute(gradients[step.step], &LayerWork::gradients, step);
    }
  }

  /// Adds blocks to the layers of their tasks; spreads blocks of unknown layers in proportion to
  /// forward time.
  void distribute(const Blocks& blocks, Bytes LayerWork::*member, StepLayers& step) const {
    Bytes unknown{};
    for (const auto& [task, bytes] : blocks) {
      const std::int32_t number = graph_.task(task).layer;
      if (numbers_.size() > 1 && numbers_.contains(number))
        step.layers[number_of(number)].*member += bytes;
      else
        unknown += bytes;
    }
    Nanoseconds total{0};
    for (const LayerWork& layer : step.layers) total += layer.forward;
    for (LayerWork& layer : step.layers)
      layer.*member += scaled(unknown, ratio(layer.forward, total));
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::map<std::int32_t, std::vector<TaskId>> work_;  ///< By step, in order of time.
  std::set<std::int32_t> numbers_;                    ///< Layers that the trace names.
};

std::vector<std::size_t> given_cuts(const std::string& cuts, std::size_t stages,
                                    std::size_t layers) {
  std::vector<std::size_t> begins = {0};
  const char* at = cuts.data();
  const char* const end = at + cuts.size();
  while (at < end) {
    std::size_t layer = 0;
    const auto [rest, error] = std::from_chars(at, end, layer);
    if (error != std::errc() || (rest != end && *rest != ',') || layer <= begins.back() ||
        layer >= layers)
      throw Error(
          fmt::format("cuts: must be the layers at which stages after the first begin, ascending "
                      "and from 1 to {}, got \"{}\"",
                      layers - 1, cuts));
    begins.push_back(layer);
    at = rest == end ? end : rest + 1;
  }
  if (begins.size() != stages)
    throw Error(
        fmt::format("cuts: must have one less than the {} stages, got \"{}\"", stages, cuts));
  return begins;
}

/// Whether the work fits `stages` stages of at most `most` each. If so, `begins` has the first
/// layer of each.
bool fits(const std::vector<Nanoseconds>& work, std::size_t stages, Nanoseconds most,
          std::vector<std::size_t>& begins) {
  begins = {0};
  Nanoseconds sum{0};
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i] > most) return false;
    // Every later stage needs a layer of its own.
    const bool is_needed = work.size() - i <= stages - begins.size();
    if (i > begins.back() && (sum + work[i] > most || is_needed)) {
      if (begins.size() == stages) return false;
      begins.push_back(i);
      sum = 0ns;
    }
    sum += work[i];
  }
  return begins.size() == stages;
}

}  // namespace

RecordedLayers recorded_layers(const Graph& graph, const Timeline& timeline,
                               std::span<const BackwardPass> passes) {
  return LayerFinder(graph, timeline).find(passes);
}

std::vector<std::size_t> stage_begins(const RecordedLayers& recorded, std::size_t stages,
                                      const std::string& cuts) {
  const std::size_t layers = recorded.steps.front().layers.size();
  if (!cuts.empty()) return given_cuts(cuts, stages, layers);
  if (layers < stages)
    throw Error(
        fmt::format("stages: must be at most the {} layers of the trace, got {}", layers, stages));
  std::vector<Nanoseconds> work(layers, 0ns);
  Nanoseconds high{0}, low{0};
  for (const StepLayers& step : recorded.steps) {
    for (std::size_t i = 0; i < layers; ++i)
      work[i] += step.layers[i].forward + step.layers[i].backward;
  }
  for (const Nanoseconds one : work) high += one;
  std::vector<std::size_t> begins;
  while (low < high) {
    const Nanoseconds middle = low + (high - low) / 2;
    if (fits(work, stages, middle, begins))
      high = middle;
    else
      low = middle + 1ns;
  }
  CHECK(fits(work, stages, high, begins));
  return begins;
}

std::vector<LayerWork> stages_of(const StepLayers& step, const std::vector<std::size_t>& begins) {
  std::vector<LayerWork> stages(begins.size());
  std::size_t stage = 0;
  for (std::size_t i = 0; i < step.layers.size(); ++i) {
    while (stage + 1 < begins.size() && i >= begins[stage + 1]) ++stage;
    stages[stage].forward += step.layers[i].forward;
    stages[stage].backward += step.layers[i].backward;
    stages[stage].gradients += step.layers[i].gradients;
    stages[stage].activations += step.layers[i].activations;
  }
  return stages;
}

}  // namespace foretrace
