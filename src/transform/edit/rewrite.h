#pragma once

// Substitutions in a line of kernels, and the search for those that pay (Jia et al., MetaFlow,
// SysML 2019, and TASO, SOSP 2019): candidates are taken from a queue, cheapest first; each is
// rewritten in every way a rule allows; what costs more than alpha times the best so far is given
// up. With alpha above 1 a rule that costs may prepare one that gains.
//
//     conv ; relu => conv_relu : max        a line  conv relu conv relu  ->  conv_relu conv_relu

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/units.h"
#include "graph/select.h"

namespace foretrace {

/// One or more kernels that came of kernels `begin` to `end` of the line.
struct RewrittenKernel {
  std::string name;
  Nanoseconds duration{0};
  std::size_t begin = 0, end = 0;
  bool changed = false;
  bool gone = false;  ///< Nothing is left of them.
};

class RewriteRule {
 public:
  /// "a ; b => name : duration", where duration is sum, max, first, last or a time, each perhaps
  /// with a factor ("0.5 * sum"), or "a => nothing". Throws Error.
  explicit RewriteRule(const std::string& text);

  std::size_t length() const { return patterns_.size(); }
  bool matches(std::size_t place, std::string_view name) const;
  /// Takes `length()` kernels in line.
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
  std::size_t most = 200;  ///< Candidates that are looked at for one line.
};

/// The cheapest line found; the given one if nothing is cheaper. `exhausted` is counted up if the
/// search ended for `most`.
std::vector<RewrittenKernel> cheapest(const std::vector<RewrittenKernel>& line,
                                      const std::vector<RewriteRule>& rules,
                                      const RewriteSearch& search, std::size_t& exhausted);

}  // namespace foretrace
