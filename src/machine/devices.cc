#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"

namespace foretrace {
namespace {

struct BuiltIn {
  std::string_view key;
  /// Normalized names; a trailing * matches any rest.
  std::vector<std::string_view> recorded_names;
  DeviceModel model;
};

/// A line of devices.def.
struct Figures {
  double fp64, fp32, tf32, fp16, bf16, int8;  ///< TFLOP/s
  double memory_gb_per_second;
  std::int64_t memory_gib;
  double host_gb_per_second;
  std::int64_t launch_ns;
};

DeviceModel model_of(std::string_view name, const Figures& figures, std::string_view source) {
  const auto tera = [](double flops) { return parse_throughput(to_text(flops) + "TFLOP/s"); };
  const auto giga = [](double bytes) { return parse_bandwidth(to_text(bytes) + "GB/s"); };
  DeviceModel model;
  model.name = name;
  model.fp64 = tera(figures.fp64);
  model.fp32 = tera(figures.fp32);
  model.tf32 = tera(figures.tf32);
  model.fp16 = tera(figures.fp16);
  model.bf16 = tera(figures.bf16);
  model.int8 = tera(figures.int8);
  model.memory_bandwidth = giga(figures.memory_gb_per_second);
  model.memory = Bytes{figures.memory_gib << 30};
  model.host_link = giga(figures.host_gb_per_second);
  model.launch_latency = Nanoseconds{figures.launch_ns};
  model.source = "recalled: " + std::string(source);
  return model;
}

const std::vector<BuiltIn>& built_in() {
  static const std::vector<BuiltIn> devices = {
#define DEVICE(name, fp64, fp32, tf32, fp16, bf16, int8, memory_rate, memory, link, launch, \
               source, ...)                                                                 \
  {name, __VA_ARGS__,                                                                       \
   model_of(name, {fp64, fp32, tf32, fp16, bf16, int8, memory_rate, memory, link, launch},  \
            source)},
#include "machine/devices.def"
#undef DEVICE
  };
  return devices;
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Returns whether a word names only the maker or the series of a device, not the model.
bool is_maker_or_series(std::string_view word) {
  static constexpr std::array<std::string_view, 12> kWords = {
      "nvidia", "tesla",    "geforce", "quadro", "amd",      "ati",
      "radeon", "instinct", "r",       "tm",     "graphics", "vf"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

/// Normalizes "NVIDIA A100-SXM4-40GB" to "a100sxm440gb".
std::string plain(std::string_view name) {
  std::string all, word;
  const auto end_word = [&] {
    if (!is_maker_or_series(word)) all += word;
    word.clear();
  };
  for (const char c : name) {
    if (is_letter_or_digit(c)) {
      word += lower(c);
    } else {
      end_word();
    }
  }
  end_word();
  return all;
}

bool matches_recorded(std::string_view recorded, std::string_view name) {
  if (!recorded.ends_with('*')) return recorded == name;
  // A MIG slice is only a part of the device.
  recorded.remove_suffix(1);
  return name.starts_with(recorded) && name.find("mig") == std::string_view::npos;
}

const BuiltIn* find_built_in(std::string_view plain_name) {
  if (plain_name.empty()) return nullptr;
  for (const BuiltIn& device : built_in()) {
    if (plain(device.key) == plain_name) return &device;
    for (const std::string_view recorded : device.recorded_names) {
      if (matches_recorded(recorded, plain_name)) return &device;
    }
  }
  return nullptr;
}

DeviceModel read_device(const std::string& path) {
  constexpr std::size_t kLargest = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargest + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) throw Error("must be a device file that can be read");
  if (text.size() > kLargest) throw Error("must be a device file of at most 1 MiB");
  const auto json = try_parse_json<nlohmann::json>(text);
  if (json.is_discarded()) throw Error("must be JSON, but is not");
  DeviceModel model;
  read_json(json, model);
  if (model.name.empty()) throw Error("name: must not be empty");
  return model;
}

/// The devices whose names contain this one: "rtx-4090" for "4090".
std::vector<std::string_view> devices_with(std::string_view name) {
  const std::string wanted = plain(name);
  std::vector<std::string_view> longer;
  for (const std::string_view key : device_names()) {
    if (!wanted.empty() && plain(key).find(wanted) != std::string::npos) longer.push_back(key);
  }
  return longer;
}

/// Suggestions for a name that is not a device: devices that contain it, or else the nearest name.
std::string alternatives(std::string_view name) {
  const std::vector<std::string_view> longer = devices_with(name);
  if (longer.empty()) {
    const std::string near = did_you_mean(name, device_names());
    return near.empty() ? "; `foretrace list devices` shows all" : near;
  }
  std::string text = " (did you mean ";
  for (std::size_t i = 0; i < longer.size(); ++i) {
    if (i > 0) text += i + 1 == longer.size() ? " or " : ", ";
    text += fmt::format("\"{}\"", longer[i]);
  }
  return text + "?)";
}

}  // namespace

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> names;
  for (const BuiltIn& device : built_in()) names.push_back(device.key);
  std::sort(names.begin(), names.end());
  return names;
}

DeviceModel find_device(std::string_view name_or_path) {
  if (const BuiltIn* found = find_built_in(plain(name_or_path))) return found->model;
  if (is_path(name_or_path)) {
    return within(name_or_path, [&] { return read_device(std::string(name_or_path)); });
  }
  constexpr std::size_t kShortest = 3;  // Two letters mean a device by chance.
  if (const auto longer = devices_with(name_or_path);
      longer.size() == 1 && name_or_path.size() >= kShortest)
    return find_built_in(plain(longer.front()))->model;
  throw Error(fmt::format("must be a built-in device or a JSON file with one, got \"{}\"{}",
                          name_or_path, alternatives(name_or_path)));
}

const DeviceModel* device_recorded_as(std::string_view recorded_name) {
  const BuiltIn* found = find_built_in(plain(recorded_name));
  return found ? &found->model : nullptr;
}

void DeviceModel::describe(Fields& fields) {
  fields.text("name", name, "Name of the device in reports");
  fields.throughput("fp64", fp64, "Peak of the vector units; 0 if not supported");
  fields.throughput("fp32", fp32, "Peak of the vector units");
  fields.throughput("tf32", tf32, "Dense peak of the tensor units");
  fields.throughput("fp16", fp16, "Dense peak of the tensor units, with fp32 accumulation");
  fields.throughput("bf16", bf16, "Dense peak of the tensor units");
  fields.throughput("int8", int8, "Dense peak of the tensor units");
  fields.bandwidth("memory_bandwidth", memory_bandwidth, "Bandwidth of the device's memory");
  fields.bytes("memory", memory, "Size of the device's memory");
  fields.bandwidth("host_link", host_link,
                   "Bandwidth of copies to and from pinned host memory, each way");
  fields.time("launch_latency", launch_latency,
              "From the end of a launch call to the start of its kernel on an idle stream",
              Nanoseconds{0});
  fields.text("source", source, "Source of the figures");
}

Bytes swappable(Nanoseconds interval, Bandwidth out, Bandwidth in) {
  const bool can_move = out.bytes_per_second > 0 && in.bytes_per_second > 0;
  if (interval <= 0ns || !can_move) return {};
  // Only divisions and products are used, which round the same on every machine. Results above 2^53
  // bytes, more than any memory has, are rounded.
  const double away = out.bytes_per_second, back = in.bytes_per_second;
  const double bytes = static_cast<double>(interval.count()) / 1e9 / (1 / away + 1 / back);
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  if (!(bytes < static_cast<double>(kMax))) return Bytes{kMax};
  return Bytes{static_cast<std::int64_t>(std::floor(bytes))};
}

}  // namespace foretrace
