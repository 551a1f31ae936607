#include "workload/eager.h"

#include <cmath>

namespace foretrace {
namespace {

/// Bytes of an element beyond those that a fused kernel moves or keeps.
struct Bill {
  double moved, moved_back, kept;
};
/// A norm: casts, square, mean, product, weight (36 bytes, backward 72), and its input in 4 bytes.
constexpr Bill kNorm{32, 64, 4};
/// Two products, a turned copy and a sum.
constexpr Bill kRotary{20, 28, 2};
/// A gate's activation, apart from its product.
constexpr Bill kGate{4, 8, 2};
/// An input of an expert is gathered, weighed in 4 bytes, padded, and scattered when it is back
/// (counted in torchtitan).
constexpr Bill kSent{34, 52, 8};
/// The output of an adapter is written, scaled and added. Its backward pass scales what comes out,
/// and adds to what went in.
constexpr double kAdapter = 12, kAdapterBackOut = 4, kAdapterBackIn = 6;

}  // namespace

void add_eager(const EagerBlock& block, double tokens, const LayerSlice& slice, LayerRow& row) {
  double kept = 0;
  const auto add = [&](const Bill& bill, double elements) {
    if (slice.eager) {
      row.moved_bytes += tokens * elements * bill.moved;
      row.moved_back_bytes += tokens * elements * bill.moved_back;
    }
    if (slice.keeps_eager) kept += tokens * elements * bill.kept;
  };
  add(kNorm, block.normed), add(kRotary, block.turned), add(kGate, block.gated);
  add(kSent, block.sent);
  const Bytes more{std::llround(kept)};
  row.kept += more, row.kept_selective += more, row.kept_pointwise += more;
  if (!slice.adapters || !slice.eager) return;
  for (const Gemm& gemm : row.gemms) {
    if (!gemm.has_weights) continue;
    const double out = gemm.rows * gemm.columns * gemm.count;
    row.moved_bytes += out * kAdapter;
    row.moved_back_bytes +=
        out * kAdapterBackOut + gemm.rows * gemm.inner * gemm.count * kAdapterBackIn;
  }
}

}  // namespace foretrace
