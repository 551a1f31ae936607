#pragma once

// NVTX payloads as JSON text, so that a trace can say how many bytes a collective moved.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collect/nvtx/nvtx_abi.h"

namespace foretrace::collect {

/// JSON text of a bounded size; what does not fit is left out.
class PayloadText {
 public:
  /// Takes the value that an event carries; empty if it has none.
  explicit PayloadText(const nvtx::EventAttributes& event);
  PayloadText(const nvtx::PayloadData* data, std::size_t count);

  std::string_view text() const { return {bytes_, used_}; }

 private:
  void add_all(const nvtx::PayloadData* data, std::size_t count);
  void add_fields(const nvtx::PayloadData& data);
  /// Appends one member, or nothing if it does not fit. `kind` is 'i', 'u' or 'f'.
  void add(const char* key, char kind, const void* value, std::size_t bytes);
  void close();

  static constexpr std::size_t kRoom = 1024;
  char bytes_[kRoom];
  std::size_t used_ = 0;
};

/// The text that a payload's message entry points to; nullptr if it has none. Ranges that are begun
/// with nothing but a payload carry their name so.
const char* message_of(const nvtx::PayloadData* data, std::size_t count);

/// Remembers what the fields of a payload are. The number of the schema.
std::uint64_t register_schema(const nvtx::SchemaAttributes* attributes);
/// Values of the enumeration are written as numbers.
std::uint64_t register_enum(const nvtx::EnumAttributes* attributes);

}  // namespace foretrace::collect
