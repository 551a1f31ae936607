// Changes the size of memory blocks and nothing else: the memory side of a change whose time side
// is known or does not matter. Longer sequences (sequence_length.cc) and larger batches
// (batch_size.cc) have transforms of their own.
//
// Ignored: time; that an allocator splits blocks of another size differently, which the replay of
// the allocator shows.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class Resize final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The allocations to change");
    fields.number("factor", factor_, "Every size is multiplied by this; 0 deletes the blocks", 0,
                  1e9);
    fields.bytes("to", to_, "Every block gets this size instead; 0B: by the factor");
  }

  Effect apply(Graph& graph, const Context&) const override {
    if (to_ > Bytes{} && factor_ != 1) throw Error("to: cannot be given together with factor");
    if (to_ > kLargestBlock)
      throw Error(fmt::format("to: must be at most {}, got {}", to_exact_text(kLargestBlock),
                              to_exact_text(to_)));
    const std::vector<std::uint32_t> chosen = where_.select_some(graph);
    const Timeline timeline = simulate(graph, {.memory = false});
    const Bytes peak = peak_memory(graph, timeline);
    Effect effect;
    Bytes before{}, after{};
    for (const std::uint32_t number : chosen) {
      const Allocation block = graph.allocations()[number];
      const Allocation wanted = with_new_size(block);
      before += block.bytes, after += wanted.bytes;
      if (wanted.bytes == block.bytes) continue;
      replace_block(graph, number, wanted);
      ++effect.changed;
    }
    const Bytes new_peak = peak_memory(graph, timeline);
    effect.summary = fmt::format("{} from {} to {} in all", counted(chosen.size(), "allocation"),
                                 to_text(before), to_text(after));
    effect.assumptions.push_back(
        "only sizes change: which tasks make, use and free a block, and all times, stay");
    effect.figures = {{"peak_before", peak}, {"peak_after", new_peak}};
    return effect;
  }

 private:
  Allocation with_new_size(const Allocation& block) const {
    if (to_ == Bytes{}) return resized(block, factor_, "factor");
    Allocation wanted = block;
    wanted.bytes = wanted.requested = to_;
    return wanted;
  }

  AllocationSelector where_;
  double factor_ = 1;
  Bytes to_{};
};

}  // namespace

TransformEntry resize_entry() {
  return {.make = create<Resize>,
          .assumes =
              "Only sizes change. Blocks whose size is a multiple of 512 bytes, as PyTorch's "
              "caching allocator makes them, are rounded up to one again. Times stay: combine it "
              "with scale where the work changes too.",
          .advice = {.why_not = "a manual edit: you choose which blocks to resize"}};
}

}  // namespace foretrace
