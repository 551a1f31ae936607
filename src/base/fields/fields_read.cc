#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/fields/settings.h"
#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

void read(const Json& json, bool& value) {
  if (!json.is_boolean()) throw Error("must be true or false");
  value = json.get<bool>();
}

void read(const Json& json, std::int64_t& value) { value = whole_number(json); }

void read(const Json& json, double& value) {
  if (!json.is_number()) throw Error("must be a number");
  const double number = json.get<double>();
  if (!std::isfinite(number)) throw Error("must be a finite number");
  value = number;
}

void read(const Json& json, std::string& value) {
  if (!json.is_string()) throw Error("must be a string");
  value = json.get<std::string>();
}

void read(const Json& json, std::vector<std::string>& value) {
  if (!json.is_array())
    throw Error("must be a list of strings; one is enough" +
                (json.is_string() ? fmt::format(": [{}]", json_line(json)) : ""));
  std::vector<std::string> texts(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    within(fmt::format("[{}]", i), [&] { read(json[i], texts[i]); });
  }
  value = std::move(texts);
}

const std::string& quantity_text(const Json& json, std::string_view example) {
  if (json.is_string()) return json.get_ref<const std::string&>();
  throw Error(fmt::format("must be a string with a unit, such as \"{}\", got {}", example,
                          json.is_number() ? json_line(json) : "a value of another kind"));
}

void read(const Json& json, Nanoseconds& value) { value = parse_time(quantity_text(json, "5us")); }
void read(const Json& json, Bytes& value) { value = parse_bytes(quantity_text(json, "25MB")); }
void read(const Json& json, Bandwidth& value) {
  value = parse_bandwidth(quantity_text(json, "25GB/s"));
}
void read(const Json& json, Throughput& value) {
  value = parse_throughput(quantity_text(json, "312TFLOP/s"));
}

void read(const Json& json, Described& value) { read_json(json, value); }

template <class Value>
void read(const Json& json, std::optional<Value>& value) {
  if (json.is_null()) return value.reset();
  Value given{};
  read(json, given);
  value = given;
}

/// No trace is this long and no store this large; sums of such values still fit 64 bits.
template <class Value>
constexpr Value kMax = std::numeric_limits<Value>::max();
template <>
constexpr Nanoseconds kMax<Nanoseconds> = std::chrono::hours(1000);
template <>
constexpr Bytes kMax<Bytes>{std::int64_t{1} << 58};

/// Checks `value` against the limits of its type; settings of types without limits have none.
template <class Value>
void check_limits(const Setting& setting, const Value& value) {
  if constexpr (std::is_constructible_v<SettingLimit, Value> && !std::is_same_v<Value, bool>) {
    const auto* least = std::get_if<Value>(&setting.least);
    const auto* most = std::get_if<Value>(&setting.most);
    const auto refuse = [&](std::string_view side, const SettingLimit& limit) {
      throw Error(fmt::format("must be at {} {}, got {}", side, to_text(limit),
                              to_text(SettingLimit{value})));
    };
    if (least && value < *least) refuse("least", setting.least);
    if (most && value > *most) refuse("most", setting.most);
    const bool is_long = std::is_same_v<Value, Nanoseconds> && value < Value{} - kMax<Value>;
    if (is_long || value > kMax<Value>) refuse("most", SettingLimit{kMax<Value>});
  }
}

template <class Value>
void check_limits(const Setting& setting, const std::optional<Value>& value) {
  if (value) check_limits(setting, *value);
}

void check_limits(const Setting& setting, const std::string& value) {
  if (!setting.options) return;
  for (const std::string_view option : *setting.options) {
    if (option == value) return;
  }
  throw Error(fmt::format("must be one of {}, got \"{}\"{}", joined(*setting.options), value,
                          did_you_mean(value, *setting.options)));
}

/// Every value is checked before it is written, so a setting never has an invalid value.
template <class Value>
void replace(const Json& json, const Setting& setting, Value& value) {
  if constexpr (std::is_same_v<Value, Described>) {
    read(json, value);
  } else {
    Value given{};
    read(json, given);
    check_limits(setting, given);
    value = std::move(given);
  }
}

class Reader final : public Fields {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void visit(const Setting& setting) override {
    const auto found = json_.find(setting.name);
    within(setting.name, [&] {
      if (found != json_.end()) return read_setting(*found, setting);
      if (setting.form.is_required) throw Error("must be given");
    });
  }

 private:
  const Json& json_;
};

}  // namespace

void read_setting(const Json& json, const Setting& setting) {
  std::visit([&](auto* value) { replace(json, setting, *value); }, setting.value);
}

void read_json(const Json& json, Described& object) {
  if (!json.is_object()) throw Error("must be an object of settings, such as {\"name\": value}");
  const SettingNames known = setting_names(object);
  for (const auto& [name, value] : json.items()) {
    if (!known.contains(name)) throw Error(no_such_setting(name, known));
  }
  Reader reader(json);
  object.describe(reader);
  object.check();
}

}  // namespace foretrace
