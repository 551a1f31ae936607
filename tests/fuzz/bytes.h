#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "import/files/source.h"

/// Presents a fuzzer's input as the bytes of a trace.
class Bytes : public foretrace::Source {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t read(char* to, std::size_t room) override {
    const std::size_t part = std::min(room, size_);
    std::memcpy(to, data_, part);
    data_ += part;
    size_ -= part;
    return part;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};
