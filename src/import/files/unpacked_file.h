#pragma once

// Unpacked bytes in a file without a name, for readers that seek. Nobody else can open the file,
// and it disappears when the program ends, however it ends.

#include <cstdint>
#include <string_view>

#include "import/files/source.h"

namespace foretrace {

class UnpackedFile {
 public:
  /// Writes all of `bytes`. `expected` is their number, or 0 if unknown. Throws TraceError if the
  /// disk lacks room (before writing, if `expected` is known) or `bytes` are damaged.
  UnpackedFile(Source& bytes, std::int64_t expected);
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;
  ~UnpackedFile();

  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace foretrace
