#include "collect/standin/faults.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace standin {

namespace {

/// Rejects unknown words, so that a test with a typing error does not pass because of it.
[[noreturn]] void reject(const std::string& word) {
  std::fprintf(stderr, "stand-in: FORETRACE_STANDIN has no \"%s\"\n", word.c_str());
  std::abort();
}

void set(Faults& faults, const std::string& key, const std::string& value) {
  const auto number = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
  const auto code = static_cast<std::int32_t>(number);
  if (key == "version") {
    faults.version = number;
    faults.crashes_without_buffer = number < 27;
  } else if (key == "no_driver") {
    faults.no_driver = number != 0;
  } else if (key == "subscribe") {
    faults.subscribe = code;
  } else if (key == "holder") {
    faults.holder = value;
  } else if (key == "register") {
    faults.register_callbacks = code;
  } else if (key.rfind("enable.", 0) == 0) {
    faults.enable[static_cast<std::uint32_t>(std::strtoul(key.c_str() + 7, nullptr, 10))] = code;
  } else if (key == "untimed") {
    faults.untimed = number;
  } else if (key == "bad_record") {
    faults.bad_record = number;
  } else if (key == "worker_us") {
    faults.worker_us = number;
  } else if (key == "deliver" && value == "caller") {
    faults.deliver_on_caller = true;
  } else if (key == "strict") {
    faults.strict = number != 0;
  } else if (key == "exit" && value == "first") {
    faults.ends_first = true;
  } else if (key == "flush" && value == "hang") {
    faults.flush_hangs = true;
  } else if (key == "null" && (value == "crash" || value == "count")) {
    faults.crashes_without_buffer = value == "crash";
  } else if (key == "replay") {
    faults.replay = value;
  } else {
    reject(key + "=" + value);
  }
}

}  // namespace

Faults read_faults(std::uint32_t own_version) {
  Faults faults;
  faults.version = own_version;
  // Versions before 27 crash when they are given no buffer (Kineto #1534).
  faults.crashes_without_buffer = own_version < 27;
  const char* variable = std::getenv("FORETRACE_STANDIN");
  std::string_view list = variable == nullptr ? "" : variable;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string item(list.substr(0, comma));
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) reject(item);
    set(faults, item.substr(0, equals), item.substr(equals + 1));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return faults;
}

}  // namespace standin
