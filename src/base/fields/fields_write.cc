#include "base/fields/setting_json.h"

namespace foretrace {
namespace {

class Writer final : public Fields {
 public:
  void visit(const Setting& setting) override {
    json[std::string(setting.name)] =
        std::visit([](auto* value) { return as_json(*value); }, setting.value);
  }
  nlohmann::json json = nlohmann::json::object();
};

}  // namespace

nlohmann::json write_json(Described& object) {
  Writer writer;
  object.describe(writer);
  return std::move(writer.json);
}

}  // namespace foretrace
