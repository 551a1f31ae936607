// A libcuda.so.1 that knows only which version of CUDA it supports: PLAYED_DRIVER, such as 12020.
// Without it, the library answers as the toolkit's stub does.

#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int cuDriverGetVersion(int* version);

int cuDriverGetVersion(int* version) {
  constexpr int kStubLibrary = 34;
  const char* played = std::getenv("PLAYED_DRIVER");
  if (played == nullptr) return kStubLibrary;
  *version = std::atoi(played);
  return 0;
}
