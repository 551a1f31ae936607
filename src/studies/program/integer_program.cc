#include "studies/program/integer_program.h"

#include <fmt/core.h>
#include <string>

#include "foretrace/error.h"

#ifdef FORETRACE_HAVE_GLPK

#include <glpk.h>

namespace foretrace {
namespace {

constexpr int kMilliseconds = 10'000;

}  // namespace

struct IntegerProgram::Impl {
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> program{glp_create_prob(), glp_delete_prob};
};

IntegerProgram::IntegerProgram(const char* exact) : exact_(exact), impl_(new Impl) {
  glp_set_obj_dir(impl_->program.get(), GLP_MAX);
}

int IntegerProgram::add(Kind kind, double most, double gain) {
  glp_prob* const program = impl_->program.get();
  const int column = glp_add_cols(program, 1);  // glpk counts from 1.
  constexpr int kKinds[] = {GLP_CV, GLP_IV, GLP_BV};
  glp_set_col_kind(program, column, kKinds[static_cast<int>(kind)]);
  if (most > 0)
    glp_set_col_bnds(program, column, GLP_DB, 0, most);
  else
    glp_set_col_bnds(program, column, GLP_FX, 0, 0);
  glp_set_obj_coef(program, column, gain);
  return column - 1;
}

void IntegerProgram::require(const Terms& terms, double least, double most) {
  glp_prob* const program = impl_->program.get();
  const int row = glp_add_rows(program, 1);
  std::vector<int> columns = {0};
  std::vector<double> factors = {0};
  for (const auto& [column, factor] : terms)
    columns.push_back(column + 1), factors.push_back(factor);
  const int kind = least == -kInfinite ? GLP_UP
                   : most == kInfinite ? GLP_LO
                   : least == most     ? GLP_FX
                                       : GLP_DB;
  glp_set_row_bnds(program, row, kind, least, most);
  glp_set_mat_row(program, row, static_cast<int>(terms.size()), columns.data(), factors.data());
}

IntegerProgram::Solution IntegerProgram::maximize() {
  glp_prob* const program = impl_->program.get();
  glp_iocp settings;
  glp_init_iocp(&settings);
  settings.msg_lev = GLP_MSG_OFF, settings.presolve = GLP_ON;
  settings.tm_lim = kMilliseconds;
  glp_term_out(GLP_OFF);
  if (glp_intopt(program, &settings) != 0 || glp_mip_status(program) != GLP_OPT)
    throw Error(fmt::format(
        "--solver: milp found no optimum within 10 s; {} is exact and needs no limit", exact_));
  Solution solution{.objective = glp_mip_obj_val(program)};
  for (int column = 1; column <= glp_get_num_cols(program); ++column)
    solution.values.push_back(glp_mip_col_val(program, column));
  return solution;
}

}  // namespace foretrace

#else

namespace foretrace {

struct IntegerProgram::Impl {};

IntegerProgram::IntegerProgram(const char* exact) : exact_(exact) {
  throw Error(fmt::format(
      "--solver: milp needs a build with glpk; {} is exact as well and needs no glpk", exact_));
}
int IntegerProgram::add(Kind, double, double) { return 0; }
void IntegerProgram::require(const Terms&, double, double) {}
IntegerProgram::Solution IntegerProgram::maximize() { return {}; }

}  // namespace foretrace

#endif

namespace foretrace {

IntegerProgram::~IntegerProgram() = default;

}  // namespace foretrace
