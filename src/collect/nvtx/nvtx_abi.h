#pragma once

// Describes the part of NVTX's interface for tools that the collector uses. NVTX's headers,
// compiled into the program, look for the library that NVTX_INJECTION64_PATH names and hand it
// tables of function pointers to fill.
//
// Source: NVTX 3 (github.com/NVIDIA/NVTX, Apache-2.0 WITH LLVM-exception), nvtxTypes.h,
// nvToolsExt.h, nvToolsExtPayload.h. Structures grow at their end only.

#include <cstddef>
#include <cstdint>

namespace foretrace::nvtx {

using FunctionPointer = void (*)();
/// An array of pointers to function pointers; those that are not nullptr may be set.
using FunctionTable = FunctionPointer**;

struct Callbacks {
  std::size_t struct_size;
  int (*get_function_table)(std::uint32_t module, FunctionTable* table, unsigned int* size);
};
using GetExportTable = const void* (*)(std::uint32_t table);
constexpr std::uint32_t kCallbacksTable = 1;

constexpr std::uint32_t kCore = 1;
enum Core : std::uint32_t {
  kMarkEx = 1,
  kMarkA = 2,
  kMarkW = 3,
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
  kNameThreadA = 14,
};

constexpr std::uint32_t kCore2 = 5;
enum Core2 : std::uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t payload_count;  ///< Used with kPayloadExtension.
  union {
    std::uint64_t unsigned_value;
    std::int64_t signed_value;
    double double_value;
    std::uint32_t unsigned_32;
    std::int32_t signed_32;
    float float_value;
    const void* extension;
  } payload;
  std::int32_t message_type;
  std::int32_t padding;
  union {
    const char* ascii;
    const wchar_t* wide;
    const void* registered;
  } message;
};
static_assert(sizeof(EventAttributes) == 48);

enum Payload : std::int32_t {
  kNoPayload = 0,
  kUnsigned64 = 1,
  kSigned64 = 2,
  kDouble = 3,
  kUnsigned32 = 4,
  kSigned32 = 5,
  kFloat = 6,
};
constexpr auto kPayloadExtension = static_cast<std::int32_t>(0xDFBD0009);
enum Message : std::int32_t { kAscii = 1, kWide = 2, kRegistered = 3 };

// The payload extension: structures that the program defines and describes with schemas.

struct ModuleSegment {
  std::size_t id;
  std::size_t slot_count;
  std::intptr_t* slots;
};

struct ModuleInfo {
  std::uint16_t version;
  std::uint16_t struct_size;
  std::uint16_t module;
  std::uint16_t compatibility;
  std::size_t segment_count;
  ModuleSegment* segments;
  std::intptr_t (*get_export_function)(std::uint32_t id);
  const void* extension_info;
};
constexpr std::uint16_t kPayloadModule = 2;
enum PayloadSlot : std::size_t {
  kSchemaRegister = 0,
  kEnumRegister = 1,
  kMarkPayload = 2,
  kRangePushPayload = 3,
  kRangePopPayload = 4,
  kRangeStartPayload = 5,
  kRangeEndPayload = 6,
  kDomainIsEnabled = 7,
};

struct PayloadData {
  std::uint64_t schema;
  std::size_t size;
  const void* bytes;
};

struct SchemaEntry {
  std::uint64_t flags;
  std::uint64_t type;
  const char* name;
  const char* description;
  std::uint64_t array_detail;
  std::uint64_t offset;
  const void* semantics;
  const void* reserved;
};

struct SchemaAttributes {
  std::uint64_t field_mask;
  const char* name;
  std::uint64_t type;
  std::uint64_t flags;
  const SchemaEntry* entries;
  std::size_t entry_count;
  std::size_t static_size;
  std::size_t alignment;
  std::uint64_t schema;
  void* extension;
};
struct EnumAttributes {
  std::uint64_t field_mask;
  const char* name;
  const void* entries;
  std::size_t entry_count;
  std::size_t value_size;
  std::uint64_t schema;
  void* extension;
};
constexpr std::uint64_t kEnumHasId = 1U << 5;
constexpr std::uint64_t kSchemaHasId = 1U << 8;
constexpr std::uint64_t kFirstDynamicSchema = std::uint64_t{1} << 32;
/// Flags of entries that are not a plain value stored in place: pointers and arrays.
constexpr std::uint64_t kNotInPlace = (1U << 1) | (7U << 4);
constexpr std::uint64_t kIsMessage = 1U << 10;

}  // namespace foretrace::nvtx
