#pragma once

#include <cstring>
#include <string_view>

#include "trace/spool.h"

namespace foretrace {

template <class Row>
Row row_as(const char* bytes) {
  Row row;
  std::memcpy(static_cast<void*>(&row), bytes, sizeof row);
  return row;
}

/// Calls `visit` with the kind and the bytes of every row. Returns false if there is a row of an
/// unknown kind, because the rows after it cannot be read.
template <class Visit>
bool each_row(std::string_view body, Visit&& visit) {
  while (body.size() >= 8) {
    spool::RowKind kind{};
    std::memcpy(&kind, body.data(), sizeof kind);
    const std::uint32_t size = spool::row_bytes(kind);
    if (size == 0 || size > body.size()) return false;
    visit(kind, body.data());
    body.remove_prefix(size);
  }
  return body.empty();
}

}  // namespace foretrace
