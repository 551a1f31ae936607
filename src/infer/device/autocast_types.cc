#include "infer/device/autocast_types.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "graph/ops.h"

namespace foretrace::infer_detail {
namespace {

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Ops that hand on their input in another shape.
constexpr std::array<std::string_view, 17> kViews = {
    "view",    "unsafe_view", "reshape", "permute",   "transpose", "t",
    "squeeze", "unsqueeze",   "flatten", "unflatten", "detach",    "as_strided",
    "alias",   "contiguous",  "expand",  "expand_as", "view_as"};
/// Ops that hand on parts of their input.
constexpr std::array<std::string_view, 10> kSplits = {
    "split", "split_with_sizes", "chunk", "tensor_split", "unbind", "select",
    "slice", "narrow",           "index", "index_select"};
/// Ops whose result has another size than their inputs, which their shapes do not tell.
constexpr std::array<std::string_view, 14> kResized = {"cat",
                                                       "stack",
                                                       "mean",
                                                       "sum",
                                                       "max_pool2d",
                                                       "avg_pool2d",
                                                       "interpolate",
                                                       "adaptive_avg_pool2d",
                                                       "repeat",
                                                       "repeat_interleave",
                                                       "pad",
                                                       "unfold",
                                                       "upsample_nearest2d",
                                                       "amax"};

constexpr std::size_t kNoResult = static_cast<std::size_t>(-1);
constexpr std::size_t kKept = 256;  ///< Results that are searched at most; chosen.
constexpr double kParts = 64;       ///< That a result is split into at most; chosen.

}  // namespace

const AutocastTypes::Inputs& AutocastTypes::inputs_of(const OpDetails& details) {
  const auto [found, added] =
      inputs_.try_emplace(std::uint64_t{static_cast<std::uint32_t>(details.shapes)} << 32 |
                          static_cast<std::uint32_t>(details.types));
  if (!added) return found->second;
  const std::vector<Shape> shapes = read_shapes(trace_.names[details.shapes]);
  const std::vector<std::string_view> types = read_texts(trace_.names[details.types]);
  for (std::size_t i = 0; i < std::min(shapes.size(), types.size()); ++i) {
    const bool half = types[i].ends_with("Half") || types[i].ends_with("BFloat16");
    if (shapes[i].empty() || !(half || types[i] == "float")) continue;
    const double elements = product(shapes[i]);
    if (elements > 0 && elements < 1e15) found->second.push_back({i, {shapes[i], elements, half}});
  }
  return found->second;
}

void AutocastTypes::read(const HostRecord& record, const OpDetails& details) {
  if (record.thread != thread_) results_.clear();
  thread_ = record.thread;
  ops_.emplace_back();
  const Inputs& inputs = inputs_of(details);
  if (inputs.empty()) return;
  const std::string_view name = trace_.names[record.name], bare = bare_op_name(name);
  if (is_one_of(kViews, bare)) return read_view(inputs);
  if (is_one_of(kSplits, bare)) return read_split(inputs);
  if (bare == "to" || bare == "to_copy")
    return read_conversion(inputs, value_at(trace_.names[details.values], 1));
  switch (autocast_list_of(name)) {
    case AutocastList::half:
      return read_half(inputs, bare);
    case AutocastList::full:
    case AutocastList::full_kept:
      return read_full(inputs, bare);
    case AutocastList::other:
      return read_other(inputs, bare, name.ends_with('_'));
  }
}

void AutocastTypes::add_result(double elements, bool half, bool split, bool joined) {
  if (results_.size() >= 2 * kKept) results_.erase(results_.begin(), results_.begin() + kKept);
  results_.push_back({.elements = elements,
                      .half = half,
                      .split = split,
                      .joined = joined,
                      .op = static_cast<std::uint32_t>(ops_.size() - 1)});
}

bool AutocastTypes::fits(const Result& result, double elements) {
  if (!result.split || result.elements <= elements) return result.elements == elements;
  return result.elements <= kParts * elements && std::fmod(result.elements, elements) == 0;
}

/// Returns the newest result of this size for which `wanted` holds.
template <class Wanted>
std::size_t AutocastTypes::newest(double elements, const Wanted& wanted) const {
  for (std::size_t i = results_.size(); i-- > 0;) {
    const bool unknown = results_[i].elements == 0 && i + 1 == results_.size();
    if ((unknown || fits(results_[i], elements)) && wanted(results_[i])) return i;
  }
  return kNoResult;
}

/// The result that is an input; see above. `other` is the one that another input of this size is.
std::size_t AutocastTypes::result_of(double elements, std::size_t other) const {
  if (other == kNoResult) return newest(elements, [](const Result&) { return true; });
  if (results_[other].split && results_[other].elements > elements) return other;
  const auto wanted = [&](bool Result::*is, bool value) {
    return newest(elements, [&](const Result& result) {
      return &result != &results_[other] && result.*is == value;
    });
  };
  const std::size_t unread = wanted(&Result::read, false);
  if (unread != kNoResult) return unread;
  const std::size_t stream = wanted(&Result::joined, true);
  if (stream != kNoResult) return stream;
  const auto oldest =
      std::ranges::find_if(results_, [&](const Result& result) { return fits(result, elements); });
  return oldest == results_.end() ? other : static_cast<std::size_t>(oldest - results_.begin());
}

std::vector<AutocastTypes::Read> AutocastTypes::read_all(const Inputs& inputs) {
  std::vector<Read> reads;
  for (const auto& [place, input] : inputs) {
    std::size_t other = kNoResult;
    for (const Read& read : reads) {
      if (read.input->elements == input.elements && read.result != kNoResult) other = read.result;
    }
    const std::size_t result = result_of(input.elements, other);
    const bool half = input.half || (result != kNoResult && results_[result].half);
    reads.push_back({&input, result, half});
  }
  for (const Read& read : reads) {
    if (read.result != kNoResult) results_[read.result].read = true;
  }
  return reads;
}

void AutocastTypes::read_view(const Inputs& inputs) {
  const double elements = inputs.front().second.elements;
  const std::size_t result = result_of(elements, kNoResult);
  const bool half = result != kNoResult && results_[result].half;
  op().narrow = half || inputs.front().second.half ? 1 : 0;
  if (result != kNoResult && results_[result].elements != elements) add_result(elements, half);
}

void AutocastTypes::read_split(const Inputs& inputs) {
  const std::vector<Read> reads = read_all(inputs);
  op().narrow = reads.front().half ? 1 : 0;
  add_result(reads.front().input->elements, reads.front().half, true);
}

/// aten::to(tensor, type, ...)
void AutocastTypes::read_conversion(const Inputs& inputs, std::string_view type) {
  constexpr std::string_view kFloat = "6", kHalf = "5", kBFloat16 = "15";
  const Read read = read_all(inputs).front();
  const bool to_half = type == kHalf || type == kBFloat16;
  const bool half = to_half || (read.half && type != kFloat);
  op().narrow = half ? 1 : 0;
  if (half == read.half) return;
  cast(read);
  add_result(read.input->elements, half);
}

/// Converts a value, and its gradient back.
void AutocastTypes::cast(const Read& read) {
  op().casts[kForward].of_value(read.input->elements);
  if (read.result != kNoResult) op().casts[kBackward].of_value(read.input->elements);
}

void AutocastTypes::read_half(const Inputs& inputs, std::string_view bare) {
  const bool has_weights = bare == "linear" || bare == "addmm" || bare.starts_with("conv");
  const std::size_t value = bare == "addmm" ? 1 : 0;
  Inputs values;
  for (const auto& [place, input] : inputs) {
    if (has_weights ? place == value : true) values.push_back({place, input});
  }
  const std::vector<Read> reads = read_all(values);
  for (const Read& read : reads) {
    if (read.half) continue;
    op().narrow_sums = 0;
    if (!has_weights && read.result == kNoResult && &read != &reads.front()) {
      cast_weight(read.input->elements);
    } else {
      cast(read);
    }
  }
  op().has_gradient = !reads.empty() && reads.front().result != kNoResult;
  for (const auto& [place, input] : inputs) {
    if (has_weights && place != value && place <= 2 && !input.half) cast_weight(input.elements);
  }
  add_result(size_of_product(inputs, bare), true);
}

void AutocastTypes::cast_weight(double elements) {
  ++op().weight_casts;
  for (AutocastCasts& casts : op().casts) casts.of_weight(elements);
}

double AutocastTypes::size_of_product(const Inputs& inputs, std::string_view bare) {
  const auto at = [&](std::size_t i) {
    return i < inputs.size() ? inputs[i].second.shape : Shape{1};
  };
  const auto rows = [&](std::size_t i) { return product(at(i)) / at(i).back(); };
  if (bare == "linear") return rows(0) * at(1).front();
  if (bare == "addmm" || bare == "baddbmm") return rows(1) * at(2).back();
  if (bare == "mm" || bare == "bmm" || bare == "matmul") return rows(0) * at(1).back();
  if (bare.starts_with("scaled_dot_product")) return rows(0) * at(2).back();
  return 0;
}

void AutocastTypes::read_full(const Inputs& inputs, std::string_view bare) {
  op().narrow = op().narrow_sums = 0;
  for (const Read& read : read_all(inputs)) {
    if (!read.half) continue;
    if (!read.input->half) cast(read);
    op().narrow_sums = 1;
  }
  if (bare.ends_with("loss")) return;
  const bool smaller = bare == "sum" || bare == "prod" || bare == "norm";
  add_result(smaller ? 0 : inputs.front().second.elements, false);
}

void AutocastTypes::read_other(const Inputs& inputs, std::string_view bare, bool in_place) {
  // Not promoted: the parameters and statistics of batch norms stay in FP32.
  const bool follows_first = in_place || bare.ends_with("batch_norm");
  const std::vector<Read> reads = read_all(inputs);
  const auto largest =
      std::ranges::max_element(reads, {}, [](const Read& read) { return read.input->elements; });
  bool half = std::ranges::all_of(reads, &Read::half);
  if (follows_first) half = reads.front().half;
  if (bare == "embedding") half = false;
  double narrow = half ? largest->input->elements : 0, all = largest->input->elements;
  for (const Read& read : reads) {
    all += read.input->elements;
    if (!read.half) continue;
    narrow += read.input->elements;
    // The gradient has the type of the result.
    if (!half && !read.input->half && read.result != kNoResult)
      ops_[results_[read.result].op].casts[kBackward].of_value(read.input->elements);
  }
  op().narrow = static_cast<float>(narrow / all);
  op().narrow_sums = half ? 1 : 0;
  const bool joined = std::ranges::count_if(reads, [&](const Read& read) {
                        return read.input->elements == largest->input->elements;
                      }) > 1;
  const bool resized = is_one_of(kResized, bare) || bare == "embedding";
  add_result(resized ? 0 : largest->input->elements, half, false, joined);
}

}  // namespace foretrace::infer_detail
