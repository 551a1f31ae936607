#include "base/fields/settings.h"

#include <fmt/core.h>
#include <iterator>
#include <utility>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Returns no limit if `value` is the extreme of its type (`nothing`).
template <class Value>
SettingLimit limit(Value value, Value nothing) {
  SettingLimit limit;
  if (value != nothing) limit.emplace<Value>(value);
  return limit;
}

template <class Value>
SettingLimit at_least(Value value) {
  return limit(value, std::numeric_limits<Value>::lowest());
}

template <class Value>
SettingLimit at_most(Value value) {
  return limit(value, std::numeric_limits<Value>::max());
}

class NameVisitor final : public Fields {
 public:
  void visit(const Setting& setting) override { names.emplace_back(setting.name); }
  std::vector<std::string> names;
};

}  // namespace

void Fields::visit_next(Setting setting) {
  setting.form = std::exchange(next_, {});
  visit(setting);
}

void Fields::flag(std::string_view name, bool& value, std::string_view help) {
  visit_next({name, help, &value});
}
void Fields::integer(std::string_view name, std::int64_t& value, std::string_view help,
                     std::int64_t least, std::int64_t most) {
  visit_next({name, help, &value, at_least(least), at_most(most)});
}
void Fields::number(std::string_view name, double& value, std::string_view help, double least,
                    double most) {
  visit_next({name, help, &value, at_least(least), at_most(most)});
}
void Fields::text(std::string_view name, std::string& value, std::string_view help) {
  visit_next({name, help, &value});
}
void Fields::path(std::string_view name, std::string& value, std::string_view help) {
  visit_next({.name = name, .help = help, .value = &value, .kind = TextKind::path});
}
void Fields::name_or_path(std::string_view name, std::string& value, std::string_view help) {
  visit_next({.name = name, .help = help, .value = &value, .kind = TextKind::name_or_path});
}
void Fields::texts(std::string_view name, std::vector<std::string>& value, std::string_view help) {
  visit_next({name, help, &value});
}
void Fields::choice(std::string_view name, std::string& value,
                    const std::vector<std::string_view>& options, std::string_view help) {
  visit_next({name, help, &value, {}, {}, &options});
}
void Fields::time(std::string_view name, Nanoseconds& value, std::string_view help,
                  Nanoseconds least) {
  visit_next({name, help, &value, limit(least, Nanoseconds::min())});
}
void Fields::bytes(std::string_view name, Bytes& value, std::string_view help, Bytes least) {
  visit_next({name, help, &value, limit(least, Bytes{INT64_MIN})});
}
void Fields::bandwidth(std::string_view name, Bandwidth& value, std::string_view help) {
  visit_next({name, help, &value});
}
void Fields::throughput(std::string_view name, Throughput& value, std::string_view help) {
  visit_next({name, help, &value});
}
void Fields::optional_integer(std::string_view name, std::optional<std::int64_t>& value,
                              std::string_view help, std::int64_t least) {
  visit_next({name, help, &value, at_least(least)});
}
void Fields::optional_number(std::string_view name, std::optional<double>& value,
                             std::string_view help, double least) {
  visit_next({name, help, &value, at_least(least)});
}
void Fields::optional_time(std::string_view name, std::optional<Nanoseconds>& value,
                           std::string_view help, Nanoseconds least) {
  visit_next({name, help, &value, limit(least, Nanoseconds::min())});
}
void Fields::optional_bytes(std::string_view name, std::optional<Bytes>& value,
                            std::string_view help, Bytes least) {
  visit_next({name, help, &value, limit(least, Bytes{INT64_MIN})});
}
void Fields::optional_bandwidth(std::string_view name, std::optional<Bandwidth>& value,
                                std::string_view help) {
  visit_next({name, help, &value});
}
void Fields::object(std::string_view name, Described& value, std::string_view help) {
  visit_next({name, help, &value});
}

std::vector<std::string> setting_order(Described& object) {
  NameVisitor visitor;
  object.describe(visitor);
  return std::move(visitor.names);
}

SettingNames setting_names(Described& object) {
  std::vector<std::string> names = setting_order(object);
  return {std::make_move_iterator(names.begin()), std::make_move_iterator(names.end())};
}

std::string no_such_setting(std::string_view name, const SettingNames& known) {
  if (known.empty()) return fmt::format("there is no setting \"{}\"; there are no settings", name);
  return fmt::format("there is no setting \"{}\"; the settings are {}{}", name, joined(known),
                     did_you_mean(name, known));
}

std::string to_text(const SettingLimit& limit) {
  struct {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return foretrace::to_text(value); }
    std::string operator()(Nanoseconds value) const { return to_exact_text(value); }
    std::string operator()(Bytes value) const { return to_exact_text(value); }
  } const print;
  return std::visit(print, limit);
}

}  // namespace foretrace
