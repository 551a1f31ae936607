// Keeps activations in a smaller form between the passes (Jain et al., Gist: Efficient Data
// Encoding for Deep Neural Network Training, ISCA'18):
//
//     binarize   blocks that only the backward passes of ReLU and pooling read: a bit for each
//                value; four bits for an argmax of pooling
//     csr        outputs of ReLU and pooling that others read, mostly zeros: only other values,
//                bytes = (1 - sparsity) * values * (value bytes + 1), above 20 % sparsity
//     narrow     all other blocks, as fp16, fp10 (three in four bytes) or fp8; lossy
//
//     block      |mmmm|E                        E encodes after the last forward use,
//     encoded         |eeeeeeeee|
//     decoded                  D|mmmm|          D decodes before the first backward use
//
// Encoding reads one form and writes the other at the bandwidth of the device's memory. Ignored:
// kernels that read an encoded form directly (except binarize, whose backward passes do), and
// accuracy.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/device_change.h"
#include "transform/edit/registered.h"
#include "transform/memory/memory_view.h"

namespace foretrace {
namespace {

enum class Encoding : std::uint8_t { none, bits, argmax, csr, narrow };

class Encode final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The activations that may be encoded");
    fields.choice("mode", mode_, {"lossless", "lossy", "all"},
                  "lossless: binarize and csr. lossy: narrow. all: lossless first, narrow values "
                  "for the rest and in csr");
    fields.choice("precision", precision_, {"fp16", "fp10", "fp8"}, "Format of narrow values");
    fields.number("sparsity", sparsity_,
                  "Share of zeros after a ReLU; below 0.2 csr does not pay (recalled: half of them "
                  "at random, more in trained models)",
                  0, 1);
    fields.integer("value_bytes", value_bytes_, "Size of a recorded value", 1, 8);
    fields.name_or_path("device", device_,
                        "Device whose memory bandwidth encoding uses; empty: that of the job");
    fields.time("launch", launch_, "Length of each additional launch call (recalled)",
                Nanoseconds(0));
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const std::vector<std::uint32_t> blocks = where_.select_some(graph);
    const MemoryView view(graph);
    const std::vector<Activation> activations = find_activations(graph, view.uses, blocks);
    if (activations.empty()) no_activation(graph, blocks);
    const DeviceModel device = device_for(graph, context, "device", device_);
    LayerNames names(graph);
    std::vector<EncodedActivation> coded;
    Bytes all{};
    for (const Activation& activation : activations) {
      all += view.block(activation.allocation).bytes;
      EncodedActivation item{.activation = activation,
                             .encoding = encoding_of(view, activation.allocation, names)};
      item.bytes = view.block(activation.allocation).bytes;
      item.encoded = encoded_size(item.encoding, item.bytes);
      if (item.encoded < item.bytes) coded.push_back(item);
    }
    if (coded.empty()) {
      throw Error(fmt::format("mode: {} encodes none of {}", mode_,
                              counted(activations.size(), "activation")));
    }
    const Bytes peak = peak_memory(graph, view.timeline);
    const Nanoseconds added = encode_all(graph, view, coded, device.memory_bandwidth);
    return effect_of(coded, all, added, peak, peak_memory(graph));
  }

 private:
  struct EncodedActivation {
    Activation activation;
    Encoding encoding = Encoding::none;
    Bytes bytes{}, encoded{};
  };

  /// Recognizes ReLU and pooling by the names of ops and kernels.
  struct LayerNames {
    explicit LayerNames(const Graph& graph)
        : relu("/relu|threshold|clamp_min/", graph.names()), pool("/[Pp]ool/", graph.names()) {}
    NameCondition relu, pool;
  };

  Encoding encoding_of(const MemoryView& view, std::uint32_t number, LayerNames& names) const {
    const Encoding rest = mode_ == "lossless" ? Encoding::none : Encoding::narrow;
    if (mode_ == "lossy") return rest;
    NameId writer = view.block(number).op;
    bool only_relu = true, only_pool = true;
    for (const Access& access : view.uses.of_block(number)) {
      const NameId name = view.graph.task(access.task).name;
      if (!view.is_late(access.task)) {
        if (access.writes)
          writer = name;  // In place, ReLU writes a block that another op requested.
        continue;
      }
      // The backward pass of pooling needs the places of the largest values, not the values.
      only_relu = only_relu && (names.relu(name) || names.pool(name));
      only_pool = only_pool && names.pool(name);
    }
    const bool by_relu = names.relu(writer) || names.relu(view.block(number).op);
    const bool by_pool = names.pool(writer) || names.pool(view.block(number).op);
    if (by_pool && only_pool) return Encoding::argmax;
    if (by_relu && only_relu) return Encoding::bits;
    if (by_relu || by_pool) return Encoding::csr;
    return rest;
  }

