#pragma once

// Converts NVTX payloads to JSON text, so that a trace shows how many bytes a collective moved.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collect/nvtx/nvtx_abi.h"

namespace foretrace::collect {

/// A JSON text of limited size. Members that do not fit are left out.
class PayloadText {
 public:
  /// Converts the payload of an event. The text is empty if there is none.
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

/// Returns the text that the message entry of a payload points to, or nullptr if it has none. This
/// is the name of a range that begins with nothing but a payload.
const char* message_of(const nvtx::PayloadData* data, std::size_t count);

/// Remembers the fields of a payload. Returns the number of the schema.
std::uint64_t register_schema(const nvtx::SchemaAttributes* attributes);
/// Remembers an enumeration, whose values are written as numbers. Returns the number of its schema.
std::uint64_t register_enum(const nvtx::EnumAttributes* attributes);

}  // namespace foretrace::collect
