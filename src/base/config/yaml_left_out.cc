// Stands in for the reader of YAML in a build without libyaml, such as the explorer's page.

#include "base/config/config.h"
#include "foretrace/error.h"

namespace foretrace {

std::vector<ConfigValue> yaml_values(std::string_view) {
  throw Error("YAML cannot be read in a browser; write it as JSON");
}

}  // namespace foretrace
