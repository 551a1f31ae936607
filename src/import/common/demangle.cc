#include "import/common/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>

namespace foretrace {
namespace {

/// The readable form of a mangled name; the name itself if it is none.
std::string readable(std::string_view name) {
  constexpr std::string_view kDescriptor = ".kd";  // ROCm names descriptors of kernels so.
  if (name.ends_with(kDescriptor)) name.remove_suffix(kDescriptor.size());
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> found(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && found ? std::string(found.get()) : std::string(name);
}

}  // namespace

void demangle_kernels(Trace& trace) {
  std::unordered_map<std::uint32_t, NameId> known;
  const auto make_readable = [&](NameId& name) {
    if (!trace.names[name].starts_with("_Z")) return;
    const auto [found, is_new] = known.try_emplace(static_cast<std::uint32_t>(name), name);
    if (is_new) found->second = trace.names.intern(readable(trace.names[name]));
    name = found->second;
  };
  for (DeviceRecord& record : trace.devices) make_readable(record.name);
  for (OpDetails& details : trace.op_details) make_readable(details.kernel);
}

}  // namespace foretrace
