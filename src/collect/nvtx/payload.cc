#include "collect/nvtx/payload.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace foretrace::collect {

namespace {

/// A copy of a registered schema; the program may free its own.
struct Schema {
  std::uint64_t id;
  std::size_t count;
  nvtx::SchemaEntry* entries;
  std::size_t value_size = 0;  ///< Only set for an enumeration, which has no entries.
};

constexpr std::size_t kMaxSchemas = 256;
constexpr std::size_t kMaxEntries = 256;

std::mutex schemas_mutex;
Schema schemas[kMaxSchemas];
std::size_t schema_count = 0;
std::uint64_t next_schema = nvtx::kFirstDynamicSchema;

const Schema* find_schema(std::uint64_t id) {
  const std::lock_guard lock(schemas_mutex);
  for (std::size_t i = schema_count; i > 0; --i) {
    if (schemas[i - 1].id == id) return &schemas[i - 1];
  }
  return nullptr;
}

/// Size and kind of each NVTX type in "nvToolsExtPayload.h", on LP64.
struct TypeTraits {
  std::uint64_t type;
  std::size_t bytes;
  char kind;  ///< 'i' signed, 'u' unsigned, 'f' floating
};
constexpr TypeTraits kTypes[] = {
    {1, 1, 'i'},  {2, 1, 'u'},  {3, 2, 'i'},  {4, 2, 'u'},  {5, 4, 'i'},  {6, 4, 'u'},
    {7, 8, 'i'},  {8, 8, 'u'},  {9, 8, 'i'},  {10, 8, 'u'}, {11, 1, 'i'}, {12, 1, 'u'},
    {13, 2, 'i'}, {14, 2, 'u'}, {15, 4, 'i'}, {16, 4, 'u'}, {17, 8, 'i'}, {18, 8, 'u'},
    {19, 4, 'f'}, {20, 8, 'f'}, {22, 8, 'u'}, {23, 8, 'u'}, {32, 1, 'u'}, {43, 4, 'f'},
    {44, 8, 'f'}, {71, 4, 'u'}, {72, 8, 'u'}, {73, 4, 'u'}, {74, 8, 'u'},
};

/// Describes an NVTX type or an enumeration of the program. Any other type has 0 bytes.
TypeTraits traits_of(std::uint64_t type) {
  for (const TypeTraits& known : kTypes) {
    if (known.type == type) return known;
  }
  const Schema* schema = find_schema(type);
  return {type, schema == nullptr ? 0 : schema->value_size, 'u'};
}

/// Copies a name, leaving out characters that JSON would have to escape.
void copy_key(const char* from, char* to, std::size_t room) {
  std::size_t used = 0;
  for (; from != nullptr && *from != '\0' && used + 1 < room; ++from) {
    const auto c = static_cast<unsigned char>(*from);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') to[used++] = *from;
  }
  to[used] = '\0';
}

std::uint64_t load(const void* bytes, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  return value;
}

std::int64_t load_signed(const void* bytes, std::size_t size) {
  const std::uint64_t value = load(bytes, size);
  const unsigned shift = 64 - 8 * static_cast<unsigned>(size);
  return static_cast<std::int64_t>(value << shift) >> shift;
}

}  // namespace

std::uint64_t register_schema(const nvtx::SchemaAttributes* attributes) {
  if (attributes == nullptr || attributes->entries == nullptr) return 0;
  const std::size_t count = std::min(attributes->entry_count, kMaxEntries);
  auto* entries = static_cast<nvtx::SchemaEntry*>(std::calloc(count, sizeof(nvtx::SchemaEntry)));
  if (entries == nullptr) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    entries[i] = attributes->entries[i];
    if (entries[i].name != nullptr) entries[i].name = strdup(entries[i].name);
  }
  const std::lock_guard lock(schemas_mutex);
  const bool has_id = (attributes->field_mask & nvtx::kSchemaHasId) != 0;
  const std::uint64_t id = has_id ? attributes->schema : next_schema++;
  if (schema_count < kMaxSchemas) schemas[schema_count++] = {id, count, entries};
  return id;
}

std::uint64_t register_enum(const nvtx::EnumAttributes* attributes) {
  if (attributes == nullptr) return 0;
  const std::lock_guard lock(schemas_mutex);
  const bool has_id = (attributes->field_mask & nvtx::kEnumHasId) != 0;
  const std::uint64_t id = has_id ? attributes->schema : next_schema++;
  const std::size_t size = attributes->value_size;
  if (schema_count < kMaxSchemas && (size == 1 || size == 2 || size == 4 || size == 8))
    schemas[schema_count++] = {id, 0, nullptr, size};
  return id;
}

