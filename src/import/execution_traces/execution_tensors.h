#pragma once

// The tensors that an op of an execution trace reads or writes. PyTorch writes the arguments of an
// op as three lists of the same length, an entry for each argument:
//
//     values  [[13, 14, 0, 64, 4, "cuda:0"], [-1]]     tensor, storage, offset, elements,
//     shapes  [[64], [[]]]                             bytes of an element, device
//     types   ["Tensor(float)", "GenericList[Int]"]
//
// where an argument may also be a list of tensors, "GenericList[Tensor(float),Tensor(float)]".

#include <string>
#include <string_view>

#include "foretrace/trace.h"
#include "import/common/intern_cache.h"
#include "import/scan/json_scan.h"

namespace foretrace {

/// The three lists, each a JSON array; ValueKind::none if missing.
struct Arguments {
  JsonValue values;
  JsonValue shapes;
  JsonValue types;
};

class ExecutionTensors {
 public:
  ExecutionTensors(Trace& trace, InternCache& names) : trace_(trace), names_(names) {}

  /// Adds a record for each tensor among the arguments (or results) of the op `host`.
  void add(std::uint32_t host, const Arguments& arguments, bool is_output);

  /// The values with an empty text for each tensor, as profilers write "Concrete Inputs". The
  /// result is often the same for all ops of a kind.
  std::string concrete_values(const Arguments& arguments);

  /// Adds a note if tensors of an impossible size were left out.
  void write_notes();

 private:
  struct OpArgument {
    std::uint32_t host;
    std::uint16_t argument;
    bool is_output;
  };
  void add_value(const JsonValue& value, const JsonValue& shape, std::string_view type,
                 const OpArgument& owner);
  void add_tensor(const JsonValue& value, const JsonValue& shape, std::string_view type,
                  const OpArgument& owner);

  Trace& trace_;
  InternCache& names_;
  std::int64_t impossible_ = 0;
  std::string impossible_example_;
};

/// Whether an argument of this type is a tensor or contains tensors.
bool has_tensors(std::string_view type);

/// The ordinal in "cuda:1"; -1 for host memory.
std::int16_t device_ordinal(std::string_view device);

/// Converts the output of Python's str() for lists, texts and numbers to JSON; JSON stays as it is.
/// The result for anything else may be invalid JSON.
std::string json_from_python(std::string_view text);

}  // namespace foretrace