  double narrow_bytes() const {
    const double bytes = precision_ == "fp16" ? 2 : precision_ == "fp10" ? 4.0 / 3 : 1;
    return std::min(bytes, static_cast<double>(value_bytes_));
  }

  Bytes encoded_size(Encoding encoding, Bytes bytes) const {
    const auto width = static_cast<double>(value_bytes_);
    const double values = static_cast<double>(bytes.count) / width;
    double size = static_cast<double>(bytes.count);
    if (encoding == Encoding::bits) size = values / 8;
    if (encoding == Encoding::argmax) size = static_cast<double>(bytes.count) / kArgmaxBytes / 2;
    if (encoding == Encoding::csr) {
      const double value = mode_ == "all" ? narrow_bytes() : width;
      size = (1 - sparsity_) * values * (value + 1);
      if (mode_ == "all") size = std::min(size, values * narrow_bytes());
    }
    if (encoding == Encoding::narrow) size = values * narrow_bytes();
    return Bytes{std::llround(std::min(size, static_cast<double>(bytes.count)))};
  }

  Nanoseconds encode_all(Graph& graph, const MemoryView& view,
                         const std::vector<EncodedActivation>& coded, Bandwidth bandwidth) const {
    std::vector<LifetimeCut> splits;
    std::vector<InsertedWork> encodes, decodes;
    Nanoseconds added{0};
    const WaitReason ready = wait_reason_named(graph.names(), "decoded");
    for (const EncodedActivation& item : coded) {
      const Nanoseconds time = time_for(item.bytes + item.encoded, bandwidth);
      const TaskId use = item.activation.last_forward, back = item.activation.first_backward;
      encodes.push_back(insert(graph, view, use, true, time));
      const bool direct = item.encoding == Encoding::bits || item.encoding == Encoding::argmax;
      decodes.push_back(direct ? InsertedWork{} : insert(graph, view, back, false, time));
      added += direct ? time : 2 * time;
      if (!direct) add_waits_for_decode(graph, view, item.activation, decodes.back().task, ready);
      const Allocation& block = view.block(item.activation.allocation);
      const TaskId made = direct ? allocation_task(graph, block, encodes.back())
                                 : allocation_task(graph, block, decodes.back());
      splits.push_back({.allocation = item.activation.allocation,
                        .first_behind = back,
                        .freed = end_of(graph, allocation_task(graph, block, encodes.back())),
                        .made = start_of(made)});
    }
    const std::vector<std::uint32_t> behind = split_lifetimes(graph, splits, view.timeline.start);
    for (std::size_t i = 0; i < coded.size(); ++i) {
      const std::uint32_t front = coded[i].activation.allocation;
      if (decodes[i].task == kNoTask)
        shrink(graph.allocations()[behind[i]], coded[i].encoded);
      else
        add_encoded(graph, coded[i], behind[i], encodes[i], decodes[i]);
      add_access(graph, front, encodes[i].task, false);
      if (decodes[i].task == kNoTask) add_access(graph, behind[i], encodes[i].task, true);
    }
    return added;
  }

  /// Makes uses on other lanes, which no order puts behind the decoding, wait for it.
  static void add_waits_for_decode(Graph& graph, const MemoryView& view,
                                   const Activation& activation, TaskId decode, WaitReason why) {
    std::vector<LaneId> lanes = {graph.lane_of(decode)};
    for (const Access& access : view.uses.of_block(activation.allocation)) {
      if (view.before(access.task, activation.first_backward)) continue;
      const LaneId lane = graph.lane_of(access.task);
      if (std::find(lanes.begin(), lanes.end(), lane) != lanes.end()) continue;
      lanes.push_back(lane);
      graph.add(
          {.before = decode, .after = access.task, .provenance = Provenance::assumed, .why = why});
    }
  }

