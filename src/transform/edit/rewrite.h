#pragma once

// Substitutes kernels in a line by rules and searches for the cheapest result (Jia et al.,
// MetaFlow, SysML 2019, and TASO, SOSP 2019): candidates are taken from a queue, cheapest first;
// each is rewritten in every way that a rule allows; a candidate that costs more than alpha times
// the best so far is dropped. With alpha above 1, a rule that costs time can prepare one that saves
// more.
//
//     conv ; relu => conv_relu : max        a line  conv relu conv relu  ->  conv_relu conv_relu

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/units.h"
#include "graph/select.h"

namespace foretrace {

/// A kernel of a rewritten line. It stands for kernels [begin, end) of the original line.
struct RewrittenKernel {
  std::string name;
  Nanoseconds duration{0};
  std::size_t begin = 0, end = 0;
  bool changed = false;
  bool removed = false;  ///< A rule deleted these kernels.
};

class RewriteRule {
 public:
  /// Reads "a ; b => name : duration", where duration is sum, max, first, last or a time,
  /// optionally with a factor ("0.5 * sum"), or "a => nothing". Throws Error on anything else.
  explicit RewriteRule(const std::string& text);

  std::size_t length() const { return patterns_.size(); }
  bool matches(std::size_t place, std::string_view name) const;
  /// REQUIRES: `kernels` points to length() consecutive kernels.
  RewrittenKernel apply(const RewrittenKernel* kernels) const;

 private:
  void read_duration(std::string text);

  std::vector<NamePattern> patterns_;
  std::string name_;
  std::string of_ = "sum";
  double factor_ = 1;
  Nanoseconds time_{0};
};

struct RewriteSearch {
  double alpha = 1.05;
  std::size_t most = 200;  ///< Candidates examined for one line, at most.
};

/// Returns the cheapest line found; the given one if nothing is cheaper. Increments `exhausted` if
/// the search stopped at `search.most` candidates.
std::vector<RewrittenKernel> cheapest(const std::vector<RewrittenKernel>& line,
                                      const std::vector<RewriteRule>& rules,
                                      const RewriteSearch& search, std::size_t& exhausted);

}  // namespace foretrace
