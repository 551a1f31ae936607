#pragma once

// Formulas that users write: "ceil(H / hu) * max(ceil(2 * H / (rv * ru)), 3.2)". muParser evaluates
// them; it knows + - * / ^, comparisons, && || ?: and the usual functions. ceil and floor are
// added.

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace foretrace {

class Expression {
 public:
  /// `names` are the variables that the text may use. Throws Error if it cannot be read, and in a
  /// build without muParser.
  Expression(const std::string& text, const std::vector<std::string>& names);
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  /// `values` correspond to the names. Throws Error if the result is not finite. Not thread-safe.
  double at(std::span<const double> values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether `name` is a valid variable: a letter, then letters, digits and "_".
bool is_variable(const std::string& name);

}  // namespace foretrace
