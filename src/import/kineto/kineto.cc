#include "import/kineto/kineto.h"

#include "foretrace/error.h"
#include "import/files/registered.h"
#include "import/files/sniff.h"
#include "import/kineto/kineto_document.h"

namespace foretrace {

bool recognizes_kineto(const Sniffed& file) {
  const std::size_t start = file.head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || (file.head[start] != '{' && file.head[start] != '['))
    return false;
  return describe_unreadable(file).empty();
}

Trace read_kineto(PeekedSource& bytes) { return KinetoDocument(bytes).read(); }

Trace read_kineto(const TraceFile& input) {
  const auto bytes = input.open();
  return within(input.path(), [&] { return read_kineto(*bytes); });
}

}  // namespace foretrace
