#pragma once

// A linear program in which some variables are whole numbers, solved by glpk.
//
//     max  sum_i gain_i x_i     least_r <= sum_i factor_ri x_i <= most_r,   0 <= x_i <= most_i

#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace foretrace {

class IntegerProgram {
 public:
  enum class Kind { continuous, integer, binary };
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  struct Solution {
    std::vector<double> values{};  ///< By variable.
    double objective = 0;
  };

  /// Throws Error in a build without glpk; the message suggests `exact`, the solver that needs
  /// none.
  explicit IntegerProgram(const char* exact);
  ~IntegerProgram();

  /// Adds a variable and returns its number.
  int add(Kind kind, double most, double gain);
  /// Pairs of a variable's number and its factor.
  using Terms = std::vector<std::pair<int, double>>;
  void require(const Terms& terms, double least, double most);
  /// Throws Error if no optimum is found within 10 seconds.
  Solution maximize();

 private:
  const char* exact_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
