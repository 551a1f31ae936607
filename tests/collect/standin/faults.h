#pragma once

// FORETRACE_STANDIN asks for these faults; see standin.h.

#include <cstdint>
#include <map>
#include <string>

namespace standin {

struct Faults {
  std::uint32_t version = 0;
  bool no_driver = false;
  std::int32_t subscribe = 0;
  std::string holder;
  std::int32_t register_callbacks = 0;
  std::map<std::uint32_t, std::int32_t> enable;
  std::uint32_t untimed = 0;
  std::uint32_t bad_record = 0;
  std::uint32_t worker_us = 0;
  bool deliver_on_caller = false;
  bool strict = false;
  bool ends_first = false;
  bool flush_hangs = false;
  bool crashes_without_buffer = false;
  std::string replay;
};

Faults read_faults(std::uint32_t own_version);

}  // namespace standin