PayloadText::PayloadText(const nvtx::EventAttributes& event) {
  switch (event.payload_type) {
    case nvtx::kUnsigned64:
      add("payload", 'u', &event.payload, 8);
      break;
    case nvtx::kSigned64:
      add("payload", 'i', &event.payload, 8);
      break;
    case nvtx::kDouble:
      add("payload", 'f', &event.payload, 8);
      break;
    case nvtx::kUnsigned32:
      add("payload", 'u', &event.payload, 4);
      break;
    case nvtx::kSigned32:
      add("payload", 'i', &event.payload, 4);
      break;
    case nvtx::kFloat:
      add("payload", 'f', &event.payload, 4);
      break;
    case nvtx::kPayloadExtension:
      add_all(static_cast<const nvtx::PayloadData*>(event.payload.extension),
              static_cast<std::size_t>(std::max(event.payload_count, 1)));
      break;
    default:
      break;
  }
  close();
}

PayloadText::PayloadText(const nvtx::PayloadData* data, std::size_t count) {
  add_all(data, count);
  close();
}

void PayloadText::add_all(const nvtx::PayloadData* data, std::size_t count) {
  constexpr std::size_t kMaxPayloads = 16;
  for (std::size_t i = 0; data != nullptr && i < std::min(count, kMaxPayloads); ++i)
    add_fields(data[i]);
}

void PayloadText::add_fields(const nvtx::PayloadData& data) {
  const Schema* schema = find_schema(data.schema);
  if (schema == nullptr || data.bytes == nullptr) return;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < schema->count; ++i) {
    const nvtx::SchemaEntry& entry = schema->entries[i];
    const TypeTraits type = traits_of(entry.type);
    // Skip fields of unknown size. Later fields are then found only if their entries give an
    // offset.
    if (type.bytes == 0 || (entry.flags & nvtx::kNotInPlace) != 0) continue;
    const std::uint64_t aligned = (end + type.bytes - 1) / type.bytes * type.bytes;
    const std::uint64_t at = entry.offset != 0 || i == 0 ? entry.offset : aligned;
    if (data.size != SIZE_MAX && at + type.bytes > data.size) return;
    end = at + type.bytes;
    char key[64];
    copy_key(entry.name, key, sizeof key);
    add(key, type.kind, static_cast<const char*>(data.bytes) + at, type.bytes);
  }
}

void PayloadText::add(const char* key, char kind, const void* value, std::size_t bytes) {
  char member[128];
  const char* comma = used_ == 0 ? "{" : ", ";
  int size = 0;
  if (kind == 'f') {
    float single = 0;
    double wide = 0;
    if (bytes == 4) {
      std::memcpy(&single, value, 4);
      wide = static_cast<double>(single);
    } else {
      std::memcpy(&wide, value, 8);
    }
    if (!std::isfinite(wide)) return;
    size = std::snprintf(member, sizeof member, "%s\"%s\": %.17g", comma, key, wide);
  } else if (kind == 'i') {
    size = std::snprintf(member, sizeof member, "%s\"%s\": %lld", comma, key,
                         static_cast<long long>(load_signed(value, bytes)));
  } else {
    size = std::snprintf(member, sizeof member, "%s\"%s\": %llu", comma, key,
                         static_cast<unsigned long long>(load(value, bytes)));
  }
  if (size <= 0 || static_cast<std::size_t>(size) >= sizeof member) return;
  if (used_ + static_cast<std::size_t>(size) + 1 > kRoom) return;
  std::memcpy(bytes_ + used_, member, static_cast<std::size_t>(size));
  used_ += static_cast<std::size_t>(size);
}

void PayloadText::close() {
  if (used_ > 0) bytes_[used_++] = '}';
}

const char* message_of(const nvtx::PayloadData* data, std::size_t count) {
  for (std::size_t i = 0; data != nullptr && i < count; ++i) {
    const Schema* schema = find_schema(data[i].schema);
    if (schema == nullptr || data[i].bytes == nullptr) continue;
    for (std::size_t k = 0; k < schema->count; ++k) {
      constexpr std::uint64_t kText = 75;
      const nvtx::SchemaEntry& entry = schema->entries[k];
      const bool is_text = entry.type == kText || entry.type == kText + 1;
      if ((entry.flags & nvtx::kIsMessage) == 0 || !is_text) continue;
      const char* text = nullptr;
      if (entry.offset + sizeof text > data[i].size) continue;
      std::memcpy(&text, static_cast<const char*>(data[i].bytes) + entry.offset, sizeof text);
      return text;
    }
  }
  return nullptr;
}

}  // namespace foretrace::collect
