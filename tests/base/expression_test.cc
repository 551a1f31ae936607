#include "base/numbers/expression.h"

#include <gtest/gtest.h>

#include "foretrace/error.h"

namespace foretrace {
namespace {

TEST(Expression, IsWorkedOutForGivenNumbers) {
  Expression formula("ceil(a / b) * max(floor(b), 3.2) + (a > 1 ? 10 : 0)", {"a", "b"});
  EXPECT_DOUBLE_EQ(formula.at(std::vector<double>{5, 2.5}), 2 * 3.2 + 10);
  EXPECT_DOUBLE_EQ(formula.at(std::vector<double>{1, 4}), 4);
}

TEST(Expression, SaysWhatIsWrong) {
  const auto refusal = [](const std::string& text, double value) -> std::string {
    try {
      Expression(text, {"rate", "nodes"}).at(std::vector<double>{value, 0});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("2 * speed", 1),
            "\"2 * speed\": must be a formula of rate, nodes, but cannot be read at \"speed\"");
  EXPECT_EQ(refusal("rate / nodes", 1), "\"rate / nodes\": must be a finite number");
  EXPECT_EQ(refusal("log2(rate)", -1), "\"log2(rate)\": must be a finite number");
  EXPECT_NE(refusal("(rate", 1), "");
  EXPECT_NE(refusal("", 1), "");
}

}  // namespace
}  // namespace foretrace
