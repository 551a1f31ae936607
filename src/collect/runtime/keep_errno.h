#pragma once

#include <cerrno>

namespace foretrace::collect {

/// Restores `errno` at the end of its life, so that a call of the program that we intercept does
/// not change it.
class KeepErrno {
 public:
  KeepErrno() = default;
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = before_; }

 private:
  int before_ = errno;
};

/// `ErrnoPreserving<function>::call` calls `function` and keeps errno.
template <auto function>
struct ErrnoPreserving;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct ErrnoPreserving<function> {
  static Result call(Arguments... arguments) {
    const KeepErrno keep;
    return function(arguments...);
  }
};

}  // namespace foretrace::collect
