#include "transform/applies.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "transform/edit/device_change.h"

namespace foretrace {
namespace {

/// A job that spends a greater share of the time of its products in convolutions is a network of
/// convolutions: half of them and more may have names of plain products (1x1 in NHWC). Transformers
/// for images use few. Chosen.
constexpr double kManyConvolutions = 0.25;

bool is_convolution(std::string_view name) {
  return contains_any(name, {"conv", "Conv", "cudnn", "wgrad", "dgrad", "fprop", "wrw", "igemm_fwd",
                             "igemm_bwd", "winograd", "Winograd", "miopenSp3"});
}

/// Whether any kernel, op or range is known to work on sequences.
bool names_sequences(const Names& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (contains_any(names[static_cast<NameId>(i)],
                     {"ttention", "attn", "sdpa", "fmha", "flash", "mha_", "aten::bmm", "lstm",
                      "LSTM", "aten::gru", "RNN_"}))
      return true;
  }
  return false;
}

}  // namespace

Applicability applies_to_frameworks(const Graph& graph) {
  const JobPrecision job = precision_of(graph);
  if (job.of_framework || !job.has_kernels) return {};
  return {.share = 0,
          .why_not = "no kernel is known as one of a deep learning framework or its libraries"};
}

Applicability applies_to_sequences(const Graph& graph) {
  if (Applicability known = applies_to_frameworks(graph); known.share <= 0) return known;
  if (names_sequences(graph.names())) return {};
  KernelClasses classes(graph);
  Nanoseconds convolutions{0}, products{0};
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel || graph.removed(TaskId{i})) continue;
    if (classes.of(task.name).bound != Boundness::compute) continue;
    products += task.duration;
    if (is_convolution(classes.name_of(task))) convolutions += task.duration;
  }
  const double share = ratio(convolutions, products);
  if (share <= kManyConvolutions) return {};
  return {.share = 0,
          .why_not = fmt::format("{} of the time of its products is in convolutions, and nothing "
                                 "in it is known to work on sequences",
                                 to_share(share))};
}

}  // namespace foretrace
