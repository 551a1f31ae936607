#pragma once

// Selects tasks for a transform, as settings: a task must meet every given condition.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/graph.h"

namespace foretrace {

/// A name pattern: plain text matches anywhere in the name, /text/ is an RE2 expression, and empty
/// text matches all names. Compiled once; throws Error on a bad expression. Matches in linear time.
class NamePattern {
 public:
  explicit NamePattern(std::string_view pattern);
  ~NamePattern();
  NamePattern(NamePattern&&) noexcept;
  bool matches(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A pattern that checks each name of a graph at most once, because names are few and tasks many.
class NameCondition {
 public:
  /// Throws Error on a bad expression. `names` must outlive it, and may grow.
  NameCondition(std::string_view pattern, const Names& names);
  bool operator()(NameId name);

 private:
  const Names& names_;
  NamePattern pattern_;
  std::vector<char> known_;
};

class Selector final : public Described {
 public:
  Selector() = default;
  explicit Selector(std::string_view kind) : kind_(kind) {}
  Selector(std::string_view kind, std::string_view phase) : kind_(kind), phase_(phase) {}

  /// kind (a task kind; "any"; "all"; "device" for all work on a device), name, layer ("3", "2-5"),
  /// module, phase, stream (a lane's name or part of it), rank, step.
  void describe(Fields& fields) override;

  /// Returns the matching tasks in order of lanes, and in line order on each. Never selects removed
  /// tasks. With a name and no kind, selects only device work if any device work matches: an op and
  /// its kernels often share a name, and a user who asks for faster convolutions does not mean the
  /// calls. Matches each distinct name once.
  std::vector<TaskId> select(const Graph& graph) const;
  /// Number of host tasks that match but are left out because device work matches too.
  std::size_t left_out(const Graph& graph) const;
  /// Like select(), but throws Error `no task matches "where" (...)` with the conditions if nothing
  /// matches.
  std::vector<TaskId> select_some(const Graph& graph, std::string_view setting = "where") const;

  /// Throws Error if an expression or a range cannot be read. select() does so too.
  void check() const override;
  /// The only rank that it selects; nullopt if it selects from all.
  std::optional<std::int64_t> rank() const { return rank_; }
  /// The conditions as text: `kind kernel, name "gemm"`, or "any task".
  std::string to_text() const;

 private:
  struct Selection {
    std::vector<TaskId> tasks;
    std::size_t left_out = 0;  ///< See left_out().
  };
  Selection find(const Graph& graph) const;
  bool prefers_device() const { return kind_ == "any" && !name_.empty(); }

  std::string kind_ = "any";
  std::string name_;
  std::string layer_;
  std::string module_;
  std::string phase_ = "any";
  std::string stream_;
  std::optional<std::int64_t> rank_;
  std::optional<std::int64_t> step_;
};

}  // namespace foretrace
