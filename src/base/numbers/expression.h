#pragma once

// Formulas that users write: "ceil(H / hu) * max(ceil(2 * H / (rv * ru)), 3.2)". By muParser, which
// knows + - * / ^, comparisons, && || ?: and the usual functions; ceil and floor are added.

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace foretrace {

class Expression {
 public:
  /// `names` are what the text may mention. Throws Error where it cannot be read, and in a build
  /// without muParser.
  Expression(const std::string& text, const std::vector<std::string>& names);
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  /// `values` are by name. Throws Error where the result is no finite number. Use one object by one
  /// thread at a time.
  double at(std::span<const double> values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether `name` may be one of `names`: a letter, then letters, digits and "_".
bool is_variable(const std::string& name);

}  // namespace foretrace
