#pragma once

#include <cerrno>

namespace foretrace::collect {

/// The program finds `errno` after a call that comes to us as it was before.
class KeepErrno {
 public:
  KeepErrno() = default;
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = before_; }

 private:
  int before_ = errno;
};

/// `Wrapped<function>::call` is `function` that keeps errno.
template <auto function>
struct Wrapped;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Wrapped<function> {
  static Result call(Arguments... arguments) {
    const KeepErrno keep;
    return function(arguments...);
  }
};

}  // namespace foretrace::collect
