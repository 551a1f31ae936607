#pragma once

// Unpacked bytes in a file without a name, for readers that seek. Nobody else can open the file,
// and it is gone when the program ends in any way.

#include <cstdint>
#include <string_view>

#include "import/files/source.h"

namespace foretrace {

class UnpackedFile {
 public:
  /// Writes all of `bytes`. `expected` is their number as far as known, or 0: if the disk has no
  /// room for them, nothing is written. Throws TraceError.
  UnpackedFile(Source& bytes, std::int64_t expected);
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;
  ~UnpackedFile();

  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace foretrace
