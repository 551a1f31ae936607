#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "base/crc32c.h"
#include "trace/spool.h"

namespace foretrace {

/// Builds a spool, chunk by chunk.
class SpoolBytes {
 public:
  spool::Header header;

  SpoolBytes() { header.state = spool::State::finished; }

  /// Adds a text in a chunk of its own; returns its number.
  std::uint32_t text(std::string_view text) { return text_of_number(++texts_, text); }
  std::uint32_t text_of_number(std::uint32_t number, std::string_view text) {
    chunk(spool::ChunkKind::texts, 1,
          prefixed(number, static_cast<std::uint32_t>(text.size()), text));
    return number;
  }

  SpoolBytes& fact(std::string_view key, std::string_view value) {
    return chunk(
        spool::ChunkKind::facts, 1,
        prefixed(static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size()),
                 std::string(key) + std::string(value)));
  }

  template <class... Rows>
  SpoolBytes& rows(const Rows&... rows) {
    std::string body;
    (body.append(reinterpret_cast<const char*>(&rows), sizeof rows), ...);
    return chunk(spool::ChunkKind::rows, sizeof...(rows), body);
  }

  std::string bytes() const {
    std::string all(spool::kHeaderBytes, '\0');
    std::memcpy(all.data(), static_cast<const void*>(&header), sizeof header);
    return all + chunks_;
  }

 private:
  static std::string prefixed(std::uint32_t first, std::uint32_t second, std::string_view text) {
    std::string body(8, '\0');
    std::memcpy(body.data(), &first, 4);
    std::memcpy(body.data() + 4, &second, 4);
    body += text;
    body.resize((body.size() + 7) / 8 * 8);
    return body;
  }

  SpoolBytes& chunk(spool::ChunkKind kind, std::size_t count, const std::string& body) {
    spool::ChunkHeader head;
    head.kind = kind;
    head.count = static_cast<std::uint32_t>(count);
    head.bytes = static_cast<std::uint32_t>(body.size());
    head.body_crc = crc32c(body.data(), body.size());
    head.head_crc = crc32c(&head, offsetof(spool::ChunkHeader, head_crc));
    chunks_.append(reinterpret_cast<const char*>(&head), sizeof head);
    chunks_ += body;
    return *this;
  }

  std::string chunks_;
  std::uint32_t texts_ = 0;
};

}  // namespace foretrace