  InsertedWork insert(Graph& graph, const MemoryView& view, TaskId beside, bool behind,
                      Nanoseconds time) const {
    const Task like = graph.task(beside);
    return insert_work(graph, view.launches,
                       {.task = {.duration = time,
                                 .name = graph.names().intern(behind ? "encode" : "decode"),
                                 .module = like.module,
                                 .step = like.step,
                                 .layer = like.layer,
                                 .kind = runs_on_device(like.kind) ? TaskKind::kernel : like.kind,
                                 .phase = like.phase},
                        .beside = beside,
                        .behind = behind,
                        .launch_duration = launch_});
  }

  static TaskId allocation_task(const Graph& graph, const Allocation& block,
                                const InsertedWork& work) {
    const bool on_device = runs_on_device(graph.task(block.made_by).kind);
    return on_device || work.launch == kNoTask ? work.task : work.launch;
  }

  static void shrink(Allocation& block, Bytes bytes) {
    block.bytes = bytes;
    block.requested = {};
  }

  static void add_access(Graph& graph, std::uint32_t block, TaskId task, bool writes) {
    graph.accesses().push_back(
        {.allocation = block, .task = task, .writes = writes, .provenance = Provenance::assumed});
  }

  static void add_encoded(Graph& graph, const EncodedActivation& item, std::uint32_t behind,
                          const InsertedWork& encode, const InsertedWork& decode) {
    Allocation block = graph.allocations()[item.activation.allocation];
    const TaskId made = allocation_task(graph, block, encode);
    const TaskTime freed = end_of(graph, allocation_task(graph, block, decode));
    shrink(block, item.encoded);
    block.made_by = made;
    block.made_after = 0ns;
    block.freed_by = freed.task;
    block.freed_after = freed.after;
    const auto number = static_cast<std::uint32_t>(graph.allocations().size());
    graph.allocations().push_back(block);
    add_access(graph, number, encode.task, true);
    add_access(graph, number, decode.task, false);
    add_access(graph, behind, decode.task, true);
  }

  Effect effect_of(const std::vector<EncodedActivation>& coded, Bytes all, Nanoseconds added,
                   Bytes peak, Bytes new_peak) const {
    Effect effect;
    Bytes before{}, after{};
    std::size_t count[5] = {};
    for (const EncodedActivation& item : coded) {
      before += item.bytes, after += item.encoded;
      ++count[static_cast<std::size_t>(item.encoding)];
    }
    effect.changed = coded.size();
    effect.summary = fmt::format(
        "{} from {} to {}: {} as bits, {} as four-bit positions, {} without zeros, {} in {}",
        counted(coded.size(), "activation"), to_text(before), to_text(after), grouped(count[1]),
        grouped(count[2]), grouped(count[3]), grouped(count[4]), precision_);
    const double ratio = static_cast<double>(all.count) /
                         std::max(static_cast<double>((all - before + after).count), 1.0);
    effect.figures = {{"saved_bytes", before - after},
                      {"footprint_ratio", ratio},
                      {"added_time", added},
                      {"peak_before", peak},
                      {"peak_after", new_peak}};
    effect.assumptions.push_back(
        "encoding and decoding run at the memory bandwidth of the device, each as one kernel "
        "(published for Gist, ISCA'18: 3 to 4 % more time on average; footprint 1.4 times smaller "
        "without loss, 1.8 times with)");
    effect.assumptions.push_back(fmt::format(
        "names of ops and kernels identify ReLU and pooling; {} % of their outputs are zeros",
        to_fixed(sparsity_ * 100, 0)));
    return effect;
  }

  static constexpr double kArgmaxBytes = 8;  // Size of an index in PyTorch.

  AllocationSelector where_{"activation"};
  std::string mode_ = "lossless";
  std::string precision_ = "fp16";
  double sparsity_ = 0.5;
  std::int64_t value_bytes_ = 4;
  std::string device_;
  Nanoseconds launch_ = 5us;
};

}  // namespace

TransformEntry encode_entry() {
  return {.make = create<Encode>,
          .assumes =
              "Between its last forward and its first backward use an activation is kept in a "
              "smaller form (Gist, ISCA'18): as bits where only ReLU or pooling read it again, "
              "without its zeros after ReLU and pooling, in narrow numbers otherwise. A kernel "
              "that runs at the bandwidth of the device's memory encodes it and another one "
              "decodes it, both launched by the host. The content of a block is inferred from the "
              "names of ops and kernels. Accuracy is not modelled.",
          .advice = {.goal = Goal::memory, .tries = {"encode"}, .applies_to = {"activations"}}};
}

}  // namespace foretrace
