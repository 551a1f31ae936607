#pragma once

#include "foretrace/fields.h"

namespace foretrace {

/// Visits settings, nested ones included, and looks at none: for visitors that ask for few kinds.
class QuietFields : public Fields {
 public:
  void flag(std::string_view, bool&, std::string_view) override {}
  void integer(std::string_view, std::int64_t&, std::string_view, std::int64_t,
               std::int64_t) override {}
  void number(std::string_view, double&, std::string_view, double, double) override {}
  void text(std::string_view, std::string&, std::string_view) override {}
  void path(std::string_view, std::string&, std::string_view) override {}
  void name_or_path(std::string_view, std::string&, std::string_view) override {}
  void texts(std::string_view, std::vector<std::string>&, std::string_view) override {}
  void choice(std::string_view, std::string&, const std::vector<std::string_view>&,
              std::string_view) override {}
  void time(std::string_view, Nanoseconds&, std::string_view, Nanoseconds) override {}
  void bytes(std::string_view, Bytes&, std::string_view, Bytes) override {}
  void bandwidth(std::string_view, Bandwidth&, std::string_view) override {}
  void throughput(std::string_view, Throughput&, std::string_view) override {}
  void optional_integer(std::string_view, std::optional<std::int64_t>&, std::string_view,
                        std::int64_t) override {}
  void optional_number(std::string_view, std::optional<double>&, std::string_view,
                       double) override {}
  void optional_time(std::string_view, std::optional<Nanoseconds>&, std::string_view,
                     Nanoseconds) override {}
  void object(std::string_view, Described& value, std::string_view) override {
    value.describe(*this);
  }
};

}  // namespace foretrace
