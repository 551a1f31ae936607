#include "foretrace/error.h"
#include "import/files/registered.h"
#include "import/files/sniff.h"
#include "import/kineto/kineto_document.h"
#include "import/kineto/merged_ranks.h"

namespace foretrace {
namespace {

Trace read_rank(const TraceFile& input, const MergedRank& rank) {
  const auto bytes = input.open();
  return KinetoDocument(*bytes, TextWindow::kSize, rank).read();
}

}  // namespace

bool recognizes_kineto(const Sniffed& file) {
  const std::size_t start = file.head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || (file.head[start] != '{' && file.head[start] != '['))
    return false;
  return describe_unreadable(file).empty();
}

std::vector<std::string> members_of_kineto(const TraceFile& input) {
  return within(input.path(), [&] {
    std::vector<std::string> members;
    if (!has_rank_marks(input.head())) return members;
    const std::size_t ranks = rank_marks(*input.open()).size();
    for (std::size_t rank = 0; rank < ranks; ++rank) members.push_back(std::to_string(rank));
    return members;
  });
}

Trace read_kineto(const TraceFile& input) {
  return within(input.path(), [&] {
    if (input.part().empty()) return read_rank(input, {});
    const std::vector<std::string> marks = rank_marks(*input.open());
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (input.part() != std::to_string(i)) continue;
      const MergedRank rank{marks[i], static_cast<std::int32_t>(i),
                            static_cast<std::int32_t>(marks.size())};
      return read_rank(input, rank);
    }
    throw TraceError(marks.empty() ? "must hold several ranks to choose one of them"
                                   : "there is no such rank; the ranks are 0 to " +
                                         std::to_string(marks.size() - 1));
  });
}

}  // namespace foretrace
