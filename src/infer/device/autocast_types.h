#pragma once

// The types of what ops read and make under torch.autocast, in the order in which they run. Its
// lists (graph/ops.h) decide:
//
//     half     FP32 inputs are converted first, weights as well
//     full     inputs in half precision are converted first
//     others   nothing is converted; in FP32 if one of the inputs is
//
// Gradients have the types of their values: what was converted is converted back, except inputs of
// the model and frozen weights, which have no gradient. Where an op has inputs of both types, the
// gradients of those in half precision are converted to it.
//
// Recordings do not name tensors. An input is the newest result with as many elements, or a part of
// the newest larger one that was split. A second input of the same size is one that nothing has
// read yet, such as the gate of a gated layer, or else the residual stream: the newest result of
// two such inputs. Tensors that no op made are in FP32: weights, and inputs of the model.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foretrace/task.h"
#include "foretrace/trace.h"
#include "infer/device/op_shapes.h"

namespace foretrace::infer_detail {

/// Conversions between FP32 and half precision.
struct AutocastCasts {
  std::uint32_t count = 0;
  double weights = 0, elements = 0;

  void of_weight(double size) { ++count, weights += size; }
  void of_value(double size) { ++count, elements += size; }
  void add(const AutocastCasts& other) {
    count += other.count, weights += other.weights, elements += other.elements;
  }
};

enum AutocastPass : std::uint8_t { kForward, kBackward };

/// An outermost op of the forward pass.
struct AutocastOp {
  float narrow = 1;
  float narrow_sums = 1;  ///< Of the sums of its input's gradients.
  std::array<AutocastCasts, 2> casts{};
  std::array<TaskId, 2> first = {kNoTask, kNoTask};  ///< Its first kernels.
  std::array<std::int64_t, 2> first_start{};
  std::uint32_t weight_casts = 0;
  std::uint32_t products = 0;  ///< Matrix products of its backward pass.
  bool has_gradient = false;   ///< Of an input other than weights.
};

class AutocastTypes {
 public:
  explicit AutocastTypes(const Trace& trace) : trace_(trace) {}

  /// Reads the next outermost op of the forward pass; results of other threads are not its inputs.
  void read(const HostRecord& record, const OpDetails& details);
  /// In the order in which they were read.
  std::vector<AutocastOp>& ops() { return ops_; }

 private:
  /// Something that an op reads.
  struct Input {
    Shape shape;
    double elements = 0;
    bool half = false;  ///< As recorded.
  };

  /// The floating-point inputs of an op with their places among its arguments.
  using Inputs = std::vector<std::pair<std::size_t, Input>>;

  /// A tensor that an op made.
  struct Result {
    double elements = 0;  ///< 0: unknown.
    bool half = false;
    bool split = false;   ///< Stands for parts of `elements`.
    bool joined = false;  ///< Made of two tensors of this size.
    bool read = false;
    std::uint32_t op = kNone;
  };

  /// An input with its result, and whether it would be in half precision.
  struct Read {
    const Input* input;
    std::size_t result = static_cast<std::size_t>(-1);
    bool half = false;
  };

  const Inputs& inputs_of(const OpDetails& details);
  void add_result(double elements, bool half, bool split = false, bool joined = false);
  template <class Wanted>
  std::size_t newest(double elements, const Wanted& wanted) const;
  std::size_t result_of(double elements, std::size_t other) const;
  std::vector<Read> read_all(const Inputs& inputs);
  void read_view(const Inputs& inputs);
  void read_split(const Inputs& inputs);
  void read_conversion(const Inputs& inputs, std::string_view type);
  void read_half(const Inputs& inputs, std::string_view bare);
  void read_full(const Inputs& inputs, std::string_view bare);
  void read_other(const Inputs& inputs, std::string_view bare, bool in_place);
  static bool fits(const Result& result, double elements);
  static double size_of_product(const Inputs& inputs, std::string_view bare);
  void cast(const Read& read);
  void cast_weight(double elements);
  AutocastOp& op() { return ops_.back(); }

  const Trace& trace_;
  std::vector<AutocastOp> ops_;
  std::vector<Result> results_;
  std::uint32_t thread_ = kNone;
  std::unordered_map<std::uint64_t, Inputs> inputs_;  ///< By the names of their texts.
};

}  // namespace foretrace::infer_detail
