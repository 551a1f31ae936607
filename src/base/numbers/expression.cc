#include "base/numbers/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"

#ifdef FORETRACE_HAVE_MUPARSER

#include <muParser.h>

namespace foretrace {

struct Expression::Impl {
  mu::Parser parser;
  std::string text;
  std::vector<double> values;
};

Expression::Expression(const std::string& text, const std::vector<std::string>& names)
    : impl_(std::make_unique<Impl>()) {
  impl_->text = text;
  impl_->values.resize(names.size());
  try {
    impl_->parser.DefineFun("ceil", [](double value) { return std::ceil(value); });
    impl_->parser.DefineFun("floor", [](double value) { return std::floor(value); });
    for (std::size_t i = 0; i < names.size(); ++i)
      impl_->parser.DefineVar(names[i], &impl_->values[i]);
    impl_->parser.SetExpr(text);
    impl_->parser.Eval();  // Parses the text; the values are still 0.
  } catch (const mu::Parser::exception_type& error) {
    throw Error(fmt::format("\"{}\": must be a formula of {}, but cannot be read at \"{}\"", text,
                            names.empty() ? "numbers" : joined(names), error.GetToken()));
  }
}

double Expression::at(std::span<const double> values) {
  std::ranges::copy(values, impl_->values.begin());
  const double result = impl_->parser.Eval();
  if (!std::isfinite(result))
    throw Error(fmt::format("\"{}\": must be a finite number", impl_->text));
  return result;
}

}  // namespace foretrace

#else

namespace foretrace {

struct Expression::Impl {};

Expression::Expression(const std::string& text, const std::vector<std::string>&) {
  throw Error(fmt::format("\"{}\": formulas need a build with muParser", text));
}
double Expression::at(std::span<const double>) { return 0; }

}  // namespace foretrace

#endif

namespace foretrace {

Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

bool is_variable(const std::string& name) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  return !name.empty() && is_letter(name.front()) && std::ranges::all_of(name, [&](char c) {
    return is_letter(c) || c == '_' || (c >= '0' && c <= '9');
  });
}

}  // namespace foretrace
